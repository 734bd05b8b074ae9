"""How long all charts and the page of a run of thousands of cells take, and how much memory.

usage: bench_report.py BENCH_TOPP [CELLS]

Makes results of CELLS cells (5,000 by default: eight kernels, ten groups, six vocabularies, six
batches; 120 samples a cell) in a temporary folder, draws them, prints seconds and the greatest
memory of any process. Exit code 1 past 30 s or 500 MiB: the limits hold on two cores.
"""

import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time

KERNELS = ["stock", "patched", "patched_fine", "sort", "exact", "floor", "mine", "theirs"]
VOCABS = [8000, 32000, 50257, 128256, 151936, 262144]
BATCHES = [1, 2, 4, 16, 64, 256]


def cell(number, kernel, family, l2, vocab, batch, p):
    draw = random.Random(number)
    refused = draw.random() < 0.03 and kernel != "floor"
    base = 1000.0 + vocab * batch * (KERNELS.index(kernel) + 1) * 1e-2
    times = [base * draw.lognormvariate(0, 0.01) for _ in range(120)]
    made = {
        "name": "topp/%s/%s/vocab:%d/batch:%d/p:%s/device:cuda/l2:%s/launch:graph"
        % (kernel, family, vocab, batch, p, l2),
        "kind": "topp", "kernel": kernel, "contract": "nucleus", "family": family,
        "statistic": None, "vocab": vocab, "batch": batch, "stride": vocab, "p": float(p),
        "p_text": p, "temperature": None, "device": "cuda", "l2": l2, "launch": "graph",
        "timed": True, "verdict": "rejected" if refused else "accepted",
        "rule": "not_prefix" if refused else None,
        "reason": "a row's kept set has a hole" if refused else None,
        "as_expected": True, "kept": 50 * batch, "oracle": 50 * batch,
        "most_surplus": draw.randrange(4), "most_missing": int(refused), "unmeasured": None,
        "expect_why": None,
    }
    figures = ["median_ns", "ci_low_ns", "ci_high_ns", "p95_ns", "bytes_per_second",
               "ratio_to_floor"]
    values = [base, base * 0.995, base * 1.005, base * 1.02, vocab * batch * 8e9 / base,
              KERNELS.index(kernel) + 1.0]
    made.update({f: None if refused else v for f, v in zip(figures, values)})
    made["samples"] = None if refused else {
        "time_ns": times, "busy_ns": times, "cycles": times, "sm_mhz": [1980.0] * 120,
        "block": [i // 24 for i in range(120)], "draw": [i % 8 for i in range(120)]}
    return made


def write(path, count):
    plan = [(k, f, l2, v, b, p)
            for f in ("normal", "peaked", "ties", "masked=0.99", "captured=rows")
            for l2 in ("warm", "cold") for p in ("0.9", "0.95")
            for v in VOCABS for b in BATCHES for k in KERNELS]
    assert count <= len(plan), "at most %d cells" % len(plan)
    cells = [cell(i, *at) for i, at in enumerate(plan[:count])]
    run = {"date": "2026-01-01T00:00:00Z", "profile": {"name": "made-up"}, "device_kind": "cuda",
           "device": {"model": "none: made-up figures"}, "build": {"version": "0"},
           "unfrozen": True, "seed": 1, "slices": 0}
    summary = {"cells": count, "rejected": sum(c["verdict"] == "rejected" for c in cells),
               "unexpected": 0, "unmeasured": 0}
    with open(path, "w", encoding="utf-8") as file:
        file.write('{"schema":"topp-bench.results/1",\n"run":%s,\n"summary":%s,\n"cells":[\n'
                   % (json.dumps(run), json.dumps(summary)))
        file.write(",\n".join(json.dumps(c) for c in cells))
        file.write("\n]}\n")


def main():
    program, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 5000
    with tempfile.TemporaryDirectory() as folder:
        write(folder + "/results.json", count)
        start = time.monotonic()
        subprocess.run([program, "--report", folder], check=True, stdout=subprocess.DEVNULL)
        seconds = time.monotonic() - start
        mib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        charts = sum(name.endswith(".svg") for name in os.listdir(folder + "/plots"))
        page = os.path.getsize(folder + "/report.html") / 2**20
        print("%d cells: %d charts as SVG and PNG and a page of %.1f MiB in %.1f s, %.0f MiB"
              % (count, charts, page, seconds, mib))
    return 0 if seconds < 30 and mib < 500 else 1


if __name__ == "__main__":
    sys.exit(main())
