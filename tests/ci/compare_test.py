#!/usr/bin/env python3
"""perfwatch compare, judged by an independent reader. usage: compare_test.py PERFWATCH SOURCE_DIR"""
import copy, json, os, random, shutil, sys, tempfile
import xml.etree.ElementTree as ElementTree

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import checks
from checks import check, finish, plain_environment, read_json
from made_up import HASH, cell, results, scale, write

PERFWATCH = os.path.abspath(sys.argv[1])
WORK = tempfile.TemporaryDirectory(prefix="perfwatch-")
os.chdir(WORK.name)


def run(*words, env=None, command="compare"):
    return checks.run(PERFWATCH, command, *words, env=plain_environment(**(env or {})))


BASE = results(1)
write("base.json", BASE)
write("aa.json", results(2))
SLOW = results(3)


scale(SLOW["cells"][4], 1.04)
write("slow.json", SLOW)


def changed(edit, seed=2):
    data = results(seed)
    edit(data)
    return data


def put(path, *keys, value):
    def edit(data):
        for key in keys[:-1]:
            data = data[key]
        data[keys[-1]] = value
    return edit


def case(name, new, code, *words, out=(), err=(), base="base.json", lines=True):
    """One row: exit code and words that must be printed."""
    path = new if isinstance(new, str) else write("case.json", new, lines)
    got, stdout, stderr = run(*words, base, path)
    check(name, got == code, f"exit {got}, wanted {code}\n{stdout}{stderr}")
    for text in out:
        check(name, text in stdout, f"no '{text}' in:\n{stdout}")
    for text in err:
        check(name, text in stderr, f"no '{text}' in:\n{stderr}")
    return stdout


# Outcomes and exit codes.
case("A/A", "aa.json", 0, out=["no regression", "12 compared in time"])
case("A/A, other layout", results(2), 0, out=["12 compared"], lines=False)
case("planted 4%", "slow.json", 1, out=["regressed", "topp/exact/normal/c4", "not code"])
case("improved", changed(lambda d: scale(d["cells"][2], 0.9)), 0, out=["improved"])
case("clock", changed(lambda d: [scale(c, 1.03, cycles=False) for c in d["cells"]]), 0,
     out=["clock", "the clock changed"])
case("wide margin", "slow.json", 0, "--margin", "10%")
case("verdict changed", changed(lambda d: d["cells"][1].update(verdict="rejected", rule="underkeep", samples=None)), 1,
     out=["correctness", "accepted -> rejected"])
case("kept changed", changed(put("", "cells", 1, "kept", value=11)), 1, out=["kept 10 -> 11"])
mask = changed(lambda d: d["cells"][1]["inputs"].__setitem__(1, {"input_sha256": HASH, "mask_sha256": "cd" * 32}))
case("mask changed", mask, 1, out=["mask hash changed"])
case("mask change is meant", mask, 0, "--accept-correctness", out=["correctness (excused)"])
both = copy.deepcopy(mask)
scale(both["cells"][5], 1.5)
first = case("correctness above timing", both, 1).splitlines()
check("correctness above timing", [l.split()[0] for l in first if " topp/" in l][:2] == ["correctness", "regressed"], first)
case("unmeasured", changed(lambda d: d["cells"][3].update(samples=None, unmeasured="records were dropped")), 3,
     out=["incomparable", "records were dropped"])
case("missing", changed(lambda d: d["cells"].pop(3)), 1, out=["missing", "c3"])
out = case("missing, --subset", changed(lambda d: d["cells"].pop(3)), 0, "--subset", out=["missing (excused)"])
check("missing, --subset: no equivalent rows beside it", "\nequivalent" not in out, out)
case("missing, declared subset",
     changed(lambda d: (d["cells"].pop(3), d["run"].__setitem__("subset", True))), 0, out=["missing (excused)"])
