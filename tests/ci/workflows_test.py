#!/usr/bin/env python3
"""CI templates: their schema, who may run what, and each step's shell as written; ci/ab with stand-ins for
bench_topp. usage: workflows_test.py PERFWATCH SOURCE_DIR"""
import json, os, re, stat, sys, tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from checks import check, finish, plain_environment, planted, run

PERFWATCH, SOURCE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])


def parse(text):
    """The subset of YAML that the templates keep to: maps, lists, block and plain scalars, [flow lists]."""
    lines = [l.rstrip() for l in text.splitlines()]

    def scalar(value):
        if value.startswith("[") and value.endswith("]"):
            return [scalar(v.strip()) for v in value[1:-1].split(",")]
        return {"true": True, "false": False}.get(value, int(value) if re.fullmatch(r"-?\d+", value) else value)

    def skip(at):
        while at < len(lines) and (not lines[at].strip() or lines[at].strip().startswith("#")):
            at += 1
        return at

    def indent(at):
        return len(lines[at]) - len(lines[at].lstrip())

    def block_text(at, outer):
        taken = []
        while at < len(lines) and (not lines[at].strip() or indent(at) > outer):
            taken.append(lines[at])
            at += 1
        depth = min(len(l) - len(l.lstrip()) for l in taken if l)
        return "\n".join(l[depth:] for l in taken).rstrip("\n") + "\n", at

    def value_of(rest, at, outer):
        if rest == "|":
            return block_text(at, outer)
        if rest:
            return scalar(rest), at
        at = skip(at)
        if at < len(lines) and indent(at) > outer:
            return node(at, indent(at))
        return None, at

    def node(at, depth):
        if lines[at].lstrip().startswith("- "):
            items = []
            while at < len(lines) and indent(at) == depth and lines[at].lstrip().startswith("- "):
                lines[at] = lines[at].replace("- ", "  ", 1)
                item, at = node(at, depth + 2)
                items.append(item)
                at = skip(at)
            return items, at
        found = {}
        while at < len(lines) and indent(at) == depth:
            match = re.match(r"\s*([A-Za-z_-]+):(?:\s+(.*))?$", lines[at])
            if not match:
                raise ValueError(f"line {at + 1}: {lines[at]}")
            if match.group(1) in found:
                raise ValueError(f"line {at + 1}: '{match.group(1)}' twice")
            found[match.group(1)], at = value_of(match.group(2) or "", at + 1, depth)
            at = skip(at)
        return found, at

    start = skip(0)
    result, end = node(start, 0)
    if skip(end) != len(lines):
        raise ValueError(f"line {end + 1}: not understood")
    return result


TOP = {"name", "on", "permissions", "concurrency", "jobs", "env"}
JOB = {"if", "runs-on", "timeout-minutes", "env", "steps", "needs", "permissions"}
STEP = {"name", "uses", "with", "run", "env", "if", "id"}


def schema(name, flow):
    check(f"{name}: keys", set(flow) <= TOP and {"name", "on", "permissions", "jobs"} <= set(flow), set(flow))
    check(f"{name}: reads only", flow["permissions"] == {"contents": "read"}, flow["permissions"])
    check(f"{name}: events", set(flow["on"]) <= {"push", "pull_request"}, flow["on"])
    for job_name, job in flow["jobs"].items():
        check(f"{name}.{job_name}: keys", set(job) <= JOB and {"runs-on", "steps", "timeout-minutes"} <= set(job), set(job))
        own = isinstance(job["runs-on"], list) and "self-hosted" in job["runs-on"]
        check(f"{name}.{job_name}: a fork's code stays off own machines",
              not own or "head.repo.full_name == github.repository" in job.get("if", ""), job.get("if"))
        for step in job["steps"]:
            label = f"{name}.{job_name}.{step.get('name', step.get('uses'))}"
            check(f"{label}: keys", set(step) <= STEP and (("uses" in step) != ("run" in step)), set(step))
            if "uses" in step:
                check(f"{label}: pinned", re.fullmatch(r"[\w.-]+/[\w.-]+@v\d+", step["uses"]), step["uses"])
            if step.get("uses", "").startswith("actions/checkout"):
                check(f"{label}: no token is left", step["with"].get("persist-credentials") is False, step)
            if "run" in step:
                check(f"{label}: what others write stays out of the shell", "${{" not in step["run"], step["run"])
                code, _, err = run("bash", "-n", input=step["run"])
                check(f"{label}: bash -n", code == 0, err)


flows = {}
for name in sorted(os.listdir(f"{SOURCE}/ci/workflows")):
    text = open(f"{SOURCE}/ci/workflows/{name}").read()
    flows[name] = parse(text)
    schema(name, flows[name])
    check(f"{name}: no secret", "secrets." not in text and "pull_request_target:" not in text)
    try:
        import yaml  # a second opinion on our reader, where there is one
        other = yaml.safe_load(text)
        other["on"] = other.pop(True, other.get("on"))
        other["on"] = {k: v for k, v in other["on"].items()}
        check(f"{name}: read as YAML reads it", other == flows[name], (other, flows[name]))
    except ImportError:
        pass
