#!/usr/bin/env bash
# ci/slurm/submit with a made-up sbatch: what every task would refuse is not submitted, what they
# would run is, with a GPU that is not here too.
#
# usage: submit_test.sh SOURCE_DIR BENCH_TOPP
set -u
source=$1 bench=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cat >"$scratch/sbatch" <<TEXT
#!/bin/sh
echo "\$@" >>"$scratch/submitted"
echo 7
TEXT
chmod +x "$scratch/sbatch"
touch "$scratch/for-the-nodes.so"

export TOPP_BENCH_PROFILES=$source/profiles
inputs_of() { # of the sweep with these options
  "$bench" --sweep --dry-run "$@" 2>/dev/null | sed 's/.* cells of \([0-9]*\) inputs/\1/'
}
cpu=$(inputs_of --device cpu) cuda=$(inputs_of --device cuda)
peaked=$(inputs_of --device cpu --filter peaked)

failed=0
# Exit code, part of what is said, words.
while IFS='|' read -r code says words; do
  rm -f "$scratch/submitted"
  eval "set -- $words"
  PATH=$scratch:$PATH "$source/ci/slurm/submit" \
    --programs "$(dirname "$bench")" --out "$scratch/out" "$@" >"$scratch/log" 2>&1
  found=$?
  jobs=0
  [ ! -e "$scratch/submitted" ] || jobs=$(wc -l <"$scratch/submitted")
  wanted=2
  [ "$code" -eq 0 ] || wanted=0
  if [ "$found" -ne "$code" ] || [ "$jobs" -ne "$wanted" ] || ! grep -q -e "$says" "$scratch/log"; then
    printf '%s: exit code %d, %d jobs, no "%s" in\n' "$words" "$found" "$jobs" "$says"
    cat "$scratch/log"
    failed=1
  fi
done <<TEXT
0|merge 7|--shards $cpu -- --device cpu
2|take at most $cpu shards|--shards $((cpu + 1)) -- --device=cpu
2|take at most $peaked shards|--shards $cpu -- --device cpu --filter peaked --oracle-cache x --threads 1
0|merge 7|--shards $cuda
0|merge 7|--shards $cuda -- --profile default-cuda
0|merge 7|--shards $cuda -- --device auto
2|take at most $cuda shards|--shards $((cuda + 1))
2|take at most $cuda shards|--shards $((cuda + 1)) -- --device=auto
2|--dry-run is no option of a task|--shards 2 -- --dry-run
2|--out=x is no option of a task|--shards 2 -- --profile smoke --out=x
2|--shard is no option of a task|--shards 2 -- --shard 1/2
2|there is no profile|--shards 2 -- --profile absent
2|--resume keeps what|--shards 2 -- --device cpu --force
0|merge 7|--shards $((cpu + 1)) --gres ''
2|no such file|--shards 2 -- --device cpu --plugin ./absent.so
0|cannot be loaded|--shards 2 -- --device cpu --plugin $scratch/for-the-nodes.so
TEXT
[ ! -e "$scratch/out/shard-1-of-$cpu" ] || { echo 'submit left a folder of a shard'; failed=1; }
exit "$failed"
