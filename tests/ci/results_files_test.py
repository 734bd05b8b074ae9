#!/usr/bin/env python3
"""ci/compact-results and ci/measured on what an H200 measured: nothing is lost, every figure is the file's, and
what cannot be read leaves what was there. usage: results_files_test.py PERFWATCH RECORDED_DIR SOURCE_DIR"""
import copy, json, os, re, resource, stat, subprocess, sys, tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, ".."), os.path.join(HERE, "..", "bench")]
from checks import check, finish, need, need_run, read_json, run
from judge_results import samples_sha256

PERFWATCH, RECORDED, SOURCE = map(os.path.abspath, sys.argv[1:4])
COMPACT, MEASURED = (os.path.join(SOURCE, "ci", name) for name in ("compact-results", "measured"))
COLUMNS = ["kernel", "vocabulary", "batch", "p or temperature", "verdict", "kept", "oracle", "median, us",
           "95% interval, us", "over floor"]
GONE = object()
REAL = ("p", "temperature", "median_ns", "draw_low_ns", "draw_high_ns", "bytes_moved", "cycles", "ratio_to_floor")


def write(path, data):
    with open(path, "w", encoding="utf-8") as file:
        file.write(data if isinstance(data, str) else json.dumps(data))
    return path


def text_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def changed(data, *way, **members):
    """A copy in which the object at the end of the way has these members; GONE: no longer."""
    data = copy.copy(data)
    if way:
        data[way[0]] = changed(data[way[0]], *way[1:], **members)
        return data
    return {name: value for name, value in {**data, **members}.items() if value is not GONE}


# ---- ci/compact-results ----

def as_stamped(recorded):
    """As the program wrote it: figures binary64, those of the clock between the steps of their stamps."""
    results = copy.deepcopy(recorded)
    for cell in results["cells"]:
        for name in REAL:
            cell[name] = cell[name] and float(cell[name])
        samples = cell["samples"]
        if samples:
            for name in ("time_ns", "busy_ns"):
                samples[name] = [float(value) for value in samples[name]]
            samples["cycles"] = [value + (0.4 if i % 2 else -0.3) for i, value in enumerate(samples["cycles"])]
            samples["sm_mhz"] = [value + (0.04 if i % 2 else -0.03) for i, value in enumerate(samples["sm_mhz"])]
            cell["samples_sha256"] = samples_sha256(samples)
    return results


