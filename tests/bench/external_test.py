#!/usr/bin/env python3
"""Other programs in a sweep: gated, timed by their ranges, refused one by one without harm to others.
usage: external_test.py BENCH_TOPP SOURCE_DIR"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from checks import check, finish, read_json, run

program, source = sys.argv[1], sys.argv[2]
scratch = tempfile.mkdtemp(prefix="topp-external-test-")
python = sys.executable
adapters = os.path.join(source, "docs/adapters")
ways = os.path.join(scratch, "program.py")  # a name that no other test's processes carry
os.symlink(os.path.join(os.path.abspath(source), "tests/bench/external_program.py"), ways)

PROFILE = {
    "schema": "topp-bench.profile/1", "name": "external_test", "summary": "One small input",
    "device": "any", "seed": 42,
    "limits": {"max_vocab": 1000, "max_batch": 4, "case_seconds": 4, "artifact_bytes": 100000000},
    "timing": {"blocks": 2, "min_samples": 3, "max_samples": 20, "precision": 0.05,
               "block_seconds": 0.02, "warmup_seconds": 0.005, "draws": 2},
    "matrix": [{"kind": "topp", "kernels": ["exact", "floor"], "families": ["peaked"],
                "vocab": [400], "batch": [4], "p": [0.9]}]}


def profile(name="profile.json", **changes):
    path = os.path.join(scratch, name)
    with open(path, "w") as file:
        json.dump({**PROFILE, **changes}, file)
    return path


def sweep(out, *options, profile_file=None):
    return subprocess.run(
        [program, "--sweep", "--device", "cpu", "--profile", profile_file or profile(),
         "--out", os.path.join(scratch, out), *options], capture_output=True, text=True, check=False)


def results(out):
    return read_json(scratch, out, "results.json")


def cell_of(found, kernel):
    return next(cell for cell in found["cells"] if cell["kernel"] == kernel)


def verify(out):
    code, out, err = run(program, "--verify", os.path.join(scratch, out, "receipt.json"))
    return code, out + err


# way -> (output, verdict, rule, words of the reason)
WAYS = {
    "exit": ("masked_logits", "rejected", "exit_code", "exit code 7: no such kernel: mend it"),
    "signal": ("masked_logits", "rejected", "signal", "signal 11"),
    "no_output": ("masked_logits", "rejected", "no_output", "no file where --out says"),
    "shape": ("masked_logits", "rejected", "wrong_shape", "<f4 (400, 4), wanted <f4 (4, 400)"),
    "dtype": ("masked_logits", "rejected", "wrong_dtype", "<f8 (4, 400), wanted <f4 (4, 400)"),
    "hang": ("masked_logits", "timeout", "timeout", "ran past the profile's 4 seconds"),
    "absent": ("masked_logits", "unsupported", "absent", "PyTorch is not usable here"),
    "limits": ("masked_logits", "unsupported", None, "batches up to 2 alone"),
    "leaves": ("masked_logits", "accepted", None, ""),
    "keeps_all": ("masked_logits", "rejected", "not_oracle_set", ""),
    "drift": ("masked_logits", "drift", "drift", "last timed repetition"),
    "no_ranges": ("masked_logits", "accepted", None, "no NVTX range named `sample` was seen"),
    "few_ranges": ("masked_logits", "accepted", None, "2 NVTX ranges named `sample` were seen, "
                   "--repeats asked for 3"),
    "many_ranges": ("masked_logits", "accepted", None, "4 NVTX ranges named"),
    "nested": ("masked_logits", "accepted", None, "opened inside another"),
    "probabilities_off": ("probabilities", "rejected", "probability_sum", ""),
}

# The same of programs that would take others along.
HOSTILE = {
    "daemon": ("masked_logits", "accepted", None, ""),
    "fifo": ("masked_logits", "rejected", "unreadable_output", "its output is no ordinary file"),
    "fifo_trace": ("masked_logits", "accepted", None, "no NVTX range named `sample` was seen"),
    "removes_all": ("masked_logits", "rejected", "no_output", "no file where --out says"),
    "one_more": ("masked_logits", "accepted", None, "4 NVTX ranges named"),
    "leaves": ("masked_logits", "accepted", None, ""),
}


def test_refusals():
    for out, cases in ("refusals", WAYS), ("hostile", HOSTILE):
        refusals(out, cases)
    check("a failure's words stay in a log",
          os.path.exists(os.path.join(scratch, "refusals", "external-exit.log")))
    check("a refused run verifies", verify("refusals")[0] == 0, verify("refusals")[1][-300:])


def refusals(out, cases):
    options = []
    for way, (output, *_) in cases.items():  # 16 at most
        options += ["--external", f"{way}={python} {ways} {way}", "--external-output", output,
                    "--external-repeats", "3"]
    swept = sweep(out, *options)
    check(f"{out}: exit code", swept.returncode == 1, swept.stderr[-400:])
    found = results(out)
    for kernel in "exact", "floor":
        cell = cell_of(found, kernel)
        check(f"{kernel} is untouched", cell["verdict"] == "accepted" and cell["median_ns"])
    for way, (_, verdict, rule, words) in cases.items():
        cell = cell_of(found, way)
        said = cell["unmeasured"] if verdict == "accepted" else cell["reason"]
        timed = cell["median_ns"] is not None
        is_so = cell["verdict"], cell["rule"], timed, words in (said or "")
        check(f"{way} is refused as it should", is_so == (verdict, rule, way in ("leaves", "daemon"), True),
              f"{is_so} {said}")
    left = run("pgrep", "-f", ways)[1]
    check("nothing of a program is left", not left, left)


def test_garbage():
    swept = sweep("garbage", "--gate-only", "--external", f"garbage={python} {ways} garbage")
    cell = cell_of(results("garbage"), "garbage")
    check("garbage is refused", (swept.returncode, cell["verdict"], cell["rule"]) ==
          (1, "rejected", "unreadable_output") and "no .npy file" in cell["reason"], cell["reason"])


def test_accepted():
    copy = os.path.join(scratch, "adapters")
    shutil.copytree(adapters, copy)
    swept = sweep("accepted", "--external", f"{python} {copy}/plain_sort.py",
                  "--external", f"sampler={python} {copy}/plain_sample.py", "--external-output", "ids",
                  "--external", f"soft={python} {ways} probabilities", "--external-output",
                  "probabilities", "--external-repeats", "7")
    check("accepted: exit code", swept.returncode == 0, swept.stdout + swept.stderr[-400:])
    found = results("accepted")
    for kernel, samples in ("plain_sort", 5), ("sampler", 5), ("soft", 7):
        cell = cell_of(found, kernel)
        check(f"{kernel} is accepted and timed",
              (cell["verdict"], cell["sample_count"]) == ("accepted", 2 * samples),
              f"{cell['verdict']} {cell['reason']} {cell['sample_count']} {cell['unmeasured']}")
    plain = found["run"]["externals"][0]
    check("the script's hash is bound",
          any(file["path"].endswith("plain_sort.py") and len(file["sha256"]) == 64
              for file in plain["files"]), plain)
    code, text = verify("accepted")
    check("verified", code == 0 and "0 changed" in text, text[-400:])
    with open(os.path.join(copy, "plain_sort.py"), "a") as file:
        file.write("# changed\n")
    code, text = verify("accepted")
    check("a changed script is found", code == 1 and "plain_sort.py" in text, text[-400:])


def test_resume():
    """Killed between a program's verdict and its samples: it is started again, nothing else is."""
    external = ["--external", f"plain={python} {adapters}/plain_sort.py"]
    sweep("resume", *external)
    journal = os.path.join(scratch, "resume", "journal.jsonl")
    with open(journal) as file:
        lines = file.read().splitlines(keepends=True)
    kinds = [(json.loads(line).get("line"), json.loads(line).get("cell", "")) for line in lines]
    at = next(i for i, (kind, cell) in enumerate(kinds) if kind == "verdict" and "/plain/" in cell)
    check("the samples follow the verdict", kinds[at + 1] == ("block", kinds[at][1]), kinds)
    with open(journal, "w") as file:
        file.writelines(lines[:at + 1])
    for name in "results.json", "results.tsv", "benchmark.json", "receipt.json":
        os.unlink(os.path.join(scratch, "resume", name))
    swept = sweep("resume", "--resume", *external)
    check("resume: exit code", swept.returncode == 0, swept.stderr[-400:])
    cell = cell_of(results("resume"), "plain")
    check("resume: samples", (cell["sample_count"], cell["rows"]) == (10, 8), cell["sample_count"])
    with open(journal) as file:
        kept = file.read()
    with open(journal, "w") as file:
        file.write("".join(kept.splitlines(keepends=True)[:-1]))
    other = ["--external", f"plain={python} {adapters}/plain_sort.py ''"]
    swept = sweep("resume", "--resume", *other)
    check("another command is another run", swept.returncode == 2 and "externals" in swept.stderr,
          swept.stderr[-300:])


def test_usage():
    cases = [
        (["--external", "exact=true"], "a kernel of this program is called `exact`"),
        (["--external", "a=true", "--external", "a=false"], "two programs are called `a`"),
        (["--external-output", "ids"], "belongs to the --external before it"),
        (["--external", "a=true", "--external-contract", "strict"], "--external-contract"),
        (["--external", "a b=true c"], None),
        (["--external", "="], "NAME=COMMAND"),
    ]
    for options, words in cases:
        swept = sweep("usage", "--gate-only", *options)
        if words:
            check(f"{options}", swept.returncode == 2 and words in swept.stderr, swept.stderr)
    listed = run(program, "--list", "--device", "cpu", "--profile", profile(), "--external",
                 "mine=true")[1]
    check("--list shows the program", "topp/mine/peaked/vocab:400" in listed, listed)


try:
    for test in test_usage, test_garbage, test_accepted, test_resume, test_refusals:
        test()
finally:
    shutil.rmtree(scratch, ignore_errors=True)
finish()
