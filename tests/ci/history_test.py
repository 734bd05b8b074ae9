#!/usr/bin/env python3
"""perfwatch record, import, history, export, judged from outside. usage: history_test.py PERFWATCH SOURCE_DIR"""
import datetime, json, math, os, random, shutil, signal, sqlite3, subprocess, sys, tempfile, time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import checks
from checks import check, finish

PERFWATCH, SOURCE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
WORK = tempfile.TemporaryDirectory(prefix="perfwatch-history-")
os.chdir(WORK.name)
HASH = "ab" * 32


def run(*words, db="h.db"):
    return checks.run(PERFWATCH, *words, env=dict(os.environ, PERFWATCH_DB=db))


def results(number, levels, cycles=None, day=None, **device):
    """levels: name -> median in ns, None for a refused cell."""
    when = datetime.datetime(2026, 1, 1) + datetime.timedelta(days=number if day is None else day)
    cells = []
    for name, level in levels.items():
        refused = level is None
        cells.append({"name": name, "kind": "topp", "kernel": "exact", "vocab": 32000, "timed": True,
                      "verdict": "rejected" if refused else "accepted", "rule": "underkeep" if refused else None,
                      "reason": None, "as_expected": True, "kept": 1, "oracle": 1, "inputs": [], "blocks": 5,
                      "median_ns": level, "ci_low_ns": level, "ci_high_ns": level,
                      "cycles": None if cycles is None or refused else cycles[name], "unmeasured": None,
                      "samples": None if refused else {"time_ns": [level] * 3, "cycles": None, "busy_ns": None,
                                                       "sm_mhz": None, "block": [0, 1, 2], "draw": [0, 0, 0]}})
    return {"schema": "topp-bench.results/1",
            "run": {"id": f"{number + 1:032x}", "date": when.strftime("%Y-%m-%dT%H:%M:%SZ"),
                    "profile": {"name": "t", "sha256": HASH}, "sources_sha256": HASH, "plan_sha256": HASH, "seed": 1,
                    "unfrozen": False, "subset": False, "device_kind": "cuda",
                    "device": dict({"model": "H200", "driver": "580.1", "cuda_runtime": "13.0"}, **device),
                    "build": {"commit": f"c{number}", "c_compiler": "gcc 12"}},
            "summary": {}, "cells": cells}


def write(path, data):
    with open(path, "w") as out:
        json.dump(data, out)
    return path


def exported(db="h.db"):
    code, out, err = run("export", db=db)
    check("export", code == 0, err)
    return json.loads(out)


# Idempotent, conflicting, replaced, damaged.
first = write("a.json", results(0, {"x": 1000.0, "y": 2000.0, "z": None}))
code, out, err = run("record", first)
check("record", code == 0 and "recorded" in out and "3 cells" in out, out + err)
before = exported()
check("export content", before["schema"] == "topp-bench.history/1" and len(before["runs"]) == 1 and
      [c["name"] for c in before["runs"][0]["cells"]] == ["x", "y", "z"] and
      before["runs"][0]["cells"][0]["median"] == 1000.0 and before["runs"][0]["commit_id"] == "c0" and
      before["runs"][0]["environment"]["device"]["driver"] == "580.1", before)
code, out, err = run("record", first)
check("record again", code == 0 and "already recorded" in out and exported() == before, out + err)
other = write("b.json", results(0, {"x": 1001.0}))
code, out, err = run("record", other)
check("other content", code == 2 and "--replace" in err and exported() == before, err)
text = open("a.json").read()
for name, content in [("cut", text[:200]), ("empty", ""), ("log", "hello\n" + text), ("nan", text.replace("1000.0", "NaN"))]:
    open("bad.json", "w").write(content)
    code, out, err = run("record", "b.json", "bad.json")
    check(f"jsn-03 {name}: history untouched", code == 2 and "bad.json" in err and "byte" in err and exported() == before, err)
code, out, err = run("record", "--replace", other)
check("replace", code == 0 and "replaced" in out and len(exported()["runs"]) == 1 and
      len(exported()["runs"][0]["cells"]) == 1, out + err)
unfrozen = results(1, {"x": 1.0})
unfrozen["run"]["unfrozen"] = True
check("unfrozen", run("record", write("u.json", unfrozen))[0] == 3)
check("not a database", run("record", first, db="a.json")[0] == 2)
sqlite3.connect("foreign.db").execute("CREATE TABLE t(x)").connection.commit()
check("a foreign database", run("record", first, db="foreign.db")[0] == 2)
check("no history", run("history", db="none.db")[0] == 2 and not os.path.exists("none.db"))
check("a folder that is not there", run("record", first, db="no/such/h.db")[0] == 2)

