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

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from checks import TIMED, finish, need, need_receipt, read_json

CHOICE = "vocab:1000"  # of the profile: four inputs, each soon done
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
        need(f"{more} {choice}: exit {run.returncode}, not {exit_code}: {run.stderr}",
             run.returncode == exit_code)
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
        need(f"waited in vain: {what}", time.monotonic() - start < PATIENCE)
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
    for cell in read_json(out, "results.json")["cells"]:
        common.append({name: value for name, value in cell.items()
                       if name not in TIMED | {"shard", "device_index"}})
    return common


def same_cells(out, reference, what):
    mine = cells(out)
    need(f"{what}: {len(mine)} cells, not {len(reference)}", len(mine) == len(reference))
    for left, right in zip(mine, reference):
        for name, value in right.items():
            need(f"{what}: {right['name']}: {name} differs", left.get(name) == value)


def test_merged(tool, reference):
    out, cache = os.path.join(tool.root, "merged"), os.path.join(tool.root, "cache")
    errors = tool.run(0, out, "--oracle-cache", cache)
    same_cells(out, reference, "two workers")
    for line in ("cpu:0: shard 1/2 into", "cpu:1: shard 2/2 into", "workers: "):
        need(f"does not say '{line}': {errors}", line in errors)
    need(f"too many lines: {errors}", len(re.findall("^workers: ", errors, re.M)) <= 11)
    need(f"a worker shows progress of its own: {errors}", "gating: " not in errors)
    need_receipt(tool.program, os.path.join(out, "receipt.json"), "--profile-dir", tool.profiles)
    # Again into the same folder, with what the oracle has said already.
    tool.run(0, out, "--oracle-cache", cache)
    same_cells(out, reference, "two workers, again")
    for shard in (1, 2):
        counts = read_json(out, f"shard-{shard}-of-2", "results.json")["run"]["oracle_cache"]
        need(f"shard {shard}: the cache gave {counts}",
             counts["read"] > 0 and counts["computed"] == 0 and counts["damaged"] == 0)
    errors = tool.run(2, out, devices="0,1,2")
    need(f"three workers beside two: {errors}", "shards" in errors)


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
    need(f"killed worker: exit {process.returncode}: {errors}", process.returncode == 4)
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
    need(f"the dead worker's cell is not named: {errors}", said)
    mine = tool.names("--shard", "2/2")
    need(f"{said.group(2)} is not of shard 2", said.group(2) in mine)
    if said.group(1) == "gating":
        gated = [json.loads(line)["cell"] for line in before[1:]]
        need(f"died at {said.group(2)}, after {len(gated)} verdicts",
             mine.index(said.group(2)) - len(gated) in (-1, 0))
    need(f"says no mend: {errors}", "--resume" in errors and "1 of 2 workers" in errors)
    need("the other worker did not finish",
         os.path.exists(os.path.join(out, "shard-1-of-2", "receipt.json")))
    need("half a run was merged", not os.path.exists(os.path.join(out, "results.json")))
    finished = files(out, "shard-1-of-2")
    errors = tool.run(2, out)
    need(f"without --resume: {errors}", "--resume" in errors)
    need("a refused run changed a finished shard", files(out, "shard-1-of-2") == finished)
    tool.run(0, out, "--resume")
    after = journal(shard)
    need("lines of the journal were lost or changed", after[:len(before)] == before)
    need("a finished shard was written anew", files(out, "shard-1-of-2") == finished)
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
        need(f"{which!r}: exit {process.returncode}: {errors}", process.returncode == code)
        need(f"{which!r}: says no mend: {errors}", code != 4 or "--resume" in errors)
        return held
    return attempt


def test_interrupted(tool, reference):
    """An interrupt reaches the workers through their watcher; a killed watcher leaves none."""
    for which, code in ((signal.SIGINT, 4), (signal.SIGTERM, 4), (signal.SIGKILL, -9)):
        out, held = several_times(tool, f"signal{int(which)}-", interrupt(which, code))
        tool.run(0, out, "--resume")
        for shard, lines in held.items():
            need(f"{which!r}: lines of shard {shard} were lost",
                 journal(out, f"shard-{shard}-of-2")[:len(lines)] == lines)
        same_cells(out, reference, f"after {which!r}")


def test_one_fails(tool):
    """A worker that cannot write: its own words, its own exit code, the other one finishes."""
    out = os.path.join(tool.root, "blocked")
    os.mkdir(out)
    with open(os.path.join(out, "shard-2-of-2"), "w", encoding="ascii") as file:
        file.write("in the way")
    errors = tool.run(2, out, "--gate-only")
    need(f"the worker's own words are missing: {errors}",
         re.search(r"^cpu:1: bench_topp: .*shard-2-of-2", errors, re.M))
    need("the other worker did not finish",
         os.path.exists(os.path.join(out, "shard-1-of-2", "receipt.json")))
    need("half a run was merged", not os.path.exists(os.path.join(out, "results.json")))


def test_unexpected(tool):
    profile, out = os.path.join(tool.root, "wrong.json"), os.path.join(tool.root, "wrong")
    with open(profile, "w", encoding="utf-8") as file:
        json.dump(WRONG, file)
    tool.run(1, out, profile=profile)
    need("the verdict was lost", read_json(out, "results.json")["summary"]["unexpected"] == 1)
    # No more inputs than workers; one worker is no worker.
    errors = tool.run(1, os.path.join(tool.root, "three"), profile=profile, devices="0,1,2")
    need(f"three workers for two inputs: {errors}", "the first 2 of 3" in errors)
    out = os.path.join(tool.root, "alone")
    errors = tool.run(0, out, "--filter", "exact/normal", profile=profile)
    need(f"one input: {errors}", "the first 1 of 2" in errors and "shard" not in errors)
    need("one input was cut", read_json(out, "results.json")["run"]["shard"] is None)
    need("one input has shards",
         sorted(name for name in os.listdir(out) if name.startswith("shard")) == [])
    tool.run(0, out, "--filter", "exact/normal", profile=profile, devices="3")


def test_refused(tool):
    out = os.path.join(tool.root, "refused")
    for more, says in ((["--shard", "1/2"], "--shard"),
                       (["--benchmark_format=json"], "benchmark.json"),
                       (["--filter", "nothing-like-this"], "--filter"),
                       (["--profile", "nowhere"], "nowhere")):
        errors = tool.run(2, out, *more)
        need(f"{more}: {errors}", says in errors)
    for devices in ("0,0", "0,", "x", "-1", "0;1", "1024"):
        errors = tool.run(2, out, devices=devices)
        need(f"{devices}: {errors}", "--devices" in errors and "such as 0,1" in errors)
    need("a refused run left its folder", not os.path.exists(out))
    # The unfinished run of one process is left alone.
    os.mkdir(out)
    with open(os.path.join(out, "journal.jsonl"), "w", encoding="ascii") as file:
        file.write('{"schema": "topp-bench.journal/1", "plan": "another"}\n')
    errors = tool.run(2, out)
    need(f"over another run: {errors}", "--force" in errors)
    need("a refused run left something", os.listdir(out) == ["journal.jsonl"])


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
    finish("two workers as one run; killed, interrupted and orphaned workers resumed, nothing lost")


if __name__ == "__main__":
    main()