check("both templates", set(flows) == {"gpu.yml", "cpu.yml"}, flows.keys())
# The reader refuses what it does not know, and the rules see faults.
for wrong in ("a: 1\na: 2\n", "a: 1\n  b: 2\n", "- x\na: 1\n"):
    try:
        parse(wrong)
        check(f"reader refuses {wrong!r}", False)
    except (ValueError, KeyError, IndexError):
        check(f"reader refuses {wrong!r}", True)
bad = parse(open(f"{SOURCE}/ci/workflows/gpu.yml").read().replace("if: github.event_name != 'pull_request' ||", "if: true ||")
            .replace("head.repo.full_name == github.repository", "x"))
print("(two faults planted on purpose:)")
with planted() as seen:
    schema("planted", bad)
    bad["jobs"]["regression"]["steps"][1]["run"] = "if then"
    schema("planted", bad)
check("planted faults are seen", any("fork" in f for f in seen) and any("bash -n" in f for f in seen), seen)

# A stand-in for bench_topp: results of a known median, noise by process.
FAKE = r'''#!/usr/bin/env python3
import json, math, os, random, sys
words = sys.argv[1:]
out = words[words.index("--out") + 1]
if "--break" in words: sys.exit(3)
rng = random.Random(out)
level = @LEVEL@ * math.exp(rng.gauss(0, 0.003))
times = [level * math.exp(rng.gauss(0, 0.005)) for _ in range(80)]
hash_ = "ab" * 32
cells = [{"name": f"topp/exact/c{i}", "kernel": "exact", "timed": True, "verdict": "accepted", "rule": None, "reason": None,
          "as_expected": True, "inputs": [], "blocks": 5, "median_ns": sorted(times)[40], "unmeasured": None,
          "samples": {"time_ns": times, "busy_ns": None, "cycles": None, "sm_mhz": None,
                      "block": [k // 16 for k in range(80)], "draw": [0] * 80}} for i in range(2)]
os.makedirs(out)
with open("order.log", "a") as log: log.write("@SIDE@ ")
json.dump({"schema": "topp-bench.results/1", "run": {"id": f"{rng.getrandbits(128):032x}", "date": "2026-01-31T12:00:00Z",
           "profile": {"name": "smoke", "sha256": hash_}, "sources_sha256": hash_, "device_kind": "cpu",
           "device": {"model": "x"}, "build": {}, "unfrozen": False, "subset": False}, "summary": {}, "cells": cells},
          open(out + "/results.json", "w"))
print("table")
'''


def executable(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as out:
        out.write(text)
    os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)


def bash(script, cwd, **env):
    # As GitHub runs it: bash --noprofile --norc -eo pipefail.
    code, out, err = run("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script, cwd=cwd,
                         env=plain_environment(**env))
    return code, out + err


