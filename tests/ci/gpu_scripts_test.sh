#!/usr/bin/env bash
# The ci/gpu-* scripts where there is no GPU: exit code 77 at once, and a report of before stays.
#
# usage: gpu_scripts_test.sh SOURCE_DIR
set -u
source=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
printf '#!/bin/sh\nexit 9\n' >"$scratch/nvidia-smi"
chmod +x "$scratch/nvidia-smi"

failed=0
for script in gpu-test gpu-conformance gpu-exact gpu-devices gpu-external; do
  report=$scratch/page.md words=("$scratch/page.md")
  [ "$script" != gpu-external ] || words=()
  echo precious >"$report"
  PATH=$scratch:$PATH TOPP_PROGRAMS=$scratch "$source/ci/$script" "${words[@]}" >"$scratch/log" 2>&1
  code=$?
  if [ "$code" -ne 77 ] || [ "$(cat "$report")" != precious ] || ! grep -q '^skipped: ' "$scratch/log"; then
    printf '%s: exit code %d, the report: %s\n' "$script" "$code" "$(head -c 200 "$report")"
    cat "$scratch/log"
    failed=1
  fi
done
exit "$failed"
