# Shared by the ci/gpu-* scripts; sourced, not run. They need a GPU, and either the build tools or, in
# TOPP_PROGRAMS, a folder with the programs already built (bench_topp, perfwatch, gpu_*, and the
# libraries of tests/plugins in plugins/).

# Before anything is built or a report begun, so that an earlier one stays.
gpu_needed() {
  nvidia-smi -L >/dev/null 2>&1 || { echo 'skipped: no GPU here'; exit 77; }
}

# Sets `programs` to a folder that holds the named build targets.
gpu_programs() {
  if [ -n "${TOPP_PROGRAMS:-}" ]; then
    programs=$(realpath "$TOPP_PROGRAMS")
    return
  fi
  local build=${TOPP_BUILD_DIR:-build-cuda} target path
  cmake --preset cuda-release -B "$build" >/dev/null
  cmake --build "$build" --target "$@" >/dev/null
  mkdir -p "$build/gpu-programs"
  programs=$(realpath "$build/gpu-programs")
  for target in "$@"; do
    path=$(find "$build/bench" "$build/ci" "$build/tests" -name "$target" -type f -perm -u+x | head -n 1)
    [ -z "$path" ] || ln -sf "$(realpath "$path")" "$programs/$target"
  done
  ln -sfn "$(realpath "$build/tests/plugins")" "$programs/plugins"
}

# What every report begins with.
gpu_header() {
  printf '# %s\n\n- Date: %s\n- Commit: %s\n- GPU and driver: %s\n- nvcc: %s\n\n' "$1" \
    "$(date -u +%Y-%m-%d)" "${TOPP_COMMIT:-$(git rev-parse --short HEAD 2>/dev/null || echo unknown)}" \
    "$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -n 1 || echo none)" \
    "$(nvcc --version 2>/dev/null | sed -n 's/.*release \([^,]*\).*/\1/p')"
}

# gpu_sanitize TOOL COMMAND...: one tool of compute-sanitizer over one program, its summary alone
# unless it finds something.
gpu_sanitize() {
  local tool=$1 log code=0
  shift
  log=$(mktemp)
  compute-sanitizer --error-exitcode 9 --tool "$tool" "$@" >"$log" 2>&1 || code=$?
  [ "$code" -eq 0 ] || cat "$log"
  printf '%-10s %s: %s\n' "$tool" "$(basename "$1") ${*:2}" "$(grep -E 'SUMMARY' "$log" | tail -n 1 | sed 's/^=* *//')"
  rm -f "$log"
  return "$code"
}