# Google Benchmark's JSON.
bench = {"context": {"date": "2026-02-01T12:00:00+01:00", "num_cpus": 8}, "benchmarks": [
    {"name": "f", "run_name": "f", "run_type": "iteration", "real_time": v, "time_unit": "us"} for v in (1, 2, 3)]}
write("g.json", bench)
code, out, err = run("import", "g.json", "--commit", "abc", db="g.db")
got = exported("g.db")["runs"][0]
check("import", code == 0 and got["date"] == "2026-02-01T11:00:00Z" and got["cells"][0]["median"] == 2000.0 and
      got["commit_id"] == "abc", (out, err, got))
check("import again", "already" in run("import", "g.json", db="g.db")[1])
del bench["context"]["date"]
write("g2.json", bench)
check("no date", run("import", "g2.json", db="g.db")[0] == 2)
check("--date", run("import", "g2.json", "--date", "2026-02-02T00:00:00Z", db="g.db")[0] == 0)

for day in range(1, 12):
    bench["context"]["date"] = f"2026-03-{day:02d}T00:00:00Z"
    for row in bench["benchmarks"]:
        row["items_per_second"] = 1e6 + 1e4 * (day % 3)
    write("g3.json", bench)
    check("rates", run("import", "g3.json", db="rate.db")[0] == 0)

# A long history: a step, a clock, an epoch, missing cells.
rng = random.Random(4)
for i in range(60):
    noise = lambda: math.exp(rng.gauss(0, 0.003))
    clock = 1.04 if i >= 25 else 1.0
    base = {"flat": 1e5 * noise(), "step": 1e5 * noise() * (1.05 if i >= 30 else 1), "clock": 1e5 * noise()}
    cycles = {k: v * 1.98 for k, v in base.items()}
    levels = {"flat": base["flat"], "step": base["step"], "clock": base["clock"] * clock}
    if i in (20, 21):
        del levels["flat"]
    if i == 22:
        levels["flat"] = None
    if i == 40:
        levels = {"step": levels["step"]}
    data = results(i, levels, cycles, **({"driver": "590.2"} if i >= 50 else {}))
    if i >= 50:
        data["cells"][0]["median_ns"] *= 1.3
    if i == 40:
        data["run"]["subset"] = True
    write(f"run{i:02d}.json", data)
os.mkdir("early")
for i in range(60):
    if i < 59:
        os.rename(f"run{i:02d}.json", f"early/run{i:02d}.json")
code, out, err = run("record", "early", db="long.db")
check("missing is told", code == 0 and err.count("missing: flat") == 1, err)
check("record of many", len(exported("long.db")["runs"]) == 59)
code, out, err = run("history", "flat", "--last", "0", "--json", "flat.json", db="long.db")
flat = json.load(open("flat.json"))["cells"][0]
check("flat", code == 0 and flat["change_points"] == [] and flat["missing"] == 2 and len(flat["runs"]) == 58 and
      flat["runs"][22]["state"] == "rejected" and "missing" in out, flat["change_points"])
check("epoch", "epoch: driver 580.1 -> 590.2" in out and flat["runs"][-1]["epoch"] == 1, out[-900:])
code, out, err = run("history", "step", "--json", "-", db="long.db")
step = json.loads(out)["cells"][0]["change_points"]
check("step", len(step) == 1 and abs((datetime.date.fromisoformat(step[0]["date"][:10]) - datetime.date(2026, 1, 31)).days) <= 3
      and abs(step[0]["change"] - 0.05) < 0.01 and not step[0]["new"] and not step[0]["clock"], step)
code, out, err = run("history", "clock", "--json", "-", db="long.db")
clock = json.loads(out)["cells"][0]["change_points"]
check("clock", len(clock) == 1 and clock[0]["clock"], clock)
check("no alarm for what is known", run("history", "--fail-on-change", db="long.db")[0] == 0)
check("--since", run("history", "step", "--fail-on-change", "--since", "2026-01-20", db="long.db")[0] == 1)
check("--since, later", run("history", "step", "--fail-on-change", "--since", "2026-02-10", db="long.db")[0] == 0)
check("clock raises no alarm", run("history", "clock", "--fail-on-change", "--since", "2026-01-01", db="long.db")[0] == 0)
for bad in ("yesterday", "2026-02-30", "2026-04-31", "2026-13-01"):
    check(f"--since {bad} is no date", run("history", "--since", bad, db="long.db")[0] == 2)
