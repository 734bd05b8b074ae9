#!/usr/bin/env python3
"""--sweep --devices with workers on the host CPU: merged as one run would be, and nothing lost when
a worker or their watcher is killed.

usage: devices_test.py BENCH_TOPP PROFILES
"""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

CHOICE = "vocab:1000"  # of the profile: four inputs, each soon done
TIMED = {"sample_count", "median_ns", "ci_low_ns", "ci_high_ns", "p05_ns", "p95_ns", "draw_low_ns",
         "draw_high_ns", "busy_ns", "cycles", "sm_mhz", "events_ns", "bytes_per_second",
         "ratio_to_floor", "samples_sha256", "samples", "conditions"}
END = b'{"end":true}'
PATIENCE = 60  # seconds until something that must happen counts as not happening

# Two inputs, and a kernel that is known to be wrong on one of them, with nobody expecting it.
WRONG = {
    "schema": "topp-bench.profile/1", "name": "wrong", "device": "cpu", "seed": 42,
    "limits": {"max_vocab": 2000, "max_batch": 4, "case_seconds": 60, "artifact_bytes": 100000000},
    "timing": {"blocks": 1, "min_samples": 1, "max_samples": 1, "precision": 0.5,
               "block_seconds": 0.05, "warmup_seconds": 0, "draws": 1},
    "matrix": [{"kind": "topp", "kernels": ["stock", "exact"],
                "families": ["normal", "forced=1e9@13"], "vocab": [1000], "batch": [2],
                "p": [0.9]}]}


def check(holds, what):
    if not holds:
        raise AssertionError(what)


def strict(*path):
    def refuse(text):
        raise ValueError(f"{text} is no JSON")
    with open(os.path.join(*path), encoding="utf-8") as file:
        return json.load(file, parse_constant=refuse)


class Tool:
    def __init__(self, program, profiles, root):
        self.program, self.profiles, self.root = program, profiles, root

    def words(self, out, *more, devices="0,1", profile="smoke"):
        devices = ["--devices", devices] if devices else []
        if profile == "smoke" and "--filter" not in more:
            more += ("--filter", CHOICE)
        return [self.program, "--sweep", "--profile", profile, "--profile-dir", self.profiles,
                "--device", "cpu", "--out", out, *devices, *more]

    def run(self, exit_code, out, *more, **choice):
        run = subprocess.run(self.words(out, *more, **choice), capture_output=True, text=True,
                             check=False, timeout=300)
        check(run.returncode == exit_code,
              f"{more} {choice}: exit {run.returncode}, not {exit_code}: {run.stderr}")
        return run.stderr

    def start(self, out, *more, **choice):
        return subprocess.Popen(self.words(out, *more, **choice), stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, text=True)

    def names(self, *more):
        run = subprocess.run([self.program, "--list", "--profile", "smoke", "--profile-dir",
                              self.profiles, "--device", "cpu", "--filter", CHOICE, *more], capture_output=True,
                             text=True, check=True)
        return run.stdout.split()


def until(what, condition):
    start = time.monotonic()
    while not condition():
        check(time.monotonic() - start < PATIENCE, f"waited in vain: {what}")
        time.sleep(0.002)


def journal(*path):
    try:
        with open(os.path.join(*path, "journal.jsonl"), "rb") as file:
            return file.read().split(b"\n")[:-1]
    except FileNotFoundError:
        return []


def files(*path):
    """All bytes of a run's folder, by name."""
    folder = os.path.join(*path)
    return {name: open(os.path.join(folder, name), "rb").read() for name in os.listdir(folder)}


def workers_of(process):
    """Process ids by shard number."""
    with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="ascii") as file:
        children = [int(word) for word in file.read().split()]
    found = {}
    for child in children:
        try:
            with open(f"/proc/{child}/cmdline", encoding="utf-8") as file:
                words = file.read().split("\0")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if words.count("--shard") == 1:
            found[int(words[words.index("--shard") + 1].split("/")[0])] = child
    return found


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def cells(out):
    """What two runs of one plan have in common, whatever ran them."""
    common = []
    for cell in strict(out, "results.json")["cells"]:
        common.append({name: value for name, value in cell.items()
                       if name not in TIMED | {"shard", "device_index"}})
    return common


def same_cells(out, reference, what):
    mine = cells(out)
    check(len(mine) == len(reference), f"{what}: {len(mine)} cells, not {len(reference)}")
    for left, right in zip(mine, reference):
        for name, value in right.items():
            check(left.get(name) == value, f"{what}: {right['name']}: {name} differs")


