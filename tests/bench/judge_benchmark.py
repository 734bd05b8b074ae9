#!/usr/bin/env python3
"""An independent reading of benchmark.json: strict JSON, what Google Benchmark's compare.py and CI
actions need of it, and compare.py itself where Debian's libbenchmark-tools installed it.

usage: judge_benchmark.py BENCHMARK_JSON [OTHER]
"""
import io
import os
import runpy
import statistics
import sys
import types
from contextlib import redirect_stdout

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from checks import finish, need, read_json

COMPARE = "/usr/share/benchmark/compare.py"


def judge(path):
    """Times of the repetitions by name, none for a refused cell."""
    file = read_json(path)
    need("context: executable", file["context"]["executable"] == "bench_topp")
    times = {}
    for entry in file["benchmarks"]:
        name = entry["name"]
        for member in ("name", "run_name", "run_type", "real_time", "cpu_time", "time_unit"):
            need(f"{name}: no {member}", member in entry)
        need(f"{name}: unit", entry["time_unit"] == "ns")
        if entry["run_type"] == "aggregate":
            need(f"{name}: aggregate",
                 entry["aggregate_name"] in ("mean", "median", "stddev", "cv"))
        elif entry.get("error_occurred"):
            need(f"{name}: an error without a message", entry["error_message"] != "")
            times.setdefault(name, [])
        else:
            need(f"{name}: time", entry["iterations"] == 1 and entry["real_time"] > 0)
            times.setdefault(name, []).append(entry["real_time"])
    for entry in file["benchmarks"]:
        if entry["run_type"] == "aggregate" and entry["aggregate_name"] == "median":
            median = statistics.median(times[entry["run_name"]])
            need(f"{entry['name']}: median", abs(entry["real_time"] / median - 1) < 1e-9)
    return times


def stand_in():
    """compare.py wants numpy and scipy for a test and a mean: enough of both to run its code."""
    try:
        import numpy, scipy.stats  # noqa: F401, E401
    except ImportError:
        class Array(list):
            def any(self):
                return any(self)

        def gmean(rows):
            columns = list(zip(*rows))
            return Array(statistics.geometric_mean(c) if all(v > 0 for v in c) else 0.0
                         for c in columns)

        numpy, scipy, stats = (types.ModuleType(n) for n in ("numpy", "scipy", "scipy.stats"))
        numpy.array = Array
        stats.gmean = gmean
        stats.mannwhitneyu = lambda a, b, alternative: types.SimpleNamespace(pvalue=0.5)
        scipy.stats = stats
        sys.modules.update({"numpy": numpy, "scipy": scipy, "scipy.stats": stats})


def compare(path, other, times):
    if not os.path.exists(COMPARE):
        print("compare.py is not installed (libbenchmark-tools): read by schema alone")
        return
    stand_in()
    sys.path.insert(0, os.path.dirname(COMPARE))
    sys.argv = ["compare.py", "--no-color", "benchmarks", path, other]
    output = io.StringIO()
    with redirect_stdout(output):
        runpy.run_path(COMPARE, run_name="__main__")
    for name, measured in times.items():
        if measured:
            rows = [line for line in output.getvalue().splitlines() if line.startswith(name + " ")]
            need(f"compare.py shows {len(rows)} rows of {name}", len(rows) >= len(measured))
            shown = sorted(float(row[len(name):].split()[2]) for row in rows)[-len(measured):]
            need(f"compare.py shows {shown} for {measured} of {name}",
                 all(abs(a - b) <= 0.5 for a, b in zip(shown, sorted(measured))))


def main(path, other=None):
    times = judge(path)
    compare(path, other or path, times)
    timed = sum(bool(measured) for measured in times.values())
    finish(f"{len(times)} benchmarks, {timed} with times")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except (AssertionError, ValueError, KeyError, OSError) as error:
        sys.exit(f"judge: {type(error).__name__}: {error}")