check("deterministic", run("history", "--json", "-", db="long.db") == run("history", "--json", "-", db="long.db"))
# The run that makes a step beyond doubt raises the alarm once.
alarms = []
for i in range(30, 50):
    level = 1e5 * math.exp(rng.gauss(0, 0.003)) * (1.06 if i >= 40 else 1)
    run("record", write("n.json", results(i + 100, {"s": level}, day=i)), db="new.db")
    alarms.append(run("history", "--fail-on-change", db="new.db")[0])
check("a new change point alarms once", sum(alarms) == 1 and sum(alarms[10:17]) == 1, alarms)
code, out, err = run("history", "step", "--tsv", "-", "--json", "-", db="long.db")
check("two outputs, one pipe", code == 2 and not out and "two outputs go to standard output" in err, out + err)
code, out, err = run("history", "step", "--tsv", "-", db="long.db")
rows = [line.split("\t") for line in out.splitlines()]
check("--tsv", rows[0] == ["date", "median_ns", "ci_low_ns", "ci_high_ns", "epoch", "change", "state", "step", "kind",
                           "device", "unit"] and sum(r[5] == "1" for r in rows[1:]) == 1 and
      all(len(r) == 11 for r in rows) and {r[4] for r in rows[1:]} == {"e0", "e1:driver"} and
      {tuple(r[9:]) for r in rows[1:]} == {("H200", "ns")}, rows[:3])
change = [r for r in rows if r[5] == "1"][0]
check("--tsv, the step", abs(float(change[7]) - 5) < 1 and change[8] == "change", change)


def chart(name, cell, database, *words):
    """The series of a cell, drawn by plots/history.gp; gnuplot must have nothing to say."""
    code, out, err = run("history", cell, "--tsv", f"{name}.tsv", db=database)
    check(f"chart {name}: data", code == 0, err)
    drawn = subprocess.run(["gnuplot", "-c", f"{SOURCE}/plots/history.gp", f"{name}.tsv", f"{name}.svg", f"cell={cell}", *words],
                           capture_output=True, text=True)
    said = [line for line in drawn.stderr.splitlines() if line and not line.startswith("Fontconfig")]
    check(f"chart {name}: gnuplot", drawn.returncode == 0 and not said, drawn.stderr)
    return open(f"{name}.svg", encoding="utf-8").read() if drawn.returncode == 0 else ""


if shutil.which("gnuplot"):
    svg = chart("step", "step", "long.db")
    for words in (">change +", "epoch e0<", "epoch e1:driver<", "time per call (µs)", ">step<",
                  "H200, 2026-01-01 to 2026-02-28"):
        check(f"chart of a step: {words}", words in svg)
    svg = chart("clock", "clock", "long.db", "my footer")
    check("chart of a clock", ">clock +" in svg and ">my footer<" in svg)
    svg = chart("flat", "flat", "long.db")
    check("chart with gaps", "X: 3 runs without a time" in svg and "change +" not in svg)
    svg = chart("rate", "f [items_per_second]", "rate.db")
    check("chart of a rate", "rate (per second)" in svg and ">f [items_per_second]<" in svg and "per call" not in svg)
else:
    print("no gnuplot here: no charts")
comma = subprocess.run([PERFWATCH, "history", "step", "--tsv", "-", "--db", "long.db"], capture_output=True, text=True,
                       env=dict(os.environ, LC_ALL="de_DE.UTF-8"))
check("jsn-02", comma.stdout == out)
check("no such cell", run("history", "nothing", db="long.db")[0] == 2)
code, out, err = run("history", db="long.db")
check("overview", code == 0 and len(out.splitlines()) == 4 and "clock  clock" in out, out)

# An exported history comes back as it was, into a new file or into one that has part of it.
def export_text(database):
    code, out, err = run("export", db=database)
    check(f"export {database}", code == 0, err)
    return out


whole = export_text("long.db")
open("whole.json", "w").write(whole)
code, out, err = run("import", "whole.json", db="back.db")
check("import of an export", code == 0 and "imported 59 runs, 0 were there already" in out, out + err)
check("round trip", export_text("back.db") == whole)
check("round trip: the same history", run("history", "flat", "--json", "-", db="back.db") ==
      run("history", "flat", "--json", "-", db="long.db"))
