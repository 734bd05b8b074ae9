#!/usr/bin/env python3
"""Shards merged into one run: the same as a single run, bound by receipts, and refused with the
place and the mend where they do not belong together.

usage: merge_test.py BENCH_TOPP MADE_SHARDS SOURCE_DIR
"""
import hashlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from checks import finish, need, need_run, read_json

BENCH, MADE, SOURCE = sys.argv[1:4]
PROFILES = os.path.join(SOURCE, "profiles")
SMOKE = os.path.join(PROFILES, "smoke.json")
ADDED = {"shard", "device_uuid"}


def run(*words, expect=0, limit=None):
    def prepare():
        if limit:
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    return need_run(expect, BENCH, *words, preexec_fn=prepare)


def made(profile, out, shards, *uuids, seed=1):
    subprocess.run([MADE, profile, out, str(shards), "4", str(seed), *uuids], check=True)
    return [os.path.join(out, str(k)) for k in range(1, shards + 1)] or out


def merge(dirs, out, *words, expect=0, says="", limit=None, profiles=PROFILES):
    text = run("--merge", *dirs, "--out", out, "--profile-dir", profiles, *words, expect=expect,
               limit=limit)
    need(f"'{says}' is not said: {text}", says in text)
    return text


def load(folder, name="results.json"):
    return read_json(folder, name)


def read(folder, name):
    with open(os.path.join(folder, name), "rb") as file:
        return file.read()


class Number(str):
    """A number as it is written."""


def parse(text):
    return json.loads(text, parse_float=Number, parse_int=Number)