def test_merged(tool, reference):
    out, cache = os.path.join(tool.root, "merged"), os.path.join(tool.root, "cache")
    errors = tool.run(0, out, "--oracle-cache", cache)
    same_cells(out, reference, "two workers")
    for line in ("cpu:0: shard 1/2 into", "cpu:1: shard 2/2 into", "workers: "):
        check(line in errors, f"does not say '{line}': {errors}")
    check(len(re.findall("^workers: ", errors, re.M)) <= 11, f"too many lines: {errors}")
    check("gating: " not in errors, f"a worker shows progress of its own: {errors}")
    verify = subprocess.run([tool.program, "--verify", os.path.join(out, "receipt.json"),
                             "--profile-dir", tool.profiles], capture_output=True, text=True,
                            check=False)
    # The source tree may be under somebody's hands while this runs.
    changed = [line for line in verify.stdout.splitlines()
               if line.startswith("changed: ") and not line.startswith("changed: sources: ")]
    check(verify.returncode in (0, 1) and not changed, f"--verify: {verify.stdout}")
    # Again into the same folder, with what the oracle has said already.
    tool.run(0, out, "--oracle-cache", cache)
    same_cells(out, reference, "two workers, again")
    for shard in (1, 2):
        counts = strict(out, f"shard-{shard}-of-2", "results.json")["run"]["oracle_cache"]
        check(counts["read"] > 0 and counts["computed"] == 0 and counts["damaged"] == 0,
              f"shard {shard}: the cache gave {counts}")
    errors = tool.run(2, out, devices="0,1,2")
    check("shards" in errors, f"three workers beside two: {errors}")


def kill_a_worker(tool, out):
    """The second worker killed with SIGKILL; its journal before, and what was said. None if it was
    too fast."""
    shard = os.path.join(out, "shard-2-of-2")
    process = tool.start(out)
    until("the second worker's journal", lambda: len(journal(shard)) > 3)
    victim = workers_of(process).get(2)
    if victim is None:
        process.communicate()
        return None
    os.kill(victim, signal.SIGSTOP)
    until("the worker stands still", lambda: not alive(victim) or stopped(victim))
    before = journal(shard)
    os.kill(victim, signal.SIGKILL)
    errors = process.communicate(timeout=PATIENCE)[1]
    if before[-1] == END:
        return None
    check(process.returncode == 4, f"killed worker: exit {process.returncode}: {errors}")
    return before, errors


def several_times(tool, name, attempt):
    """A machine under load may let a short run end before its signal comes."""
    for number in range(5):
        out = os.path.join(tool.root, f"{name}{number}")
        found = attempt(tool, out)
        if found:
            return out, found
    raise AssertionError(f"{name}: no signal met a running process")


def test_killed_worker(tool, reference):
    out, (before, errors) = several_times(tool, "killed", kill_a_worker)
    shard = os.path.join(out, "shard-2-of-2")
    said = re.search(r"^cpu:1: the worker was ended by signal 9 \(Killed\) while (gating|timing) "
                     r"(\S+)", errors, re.M)
    check(said, f"the dead worker's cell is not named: {errors}")
    mine = tool.names("--shard", "2/2")
    check(said.group(2) in mine, f"{said.group(2)} is not of shard 2")
    if said.group(1) == "gating":
        gated = [json.loads(line)["cell"] for line in before[1:]]
        check(mine.index(said.group(2)) - len(gated) in (-1, 0),
              f"died at {said.group(2)}, after {len(gated)} verdicts")
    check("--resume" in errors and "1 of 2 workers" in errors, f"says no mend: {errors}")
    check(os.path.exists(os.path.join(out, "shard-1-of-2", "receipt.json")),
          "the other worker did not finish")
    check(not os.path.exists(os.path.join(out, "results.json")), "half a run was merged")
    finished = files(out, "shard-1-of-2")
    errors = tool.run(2, out)
    check("--resume" in errors, f"without --resume: {errors}")
    check(files(out, "shard-1-of-2") == finished, "a refused run changed a finished shard")
    tool.run(0, out, "--resume")
    after = journal(shard)
    check(after[:len(before)] == before, "lines of the journal were lost or changed")
    check(files(out, "shard-1-of-2") == finished, "a finished shard was written anew")
    same_cells(out, reference, "resumed")


