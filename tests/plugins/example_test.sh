#!/usr/bin/env bash
# An example plug-in of the docs: under 60 lines, built by its own CMake file against the installed
# headers, gated and timed. The CUDA one is built where nvcc is and run where a GPU is.
# usage: example_test.sh cpu|cuda BENCH_TOPP SOURCES BUILD [NVCC]
set -euo pipefail
kind=$1 program=$2 sources=$3 build=$4 nvcc=${5-}
example=$sources/docs/examples/plugin-$kind
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for file in "$example"/*; do
  lines=$(wc -l <"$file")
  [ "$lines" -lt 60 ] || { echo "FAILED: $file has $lines lines" >&2; exit 1; }
done
cmake --install "$build" --prefix "$scratch/installed" >"$scratch/log" || { cat "$scratch/log" >&2; exit 1; }
options=(-DTOPP_BENCH_INCLUDE="$scratch/installed/include/topp-bench")
if [ "$kind" = cuda ]; then
  [ -n "$nvcc" ] || nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null || true)
  [ -n "$nvcc" ] || { echo 'skipped: no nvcc here'; exit 77; }
  options+=(-DCMAKE_CUDA_COMPILER="$nvcc")
  nvidia-smi >/dev/null 2>&1 || options+=(-DCMAKE_CUDA_ARCHITECTURES=90-real)
fi
{ cmake -S "$example" -B "$scratch/made" "${options[@]}" && cmake --build "$scratch/made"; } \
  >"$scratch/log" 2>&1 || { cat "$scratch/log" >&2; exit 1; }
library=$(ls "$scratch"/made/lib*.so)
"$program" --variants --plugin "$library" >"$scratch/variants"
grep -E "^topp +(sorted|bisect) +$kind" "$scratch/variants"
if [ "$kind" = cuda ] && ! "$program" --list --device cuda --profile smoke >/dev/null 2>&1; then
  echo 'skipped: built and loaded, but this build has no CUDA device to run it on'
  exit 77
fi
if [ "$kind" = cuda ] && ! nvidia-smi >/dev/null 2>&1; then
  echo 'skipped: built and loaded, but no GPU to run it on'
  exit 77
fi
"$program" --sweep --device "$kind" --profile smoke --plugin "$library" \
  --filter '/(sorted|bisect|exact)/' --out "$scratch/out" 2>"$scratch/errors" || {
  cat "$scratch/errors" >&2
  exit 1
}