code, out, err = run("import", "whole.json", db="back.db")
check("import again", code == 0 and "imported 0 runs, 59 were there already" in out and export_text("back.db") == whole, out)
run("record", *(f"early/run{i:02d}.json" for i in range(10)), db="part.db")
code, out, err = run("record", "whole.json", "run59.json", db="part.db")
check("into a part, beside a result", code == 0 and "imported 49 runs, 10 were there" in out and "recorded" in out, out + err)
json.dump(json.loads(whole), open("indented.json", "w"), indent=2)
check("any layout", run("import", "indented.json", db="indented.db")[0] == 0 and export_text("indented.db") == whole)
mixed = export_text("g.db")
open("mixed.json", "w").write(mixed)
check("Google Benchmark's runs too", run("import", "mixed.json", db="mixed.db")[0] == 0 and export_text("mixed.db") == mixed)
odd = json.loads(whole)
odd["runs"][3]["file_sha256"] = "cd" * 32
json.dump(odd, open("odd.json", "w"))
code, out, err = run("import", "odd.json", db="back.db")
check("other content", code == 2 and "--replace" in err and export_text("back.db") == whole, err)
check("other content, replaced", run("import", "--replace", "odd.json", db="back.db")[0] == 0 and
      json.loads(export_text("back.db"))["runs"] == odd["runs"])
check("--date of an export", run("import", "whole.json", "--date", "2026-01-01T00:00:00Z", db="x.db")[0] == 2)


def spoiled(name, text, *says):
    open("spoiled.json", "w").write(text)
    code, out, err = run("import", "run59.json", "spoiled.json", db="spoiled.db")
    check(f"spoiled export: {name}", code == 2 and "spoiled.json" in err and all(s in err for s in says) and
          not os.path.exists("spoiled.db"), (code, err))


def with_run(**changes):
    data = json.loads(whole)
    data["runs"][5].update(changes)
    return json.dumps(data)


lines = whole.splitlines()
spoiled("cut", whole[:len(whole) // 2], "ends early")
spoiled("a line cut", "\n".join(lines[:5] + [lines[5][:100]] + lines[6:]) + "\n", "spoiled.json:6:")
spoiled("no comma", whole.replace("},\n{", "}\n{", 1), "comma")
spoiled("behind the end", whole[:-1] + "\n]}\n", "behind")
spoiled("newer", whole.replace("history/1", "history/2"), "history/1")
spoiled("NaN", whole.replace('"median":', '"median":NaN,"x":', 1))
spoiled("no id", with_run(id=None), "id")
spoiled("no date", with_run(date="yesterday"), "date")
spoiled("no hash", with_run(file_sha256=""), "file_sha256")
spoiled("cells", with_run(cells={}), "cells")
spoiled("a cell without a name", with_run(cells=[{"median": 1.0}]), "name")
spoiled("a cell of text", with_run(cells=[dict(json.loads(whole)["runs"][5]["cells"][0], median="fast")]), "median")
spoiled("a new member", with_run(colour="red"), "colour", "newer")
spoiled("a number for a run", json.dumps({"schema": "topp-bench.history/1", "runs": [1]}), "no object")

# Two writers (four, in fact), each with its own runs and one they share.
writers = []
for w in range(4):
    os.mkdir(f"w{w}")
    for i in range(12):
        write(f"w{w}/{i}.json", results(1000 + 100 * w + i, {f"c{k}": 1e4 + k for k in range(50)}))
    write(f"w{w}/shared.json", results(5000, {"shared": 1.0}))
    writers.append(subprocess.Popen([PERFWATCH, "record", f"w{w}", "--db", "two.db"], stdout=subprocess.DEVNULL,
                                    stderr=subprocess.PIPE, text=True))
for writer in writers:
    err = writer.communicate(timeout=120)[1]
    check("a writer ends well", writer.returncode == 0, err)
got = exported("two.db")
check("writers lose nothing", len(got["runs"]) == 49 and sorted({len(r["cells"]) for r in got["runs"]}) == [1, 50],
      len(got["runs"]))

# Killed at random moments: whole runs only, and the next one goes on.
rng = random.Random(8)
big = write("big.json", results(9000, {f"c{k}": 1e4 + k for k in range(4000)}))
killed = 0
for attempt in range(12):
    data = results(6000 + attempt, {f"c{k}": 1e4 + k for k in range(4000)})
    write("victim.json", data)
    victim = subprocess.Popen([PERFWATCH, "record", "victim.json", "--db", "kill.db"], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    time.sleep(rng.uniform(0.0, 0.25))
    victim.send_signal(signal.SIGKILL)
    killed += victim.wait() == -signal.SIGKILL
code, out, err = run("record", big, db="kill.db")
check("after kills", code == 0, err)
runs = exported("kill.db")["runs"]
check("whole runs only", {len(r["cells"]) for r in runs} == {4000} and any(r["id"].endswith(f"{9001:x}") for r in runs))
check("the database is sound", sqlite3.connect("kill.db").execute("PRAGMA integrity_check").fetchone()[0] == "ok")
check("some were killed", killed >= 3, killed)

finish(f"{killed} of 12 killed in time")
