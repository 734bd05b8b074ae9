"""Results of bench_topp, made up: for the tests of perfwatch."""
import json, math, random

DEVICE = {"kind": "cuda", "model": "NVIDIA H200", "uuid": "GPU-1", "sm_count": 132, "compute_capability": "9.0",
          "max_sm_mhz": 1980, "max_memory_mhz": 3201, "memory_bytes": 1 << 37, "l2_bytes": 1 << 25, "driver": "580.1",
          "cuda_driver": "13.0", "cuda_runtime": "13.0", "timer": "cupti"}
HASH = "ab" * 32


def cell(name, level, rng, process=0.003, scale=1.0, clock=1.0, cycles=True, **more):
    shift = math.exp(rng.gauss(0, process))
    values = [level * scale * shift * math.exp(rng.gauss(0, 0.005)) for _ in range(80)]
    times = [v * clock for v in values]
    one = {"name": name, "kind": "topp", "kernel": "exact", "contract": "exact", "family": "normal", "statistic": None,
           "vocab": 32000, "batch": 1, "stride": 32000, "p": 0.95, "p_text": "0.95", "temperature": None, "seed": 42,
           "draws": 2, "device": "cuda", "l2": "warm", "launch": "graph", "timed": True, "expect": "accept",
           "verdict": "accepted", "rule": None, "reason": None, "as_expected": True, "kept": 10, "oracle": 10,
           "rows_failed": 0, "inputs": [{"input_sha256": HASH, "mask_sha256": HASH, "kept": 5, "oracle": 5}] * 2,
           "sample_count": 80, "blocks": 5, "median_ns": sorted(times)[40], "ci_low_ns": None, "ci_high_ns": None,
           "p05_ns": None, "p95_ns": None, "cycles": sorted(values)[40] * 1.98, "sm_mhz": 1980.0 / clock,
           "unmeasured": None,
           "samples": {"time_ns": times, "busy_ns": None, "cycles": [v * 1.98 for v in values] if cycles else None,
                       "sm_mhz": None, "block": [i // 16 for i in range(80)], "draw": [i % 2 for i in range(80)]}}
    one.update(more)
    return one


def results(seed, cells=12, **options):
    rng = random.Random(seed)
    return {"schema": "topp-bench.results/1",
            "run": {"id": f"{seed:032x}", "date": "2026-01-31T12:00:00Z", "profile": {"name": "t", "sha256": HASH},
                    "plan_sha256": HASH, "sources_sha256": HASH, "seed": 42, "unfrozen": False, "subset": False,
                    "slices": 0, "device_kind": "cuda", "device": dict(DEVICE), "host": {"name": "h"},
                    "build": {"version": "0.1.0", "commit": "c1"}},
            "summary": {},
            "cells": [cell(f"topp/exact/normal/c{i}", 1e4 * (i + 1), rng, **options) for i in range(cells)]}


def write(path, data, lines=True):
    """As bench_topp lays it out, one cell a line; or indented."""
    dump = lambda x: json.dumps(x, separators=(",", ":"))
    with open(path, "w") as out:
        if not lines or not isinstance(data, dict) or "run" not in data:
            json.dump(data, out, indent=2)
        else:
            out.write(f'{{"schema":{dump(data["schema"])},\n"run":{dump(data["run"])},\n"summary":{{}},\n"cells":[\n')
            out.write(",\n".join(map(dump, data["cells"])) + ("\n" if data["cells"] else "") + "]}\n")
    return path


def scale(one, by, cycles=True):
    samples = one["samples"]
    samples["time_ns"] = [t * by for t in samples["time_ns"]]
    if cycles and samples["cycles"]:
        samples["cycles"] = [t * by for t in samples["cycles"]]
    one["median_ns"] *= by