case("new cell", changed(lambda d: d["cells"].append(dict(d["cells"][0], name="topp/new"))), 0, out=["new"])
case("new cell against expectation", changed(lambda d: d["cells"].append(
    dict(d["cells"][0], name="topp/new", verdict="rejected", as_expected=False, samples=None))), 1, out=["correctness"])
case("unfrozen", changed(put("", "run", "unfrozen", value=True)), 3, out=["--allow-unfrozen"])
case("unfrozen, asked for", changed(put("", "run", "unfrozen", value=True)), 0, "--allow-unfrozen")
noisy = changed(lambda d: [scale(c, 1.0) for c in d["cells"]])
noisy["cells"][0] = cell("topp/exact/normal/c0", 1e4, random.Random(7), process=0.0)
noisy["cells"][0]["samples"]["time_ns"] = [t * (1 + 0.2 * (i // 16 % 2)) for i, t in
                                           enumerate(noisy["cells"][0]["samples"]["time_ns"])]
noisy["cells"][0]["samples"]["cycles"] = None
case("undecided", noisy, 0, out=["undecided"])
case("undecided, --strict", noisy, 1, "--strict", out=["undecided"])

# cmp-04: another device, another index, another build.
for field, value in [("model", "NVIDIA H100"), ("sm_count", 114), ("max_sm_mhz", 1755), ("memory_bytes", 1 << 36),
                     ("driver", "590.2"), ("cuda_runtime", "12.8"), ("timer", "events"), ("l2_bytes", 1)]:
    other = changed(put("", "run", "device", field, value=value))
    case(f"cmp-04 {field}", other, 3, out=[f"device.{field}", "same conditions"])
    case(f"cmp-04 {field}, ignored", other, 0, "--ignore-environment", f"device.{field}", err=["warning"])
case("cmp-04 uuid", changed(put("", "run", "device", "uuid", value="GPU-2")), 0, out=["note", "device.uuid"])
case("cmp-04 build", changed(put("", "run", "build", "commit", value="c2")), 0, out=["note", "build.commit"])
case("l2 differs", changed(put("", "cells", 0, "l2", value="cold")), 3, out=["cell.l2", "warm -> cold"])
case("seed differs", changed(put("", "cells", 0, "seed", value=43)), 3, out=["cell.seed"])
case("ignored, but equal", "aa.json", 0, "--ignore-environment", "device.nothing", err=["no such field differs"])
sources = copy.deepcopy(SLOW)
sources["run"]["sources_sha256"] = "cd" * 32
case("code differs", sources, 1, out=["code may be the cause"])

# cmp-03: nothing compared is never a pass.
renamed = changed(lambda d: [c.update(name=c["name"].replace("exact", "precise")) for c in d["cells"]])
case("cmp-03a renamed", renamed, 3, out=["no cell is in both"])
case("cmp-03b no cells", changed(put("", "cells", value=[])), 3, out=["no cell is in both"])
open("empty.json", "w").close()
case("cmp-03b empty file", "empty.json", 2, err=["empty.json", "byte 0", "nothing in it"])

# cmp-01 in our own file: zeros.
zero = changed(lambda d: d["cells"][0]["samples"].update(time_ns=[0.0] * 80))
case("cmp-01 5 to 0", zero, 3, out=["no valid samples"])
write("zero.json", zero)
case("cmp-01 0 to 5", "aa.json", 3, base="zero.json", out=["no valid baseline"])
case("cmp-01 0 to 0", zero, 0, "--all", base="zero.json", out=["no change"])

# jsn-01, jsn-03: files that cannot be read; file and byte are named.
text = open("base.json").read()
whole = json.dumps(BASE)


def spoiled(name, content, *err):
    open("bad.json", "w").write(content)
    case(name, "bad.json", 2, err=["bad.json", "byte", *err])
    case(name + ", as base", "aa.json", 2, base="bad.json", err=["bad.json"])


for token in ("NaN", "nan", "-nan", "Infinity", "-inf", "inf"):
    at = whole.index('"median_ns": ') + 13
    spoiled(f"jsn-01 {token}", whole[:at] + token + whole[whole.index(",", at):], f"byte {at}", token.strip("-"))
    at = text.index('"median_ns":') + 12
    spoiled(f"jsn-01 {token}, lines", text[:at] + token + text[text.index(",", at):], f"byte {at}")
for share in (0.1, 0.5, 0.99):
    spoiled(f"jsn-03 cut at {share}", text[:int(len(text) * share)], "ends early")
spoiled("jsn-03 log before", "loading kernels...\n" + text, "other text before the JSON", "byte 0")
spoiled("jsn-03 no JSON", "Segmentation fault\n", "no JSON object")
spoiled("trailing text", text + "done\n")
spoiled("duplicate key", whole.replace('"draws": 2', '"draws": 2, "draws": 3', 1))
twice = results(2)
twice["cells"].append(twice["cells"][0])
case("duplicate cell", twice, 2, err=["twice"])
case("other schema", {"schema": "topp-bench.results/9", "run": {}, "cells": []}, 2, err=["topp-bench.results/1"])
case("foreign JSON", {"a": 1}, 2, err=["neither"])
case("no file", "absent.json", 2, err=["absent.json", "No such file"])
for member, number in (("draw", 2147483647), ("draw", -1), ("block", -1), ("block", 0.5), ("draw", None)):
    odd = results(2)
    odd["cells"][0]["samples"][member][3] = number
    case(f"{member} {number}", odd, 2, err=["no number from 0 on"])
lengths = results(2)
lengths["cells"][0]["samples"]["block"].pop()
case("lengths differ", lengths, 2, err=["differ in length"])


# Google Benchmark's files.
def gbench(rows, **context):
    return {"context": dict({"date": "2026-01-31T12:00:00+01:00", "host_name": "h", "num_cpus": 8, "mhz_per_cpu": 3000,
                             "library_build_type": "release"}, **context), "benchmarks": rows}


def reps(name, values, unit="ns", aggregates=True, **more):
    rows = [dict({"name": name, "run_name": name, "run_type": "iteration", "repetition_index": i, "iterations": 1,
                  "real_time": v, "cpu_time": v, "time_unit": unit}, **more) for i, v in enumerate(values)]
    if aggregates:
        rows += [dict(rows[0], name=f"{name}_{a}", run_type="aggregate", aggregate_name=a, real_time=v) for a, v in
                 (("mean", 1e9), ("median", 1e9), ("stddev", 0.0))]
    return rows


def gcase(name, base, new, code, *words, out=(), err=()):
    write("gbase.json", base)
    return case(name, new, code, *words, out=out, err=err, base="gbase.json")


def verdict(name, base, new, *words):
    write("gbase.json", base)
    write("gnew.json", new)
    code, out, err = run("--json", "-", *words, "gbase.json", "gnew.json")
    return code, {c["name"]: c for c in json.loads(out)["cells"]}


row = lambda *a, **k: gbench(reps(*a, **k))
code, cells = verdict("cmp-02", row("f", [900], "us"), row("f", [1.0], "ms"))
check("cmp-02 units", abs(cells["f"]["ratio"] - 1000 / 900) < 1e-9, cells)
code, cells = verdict("cmp-02", row("f", [1], items_per_second=100.0), row("f", [1], items_per_second=50.0))
check("cmp-02 throughput", code == 1 and cells["f [items_per_second]"]["outcome"] == "regressed"
      and cells["f"]["outcome"] != "regressed" and abs(cells["f [items_per_second]"]["ratio"] - 0.5) < 1e-9, cells)
code, cells = verdict("cmp-02", row("f", [1], items_per_second=50.0), row("f", [1], items_per_second=100.0))
check("cmp-02 throughput up", code == 0 and cells["f [items_per_second]"]["outcome"] == "improved", cells)
gcase("cmp-02 unknown unit", row("f", [1]), row("f", [1], "fortnight"), 2, err=["time_unit", "fortnight"])
gcase("cmp-01 0 to 0", row("f", [0]), row("f", [0]), 0, "--all", out=["no change"])
gcase("cmp-01 0 to 5", row("f", [0]), row("f", [5]), 3, out=["no valid baseline"])
code, cells = verdict("cmp-05", row("f", [100, 100, 100]), row("f", [100, 100, 200]))
check("cmp-05 third slow", code == 0 and cells["f"]["outcome"] == "undecided", cells)
check("cmp-05 U test", cells["f"]["time"]["rank_reliable"] is False and cells["f"]["time"]["rank_values"] == [3, 3], cells)
code, cells = verdict("cmp-05", row("f", [100, 101]), row("f", [101, 100]))
check("cmp-05 two", code == 0 and cells["f"]["time"]["samples"] == [2, 2] and list(cells) == ["f"], cells)
code, cells = verdict("old format", gbench([{"name": "f", "real_time": 1, "time_unit": "us"},
                                            {"name": "f_mean", "real_time": 9, "time_unit": "us"}]), row("f", [1000]))
check("aggregates without run_type", list(cells) == ["f"] and abs(cells["f"]["ratio"] - 1) < 1e-9, cells)
gcase("aggregates alone", row("f", [1]), gbench(reps("f", [1])[1:]), 2, err=["aggregates"])
failed = gbench(reps("f", [1], error_occurred=True, error_message="out of memory") + reps("g", [1, 1, 1]))
gcase("cli-01 failed in new", gbench(reps("f", [1]) + reps("g", [1, 1, 1])), failed, 1, out=["correctness", "out of memory"])
gcase("cli-01 failed in both", failed, failed, 3, out=["failed on both sides"])
gcase("no benchmarks", row("f", [1]), gbench([]), 3, out=["no cell is in both"])
gcase("cmp-04 cpus", row("f", [1]), gbench(reps("f", [1]), num_cpus=4), 3, out=["context.num_cpus"])
gcase("cmp-04 device", gbench(reps("f", [1]), gpu="A100 PCIe"), gbench(reps("f", [1]), gpu="A100 SXM"), 3, out=["context.gpu"])
gcase("cmp-04 index", gbench(reps("f", [1]), device_index="4"), gbench(reps("f", [1]), device_index="0"), 0, out=["note"])
gcase("cmp-04 ptx", gbench(reps("f", [1]), gpu_ptx="750"), gbench(reps("f", [1]), gpu_ptx="900"), 0, out=["note"])
gcase("two formats", row("f", [1]), "aa.json", 3, out=["on the other"])
quoted = gbench(reps('f/"a"\\b<x>|y', [1, 1, 1, 1]), key='v"\\')
gcase("jsn-03 quotes", quoted, quoted, 0, "--all", out=['f/"a"\\b<x>|y'])
code, cells = verdict("metric", row("f", [10]), row("f", [10], cpu_time=30), "--metric", "cpu_time")
check("--metric", list(cells) == ["f"] and abs(cells["f"]["ratio"] - 3) < 1e-9, cells)

# cli-02: one written meaning of a share.
for good in ("5%", "0.05", "200%", "0.5%"):
    case(f"cli-02 {good}", "aa.json", 0, "--margin", good)
for bad in ("5", "-1", "nan", "0,05", "", "%", "inf", "0x1", "1e400", "-5%", "0%", "5%%", "abc"):
    case(f"cli-02 '{bad}'", "aa.json", 2, f"--margin={bad}", err=["--margin"])
help_text = run("--help")[1].replace("\n", " ")
check("cli-02 help", "200% means three times the time" in " ".join(help_text.split()), help_text)
tripled = changed(lambda d: scale(d["cells"][4], 2.9))
case("cli-02 200% is three times", tripled, 0, "--margin", "200%")
case("cli-02 and no more", changed(lambda d: scale(d["cells"][4], 3.2)), 1, "--margin", "200%")

# Usage.
for words in ([], ["base.json"], ["base.json", "aa.json", "aa.json"], ["--nonsense", "base.json", "aa.json"]):
    check(f"usage {words}", run(*words)[0] == 2, run(*words))
check("no command", run(command="frobnicate")[0] == 2)
case("--explain unknown", "aa.json", 2, "--explain", "nothing", err=["no such cell"])
case("output cannot be written", "aa.json", 2, "--json", "absent/dir/x.json", err=["absent/dir/x.json"])
os.mkdir("folder")
case("output is a folder", "aa.json", 2, "--junit", "folder/", err=["folder/"])
shutil.copy("base.json", "precious.json")
case("no output over BASE", "aa.json", 2, "--json", "./precious.json", base="precious.json", err=["precious.json would be"])
check("no output over BASE", open("precious.json").read() == open("base.json").read())
case("two outputs, one file", "aa.json", 2, "--json", "x", "--junit", "x", err=["two outputs go to x"])
for words in (["--json", "-", "--junit", "-"], ["--github", "--json", "-"], ["--github", "--markdown", "/dev/stdout"],
              ["--explain", "topp/exact/normal/c4", "--report", "-"], ["--github", "--explain", "topp/exact/normal/c4"],
              ["--json", "-", "--json", "-", "--junit", "/dev/stdout"], ["--github", "--json", "/dev/fd/1"]):
    out = case(f"two outputs, one pipe: {words}", "slow.json", 2, *words, err=["two outputs go to standard output"])
    check(f"two outputs, one pipe: {words}", out == "", out)
for path in ("-", "/dev/stdout"):
    code, out, err = run("--junit", path, "base.json", "aa.json")
    check(f"--junit {path} is a document", ElementTree.fromstring(out).tag == "testsuite", out)
    code, out, err = run("--out", path, "base.json", "aa.json", "--runs", "5", command="selftest")
    check(f"selftest --out {path} is a document", json.loads(out)["processes"] == 2 and "2 processes" in err, out + err)
open("target.json", "w").close(), os.symlink("target.json", "link.json")
case("output by a link", "aa.json", 0, "--json", "link.json")
check("a link stays one", os.path.islink("link.json") and json.load(open("target.json"))["exit_code"] == 0)
check("nothing is left behind", not [f for f in os.listdir(".") if ".json." in f], os.listdir("."))

# Writers.
case("--explain", "slow.json", 1, "--explain", "topp/exact/normal/c4",
     out=["regressed", "Rank test", "standard error", "Cycles", "So: slower beyond doubt"])
many = results(5, cells=30)
write("many_base.json", results(4, cells=30))
for one in many["cells"][:25]:
    scale(one, 1.2)
many["cells"][0]["name"] += ""
out = case("--github", many, 1, "--github", base="many_base.json")
check("--github at most ten", out.count("::error ") == 10 and "16 more cells" in out, out)
weird = results(5, cells=3)
write("weird_base.json", changed(lambda d: d["cells"].append(dict(d["cells"][0], name="a,b::c%\nd<&>\"x")), 5))
out = case("--github escapes", write("w.json", changed(lambda d: None, 5)), 1, "--github", base="weird_base.json")
check("--github escapes", "a%2Cb%3A%3Ac%25%0Ad" in out and len(out.strip().splitlines()) == 1, out)
case("--junit", "w.json", 1, "--junit", "j.xml", base="weird_base.json")
suite = ElementTree.parse("j.xml").getroot()
check("--junit", suite.get("failures") == "1" and suite.find(".//failure[@type='missing']") is not None
      and int(suite.get("tests")) == len(suite.findall("testcase")), ElementTree.tostring(suite))
case("--junit refused", changed(put("", "run", "device", "model", value="X")), 3, "--junit", "j.xml")
check("--junit refused", ElementTree.parse("j.xml").getroot().get("errors") == "1")
case("--markdown", "slow.json", 1, "--markdown", "m.md")
markdown = open("m.md").read()
check("--markdown", markdown.startswith("### perfwatch: regressed") and "| regressed | +4." in markdown, markdown)
open("summary.md", "w").write("before\n")
run("--markdown", "summary.md", "base.json", "aa.json", env={"GITHUB_STEP_SUMMARY": "summary.md"})
check("step summary is appended to", open("summary.md").read().startswith("before\n###"))
huge = results(6, cells=600)
[scale(c, 2.0) for c in huge["cells"]]
write("huge_base.json", results(7, cells=600))
case("--markdown is limited", huge, 1, "--markdown", "m.md", base="huge_base.json")
check("--markdown is limited", open("m.md").read().count("| regressed |") == 200 and "400 more" in open("m.md").read())

case("--json", "slow.json", 1, "--json", "v.json")


told = read_json("v.json")
worst = told["cells"][0]
check("--json", told["schema"] == "topp-bench.verdict/1" and told["exit_code"] == 1 and
      worst["name"] == "topp/exact/normal/c4" and worst["outcome"] == "regressed", worst)
check("--json counts", sum(told["counts"].values()) == len(told["cells"]) == 12, told["counts"])
check("--json ratio", worst["time"]["low"] < worst["ratio"] - 1 < worst["time"]["high"] and
      worst["time"]["significant"] and worst["cycles"]["significant"], worst)
# Against Python's own medians: block by block, the ratio is that of medians within the noise.
median = lambda v: sorted(v)[len(v) // 2]
own = median(SLOW["cells"][4]["samples"]["time_ns"]) / median(BASE["cells"][4]["samples"]["time_ns"])
check("ratio of medians", abs(worst["ratio"] / own - 1) < 0.004, (worst["ratio"], own))
run("--json", "v2.json", "base.json", "slow.json")
check("deterministic", open("v.json").read() == open("v2.json").read())

# jsn-02: the same bytes under a comma locale; no colour where nobody looks.
for name in ("de_DE.UTF-8", "ru_RU.UTF-8"):
    plain, comma = run("--json", "-", "base.json", "slow.json"), run("--json", "-", "base.json", "slow.json",
                                                                     env={"LC_ALL": name, "LANG": name})
    check(f"jsn-02 {name}", plain == comma)
check("no colour in a pipe", "\033" not in run("base.json", "slow.json")[1])

# Two kernels: one run of both, or the pair that bench_topp --ab leaves.
two = results(20)
for other in copy.deepcopy(results(21)["cells"]):
    scale(other, 1.05)
    two["cells"].append(dict(other, name=other["name"].replace("/exact/", "/sort/"), kernel="sort", contract="envelope",
                             kept=11, inputs=[{"input_sha256": HASH, "mask_sha256": "cd" * 32}] * 2))
write("two.json", two)
out = case("--kernels", "two.json", 1, "--kernels", "exact,sort", base="two.json",
           out=["regressed", "topp/exact~sort/normal/c4", "12 compared in time"])
check("--kernels: what all cells share is no drift", "drift" not in out and out.count("regressed  +") == 12, out)
case("--kernels, turned round", "two.json", 0, "--kernels", "sort,exact", base="two.json", out=["12 improved"])
case("--kernels, the same", "two.json", 0, "--kernels", "sort,sort", "--all", base="two.json",
     out=["equivalent", "topp/sort/normal/c4"])
check("--kernels: no cause", "code may be" not in out and "not code" not in out, out)
refused = copy.deepcopy(two)
refused["cells"][12].update(verdict="rejected", rule="underkeep", samples=None)
case("--kernels, one refused", refused, 1, "--kernels", "exact,sort", base="base.json", out=["accepted -> rejected"])
other_input = copy.deepcopy(two)
other_input["cells"][12]["inputs"] = [{"input_sha256": "ef" * 32, "mask_sha256": HASH}] * 2
case("--kernels, other inputs", other_input, 3, "--kernels", "exact,sort", base="base.json", out=["cell.input_sha256"])
for one in refused["cells"]:
    one.update(verdict="rejected", rule="underkeep", samples=None)
write("refused.json", refused)
case("--kernels, none timed", "refused.json", 3, "--kernels", "exact,sort", base="refused.json", out=["was timed"])
case("--kernels, unknown", "two.json", 2, "--kernels", "exact,sorted", err=["no cell of kernel 'sorted'"])
for bad in ("exact", "exact,", ",sort", "a,b,c"):
    case(f"--kernels '{bad}'", "two.json", 2, "--kernels", bad, err=["is not A,B"])

# Several processes a side; calibration.
for side, by in (("old", 1.0), ("new", 1.025)):
    for process in range(4):
        os.makedirs(f"{side}/{process}")
        data = results(100 + process + (50 if side == "new" else 0))
        scale(data["cells"][7], by)
        write(f"{side}/{process}/results.json", data)
code, out, err = run("old", "new")
check("processes", code == 1 and "regressed: 12 cells" in out and "c7" in out, out + err)
write("old/4.json", changed(lambda d: d["cells"].pop(3), 199))
lacking = results(198)
lacking["cells"][5]["samples"] = None
write("old/5.json", lacking)
os.mkdir("uneven")
for process in range(4):
    shutil.copy(f"old/{process}/results.json", f"uneven/{process}.json")
for process in (4, 5):
    os.rename(f"old/{process}.json", f"uneven/{process}.json")
check("processes of one code", "sources_sha256" not in run("uneven", "aa.json")[1])
os.mkdir("mixed")
for process in range(3):
    mixed = json.load(open(f"old/{process}/results.json"))
    if process == 2:
        mixed["run"]["sources_sha256"] = "cd" * 32
    write(f"mixed/{process}.json", mixed)
for words, side in ((("mixed", "aa.json"), "base"), (("base.json", "mixed"), "new")):
    code, out, err = run(*words)
    check(f"processes of other code: {side}", code == 0 and f"note     {side}.sources_sha256: not all of 3 processes are "
          "of the same sources -> such as mixed/2.json" in out and out.count("sources_sha256") == 1, out + err)
    check("processes of other code: sources differ", json.loads(run("--json", "-", *words)[1])["same_sources"] is False)
code, out, err = run("uneven", "aa.json")
check("processes that lack a cell", code == 0 and "note     base.processes: 2 cells without a time in some of 6 "
      "processes -> such as uneven/4.json" in out, out + err)
os.makedirs("copies")
shutil.copy("aa.json", "copies/1.json")
shutil.copy("aa.json", "copies/2.json")
case("a copy is no process", "copies", 3, out=["NEW has run", "copies/1.json or copies/2.json"])
case("a run against itself", "base.json", 0, out=["the same run is on both sides"])
code, out, err = run("old", "--out", "cal.json", command="selftest")
check("selftest", code == 0 and "4 processes, 12 cells" in out, out + err)
told = read_json("cal.json")
check("calibration", told["schema"] == "topp-bench.calibration/1" and 0.001 < told["process_sigma"] < 0.009 and
      len(told["cells"]) == 12 and set(told["cells"][0]["caught"]) == {"1%", "2%", "3%", "5%", "10%"}, told)
case("--calibration", "slow.json", 1, "--calibration", "cal.json")
loud = dict(told, process_sigma=0.2, cells=[])
write("loud.json", loud)
case("--calibration of great noise", "slow.json", 0, "--calibration", "loud.json")
case("--calibration is no such file", "slow.json", 2, "--calibration", "base.json", err=["calibration/1"])
check("selftest of one process", "one process" in run("base.json", "--runs", "5", command="selftest")[1])

finish()
