#!/usr/bin/env python3
"""bench_topp --ab as a user runs it. usage: ab_test.py BENCH_TOPP PERFWATCH"""
import os, shutil, signal, struct, subprocess, sys, tempfile, time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import checks
from checks import check, finish, read_json

PROGRAM, PERFWATCH = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
ONE = "captured.*batch:4/"


def run(*words, program=PROGRAM, **more):
    return checks.run(program, *words, **more)


def ab(*words, profile="smoke", **more):
    return run("--ab", *words, "--device", "cpu", "--profile", profile, **more)


def results(folder):
    return read_json(folder, "results.json")


with tempfile.TemporaryDirectory(prefix="topp-ab-") as work:
    os.chdir(work)
    # One kernel against itself; margins and factors are wide, as this machine may be busy.
    code, out, err = ab("exact", "exact", "--filter", ONE, "--margin", "200%", "--out", "same")
    check("A/A", code == 0 and "1 compared in time, 1 equivalent" in out and "\nequivalent " in out, (code, out, err))
    check("A/A: the command is told", "perfwatch compare --all --kernels exact,exact --margin 200% same/a same/b" in err, err)
    code, out, err = ab("floor", "sort", "--filter", ONE, "--margin", "200%")
    check("slower", code == 1 and "regressed" in out and "topp/floor~sort/captured" in out, (code, out, err))
    check("default folder", os.path.exists("ab-out/a/receipt.json"))
    check("is left as it is", ab("exact", "stock", "--filter", ONE)[0] == 2)
    code, out, err = ab("sort", "floor", "--case", "topp/floor/captured=smollm2_135m_decode/vocab:49152/batch:4/p:0.9/device:cpu",
                        "--margin", "200%", "--force")
    check("faster, named by the other's cell", code == 0 and "improved" in out, (code, out, err))
    for side, kernel in (("a", "sort"), ("b", "floor")):
        data = results("ab-out/" + side)
        cell = data["cells"][0]
        check(f"{side}: one kernel, a subset", [c["kernel"] for c in data["cells"]] == [kernel] and data["run"]["subset"])
        check(f"{side}: even blocks", cell["blocks"] == data["run"]["timing"]["blocks"] == 10, cell["blocks"])
        check(f"{side}: files", sorted(os.listdir("ab-out/" + side)) ==
              [".lock", "journal.jsonl", "receipt.json", "results.json", "results.tsv"], os.listdir("ab-out/" + side))
        code, out, err = run("--verify", f"ab-out/{side}/receipt.json")
        check(f"{side}: receipt", code == 0 and " 0 changed" in out, out + err)
    receipt = read_json("ab-out/b/receipt.json")
    check("receipt names the pair", (receipt["request"]["kernel"], receipt["request"]["beside"]) == ("floor", "sort"))
    code, out, err = ab("log", "murmur", "--filter", "normal", "--out", "gumbel", "--margin", "200%", "--blocks", "4")
    check("Gumbel", code == 0 and "gumbel/log~murmur/normal" in out and results("gumbel/a")["cells"][0]["blocks"] == 4, out + err)

    # The gate comes first.
    one = "forced=1e9@0/vocab:1000/batch:1/p:0.95/"
    code, out, err = ab("stock", "exact", "--filter", one, "--out", "gate", profile="forced")
    check("refused", code == 1 and "rejected, empty_mask -> accepted" in out and "regressed" not in out, (code, out, err))
    check("refused: no time", all(c["samples"] is None for s in "ab" for c in results("gate/" + s)["cells"]))
    code, out, err = ab("stock", "stock", "--filter", one, "--out", "gate2", profile="forced")
    check("nothing timed", code == 3 and "was timed" in out, (code, out, err))

    # One's own rows.
    shutil.copy("same/a/receipt.json", "kept.json")
    rows = b"".join(struct.pack("<f", i * 37 % 101 * 0.1) for i in range(4 * 500))
    head = b"{'descr': '<f4', 'fortran_order': False, 'shape': (4, 500), }"
    head += b" " * (118 - len(head) - 1) + b"\n"
    open("mine.npy", "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + rows)
    code, out, err = ab("exact", "sort", "--input", "mine.npy", "--out", "mine", "--margin", "200%", "--blocks", "2",
                        "--filter", "batch:4/")
    check("one's own rows", code in (0, 1) and "topp/exact~sort/captured=mine/vocab:500/batch:4/" in out, (code, out, err))

    # What is refused before any work.
    for name, words, says in (("unknown kernel", ("exat", "sort"), "exat"), ("no such profile", ("exact", "sort"), "nowhere"),
                              ("two kinds", ("exact", "murmur"), "no common cell"),
                              ("no such cell", ("exact", "sort", "--filter", "nothing"), "matches none")):
        code, out, err = ab(*words, "--out", "none", profile="nowhere" if name == "no such profile" else "smoke")
        check(name, code == 2 and says in err and not os.path.exists("none"), (code, err))
    os.mkdir("alone")
    shutil.copy(PROGRAM, "alone/bench_topp")
    code, out, err = ab("exact", "sort", "--out", "none", program=os.path.abspath("alone/bench_topp"))
    check("no perfwatch", code == 3 and "perfwatch" in err and not os.path.exists("none"), (code, err))

    # Interrupted and gone on with.
    words = [PROGRAM, "--ab", "floor", "sort", "--device", "cpu", "--profile", "smoke", "--filter", ONE, "--out", "cut",
             "--blocks", "60", "--margin", "200%"]
    victim = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for _ in range(2000):
        time.sleep(0.01)
        if os.path.exists("cut/b/journal.jsonl") and open("cut/b/journal.jsonl").read().count('"line":"block"') > 2:
            break
    victim.send_signal(signal.SIGINT)
    out, err = victim.communicate(timeout=60)
    check("interrupted", victim.returncode == 4 and "--resume" in err, (victim.returncode, err))
    code, out, err = run(*words[1:], "--resume")
    check("resumed", code == 1 and [results("cut/" + s)["cells"][0]["blocks"] for s in "ab"] == [60, 60], (code, out, err))
    check("resumed: a receipt", run("--verify", "cut/a/receipt.json")[0] == 0)

finish()