def compacted(part):
    need("the part has every kind of cell",
         {(c["kind"], c["verdict"]) for c in part["cells"]} ==
         {("topp", "accepted"), ("topp", "rejected"), ("gumbel", "accepted")})
    stamped = as_stamped(part)
    os.mkdir("stamped"), os.mkdir("kept")
    write("stamped/results.json", stamped)
    need_run(0, COMPACT, "stamped/results.json", "kept/results.json")
    kept, text = read_json("kept/results.json"), text_of("kept/results.json")
    check("compact: head", {k: v for k, v in kept.items() if k != "cells"} == {k: v for k, v in part.items() if k != "cells"})
    check("compact: order of members", list(kept) == list(part) and list(kept["cells"][0]) == list(part["cells"][0]))
    check("compact: as many cells", len(kept["cells"]) == len(part["cells"]))
    for cell, was, made in zip(kept["cells"], part["cells"], stamped["cells"]):
        check(f"compact: {was['name']}: as kept before", cell == was)
        for member in ("name", "verdict", "rule", "median_ns", "ci_low_ns", "ci_high_ns", "inputs", "kept", "oracle"):
            check(f"compact: {was['name']}: {member}", cell[member] == made[member], (cell[member], made[member]))
        if was["samples"]:
            check(f"compact: {was['name']}: times", cell["samples"]["time_ns"] == made["samples"]["time_ns"])
            check(f"compact: {was['name']}: hash", cell["samples_sha256"] == samples_sha256(cell["samples"]))
    check("compact: no .0", not re.search(r"\d\.0[,\]}]", text))
    check("compact: a line a cell", sum(line.startswith('{"name":') for line in text.splitlines()) == len(part["cells"]))
    check("compact: less", len(text) < 0.8 * os.path.getsize("stamped/results.json"))
    verdict = json.loads(run(PERFWATCH, "compare", "stamped", "kept", "--json", "-")[1])
    timed = [cell for cell in verdict["cells"] if cell["time"]]
    check("compact: no regression", verdict["exit_code"] == 0, verdict["headline"])
    check("compact: what is timed", len(timed) == sum(c["median_ns"] is not None for c in part["cells"]), len(timed))
    # A very noisy cell is undecided even against itself.
    check("compact: equal times", all(c["ratio"] == 1 and c["outcome"] in ("equivalent", "undecided") for c in timed) and
          sum(c["outcome"] == "equivalent" for c in timed) > 0.9 * len(timed), verdict["counts"])
    check("compact: equal cycles", all(abs(c["cycles"]["shift"]) < 1e-3 for c in timed), timed[:1])
    need_run(0, COMPACT, "kept/results.json", "kept/results.json")
    check("compact: again, in place, nothing more", text_of("kept/results.json") == text)
    bare = changed(part, "cells", 0, "samples", cycles=None, sm_mhz=None, busy_ns=None)
    bare["cells"][0]["samples_sha256"] = samples_sha256(bare["cells"][0]["samples"])
    need_run(0, COMPACT, write("bare.json", bare), "bare-kept.json")
    check("compact: a run on a CPU", read_json("bare-kept.json") == bare)


# ---- ci/measured ----

def rows_of(page):
    """Heading and fields of each row, as a reader of Markdown takes them."""
    heading, rows = None, []
    for line in page.splitlines():
        fields = [field.strip() for field in line.split("|")[1:-1]]
        if line.startswith("## "):
            heading = line[3:]
        elif fields == COLUMNS:
            rows.append(None)
        elif fields and not set(line) <= set("|-"):
            rows.append((heading, fields))
    return rows


def near(field, value, scale, step):
    return field == "-" if value is None else abs(float(field) * scale - value) <= step * scale / 2 * 1.001


def right_row(heading, fields, cell):
    """A page's row against the cell of results.json, figure by figure."""
    at = dict(zip(COLUMNS, fields))
    ends = at["95% interval, us"].split(" to ") if cell["ci_low_ns"] is not None else [at["95% interval, us"]] * 2
    return (len(fields) == len(COLUMNS) and heading.startswith(f"{cell['kind']} {cell['family']}, ") and
            f"L2 {cell['l2']}" in heading and f"launch {cell['launch']}" in heading and
            at["kernel"] == cell["kernel"] and int(at["vocabulary"]) == cell["vocab"] and int(at["batch"]) == cell["batch"] and
            at["p or temperature"] in (cell["p_text"], str(cell["temperature"])) and
            at["verdict"] == (f"{cell['verdict']} ({cell['rule']})" if cell["rule"] else cell["verdict"]) and
            all(near(at[name], cell[name], 1, 0) for name in ("kept", "oracle")) and
            near(at["median, us"], cell["median_ns"], 1000, 0.01) and near(ends[0], cell["ci_low_ns"], 1000, 0.01) and
            near(ends[1], cell["ci_high_ns"], 1000, 0.01) and near(at["over floor"], cell["ratio_to_floor"], 1, 0.01))


