#!/usr/bin/env python3
"""What a sweep leaves, against its own description: every member and column stands in
docs/formats.md, every documented column exists, all JSON is strict, and benchmark.json can be read
by Google Benchmark's compare.py.

usage: formats_test.py BENCH_TOPP DOCS_FORMATS_MD
"""
import os
import re
import sys
import tempfile
import textwrap

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from checks import finish, need, need_run, read_json, run, strict

COMPARE = "/usr/share/benchmark/compare.py"


def read(folder, name):
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return file.read()


def sweep(program, folder, profile, pattern, *flags):
    """The results, and what was printed."""
    code, out, err = run(program, "--sweep", "--profile", profile, "--device", "cpu", "--filter",
                         pattern, "--out", folder, *flags)
    need(f"{profile}: exit {code}: {err}", code == 0)
    return read_json(folder, "results.json"), out


def members(value, found, data=("rows_by_rule",)):
    """Names of members at any depth; of `data` the names are values: rules."""
    if isinstance(value, dict):
        for name, inner in value.items():
            found.add(name)
            if name not in data:
                members(inner, found, data)
    elif isinstance(value, list):
        for inner in value:
            members(inner, found, data)
    return found


def documented(text):
    """Words in back quotes, and what c_*, cxx_* and cuda_* stand for."""
    words = {word for quoted in re.findall(r"`([^`\n]+)`", text)
             for word in re.findall(r"[A-Za-z0-9_.]+", quoted)}
    for stem in ("c", "cxx", "cuda"):
        need(f"{stem}_* is not documented", f"`{stem}_*`" in text)
        words |= {f"{stem}_compiler", f"{stem}_flags"}
    return words


def check_members(folders, words):
    found = set()
    for folder in folders:
        members(read_json(folder, "results.json"), found)
        for line in read(folder, "journal.jsonl").splitlines():
            members(strict(line), found)
        benchmark = read_json(folder, "benchmark.json")
        library = {"name", "family_index", "per_family_instance_index", "run_name", "run_type",
                   "repetitions", "repetition_index", "threads", "iterations", "time_unit",
                   "aggregate_name", "aggregate_unit"}
        for entry in benchmark["benchmarks"]:
            found |= set(entry) - library
        found |= {name for name in benchmark["context"] if name.startswith("topp_")}
    need(f"only {len(found)} members were found", len(found) > 120)
    missing = sorted(found - words)
    need(f"docs/formats.md does not name {', '.join(missing)}", not missing)
    return len(found)


def check_columns(folder, text):
    rows = [line.split("\t") for line in read(folder, "results.tsv").splitlines()]
    listed = re.search(r"^Columns: (.*)$", text, re.MULTILINE)
    names = re.findall(r"`(\w+)`", listed.group(1))
    need(f"columns {rows[0]}, documented {names}", rows[0] == names)
    cells = read_json(folder, "results.json")["cells"]
    need("not one row a cell", len(rows) == len(cells) + 1)
    for row, cell in zip(rows[1:], cells):
        for name, field in zip(names, row):
            value = cell[name]
            same = (field == "NA" if value is None else
                    field == str(value).lower() if isinstance(value, bool) else
                    abs(float(field) - value) <= 1e-9 * abs(value)
                    if isinstance(value, (int, float)) else field == value)
            need(f"{cell['name']}: {name} is {field}, in results.json {value}", same)


STAND_INS = {
    "numpy/__init__.py": "array = list\n",
    "scipy/__init__.py": "",
    "scipy/stats.py": """
        import math
        from collections import namedtuple
        Result = namedtuple("Result", "pvalue")
        class Row(list):
            any = lambda self: any(self)
        def gmean(rows):
            return Row(math.exp(sum(map(math.log, c)) / len(rows)) for c in zip(*rows))
        def mannwhitneyu(a, b, alternative):
            return Result(0.5)
    """,
}


def check_compare(folder, root):
    """compare.py itself where Debian's libbenchmark-tools is, its numerics by stand-ins where
    scipy is not: what is tested is that it finds in the file what it reads."""
    if not os.path.exists(COMPARE):
        return "compare.py is not here"
    environment = dict(os.environ)
    try:
        import numpy  # pylint: disable=import-outside-toplevel,unused-import
        import scipy  # pylint: disable=import-outside-toplevel,unused-import
    except ImportError:
        for name, text in STAND_INS.items():
            path = os.path.join(root, "modules", name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="ascii") as file:
                file.write(textwrap.dedent(text))
        environment["PYTHONPATH"] = os.path.join(root, "modules")
    path = os.path.join(folder, "benchmark.json")
    shown = need_run(0, sys.executable, COMPARE, "--no-color", "benchmarks", path, path,
                     env=environment)
    cells = read_json(folder, "results.json")["cells"]
    for cell in cells:
        lines = [line for line in shown.splitlines() if line.startswith(cell["name"])]
        need(f"compare.py does not compare {cell['name']}", lines and "+0.0000" in lines[0])
    return f"compare.py compares {len(cells)} cells"


def check_benchmark(folder, refused):
    """Accepted cells: a time in every block. Refused cells: the reason, and no time."""
    entries = read_json(folder, "benchmark.json")["benchmarks"]
    for cell in read_json(folder, "results.json")["cells"]:
        mine = [entry for entry in entries if entry["name"].startswith(cell["name"] + "/")]
        need(f"{cell['name']} is not in benchmark.json", mine)
        for entry in mine:
            timed = cell["median_ns"] is not None
            need(f"{entry['name']}: {entry}", timed != entry.get("error_occurred", False))
            spread = entry.get("aggregate_name") in ("stddev", "cv")
            need(f"{entry['name']}: {entry}", (entry["real_time"] > 0) == timed or spread)
            need(f"{entry['name']}: no reason", timed or entry["error_message"] != "")
        blocks = [entry for entry in mine if entry["run_type"] == "iteration"]
        need(f"{cell['name']}: {len(blocks)} repetitions", len(blocks) == (cell["blocks"] or 1))
    need("refused cells", any(entry.get("error_occurred") for entry in entries) == refused)


def main():
    program, docs = sys.argv[1:3]
    with open(docs, encoding="utf-8") as file:
        text = file.read()
    with tempfile.TemporaryDirectory(prefix="topp-formats-") as root:
        timed, refused, drawn = (os.path.join(root, name) for name in ("a", "b", "c"))
        results, printed = sweep(program, timed, "smoke", "vocab:1000/batch:4",
                                 "--benchmark_format=json")
        # Of its JSON a reader can make something: the table is not beside it.
        need("--benchmark_format=json", len(strict(printed)["benchmarks"]) >= len(results["cells"]))
        results, printed = sweep(program, refused, "forced",
                                 r"(stock|exact)/.*1e9@0/vocab:1000/batch:1/")
        verdicts = {cell["verdict"] for cell in results["cells"]}
        need(f"the forced profile gives {verdicts}", {"accepted", "rejected"} <= verdicts)
        need("as expected", "Everything as expected" in printed, printed)
        sweep(program, drawn, "gumbel", r"murmur/statistic=greedy")
        count = check_members((timed, refused, drawn), documented(text))
        for folder in (timed, refused, drawn):
            check_columns(folder, text)
        check_benchmark(timed, False)
        check_benchmark(refused, True)
        compared = check_compare(timed, root)
    finish(f"{count} members and all columns are documented; {compared}")


if __name__ == "__main__":
    main()
