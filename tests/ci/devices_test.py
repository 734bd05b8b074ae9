#!/usr/bin/env python3
"""perfwatch devices: a difference that was put in is found, per device and cell, and what is no
fleet of one model is refused; compare says which cells changed their device. And perfwatch's memory
does not grow with the samples.

usage: devices_test.py PERFWATCH MADE_SHARDS BENCH_TOPP SOURCE_DIR [instrumented]
instrumented: a build whose memory is not its own; that test is left out.
"""
import json
import os
import resource
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from checks import finish, need, need_run, read_json

PERFWATCH, MADE, BENCH, SOURCE = sys.argv[1:5]
PROFILES = os.path.join(SOURCE, "profiles")
SMOKE = os.path.join(PROFILES, "smoke.json")


def run(*words, expect=0):
    return need_run(expect, PERFWATCH, *words)


def made(out, shards, seed, *uuids, samples=8):
    subprocess.run([MADE, SMOKE, out, str(shards), str(samples), str(seed), *uuids], check=True)


def merged(out, seed, *uuids):
    made(out, 4, seed, *uuids)
    subprocess.run([BENCH, "--merge", *(f"{out}/{k}" for k in range(1, 5)), "--out", out + "-m",
                    "--profile-dir", PROFILES], check=True, capture_output=True)
    return out + "-m"


def edited(folder, out, change):
    results = read_json(folder, "results.json")
    change(results)
    os.mkdir(out)
    with open(os.path.join(out, "results.json"), "w", encoding="utf-8") as file:
        json.dump(results, file)
    return out


def two_devices():
    """Each GPU measured all cells, in two merged runs of which each has half of them on each."""
    one, two = merged("one", 1, "GPU-a", "GPU-d"), merged("two", 2, "GPU-d", "GPU-a")
    found = json.loads(run("devices", one, two, "--json", "-"))
    need("devices", [d["device"] for d in found["devices"]] == ["GPU-a", "GPU-d"], found["devices"])
    ratio = found["devices"][1]
    need("3% were put in", abs(ratio["ratio"] - 1.03) < 0.003 and ratio["ratio_p05"] > 1.02 and
         ratio["ratio_p95"] < 1.04, ratio)
    need("every cell", ratio["common"] == len(found["cells"]) == ratio["beyond_margin"])
    for cell in found["cells"]:
        need("3% in each cell", abs(cell["medians"][1] / cell["medians"][0] - 1.03) < 0.01, cell)
    text = run("devices", one, two, "--reference", "GPU-d", "--margin", "5%")
    need("the reference", "GPU-d (reference)" in text and " -2." in text and " 0  GPU-a" in text,
         text)
    need("--all",
         "more cells (--all)" in text and "more cells" not in run("devices", one, two, "--all"))
    need("unknown reference",
         "no cell was measured on it" in run("devices", one, two, "--reference", "GPU-x", expect=2))
    need("one merged run", "no cell was measured on the reference" in run("devices", one, expect=3))
    # The device is a factor: a run on the same devices has no note, one on others has.
    same = merged("same", 3, "GPU-a", "GPU-d")
    need("same devices, but a note", "device_uuid" not in run("compare", one, same))
    text = run("compare", one, two, expect=1)
    need("other devices", "cell.device_uuid" in text and "of 68 cells" in text, text)
    return one, two


def whole_runs():
    for seed, letter in enumerate("abc"):
        made(f"alone-{letter}", 0, seed + 4, f"GPU-{letter}")
    found = json.loads(run("devices", "alone-a", "alone-b", "alone-c", "--json", "-"))
    need("ratios", [round(d["ratio"] or 1, 2) for d in found["devices"]] == [1.0, 1.01, 1.02],
         found["devices"])
    need("one device", "on one device (GPU-a)" in run("devices", "alone-a", expect=3))


def not_alike(one, two):
    def wrong_mask(results):
        results["cells"][3]["inputs"][0]["mask_sha256"] = "0" * 64
    text = run("devices", one, edited(two, "mask", wrong_mask), expect=1)
    need("other masks", "mask hash changed" in text and
         "in 1 of them the gate's outcome differs" in text, text)

    def other_model(results):
        results["run"]["device"]["model"] = "Other"
    text = run("devices", one, edited(two, "model", other_model), expect=3)
    need("another model", "device.model is Made-up 1 and Other" in text, text)

    def other_input(results):
        results["cells"][0]["inputs"][0]["input_sha256"] = "1" * 64
    text = run("devices", one, edited(two, "input", other_input), expect=3)
    need("other inputs", "cell.input_sha256" in text, text)

    def hosts(results):
        del results["run"]["device"]["uuid"]
        results["run"].pop("shards", None)
        for cell in results["cells"]:
            cell.pop("shard", None)
            cell.pop("device_uuid", None)
    left, right = edited("alone-a", "host-a", hosts), edited("alone-b", "host-b", hosts)
    need("a CPU is its host", "one device (made)" in run("devices", left, right, expect=3))
    run("devices", expect=2)
    run("devices", "absent", expect=2)


def memory():
    """The peak of a process with ten times the samples is not ten times as high."""
    peaks = []
    for samples in (40, 800):
        for seed in (1, 2):
            made(f"memory-{samples}-{seed}", 0, seed, samples=samples)
        pid = os.spawnv(os.P_NOWAIT, PERFWATCH, [PERFWATCH, "compare", f"memory-{samples}-1",
                                                 f"memory-{samples}-2", "--json", "/dev/null"])
        peaks.append(os.wait4(pid, 0)[2].ru_maxrss)
    sizes = [os.path.getsize(f"memory-{samples}-1/results.json") for samples in (40, 800)]
    grown = (peaks[1] - peaks[0]) * 1024
    need(f"files of {sizes} bytes, peaks of {peaks} KiB: memory grows with the samples",
         grown < (sizes[1] - sizes[0]) / 2)


def main():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with tempfile.TemporaryDirectory(prefix="topp-devices-") as scratch:
        os.chdir(scratch)
        one, two = two_devices()
        whole_runs()
        not_alike(one, two)
        if sys.argv[5:] == ["instrumented"]:
            print("skipped: memory of an instrumented build")
        else:
            memory()
    finish()


if __name__ == "__main__":
    main()
