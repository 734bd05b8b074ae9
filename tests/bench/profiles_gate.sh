#!/usr/bin/env bash
# Every profile but the long ones, gated as a user runs it: as its expectations say, exit 0. The long
# ones are listed.
# usage: profiles_gate.sh BENCH_TOPP
set -euo pipefail
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
for profile in smoke forced masked ties adjacent ends hazard; do
  "$1" --sweep --gate-only --device cpu --profile "$profile" --out "$out/$profile" 2>"$out/errors" |
    tail -n 1 || {
    cat "$out/errors" >&2
    exit 1
  }
done
for profile in default-cpu default-cuda full gumbel; do
  count=$("$1" --list --profile "$profile" 2>/dev/null | wc -l)
  printf '%s: %d cells\n' "$profile" "$count"
  [ "$count" -gt 100 ]
done
