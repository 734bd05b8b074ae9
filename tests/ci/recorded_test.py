#!/usr/bin/env python3
"""perfwatch on what an H200 measured. usage: recorded_test.py PERFWATCH RECORDED_DIR"""
import os, re, sys, tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from checks import check, finish, read_json, run

PERFWATCH, RECORDED = map(os.path.abspath, sys.argv[1:3])
CLOCK_STEP_NS = 32
PLANTED = re.compile(r"^topp/(stock|patched|patched_fine)/[^/]+/vocab:151936/")


def load(name):
    return {cell["name"]: cell for cell in read_json(RECORDED, name, "results.json")["cells"]}


def verdict_of(base, new, code):
    with tempfile.TemporaryDirectory() as work:
        path = os.path.join(work, "verdict.json")
        got, _, err = run(PERFWATCH, "compare", os.path.join(RECORDED, base), os.path.join(RECORDED, new), "--json", path,
                          timeout=200)
        check(f"compare {base} {new}: exit code", got == code, f"{got}, wanted {code}: {err}")
        return read_json(path)


def regressed(verdict):
    return {cell["name"] for cell in verdict["cells"] if cell["outcome"] == "regressed"}


def same_binary(base, again):
    timed = [name for name in base if base[name]["median_ns"] and again[name]["median_ns"]]
    near = 0
    for name in timed:
        one, two = base[name]["median_ns"], again[name]["median_ns"]
        near += abs(one - two) <= max(0.01 * one, CLOCK_STEP_NS)
    print(f"A/A: medians within 1% or a clock step in {near} of {len(timed)} cells")
    check("A/A: such medians in 95% of cells", len(timed) > 1500 and near >= 0.95 * len(timed))
    check("A/A: the same verdicts and masks", all(
        base[name]["verdict"] == again[name]["verdict"] and base[name]["inputs"] == again[name]["inputs"] for name in base))
    check("A/A: no alarm", not regressed(verdict_of("default", "default-again", 0)))


def planted_fault(base, slow):
    due = {name for name in base if PLANTED.match(name) and base[name]["median_ns"] and slow[name]["median_ns"]}
    found = regressed(verdict_of("default", "planted", 1))
    print(f"planted: {len(found & due)} of {len(due)} slowed cells are found")
    check("planted: every slowed cell is found", len(due) > 100 and due <= found, sorted(due - found))
    # The false discovery rate is 1%: of some 127 alarms about one is false.
    check("planted: at most 2% of the alarms are others", len(found - due) <= 0.02 * len(found), f"{sorted(found - due)}")


def own_rates():
    with tempfile.TemporaryDirectory() as work:
        path = os.path.join(work, "calibration.json")
        code, out, err = run(PERFWATCH, "selftest", os.path.join(RECORDED, "processes"), "--out", path, timeout=200)
        check("selftest: exit code 0, so no target is refuted", code == 0, out + err)
        alarms = re.search(r"false alarms: ([0-9.]+)% of (\d+) pairs", out)
        caught = re.search(r"slowdown of 3% in one cell: caught in ([0-9.]+)% of (\d+) trials", out)
        print("selftest:", alarms and alarms[0], caught and caught[0], sep="\n  ")
        check("selftest: at most 1% of runs of one binary alarm", alarms and float(alarms[1]) <= 1.0 and int(alarms[2]) >= 100)
        check("selftest: 3% is caught in at least 95%", caught and float(caught[1]) >= 95.0 and int(caught[2]) >= 100)


def main():
    base, again, slow = load("default"), load("default-again"), load("planted")
    same_binary(base, again)
    planted_fault(base, slow)
    own_rates()
    finish()


main()