def measured(recorded):
    page = need_run(0, MEASURED, os.path.join(RECORDED, "default"), "A title", "bench_topp --sweep --this")
    for words in ("# A title\n\n`bench_topp --sweep --this`\n\n- Date: 2026-11-30; commit: a0b4b51\n",
                  "- Device: NVIDIA H200, 132 multiprocessors, driver 580.159.04, CUPTI 130001, timer cupti\n",
                  "- L2 probe: 287 cycles a load warm, 692 flushed\n",
                  "- Cells: 1608, accepted 1527, rejected 81, timed 1527; as the profile expects: yes\n"):
        check(f"page: {words}", words in page, page[:600])
    rows = rows_of(page)
    tables = {(c["kind"], c["family"], c["l2"], c["launch"]) for c in recorded["cells"]}
    check("page: a table a group, each with its columns", rows.count(None) == len(tables), rows.count(None))
    rows = [row for row in rows if row]
    left = {}
    for cell in recorded["cells"]:  # a table has its cells in the order of the file
        left.setdefault((cell["kind"], cell["family"], cell["l2"], cell["launch"]), []).append(cell)
    cells = [cell for table in left.values() for cell in table]
    need("page: a row a cell", len(rows) == len(cells) == 1608, len(rows))
    for (heading, fields), cell in zip(rows, cells):
        check(f"page: {cell['name']}", right_row(heading, fields, cell), (heading, fields))


def other_pages(part):
    os.mkdir("run")
    words = [sys.executable, MEASURED, "run", "T", "c"]
    write("run/results.json", part)
    page = need_run(0, *words)
    need_run(0, *words, "page.md")
    check("page: the same in a file", text_of("page.md") == page)
    shared = changed(changed(part, "run", "build", commit=None), "run", "device", driver=None)
    write("run/results.json", changed(shared, "summary", as_expected=False))
    page = need_run(0, *words)
    check("page: of several hosts", "commit: unknown" in page and "None" not in page and "driver" not in page, page[:400])
    check("page: against the profile", "as the profile expects: no" in page)
    cpu = changed(changed(part, "cells", 0, l2=None, launch=None, family="captured=mine"), "run",
                  device={"kind": "cpu", "model": "A CPU", "processors": 2, "timer": "clock_monotonic"})
    greedy = next(i for i, cell in enumerate(cpu["cells"]) if cell["kind"] == "gumbel")
    write("run/results.json", changed(cpu, "cells", greedy, statistic="greedy", median_ns=None, ci_low_ns=None))
    page = need_run(0, *words)
    rows = [row for row in rows_of(page) if row]
    check("page: of a CPU", "- Device: A CPU, 2 processors, timer clock_monotonic\n- Cells: " in page, page[:400])
    check("page: no L2 and launch there", rows[0][0] == "topp captured=mine" and len(rows[0][1]) == len(COLUMNS), rows[0])
    check("page: a statistic", [fields[1:4] + fields[7:9] for heading, fields in rows
                                if heading == "gumbel, statistic greedy"] == [["-"] * 5])


# ---- Outputs ----

def special_outputs(part):
    """What is no file is written to and stays: root's rename would put a file in the place of /dev/null, which
    is not tried here itself for what it would leave."""
    write("run/results.json", part)
    for words in ([COMPACT, "run/results.json"], [MEASURED, "run", "T", "c"]):
        tool = os.path.basename(words[0])
        text = need_run(0, *words, "-")
        check(f"{tool}: - is standard output", 1000 < len(text) < 60000 and not os.path.exists("-"), len(text))
        os.mkfifo("pipe")
        reader = os.open("pipe", os.O_RDONLY | os.O_NONBLOCK)
        need_run(0, *words, "pipe")
        check(f"{tool}: a pipe stays one", stat.S_ISFIFO(os.stat("pipe").st_mode) and os.read(reader, 1 << 20).decode() == text)
        os.close(reader), os.remove("pipe")
        write("target", "old"), os.symlink("target", "link")
        need_run(0, *words, "link")
        check(f"{tool}: a link stays one", os.path.islink("link") and text_of("target") == text)
        os.remove("link")
        with open("/dev/full", "wb") as full:
            done = subprocess.run([sys.executable, *words, "-"], stdout=full, stderr=subprocess.PIPE, text=True)
        check(f"{tool}: standard output full", done.returncode == 2 and
              done.stderr == f"ci/{tool}: standard output: No space left on device: name a file that can be written\n", done)