def canonical(value):
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join(json.dumps(key) + ":" + canonical(value[key])
                              for key in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def edit(folder, change):
    """Changes a shard's run as if it had been so, sealed anew."""
    path = os.path.join(folder, "results.json")
    lines = read(folder, "results.json").split(b"\n")
    receipt = parse(read(folder, "receipt.json"))
    change(receipt["run"])
    lines[1] = b'"run":' + canonical(receipt["run"]).encode() + b","
    text = b"\n".join(lines)
    with open(path, "wb") as file:
        file.write(text)
    receipt["outputs"][0]["sha256"] = hashlib.sha256(text).hexdigest()
    seal(folder, lambda sealed: sealed.update(receipt))


def seal(folder, change):
    """Changes a receipt, sealed anew."""
    receipt = parse(read(folder, "receipt.json"))
    change(receipt)
    del receipt["seal_sha256"]
    receipt["seal_sha256"] = hashlib.sha256(canonical(receipt).encode()).hexdigest()
    with open(os.path.join(folder, "receipt.json"), "w", encoding="utf-8") as file:
        file.write(canonical(receipt))


def setter(*path):
    *way, last, value = path

    def change(run_object):
        for step in way:
            run_object = run_object[step]
        run_object[last] = value
    return change


def files_of(folder):
    return {name: read(folder, name) for name in sorted(os.listdir(folder)) if name[0] != "."}


def same_as_single(scratch):
    """Made up, so that times too are the same to the last bit."""
    single = made(SMOKE, os.path.join(scratch, "single"), 0)
    dirs = made(SMOKE, os.path.join(scratch, "parts"), 5)
    merged = os.path.join(scratch, "merged")
    merge(dirs[3:] + dirs[:3], merged)
    one, many = load(single), load(merged)
    for place, cell in enumerate(many["cells"]):
        number = cell["shard"]
        names = [c["name"] for c in load(dirs[number - 1])["cells"]]
        need(f"shard of {cell['name']}", cell["name"] in names and cell["device_uuid"] is None)
        bare = {key: value for key, value in cell.items() if key not in ADDED}
        need(f"cell {place} is not the single run's", bare == one["cells"][place])
    need("summary", many["summary"] == one["summary"])
    shards = many["run"].pop("shards")
    need("run.shards", [s["index"] for s in shards] == [1, 2, 3, 4, 5] and
         sum(s["cells"] for s in shards) == len(one["cells"]))
    for key, value in one["run"].items():
        if key not in ("id", "date"):
            need(f"run.{key}: {many['run'][key]}, single {value}", many["run"][key] == value)
    need("results.tsv", read(single, "results.tsv") == read(merged, "results.tsv"))
    by_name = [sorted(load(f, "benchmark.json")["benchmarks"], key=json.dumps)
               for f in (single, merged)]
    need("entries of benchmark.json", by_name[0] == by_name[1])
    need("the run's id in benchmark.json",
         load(merged, "benchmark.json")["context"]["topp_bench_run"] == many["run"]["id"])
    head, end = read(merged, "journal.jsonl").splitlines()
    need("journal", json.loads(end) == {"end": True} and json.loads(head)["merge"] is True)
    again = os.path.join(scratch, "again")
    merge(dirs, again)
    need("another order of folders, other bytes", files_of(again) == files_of(merged))
    merge(dirs, again)
    need("merged again, other bytes", files_of(again) == files_of(merged))
    run("--sweep", "--profile", SMOKE, "--device", "cpu", "--out", merged, "--filter", "vocab:1000/",
        expect=2)
    need("a sweep of something else wrote over the merge", files_of(again) == files_of(merged))


def receipts(scratch):
    """Of a real run: --verify follows the merged receipt into the shards."""
    dirs = [os.path.join(scratch, "real", str(k)) for k in (1, 2, 3)]
    for k, folder in enumerate(dirs, 1):
        run("--sweep", "--profile", SMOKE, "--device", "cpu", "--shard", f"{k}/3", "--out", folder,
            "--filter", "topp/(exact|floor|stock)/|gumbel/log/")
    merged = os.path.join(scratch, "real-merged")
    merge(dirs, merged)
    receipt = os.path.join(merged, "receipt.json")
    text = run("--verify", receipt, "--profile-dir", PROFILES)
    need("verified", "shards       18 verified\n" in text and " 0 changed, 0 not" in text, text)
    seal = parse(read(merged, "receipt.json"))
    sealed = seal.pop("seal_sha256")
    need("seal", hashlib.sha256(canonical(seal).encode()).hexdigest() == sealed)

    def tampered(name, folder, change, says, expect=1, *words):
        path = os.path.join(folder, name)
        before = open(path, "rb").read()
        changed = change(before)
        need(f"{name}: nothing to change", changed != before)
        with open(path, "wb") as file:
            file.write(changed)
        text = run("--verify", receipt, "--profile-dir", PROFILES, *words, expect=expect)
        with open(path, "wb") as file:
            file.write(before)
        need(f"'{says}' is not said: {text}", says in text)

    tampered("receipt.json", dirs[1], lambda t: t.replace(b'"resumed": false', b'"resumed": true'),
             "changed: shards: shard 2")
    tampered("results.tsv", dirs[2], lambda t: t + b"\n", "changed: shards: shard 3 results.tsv")
    tampered("results.json", merged, lambda t: t.replace(b'"rows_failed":0', b'"rows_failed":1', 1),
             "cells are not what its receipt sealed")
    os.rename(dirs[0], dirs[0] + "-away")
    text = run("--verify", receipt, "--profile-dir", PROFILES)
    need("one away", "not recomputable here: shards: shard 1" in text, text)
    run("--verify", receipt, "--profile-dir", PROFILES, "--strict", expect=3)
    os.rename(dirs[0] + "-away", dirs[0])
    shutil.move(os.path.join(scratch, "real"), os.path.join(scratch, "moved"))
    text = run("--verify", receipt, "--profile-dir", PROFILES)
    need("all moved", "not recomputable here: shards: shard 3" in text, text)


def devices(scratch):
    """GPUs of one model are merged and named a cell; models are kept apart when asked."""
    dirs = made(SMOKE, os.path.join(scratch, "uuid"), 4, "GPU-a", "GPU-b")
    merged = os.path.join(scratch, "uuid-merged")
    merge(dirs, merged)
    results = load(merged)
    need("uuid of a run on two devices", results["run"]["device"]["uuid"] is None)
    for cell in results["cells"]:
        need(f"{cell['name']}: device",
             cell["device_uuid"] == ["GPU-a", "GPU-b"][(cell["shard"] - 1) % 2])
    other = made(SMOKE, os.path.join(scratch, "other"), 2)
    for folder in other:
        edit(folder, setter("device", "model", "Other: 2 (x)"))
    out = os.path.join(scratch, "apart")
    merge(dirs + other, out, expect=2, says='run.device.model is "Other: 2 (x)" here')
    merge(dirs + other[1:], out, "--separate-devices", expect=2,
          says="of 2 shards (device Other: 2 (x)) there is no folder of: 1;")
    need("something was written before all was checked", not os.path.exists(out))
    merge(dirs + other, out, "--separate-devices", says=", 2 devices")
    need("a folder a model", sorted(os.listdir(out)) == ["made-up-1", "other-2-x"], os.listdir(out))
    need("cells", len(load(os.path.join(out, "other-2-x"))["cells"]) == len(results["cells"]))


def alike(scratch):
    dirs = made(SMOKE, os.path.join(scratch, "alike"), 3)
    out = os.path.join(scratch, "alike-merged")
    kept = os.path.join(scratch, "kept")
    shutil.copytree(dirs[1], kept)
    foreign = [
        ("run.sources_sha256", setter("sources_sha256", "ab")),
        ("run.profile.sha256", setter("profile", "sha256", "ab")),
        ("run.seed", setter("seed", Number("7"))),
        ("run.slices", setter("slices", Number("4"))),
        ("run.unfrozen", setter("unfrozen", True)),
        ("run.timing", setter("timing", "blocks", Number("9"))),
        ("run.limits", setter("limits", "max_batch", Number("9"))),
        ("run.device.driver", setter("device", "driver", "600")),
        ("run.device.processors", setter("device", "processors", Number("64"))),
        ("run.build.version", setter("build", "version", "9")),
        ("run.shard.count", setter("shard", "count", Number("4"))),
        ("run.shard.list_sha256", setter("shard", "list_sha256", "ab")),
    ]
    for says, change in foreign:
        edit(dirs[1], change)
        merge(dirs, out, expect=2, says=f"{dirs[1]}: is not of the same sweep as {dirs[0]}: {says}")
        shutil.rmtree(dirs[1])
        shutil.copytree(kept, dirs[1])
    with open(os.path.join(dirs[1], "journal.jsonl"), "w", encoding="utf-8") as file:
        file.write('{"gate_only":true}\n{"end":true}\n')
    merge(dirs, out, expect=2, says="--gate-only")
    need("refused, but written", not os.path.exists(out))
    edit(dirs[1], setter("host", "name", "elsewhere"))
    edit(dirs[1], setter("build", "commit", "fedcba"))
    shutil.copy(os.path.join(kept, "journal.jsonl"), dirs[1])
    merge(dirs, out)
    merged = load(out)["run"]
    need("own is not common", merged["host"]["name"] is None and merged["build"]["commit"] is None)
    need("run.shards keeps what differs", merged["shards"][1]["host"]["name"] == "elsewhere")


def set_of_shards(scratch):
    dirs = made(os.path.join(PROFILES, "forced.json"), os.path.join(scratch, "set"), 7)
    out = os.path.join(scratch, "set-merged")
    merge(dirs[1:3] + dirs[5:6], out, expect=2, says="there is no folder of: 1, 4 to 5, 7;")
    shutil.copytree(dirs[4], dirs[4] + "-copy")
    merge(dirs + [dirs[4] + "-copy"], out, expect=2,
          says=f"{dirs[4]}-copy: is shard 5 of 7, and so is {dirs[4]}")
    merge(dirs + dirs[:1], out, expect=2, says="is shard 1 of 7, and so is")
    merge(dirs, dirs[0], expect=2, says="is a folder to merge and the folder to write")
    single = made(SMOKE, os.path.join(scratch, "set-single"), 0)
    merge([single], out, expect=2, says="is of a whole run, not of a shard")
    merge([scratch], out, expect=2, says="a folder to merge holds a finished run")
    os.remove(os.path.join(dirs[2], "receipt.json"))
    merge(dirs, out, expect=2, says=f"{dirs[2]}: holds a run that did not finish")
    need("refused, but written", not os.path.exists(out))
    run("--merge", "--out", out, expect=2)
    run("--merge", *dirs, expect=2)
    run("--merge", dirs[0], "--out", out, dirs[1], expect=2)


def damage(scratch):
    """What a receipt does not bind is not merged, and OUT keeps what it had."""
    dirs = made(SMOKE, os.path.join(scratch, "damage"), 3)
    out = os.path.join(scratch, "damage-merged")
    merge(dirs, out)
    before = files_of(out)
    results = ("results.json", "results.tsv", "benchmark.json", "receipt.json")
    damages = [
        ("results.json", lambda t: t[:-200], "results.json"),
        ("results.json", lambda t: t.replace(b'"rows_failed":0', b'"rows_failed":1', 1), "binds"),
        ("results.json", lambda t: t.replace(b'"name":"topp/', b'"name":"topq/', 1), "another cell"),
        ("results.json", lambda t: t.replace(b'"id":"', b'"id":"0', 1), "another run"),
        ("results.json", lambda t: t.replace(b'"kept":', b'"kept":x', 1), "is no JSON"),
        ("results.tsv", lambda t: t.replace(b"\taccepted\t", b"\trejected\t", 1), "binds"),
        ("results.tsv", lambda t: t[:len(t) // 2], "results.tsv"),
        ("benchmark.json", lambda t: t.replace(b"real_time", b"real_tyme", 1), "binds"),
        ("benchmark.json", lambda t: t.replace(b'"family_index": 0', b'"family_index": 1', 1),
         "is not the cell that its number says"),
        ("benchmark.json", lambda t: t[:len(t) // 2], "benchmark.json:"),
        ("receipt.json", lambda t: t.replace(b'"kept": ', b'"kept": 1', 1), "its seal does not"),
        ("receipt.json", lambda t: t[:-300], "is no JSON here"),
        ("receipt.json", lambda t: b"", "is empty"),
        ("receipt.json", lambda t: b"{}", "is no receipt of a sweep"),
        ("receipt.json", lambda t: b"[" * 100000, "is no JSON here"),
    ]
    for name, change, says in damages:
        path = os.path.join(dirs[1], name)
        whole = open(path, "rb").read()
        changed = change(whole)
        need(f"{name}: nothing to damage for '{says}'", changed != whole)
        with open(path, "wb") as file:
            file.write(changed)
        merge(dirs, out, expect=2, says=says)
        with open(path, "wb") as file:
            file.write(whole)
        after = files_of(out)
        need(f"{name} damaged: OUT was changed", all(after[n] == before[n] for n in results))
    whole = read(dirs[1], "receipt.json")
    for schema in (Number("2"), Number("1.0"), "1", None):
        seal(dirs[1], lambda sealed: sealed.update(schema=schema) if schema else sealed.pop("schema"))
        merge(dirs, out, expect=2, says='"schema" is missing, or one that this program does not')
    with open(os.path.join(dirs[1], "receipt.json"), "wb") as file:
        file.write(whole)
    # A disk that is full: not one file of the earlier merge is lost.
    for limit in (1000, len(before["results.json"]) // 2, len(before["results.json"]) - 100):
        merge(dirs, out, expect=2, says="File too large", limit=limit)
        after = files_of(out)
        need("a full disk: OUT was changed", all(after[n] == before[n] for n in results))
    need("partial files are left", not [n for n in os.listdir(out) if n.endswith(".partial")])
    merge(dirs, out)
    need("what a broken merge left is not gone on with", files_of(out) == before)


def folders(scratch):
    """OUT follows the rules of a sweep's folder."""
    dirs = made(SMOKE, os.path.join(scratch, "out"), 2)
    out = os.path.join(scratch, "out-merged")
    os.mkdir(out)
    journal = os.path.join(out, "journal.jsonl")
    with open(journal, "w", encoding="utf-8") as file:
        file.write('{"schema":"topp-bench.journal/1"}\n{"line":"verdict"}\n')
    merge(dirs, out, expect=2, says="holds an interrupted run of something else")
    need("written into another's folder", os.listdir(out).count("results.json") == 0)
    with open(journal, "a", encoding="utf-8") as file:
        file.write('{"end":true}\n')
    merge(dirs, out, expect=2, says="holds results of another run")
    merge(dirs, out, "--force")
    head = open(journal, "rb").read().splitlines(True)[0]
    with open(journal, "wb") as file:
        file.write(head)
    merge(dirs, out)
    other = os.path.join(scratch, "renamed.json")
    os.symlink(os.path.join(PROFILES, "captured"), os.path.join(scratch, "captured"))
    with open(SMOKE, encoding="utf-8") as file:
        text = file.read()
    with open(other, "w", encoding="utf-8") as file:
        file.write(text.replace('"seed": 42', '"seed": 43'))
    dirs = made(other, os.path.join(scratch, "out-other"), 2)
    merge(dirs, out, expect=2, says="holds results of another run (different: profile, plan, seed)",
          profiles=scratch)
    with open(other, "w", encoding="utf-8") as file:
        file.write(text.replace('"seed": 42', '"seed": 44'))
    merge(dirs, out + "2", expect=2, says="is another version of the profile", profiles=scratch)
    merge(dirs, out + "2", expect=2, says="the profile of the shards is not here")


def main():
    scratch = tempfile.mkdtemp(prefix="topp-merge-")
    try:
        for test in (same_as_single, receipts, devices, alike, set_of_shards, damage, folders):
            test(scratch)
            print(f"{test.__name__}: good")
    finally:
        shutil.rmtree(scratch)
    finish()


if __name__ == "__main__":
    main()
