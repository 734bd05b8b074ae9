#!/usr/bin/env bash
# The shipped profiles on the CPU, gated and not timed: each ends as it says itself (exit code 0),
# with a row for every cell it lists. The big ones are listed only.
# usage: profiles_gate.sh BENCH_TOPP PROFILES_DIR [PROFILE...]
set -euo pipefail
program=$1 profiles=$2
shift 2
[ $# -gt 0 ] || set -- smoke forced masked ties adjacent ends
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
failed=0

list() { # profile [option...]
  "$program" --list --profile-dir "$profiles" --profile "$@" 2>"$out/errors" || {
    printf 'FAILED: --list --profile %s: %s\n' "$1" "$(tail -n 1 "$out/errors")" >&2
    failed=1
  }
}

for profile in "$@"; do
  code=0
  "$program" --sweep --gate-only --device cpu --profile-dir "$profiles" --profile "$profile" \
    --out "$out/$profile" >"$out/table" 2>"$out/errors" || code=$?
  listed=$(list "$profile" --device cpu | wc -l)
  rows=$(grep -c '^{"name":"' "$out/$profile/results.json" || true)
  printf '%s: exit code %d, %d cells of %d\n' "$profile" "$code" "$rows" "$listed"
  if [ "$code" -ne 0 ] || [ "$rows" -ne "$listed" ] || [ "$listed" -lt 50 ]; then
    failed=1
    tail -n 20 "$out/table" "$out/errors" >&2
  fi
done

for profile in default-cpu default-cuda full gumbel hazard; do
  list "$profile" >"$out/names"
  printf '%s: lists %d cells\n' "$profile" "$(wc -l <"$out/names")"
  [ "$(wc -l <"$out/names")" -ge 100 ] || failed=1
  if [ -n "$(sort "$out/names" | uniq -d)" ]; then
    printf 'FAILED: %s lists a name twice\n' "$profile" >&2
    failed=1
  fi
done
exit "$failed"
