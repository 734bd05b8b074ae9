#!/usr/bin/env bash
# ci/slurm/shard.sbatch when its time is up, with made-up programs in place of bench_topp and scontrol:
# it is queued again, but not for ever when nothing gets finished.
#
# usage: shard_task_test.sh SOURCE_DIR
set -u
source=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/a b"
cat >"$scratch/bench" <<'TEXT'
#!/bin/sh
while [ "$1" != --out ]; do shift; done
mkdir -p "$2"
[ "$GROWS" = no ] || echo line >>"$2/journal.jsonl"
trap 'exit 4' TERM
sleep 0.2 # until its starter has set its traps
kill -USR1 "$PPID"
while :; do sleep 0.05; done
TEXT
printf '#!/bin/sh\necho "$@" >"%s/queued"\nexit 1\n' "$scratch" >"$scratch/scontrol"
chmod +x "$scratch/bench" "$scratch/scontrol"

failed=0
# GROWS, earlier restarts, yes or no: is it queued again?
while read -r grows restarts queued; do
  rm -f "$scratch/queued"
  GROWS=$grows SLURM_RESTART_COUNT=$restarts SLURM_ARRAY_TASK_ID=1 SLURM_JOB_ID=7 \
    PATH=$scratch:$PATH bash "$source/ci/slurm/shard.sbatch" "$scratch/bench" "$scratch/a b" 2 \
    >"$scratch/log" 2>&1
  code=$?
  found=no
  [ ! -e "$scratch/queued" ] || found=yes
  if [ "$code" -ne 4 ] || [ "$found" != "$queued" ]; then
    printf 'journal grows: %s, restarts: %s: exit code %d, queued again: %s\n' \
      "$grows" "$restarts" "$code" "$found"
    cat "$scratch/log"
    failed=1
  fi
done <<'TEXT'
yes 0 yes
yes 3 yes
yes 50 yes
no 0 yes
no 2 yes
no 3 no
no 50 no
TEXT
exit "$failed"
