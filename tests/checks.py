"""What the Python tests have in common.

check() goes on after a failure; need() ends the test there, for what later steps stand on. Both are
counted, and a test that checked nothing has failed.
"""
import contextlib
import json
import os
import subprocess
import sys

# Members of a cell that differ between two runs of one plan on one machine.
TIMED = {"sample_count", "median_ns", "ci_low_ns", "ci_high_ns", "p05_ns", "p95_ns", "draw_low_ns",
         "draw_high_ns", "busy_ns", "cycles", "sm_mhz", "events_ns", "bytes_per_second",
         "ratio_to_floor", "samples_sha256", "samples", "conditions"}

FAILURES = []
COUNT = 0


def holds(what, condition):
    """Words come first: a text in the condition's place would hold whatever it says."""
    global COUNT
    if not isinstance(what, str) or isinstance(condition, str):
        raise TypeError(f"not words and a condition: {what!r}, {condition!r}")
    COUNT += 1
    return bool(condition)


def check(what, condition, shown=""):
    if not holds(what, condition):
        FAILURES.append(what)
        print(f"FAILED {what}: {shown}")


def need(what, condition, shown=""):
    if not holds(what, condition):
        raise AssertionError(f"{what}: {shown}" if shown != "" else what)


@contextlib.contextmanager
def planted():
    """A list of the failures meanwhile, which are meant to be and are not held against the test."""
    before, seen = len(FAILURES), []
    yield seen
    seen += FAILURES[before:]
    del FAILURES[before:]


def finish(said=""):
    """Ends the test; said: what else it found out."""
    print(f"{COUNT} checks, {len(FAILURES)} failed{said and '; ' + said}")
    sys.exit(1 if FAILURES or not COUNT else 0)


def run(*words, timeout=120, **more):
    """Exit code, standard output and standard error of a program."""
    done = subprocess.run(words, capture_output=True, text=True, timeout=timeout, **more)
    return done.returncode, done.stdout, done.stderr


def need_run(code, *words, **more):
    """Both outputs, one behind the other, of a program that must end with this exit code."""
    ended, out, err = run(*words, **more)
    need(f"{' '.join(words)}: exit code {ended}, not {code}\n{out}{err}", ended == code)
    return out + err


def plain_environment(**more):
    """Without what a CI service or perfwatch's user has set."""
    return {k: v for k, v in os.environ.items() if not k.startswith(("GITHUB", "PERFWATCH"))} | more


def refuse_constant(text):
    raise ValueError(f"{text} is no JSON")


def refuse_twice(pairs):
    names = [name for name, _ in pairs]
    if len(set(names)) != len(names):
        raise ValueError(f"a member twice: {names}")
    return dict(pairs)


def strict(text):
    """JSON without NaN, Infinity or a member twice."""
    return json.loads(text, parse_constant=refuse_constant, object_pairs_hook=refuse_twice)


def read_json(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return strict(file.read())


def need_receipt(program, *words):
    """--verify finds nothing changed but the sources, which may be under somebody's hands."""
    code, out, err = run(program, "--verify", *words, timeout=300)
    changed = [line for line in out.splitlines()
               if line.startswith("changed: ") and not line.startswith("changed: sources: ")]
    need(f"--verify: exit code {code}: {out}{err}", code in (0, 1) and not changed)