def stopped(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        return file.read().rpartition(")")[2].split()[0] == "T"


def interrupt(which, code):
    def attempt(tool, out):
        process = tool.start(out)
        until("both journals", lambda: all(
            len(journal(out, f"shard-{shard}-of-2")) > 2 for shard in (1, 2)))
        workers = workers_of(process)
        held = {shard: journal(out, f"shard-{shard}-of-2") for shard in (1, 2)}
        process.send_signal(which)
        errors = process.communicate(timeout=PATIENCE)[1]
        until("no worker is left", lambda: not any(map(alive, workers.values())))
        if all(journal(out, f"shard-{shard}-of-2")[-1] == END for shard in (1, 2)):
            return None
        check(process.returncode == code, f"{which!r}: exit {process.returncode}: {errors}")
        check(code != 4 or "--resume" in errors, f"{which!r}: says no mend: {errors}")
        return held
    return attempt


def test_interrupted(tool, reference):
    """An interrupt reaches the workers through their watcher; a killed watcher leaves none."""
    for which, code in ((signal.SIGINT, 4), (signal.SIGTERM, 4), (signal.SIGKILL, -9)):
        out, held = several_times(tool, f"signal{int(which)}-", interrupt(which, code))
        tool.run(0, out, "--resume")
        for shard, lines in held.items():
            check(journal(out, f"shard-{shard}-of-2")[:len(lines)] == lines,
                  f"{which!r}: lines of shard {shard} were lost")
        same_cells(out, reference, f"after {which!r}")


def test_one_fails(tool):
    """A worker that cannot write: its own words, its own exit code, the other one finishes."""
    out = os.path.join(tool.root, "blocked")
    os.mkdir(out)
    with open(os.path.join(out, "shard-2-of-2"), "w", encoding="ascii") as file:
        file.write("in the way")
    errors = tool.run(2, out, "--gate-only")
    check(re.search(r"^cpu:1: bench_topp: .*shard-2-of-2", errors, re.M),
          f"the worker's own words are missing: {errors}")
    check(os.path.exists(os.path.join(out, "shard-1-of-2", "receipt.json")),
          "the other worker did not finish")
    check(not os.path.exists(os.path.join(out, "results.json")), "half a run was merged")


def test_unexpected(tool):
    profile, out = os.path.join(tool.root, "wrong.json"), os.path.join(tool.root, "wrong")
    with open(profile, "w", encoding="utf-8") as file:
        json.dump(WRONG, file)
    tool.run(1, out, profile=profile)
    check(strict(out, "results.json")["summary"]["unexpected"] == 1, "the verdict was lost")
    # No more inputs than workers; one worker is no worker.
    errors = tool.run(1, os.path.join(tool.root, "three"), profile=profile, devices="0,1,2")
    check("the first 2 of 3" in errors, f"three workers for two inputs: {errors}")
    out = os.path.join(tool.root, "alone")
    errors = tool.run(0, out, "--filter", "exact/normal", profile=profile)
    check("the first 1 of 2" in errors and "shard" not in errors, f"one input: {errors}")
    check(strict(out, "results.json")["run"]["shard"] is None, "one input was cut")
    check(sorted(name for name in os.listdir(out) if name.startswith("shard")) == [],
          "one input has shards")
    tool.run(0, out, "--filter", "exact/normal", profile=profile, devices="3")


def test_refused(tool):
    out = os.path.join(tool.root, "refused")
    for more, says in ((["--shard", "1/2"], "--shard"),
                       (["--benchmark_format=json"], "benchmark.json"),
                       (["--filter", "nothing-like-this"], "--filter"),
                       (["--profile", "nowhere"], "nowhere")):
        errors = tool.run(2, out, *more)
        check(says in errors, f"{more}: {errors}")
    for devices in ("0,0", "0,", "x", "-1", "0;1", "1024"):
        errors = tool.run(2, out, devices=devices)
        check("--devices" in errors and "such as 0,1" in errors, f"{devices}: {errors}")
    check(not os.path.exists(out), "a refused run left its folder")
    # The unfinished run of one process is left alone.
    os.mkdir(out)
    with open(os.path.join(out, "journal.jsonl"), "w", encoding="ascii") as file:
        file.write('{"schema": "topp-bench.journal/1", "plan": "another"}\n')
    errors = tool.run(2, out)
    check("--force" in errors, f"over another run: {errors}")
    check(os.listdir(out) == ["journal.jsonl"], "a refused run left something")


def main():
    program, profiles = sys.argv[1], sys.argv[2]
    with tempfile.TemporaryDirectory(prefix="topp-devices-") as root:
        tool = Tool(program, profiles, root)
        whole = os.path.join(root, "whole")
        tool.run(0, whole, devices=None)
        reference = cells(whole)
        test_refused(tool)
        test_unexpected(tool)
        test_one_fails(tool)
        test_merged(tool, reference)
        test_killed_worker(tool, reference)
        test_interrupted(tool, reference)
    print("devices_test: two workers as one run; killed, interrupted and orphaned workers resumed, "
          "nothing lost")


if __name__ == "__main__":
    try:
        main()
    except AssertionError as error:
        sys.exit(f"devices_test: {error}")
