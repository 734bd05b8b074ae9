#!/usr/bin/env python3
"""One sweep over captured files of different vocabularies, dumped by docs/adapters/dump_logits.py
and named by a profile that stands beside them.
usage: captured_test.py BENCH_TOPP SOURCE_DIR"""
import array
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from checks import check, finish, read_json

program, source = sys.argv[1], sys.argv[2]
sys.path.insert(0, os.path.join(source, "docs/adapters"))
from dump_logits import Dump  # noqa: E402

scratch = tempfile.mkdtemp(prefix="topp-captured-test-")


def run(*words):
    return subprocess.run([program, *words], capture_output=True, text=True, check=False, cwd=scratch)


PROFILE = {
    "schema": "topp-bench.profile/1", "name": "mine", "summary": "My models", "device": "any",
    "seed": 42,
    "limits": {"max_vocab": 2000, "max_batch": 4, "case_seconds": 30, "artifact_bytes": 100000000},
    "timing": {"blocks": 2, "min_samples": 3, "max_samples": 10, "precision": 0.1,
               "block_seconds": 0.01, "warmup_seconds": 0.001, "draws": 1},
    "matrix": [{"kind": "topp", "kernels": ["exact", "floor"],
                "families": ["captured=small", "captured=large"], "batch": [1, 4], "p": [0.9]}]}

try:
    os.makedirs(os.path.join(scratch, "mine/captured"))
    generator = random.Random(7)
    for name, vocab in ("small", 501), ("large", 1999):
        dump = Dump(os.path.join(scratch, "mine/captured", name + ".npy"), most_rows=6)
        for _ in range(4):  # four steps of two sequences: the last two rows are not wanted
            dump(None, [[generator.gauss(0, 3) for _ in range(vocab)] for _ in range(2)])
        check(f"{name}: rows", (dump.rows.count, dump.rows.vocab) == (6, vocab), dump.rows.count)
        try:
            dump.rows.count = 5
            dump(None, [array.array("f", [0.0])])
            check("a row of another length is refused", False)
        except ValueError as error:
            check("a row of another length is refused", "501" in str(error) or "1999" in str(error))
    with open(os.path.join(scratch, "mine/profile.json"), "w") as file:
        json.dump(PROFILE, file)
    swept = run("--sweep", "--device", "cpu", "--profile", "mine/profile.json", "--out", "out")
    check("exit code", swept.returncode == 0, swept.stdout + swept.stderr[-600:])
    cells = read_json(scratch, "out/results.json")["cells"]
    check("both vocabularies",
          sorted({(cell["family"], cell["vocab"]) for cell in cells}) ==
          [("captured=large", 1999), ("captured=small", 501)], cells)
    check("every cell is timed", len(cells) == 8 and all(cell["median_ns"] for cell in cells))
    verified = run("--verify", "out/receipt.json")
    check("verified", verified.returncode == 0 and "0 changed" in verified.stdout, verified.stdout)
    os.rename(os.path.join(scratch, "mine/captured/small.npy"), os.path.join(scratch, "small.npy"))
    lost = run("--sweep", "--device", "cpu", "--profile", "mine/profile.json", "--out", "lost")
    check("a file that is not there is named",
          lost.returncode == 2 and "mine/captured/small.npy" in lost.stderr, lost.stderr)
    one = run("--sweep", "--device", "cpu", "--profile", "smoke", "--input", "small.npy", "--filter",
              "topp/exact", "--out", "one")
    check("--input takes one file alone", one.returncode == 0 and "vocab:501" in one.stdout,
          one.stdout + one.stderr)
finally:
    shutil.rmtree(scratch, ignore_errors=True)
finish()