# ---- What neither can read ----

def refusals(part):
    whole = json.dumps(part)
    bad = {"empty": ("", "Expecting value"), "cut": (whole[:len(whole) // 2], "line 1 column"),
           "NaN": (whole.replace(": 1,", ": NaN,", 1), "NaN is no JSON"), "deep": ("[" * 100000, "recursion"),
           "another schema": (changed(part, schema="topp-bench.results/2"), "schema is not topp-bench.results/1"),
           "a list": ("[]", "schema is not"), "no cells": (changed(part, cells=GONE), "cells: "),
           "cells of text": (changed(part, cells=["a"]), "cells[0]"),
           "cells in no list": (changed(part, cells={}), "cells: no list")}
    for_compact = {"a changed draw": (changed(part, "cells", 2, "samples", draw=[0] * 1000), "samples are not those that"),
                   "a column cut": (changed(part, "cells", 2, "samples", cycles=[1]), "cells[2]: samples: 1 figures"),
                   "a time past binary64": (changed(part, "cells", 2, "samples", time_ns=[10 ** 400] * len(part["cells"][2]["samples"]["block"])), "cells[2]: "),
                   "no number in the head": (whole.replace('"seed": ', '"seed": 1e999, "x": ', 1), "Out of range"),
                   "no samples": (changed(part, "cells", 2, samples=GONE), "cells[2]: no member 'samples'")}
    for_page = {"no verdict": (changed(part, "cells", 2, verdict=GONE), "cells[2]: no member 'verdict'"),
                "a median of text": (changed(part, "cells", 2, median_ns="fast"), "cells[2]: "),
                "no device": (changed(part, "run", device=GONE), "run and summary: no member 'device'")}
    # Both read by ci/results_file.py: the files that it refuses are tried on one of them.
    tools = (("ci/compact-results", [COMPACT, "bad/results.json", "out"], for_compact),
             ("ci/measured", [MEASURED, "bad", "T", "c", "out"], {**bad, **for_page}))
    path = os.path.join("bad", "results.json")
    os.mkdir("bad")

    def refused(name, words, *says, **more):
        write("out", "precious")
        code, out, err = run(sys.executable, *words, **more)
        check(f"{name}: told", code == 2 and not out and "Traceback" not in err and all(s in err for s in says), (code, err))
        check(f"{name}: nothing is lost", text_of("out") == "precious" and not os.path.exists("out.partial"))

    for tool, words, cases in tools:
        for name, (data, says) in cases.items():
            write("bad/results.json", data)
            refused(f"{tool}: {name}", words, f"{tool}: {path}: ", says)
        os.remove("bad/results.json")
        refused(f"{tool}: no file", words, f"{tool}: {path}: No such file")
        refused(f"{tool}: a word too few", words[:2], f"usage: {tool}")
        refused(f"{tool}: a word too many", words + ["x"], f"usage: {tool}")
        write("bad/results.json", part)
        for out, why in (("none/out", "No such file"), ("run", "Is a directory")):
            refused(f"{tool}: output {out}", words[:-1] + [out], f"{tool}: {out}: {why}")
        refused(f"{tool}: a full disk", words, f"{tool}: out: File too large",
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)))
        check(f"{tool}: no part is left", not os.path.exists("run.partial"))


def main():
    recorded = read_json(RECORDED, "default", "results.json")
    # Of the 1,608 cells each 40th, and some of those refused: as much as a test of seconds can take.
    part = dict(recorded, cells=[cell for i, cell in enumerate(recorded["cells"])
                                 if i % 40 == 0 or cell["verdict"] == "rejected" and i % 5 == 0])
    with tempfile.TemporaryDirectory(prefix="topp-results-files-") as work:
        os.chdir(work)
        compacted(part)
        measured(recorded)
        few = dict(part, cells=part["cells"][:3] + part["cells"][-3:])
        other_pages(few)
        special_outputs(few)
        refusals(few)
    finish()


main()
