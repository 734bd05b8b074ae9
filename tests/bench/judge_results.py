#!/usr/bin/env python3
"""An independent reading of a sweep's results.json and results.tsv, by docs/formats.md alone:
strict JSON, hashes and figures computed again from the samples, the two files against each other.

usage: judge_results.py FOLDER
"""
import hashlib
import math
import os
import statistics
import struct
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from checks import finish, need, read_json

VERDICTS = ["accepted", "rejected", "ambiguous", "unreadable", "drift", "timeout", "unsupported"]


def samples_sha256(samples):
    length = len(samples["block"])
    columns = [samples[name] or [None] * length
               for name in ("time_ns", "busy_ns", "cycles", "sm_mhz")]
    text = ""
    for block, draw, *row in zip(samples["block"], samples["draw"], *columns):
        bits = ["-" if value is None else struct.pack(">d", value).hex() for value in row]
        text += f"{block} {draw} {' '.join(bits)}\n"
    return hashlib.sha256(text.encode()).hexdigest()


def quantile(values, q):
    values = sorted(values)
    place = q * (len(values) - 1)
    below = int(place)
    above = min(below + 1, len(values) - 1)
    return values[below] + (place - below) * (values[above] - values[below])


def interval(values):
    """Order statistics that cover the median with at least 95%."""
    values, n, rank, tail = sorted(values), len(values), 0, 0
    for k in range(n // 2 + n % 2):
        tail += math.comb(n, k)
        if 40 * tail > 2**n:
            break
        rank = k + 1
    return (values[rank - 1], values[n - rank]) if rank else (None, None)


def near(a, b):
    return (a is None) == (b is None) and (a is None or math.isclose(a, b, rel_tol=1e-12))


def figures(samples):
    draws = {}
    for time, draw in zip(samples["time_ns"], samples["draw"]):
        if time is not None:
            draws.setdefault(draw, []).append(time)
    medians = {draw: statistics.median(times) for draw, times in draws.items()}
    median = statistics.median(medians.values())
    scaled = [time * (median / medians[draw]) for draw, times in draws.items() for time in times]
    low, high = interval(scaled)
    return {"median_ns": median, "ci_low_ns": low, "ci_high_ns": high,
            "p05_ns": quantile(scaled, 0.05), "p95_ns": quantile(scaled, 0.95),
            "draw_low_ns": min(medians.values()), "draw_high_ns": max(medians.values())}


def moved(cell):
    elements = cell["batch"] * cell["vocab"]
    return {"topp": 8.0 * elements, "gumbel": 4.0 * elements + 8.0 * cell["batch"],
            "gumbel_statistic": None}[cell["kind"]]


def judge_cell(cell):
    name = cell["name"]
    need(f"{name}: verdict {cell['verdict']}", cell["verdict"] in VERDICTS)
    need(f"{name}: bytes_moved", near(cell["bytes_moved"], moved(cell)))
    timed = cell["samples"] is not None
    if timed:
        need(f"{name}: a time without a passed gate", cell["verdict"] == "accepted")
        need(f"{name}: samples, yet unmeasured", not cell["unmeasured"])
        need(f"{name}: samples_sha256", cell["samples_sha256"] == samples_sha256(cell["samples"]))
        for member, value in figures(cell["samples"]).items():
            need(f"{name}: {member} {cell[member]} is not {value}", near(cell[member], value))
        rate = cell["bytes_moved"] / (cell["median_ns"] * 1e-9)
        need(f"{name}: bytes_per_second", near(cell["bytes_per_second"], rate))
    else:
        for member in ("median_ns", "ci_low_ns", "p05_ns", "draw_low_ns", "busy_ns", "cycles",
                       "bytes_per_second", "ratio_to_floor", "samples_sha256"):
            need(f"{name}: {member} without samples", cell[member] is None)
    return timed


def judge_floor(cells):
    key = lambda cell: tuple(cell[m] for m in ("family", "vocab", "batch", "stride", "p", "seed",
                                               "l2", "launch"))
    floors = {key(cell): cell["median_ns"] for cell in cells
              if cell["kernel"] == "floor" and cell["samples"]}
    for cell in cells:
        floor = floors.get(key(cell)) if cell["kind"] == "topp" and cell["samples"] else None
        ratio = cell["median_ns"] / floor if floor else None
        need(f"{cell['name']}: ratio_to_floor", near(cell["ratio_to_floor"], ratio))


def judge_summary(results):
    cells, summary = results["cells"], results["summary"]
    need("summary: cells", summary["cells"] == len(cells))
    for verdict in VERDICTS:
        count = sum(cell["verdict"] == verdict for cell in cells)
        need(f"summary: {verdict}", summary[verdict] == count)
    need("summary: timed", summary["timed"] == sum(cell["samples"] is not None for cell in cells))
    unexpected = sum(not cell["as_expected"] for cell in cells)
    need("summary: unexpected", summary["unexpected"] == unexpected)
    need("summary: unmeasured",
         summary["unmeasured"] == sum(bool(cell["unmeasured"]) for cell in cells))
    need("summary: as_expected", summary["as_expected"] == (unexpected == 0))


def judge_tsv(path, cells):
    with open(path, encoding="utf-8", newline="") as file:
        lines = file.read().split("\n")
    need("results.tsv does not end with a line feed", lines.pop() == "")
    columns = lines.pop(0).split("\t")
    need("results.tsv: a column twice", len(set(columns)) == len(columns))
    need("results.tsv: rows", len(lines) == len(cells))
    for line, cell in zip(lines, cells):
        fields = line.split("\t")
        need(f"results.tsv: fields of {cell['name']}", len(fields) == len(columns))
        for column, field in zip(columns, fields):
            value = cell[column]
            if value is None:
                good = field == "NA"
            elif isinstance(value, bool):
                good = field == str(value).lower()
            elif isinstance(value, str):
                good = field == value.translate(str.maketrans("\t\n\r", "   "))
            else:
                good = math.isclose(float(field), value, rel_tol=1e-9)
            need(f"results.tsv: {column} of {cell['name']}: {field} is not {value}", good)


def main(folder):
    results = read_json(folder, "results.json")
    need("schema", results["schema"] == "topp-bench.results/1")
    timed = sum(judge_cell(cell) for cell in results["cells"])
    judge_floor(results["cells"])
    judge_summary(results)
    judge_tsv(f"{folder}/results.tsv", results["cells"])
    finish(f"{len(results['cells'])} cells, {timed} with samples")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except (AssertionError, ValueError, KeyError, OSError) as error:
        sys.exit(f"judge: {type(error).__name__}: {error}")