with tempfile.TemporaryDirectory(prefix="perfwatch-ci-") as work:
    ab = f"{SOURCE}/ci/ab"
    executable(f"{work}/old/bench/bench_topp", FAKE.replace("@LEVEL@", "1e5").replace("@SIDE@", "A"))
    executable(f"{work}/same/bench/bench_topp", FAKE.replace("@LEVEL@", "1e5").replace("@SIDE@", "B"))
    executable(f"{work}/slow/bench/bench_topp", FAKE.replace("@LEVEL@", "1.06e5").replace("@SIDE@", "B"))
    code, out = bash(f"{ab} --perfwatch {PERFWATCH} --out ab1 old same", work)
    check("ci/ab, the same", code == 0 and "2 compared in time" in out, out)
    check("ci/ab alternates", open(f"{work}/order.log").read() == "A B B A A B B A ", open(f"{work}/order.log").read())
    code, out = bash(f"{ab} --perfwatch {PERFWATCH} --pairs 2 --out ab2 old slow -- --profile smoke", work)
    check("ci/ab, slower", code == 1 and "regressed" in out, out)
    code, out = bash(f"{ab} --perfwatch {PERFWATCH} --pairs 1 --out ab5 --compare-option --bogus old same", work)
    check("ci/ab, a wrong option of compare", code == 2 and "kept; again: " in out and os.path.exists(f"{work}/ab5/new/1"), out)
    check("ci/ab keeps old results", bash(f"{ab} --perfwatch {PERFWATCH} --out ab1 old same", work)[0] == 2)
    check("ci/ab, a broken run", bash(f"{ab} --perfwatch {PERFWATCH} --out ab3 old same -- --break", work)[0] == 3)
    for words in ("old", "old nothing", "--pairs 0 old same", "--pairs", "--bogus old same"):
        check(f"ci/ab {words}", bash(f"{ab} --perfwatch {PERFWATCH} --out ab4 {words}", work)[0] == 2)

    # The steps of the templates, in a repository of stand-ins.
    repo = f"{work}/repo"
    os.makedirs(f"{repo}/ci")
    executable(f"{repo}/ci/setup", "#!/bin/sh\nexit 0\n")
    executable(f"{repo}/ci/test", "#!/bin/sh\necho tested\n")
    build = ("#!/bin/sh\nset -e\n[ \"$1\" = cuda-release ]\nmkdir -p build-cuda/bench build-cuda/ci\n"
             f"cp bench_topp.in build-cuda/bench/bench_topp\ncp {PERFWATCH} build-cuda/ci/perfwatch\n")
    executable(f"{repo}/ci/build", build)
    executable(f"{repo}/ci/ab", open(ab).read())
    executable(f"{repo}/bench_topp.in", FAKE.replace("@LEVEL@", "1e5").replace("@SIDE@", "A"))
    git = "git -c user.name=t -c user.email=t@example.invalid -c init.defaultBranch=main"
    code, out = bash(f"{git} init -q . && git add -A && {git} commit -qm base && git update-ref refs/remotes/origin/main HEAD",
                     repo)
    check("stand-in repository", code == 0, out)
    executable(f"{repo}/bench_topp.in", FAKE.replace("@LEVEL@", "1.06e5").replace("@SIDE@", "B"))
    code, out = bash(f"git add -A && {git} commit -qm slower", repo)
    check("stand-in commit", code == 0, out)
    steps = {s["name"]: s for s in flows["gpu.yml"]["jobs"]["regression"]["steps"] if "run" in s}
    environment = {"GITHUB_ENV": f"{work}/env", "GITHUB_STEP_SUMMARY": f"{work}/summary.md", "PROFILE": "smoke",
                   "PERFWATCH_DB": f"{work}/h.db", "BASE_REF": "main"}
    expected = {"Set up": 0, "Find the base": 0, "Build both": 0, "Measure both, alternating, and compare": 1, "Record": 0}
    check("gpu.yml: every step is run here", set(expected) == set(steps), set(steps))
    for name, want in expected.items():
        code, out = bash(steps[name]["run"], repo, **environment)
        check(f"gpu.yml: {name}", code == want, f"exit {code}: {out}")
        if name == "Find the base":
            environment["base"] = open(f"{work}/env").read().strip().partition("=")[2]
            check("gpu.yml: the base is the merge base", len(environment["base"]) == 40, environment["base"])
        if name.startswith("Measure"):
            check("gpu.yml: annotated", "::error title=regressed" in out, out)
            check("gpu.yml: summary", "### perfwatch: regressed" in open(f"{work}/summary.md").read())
            check("gpu.yml: page", "perfwatch: ab/old against ab/new" in open(f"{repo}/report.html").read())
            check("gpu.yml: verdict", json.load(open(f"{repo}/verdict.json"))["exit_code"] == 1)
    check("gpu.yml: a regression is recorded", "always()" in steps["Record"]["if"] and
          bash(f"{PERFWATCH} export --db {work}/h.db", repo)[1].count('"file_sha256"') == 3, steps["Record"])
    code, out = bash("rm -rf ab && " + steps["Record"]["run"], repo, **environment)
    check("gpu.yml: nothing measured, nothing recorded", code == 0 and "nothing to record" in out, out)
    code, out = bash(f"git checkout -q main && {git} commit -q --allow-empty -m next && " + steps["Find the base"]["run"],
                     repo, **dict(environment, BASE_REF=""))
    check("gpu.yml: a push is held against its parent", code == 0, out)

    steps = {s["name"]: s for s in flows["cpu.yml"]["jobs"]["test"]["steps"] if "run" in s}
    names = ["Build and test", "Compare recorded results"]
    check("cpu.yml: every step is run here", set(names) == set(steps), set(steps))
    code, out = bash(steps[names[0]]["run"], repo)
    check("cpu.yml: test", code == 0 and "tested" in out, out)
    compare = dict(environment, **steps[names[1]]["env"])
    code, out = bash(steps[names[1]]["run"], repo, **compare)
    check("cpu.yml: nothing recorded", code == 0 and "nothing compared" in out, out)
    bash(f"mkdir -p recorded && cp -r {work}/ab2/old/1 recorded/base && cp -r {work}/ab2/new/1 recorded/new", repo)
    code, out = bash(steps[names[1]]["run"], repo, **compare)
    check("cpu.yml: page", os.path.exists(f"{repo}/report.html"))
    check("cpu.yml: compared", code == 1 and "::error title=regressed" in out, out)

finish()
