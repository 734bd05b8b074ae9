#!/usr/bin/env bash
# What cmake --install makes can be moved: programs run from another folder with an empty
# environment, on profiles and shared libraries of that folder.
# usage: install_test.sh BUILD_DIR
set -euo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cmake --install "$1" --prefix "$scratch/made" >"$scratch/log" || {
  cat "$scratch/log" >&2
  exit 1
}
mv "$scratch/made" "$scratch/moved"
env -i "$scratch/moved/bin/bench_topp" --sweep --gate-only --device cpu --profile smoke \
  --filter captured --out "$scratch/out" 2>&1 | tail -n 2
grep -qF "$scratch/moved/bin/../share/topp-bench/profiles" <(
  env -i "$scratch/moved/bin/bench_topp" --list --profile none --device cpu 2>&1) || {
  echo 'FAILED: profiles are not taken from the moved folder' >&2
  exit 1
}
env -i "$scratch/moved/bin/perfwatch" --version
# Into a file first: a reader that stops early would break the writer's pipe.
env -i PATH=/usr/bin:/bin ldd "$scratch/moved/bin/bench_topp" >"$scratch/libraries"
for library in libjansson libcrypto libbenchmark; do
  grep -q "$library.*$scratch/moved/" "$scratch/libraries" || {
    echo "FAILED: $library is not the one beside the program" >&2
    exit 1
  }
done
