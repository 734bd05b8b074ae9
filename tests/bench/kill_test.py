#!/usr/bin/env python3
"""Kills sweeps at random moments and resumes them: nothing finished may be lost, and the final
files must be those of an uninterrupted run apart from times.

usage: kill_test.py BENCH_TOPP [--kills N | --all] [--seed N]

SIGKILL and SIGINT in turn. A folder takes one to three of them before its run is
resumed to the end. --all: 100 kills, and of the whole profile, not of its small cells alone.
"""
import argparse
import fcntl
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from checks import TIMED, finish, need, need_receipt, read_json, strict

ONCE = {"id", "date", "resumed"}


def journal(folder):
    """Header, and the whole lines after it; a torn last line does not count."""
    try:
        with open(os.path.join(folder, "journal.jsonl"), "rb") as file:
            text = file.read()
    except FileNotFoundError:
        return []
    return [strict(line) for line in text.split(b"\n")[:-1]]


def blocks(lines):
    found = {}
    for line in lines:
        if line.get("line") == "block":
            key = (line["cell"], line["block"])
            need(f"{key} stands twice in the journal", key not in found)
            found[key] = line["samples"]
    return found


def normal(folder):
    results = read_json(folder, "results.json")
    for name in ONCE:
        results["run"].pop(name)
    for cell in results["cells"]:
        for name in TIMED:
            cell.pop(name)
    with open(os.path.join(folder, "results.tsv"), encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file]
    keep = [i for i, name in enumerate(rows[0]) if name not in TIMED]
    table = [[row[i] for i in keep] for row in rows]
    entries = sorted((entry["name"], entry["run_type"], entry.get("repetition_index", -1),
                      entry.get("aggregate_name", ""), entry.get("error_message", ""))
                     for entry in read_json(folder, "benchmark.json")["benchmarks"])
    return results, table, entries


def check_samples(folder):
    """Every block of the journal is in the result with its very samples, and nothing else is."""
    taken = blocks(journal(folder))
    for cell in read_json(folder, "results.json")["cells"]:
        samples = cell["samples"]
        mine = sorted(block for name, block in taken if name == cell["name"])
        need(f"{cell['name']}: blocks {mine}", mine == list(range(cell["blocks"])))
        together = {key: [] for key in ("time_ns", "block", "draw")}
        for block in mine:
            for key in together:
                together[key] += taken[(cell["name"], block)][key]
        for key, values in together.items():
            need(f"{cell['name']}: {key} differ", (samples[key] if samples else []) == values)


class Sweep:
    choice = []  # what of the profile is run

    def __init__(self, program, folder, profile="smoke"):
        self.command = [program, "--sweep", "--profile", profile, "--device", "cpu", "--out",
                        folder] + (self.choice if profile == "smoke" else [])

    def start(self, *more):
        return subprocess.Popen(self.command + list(more), stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, text=True)

    def finish(self, *more):
        process = self.start(*more)
        errors = process.communicate()[1]
        need(f"{more}: exit {process.returncode}: {errors}", process.returncode == 0)


def kill_once(sweep, folder, dice, seconds, resume, which):
    """One run ended by a signal; True when it hit a running process."""
    before = journal(folder)
    process = sweep.start(*(["--resume"] if resume else []))
    time.sleep(dice.uniform(0.0, 1.1 * seconds))
    process.send_signal(which)
    errors = process.communicate()[1]
    code = process.returncode
    allowed = {0, -signal.SIGKILL} if which == signal.SIGKILL else {0, 4, -signal.SIGINT}
    need(f"{which!r}: exit {code}: {errors}", code in allowed)
    need(f"an interrupted run does not say the mend: {errors}", code != 4 or "--resume" in errors)
    after = journal(folder)
    need("lines of the journal were lost or changed", after[:len(before)] == before or not before)
    blocks(after)
    return code != 0


def kill_and_resume(program, root, reference, dice, seconds, number, counts):
    folder = os.path.join(root, f"run{number}")
    sweep = Sweep(program, folder)
    for _ in range(dice.randint(1, 3)):
        landed = counts[signal.SIGKILL] + counts[signal.SIGINT]
        which = signal.SIGKILL if landed % 2 == 0 else signal.SIGINT
        counts[which] += kill_once(sweep, folder, dice, seconds, os.path.exists(folder), which)
    held = blocks(journal(folder))
    sweep.finish("--resume")
    final = blocks(journal(folder))
    for key, samples in held.items():
        need(f"{key}: a finished block was lost or changed", final.get(key) == samples)
    counts["blocks kept"] += len(held)
    check_samples(folder)
    for name, mine, whole in zip(("results.json", "results.tsv", "benchmark.json"),
                                 normal(folder), reference):
        need(f"{name} differs from an uninterrupted run's", mine == whole)
    need_receipt(program, os.path.join(folder, "receipt.json"))
    shutil.rmtree(folder)


def two_into_one(program, root):
    """The folder's lock is held while a run is in it: a second run is refused and harms nothing."""
    folder = os.path.join(root, "shared")
    os.mkdir(folder)
    with open(os.path.join(folder, ".lock"), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        process = Sweep(program, folder).start("--force")
        errors = process.communicate()[1]
        need(f"second run: exit {process.returncode}: {errors}",
             process.returncode == 2 and "another run" in errors)
        need(f"the refused run left {os.listdir(folder)}", os.listdir(folder) == [".lock"])
    first = Sweep(program, folder).start()
    while first.poll() is None and not journal(folder):
        time.sleep(0.002)
    second = Sweep(program, folder).start("--resume")
    errors = second.communicate()[1]
    busy = first.poll() is None
    first.communicate()
    need("the first run was harmed by the second", first.returncode == 0)
    need(f"second run: exit {second.returncode}: {errors}", second.returncode == 2 or not busy)


def interrupted_statistic(program, root):
    """SIGINT in the middle of a statistic's draws is an interruption, not a failed statistic."""
    sweep = Sweep(program, os.path.join(root, "statistic"), "gumbel")
    process = sweep.start("--filter", "murmur/statistic=whole_vocabulary")
    while process.poll() is None and not journal(os.path.join(root, "statistic")):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    errors = process.communicate()[1]
    need(f"exit {process.returncode}: {errors}", process.returncode == 4 and "--resume" in errors)
    need("half a statistic was kept", len(journal(os.path.join(root, "statistic"))) == 1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--kills", type=int, default=4)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    kills = 100 if options.all else options.kills
    Sweep.choice = [] if options.all else ["--filter", "vocab:1000/batch:4"]
    dice = random.Random(options.seed)
    counts = {signal.SIGKILL: 0, signal.SIGINT: 0, "blocks kept": 0}
    with tempfile.TemporaryDirectory(prefix="topp-kill-") as root:
        whole = os.path.join(root, "whole")
        start = time.monotonic()
        Sweep(options.program, whole).finish()
        seconds = time.monotonic() - start
        reference = normal(whole)
        check_samples(whole)
        two_into_one(options.program, root)
        interrupted_statistic(options.program, root)
        number = 0
        while counts[signal.SIGKILL] + counts[signal.SIGINT] < kills:
            need("hardly any signal met a running process", number < 10 * kills)
            kill_and_resume(options.program, root, reference, dice, seconds, number, counts)
            number += 1
    finish(f"{number} runs resumed after {counts[signal.SIGKILL]} SIGKILL and "
           f"{counts[signal.SIGINT]} SIGINT; {counts['blocks kept']} finished blocks kept, none "
           "lost, none twice; final files as uninterrupted")


if __name__ == "__main__":
    main()
