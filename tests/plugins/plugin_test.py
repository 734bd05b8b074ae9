#!/usr/bin/env python3
"""Plug-ins through the program: every way to misbehave is named by its own rule, and every other
cell is as if the plug-in had not been there.

usage: plugin_test.py plugin_hostile|plugin_broken|plugin_kinds|plugin_cuda BENCH_TOPP LIBRARIES SOURCES
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from checks import finish, need, read_json

# What the kernels of hostile.c must come to: verdict, rule, a word of the reason.
HOSTILE = {
    "crashes": ("rejected", "crash", "gated"),
    "aborts": ("rejected", "crash", "signal 6"),
    "exits": ("rejected", "crash", "exit code 3"),
    "loops": ("timeout", "timeout", ""),
    "loops_locked": ("timeout", "timeout", ""),
    "loops_in_workspace": ("timeout", "timeout", "did not come back"),
    "writes_behind": ("rejected", "outside", ""),
    "writes_before": ("rejected", "outside", ""),
    "writes_past_workspace": ("rejected", "outside", ""),
    "writes_far": ("rejected", "crash", ""),
    "writes_padding": ("rejected", "padding", "past the vocabulary"),
    "ignores_stride": ("rejected", None, ""),
    "changes_p": ("rejected", "input_changed", ""),
    "changes_problem": ("rejected", "input_changed", ""),
    "claims_too_much": ("rejected", "not_oracle_set", "Claimed contract exact: The kept set is not"),
    "crashes_later": ("rejected", "crash", "timed"),
    "drifts_later": ("drift", "drift", ""),
    "writes_behind_later": ("rejected", "outside", ""),
    "changes_p_later": ("rejected", "input_changed", ""),
    "forks_and_aborts": ("rejected", "crash", "signal 6"),
    "becomes_another": ("rejected", "crash", "closed its connection to this program and ran on"),
    "stops": ("rejected", "crash", "was stopped by signal 19"),
    "answers_itself": ("rejected", "crash", "wrote something else than answers"),
    "forks_in_workspace": ("accepted", None, ""),
    "wants_too_much": ("rejected", "fault", "no 11529215046068"),
    "wants_no_size": ("rejected", "fault", "workspace_size asks for 18446744073709551615 bytes"),
    "refuses": ("rejected", "launch", "-7"),
    "fails": ("rejected", "fault", "700"),
    "closes_everything": ("rejected", "crash", "closed its connection"),
    "shouts": ("accepted", None, ""),
    "small": ("unsupported", None, "vocabularies up to 100"),
    "honest": ("accepted", None, ""),
    "exact": ("accepted", None, ""),
    "floor": ("accepted", None, ""),
}

# The same of hostile_cuda.cu, for both ways to launch.
HOSTILE_CUDA = {
    "crashes": ("rejected", "crash", "signal 11"),
    "reads_nowhere": ("rejected", "fault", "illegal"),
    "loops": ("timeout", "timeout", ""),
    "loops_on_host": ("timeout", "timeout", "did not come back"),
    "writes_behind": ("rejected", "outside", ""),
    "changes_p": ("rejected", "input_changed", ""),
    "bad_launch": ("rejected", "fault", "9"),
    "skips": ("rejected", "not_oracle_set", ""),
    "honest": ("accepted", None, ""),
    "bisect": ("accepted", None, ""),
    "exact": ("accepted", None, ""),
}

# Why the libraries of broken.c are left out.
BROKEN = {
    "no_table": "exports no `topp_plugin_table`",
    "other_abi": "was built for version 2 of kernels/plugin.h, this program has version 1",
    "other_sizes": "structs have other sizes",
    "null_table": "returns no table",
    "empty_table": "holds no variant",
    "crashes_on_load": "the process that loaded it was ended by signal 6",
    "loops_on_load": "the process that loaded it did not come back in time",
    "unknown_contract": "claims the unknown contract `perfect`",
    "built_in_name": "a built-in kernel for cpu has this name",
    "bad_name": "a name is 1 to 40",
    "no_launch": "launch must be there",
    "twice": "another one of this library",
    "endless_list": "has more than 64",
    "undefined_symbol": "cannot be loaded",
    "unknown_noise": "unknown noise `white`",
    "wants_boundary": "needs_boundary",
    "unknown_device": "device is `unknown`",
    "unknown_output": "its output is `unknown`",
}


class Scene:
    """A folder, the program and the libraries."""

    def __init__(self, program, libraries, sources, folder):
        self.program, self.libraries, self.sources = program, libraries, sources
        self.folder = folder
        self.environment = dict(os.environ, TOPP_BENCH_PLUGIN_SECONDS="1",
                                TOPP_PLUGIN_TEST=str(os.getpid()))

    def library(self, name):
        return os.path.join(self.libraries, name + ".so")

    def run(self, *words, code=None):
        run = subprocess.run([self.program, *words], capture_output=True, text=True, check=False,
                             env=self.environment, cwd=self.folder, timeout=250)
        need(f"{' '.join(words)}: exit {run.returncode}, not {code}:\n{run.stdout}{run.stderr}",
             code is None or run.returncode == code)
        return run

    def sweep(self, out, *words, profile="profile.json", code=None):
        run = self.run("--sweep", "--device", "cpu", "--profile",
                       os.path.join(self.sources, profile), "--out", out, *words, code=code)
        return run

    def results(self, out):
        return read_json(self.folder, out, "results.json")


def workers_of():
    """What the runs of this test have started and is still there: it carries a variable."""
    mark = f"TOPP_PLUGIN_TEST={os.getpid()}".encode()
    for number in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{number}/environ", "rb") as file:
                if mark in file.read().split(b"\0"):
                    yield int(number)
        except OSError:
            pass


def by_kernel(results):
    return {cell["kernel"]: cell for cell in results["cells"]}


def stripped(cell):
    """A cell without what a clock decides."""
    return {key: cell[key] for key in ("name", "verdict", "rule", "rows", "kept", "oracle",
                                       "inputs", "blocks")}


def test_hostile(scene):
    scene.sweep("alone", code=0)
    scene.sweep("hostile", "--plugin", scene.library("hostile"), code=1)
    found = by_kernel(scene.results("hostile"))
    need(f"cells of {sorted(set(found) ^ set(HOSTILE))}", set(found) == set(HOSTILE))
    for kernel, (verdict, rule, word) in HOSTILE.items():
        cell = found[kernel]
        what = f"{kernel}: {cell['verdict']} {cell['rule']}: {cell['reason']}"
        need(what, cell["verdict"] == verdict)
        need(what, rule is None or cell["rule"] == rule)
        need(what, word in (cell["reason"] or ""))
        need(f"{what}: samples", (cell["sample_count"] > 0) == (verdict == "accepted"))
    alone = by_kernel(scene.results("alone"))
    for kernel in alone:
        need(f"{kernel} is not as alone", stripped(alone[kernel]) == stripped(found[kernel]))
    # Nothing was lost: every verdict and block stands in the journal, and a receipt binds it all.
    with open(os.path.join(scene.folder, "hostile", "journal.jsonl"), encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    for cell in found.values():
        mine = [line for line in lines if line.get("cell") == cell["name"]]
        need(f"{cell['name']} has no verdict in the journal", mine[0]["line"] == "verdict")
        blocks = [line for line in mine if line["line"] == "block"]
        need(f"{cell['name']}: {len(blocks)}", cell["verdict"] != "accepted" or len(blocks) == 2)
    left = list(workers_of())
    need(f"processes {left} are left of the plug-ins", not left)
    print(f"{len(HOSTILE)} kernels, each named by its own rule")


def test_cuda(scene):
    """The CUDA plug-ins on a GPU: each named by its own rule, the others timed as ever."""
    try:
        gpus = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=True)
    except (FileNotFoundError, subprocess.CalledProcessError):
        print("skipped: no GPU here")
        sys.exit(77)
    print(gpus.stdout.strip())
    libraries = ("--plugin", scene.library("hostile_cuda"), "--plugin", scene.library("bisect"))
    run = scene.run("--sweep", "--device", "cuda", "--profile",
                    os.path.join(scene.sources, "profile_cuda.json"), "--out", "cuda", *libraries,
                    code=1)
    print(run.stdout)
    for cell in scene.results("cuda")["cells"]:
        verdict, rule, word = HOSTILE_CUDA[cell["kernel"]]
        what = f"{cell['name']}: {cell['verdict']} {cell['rule']}: {cell['reason']}"
        print(what)
        need(what, cell["verdict"] == verdict and (rule is None or cell["rule"] == rule) and
             word in (cell["reason"] or ""))
        need(f"{what}: {cell['sample_count']} samples, {cell['unmeasured']}",
             (cell["sample_count"] > 0) == (verdict == "accepted"))
    run = scene.run("--sweep", "--device", "cuda", "--profile", "smoke", "--plugin",
                    scene.library("bisect"), "--filter", "topp/(exact|bisect)/", "--out", "smoke",
                    code=0)
    print(run.stdout)
    run = scene.run("--verify", "smoke/receipt.json", "--plugin", scene.library("bisect"))
    print(run.stdout)
    need("masks of the example", "changed: masks" not in run.stdout)


def test_others_first(scene):
    """A library that ends the process does not take another library's kernels along."""
    scene.sweep("two", "--plugin", scene.library("hostile"), "--plugin", scene.library("kinds"),
                "--filter", "topp/(crashes|exits|ids|probabilities|exact)/", code=1)
    verdicts = {kernel: cell["verdict"] for kernel, cell in
                by_kernel(scene.results("two")).items()}
    need("the other library", verdicts == {
        "crashes": "rejected", "exits": "rejected", "ids": "accepted",
        "probabilities": "accepted", "exact": "accepted"}, verdicts)


def test_interrupted(scene):
    """SIGINT while a plug-in's kernel loops: what was finished is kept, --resume goes on."""
    run = subprocess.Popen(
        [scene.program, "--sweep", "--device", "cpu", "--profile",
         os.path.join(scene.sources, "profile.json"), "--out", "stopped", "--plugin",
         scene.library("hostile"), "--filter", "topp/(exact|loops_locked|honest)/"],
        cwd=scene.folder, env=scene.environment, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL)
    journal = os.path.join(scene.folder, "stopped", "journal.jsonl")
    for _ in range(500):
        if os.path.exists(journal) and "topp/exact/" in open(journal, encoding="utf-8").read():
            break
        time.sleep(0.01)
    time.sleep(0.3)
    run.send_signal(signal.SIGINT)
    code = run.wait(timeout=20)
    need(f"interrupted: exit {code}", code == 4)
    words = ("--plugin", scene.library("hostile"), "--filter",
             "topp/(exact|loops_locked|honest)/")
    need("an interrupted run was overwritten", scene.sweep("stopped", *words).returncode == 2)
    scene.sweep("stopped", *words, "--resume", code=1)
    verdicts = {kernel: cell["verdict"] for kernel, cell in
                by_kernel(scene.results("stopped")).items()}
    need("after --resume", verdicts == {"exact": "accepted", "loops_locked": "timeout",
                                        "honest": "accepted"}, verdicts)


def test_broken(scene):
    for name, why in BROKEN.items():
        run = scene.run("--variants", "--plugin", scene.library(name), code=2)
        need(f"{name}: {run.stderr}",
             f"{name}.so is left out: " in run.stderr and why in run.stderr)
        need(f"{name}: the built-in kernels are not listed", "topp    exact" in run.stdout)
    # The rest runs all the same, and the exit code and the files say what did not.
    scene.sweep("rest", "--plugin", scene.library("other_abi"), "--plugin",
                scene.library("hostile"), "--filter", "topp/(exact|honest)/", code=2)
    results = scene.results("rest")
    need("the rest", [cell["verdict"] for cell in results["cells"]] == ["accepted"] * 2)
    refused = [plugin["refused"] for plugin in results["run"]["plugins"]]
    need("refused", refused[1] is None and BROKEN["other_abi"] in refused[0], refused)
    with open(os.path.join(scene.folder, "text.so"), "w", encoding="utf-8") as file:
        file.write("no library\n")
    need("a text file",
         "cannot be loaded" in scene.run("--variants", "--plugin", "text.so", code=2).stderr)
    for words, why in ((("nowhere.so",), "no such file"), ((scene.folder,), "no such file"),
                       ((scene.library("hostile"),) * 2, "stands twice")):
        options = [word for library in words for word in ("--plugin", library)]
        need(why, why in scene.run("--variants", *options, code=2).stderr)
    shutil.copy(scene.library("hostile"), os.path.join(scene.folder, "copy.so"))
    run = scene.run("--variants", "--plugin", scene.library("hostile"), "--plugin", "copy.so",
                    code=2)
    need("a copy", "copy.so is left out: its variant `crashes` has the name of" in run.stderr,
         run.stderr)
    # A profile that names a plug-in's kernel wants its library.
    run = scene.run("--list", "--device", "cpu", "--profile",
                    os.path.join(scene.sources, "kinds.json"), code=2)
    need("the profile wants a library", "no library of --plugin has" in run.stderr and
         "plugin:probabilities" in run.stderr, run.stderr)
    # The worker is nobody's to call.
    need("--plugin-worker", "not for people" in scene.run("--plugin-worker", code=2).stderr)
    print(f"{len(BROKEN)} libraries, each left out for its own reason")


def test_kinds(scene):
    library = scene.library("kinds")
    words = ("--plugin", library, "--filter", "plugin|probabilities|ids|my_|exact")
    run = scene.sweep("kinds", *words, profile="kinds.json", code=0)
    need("as expected", "Everything as expected" in run.stdout, run.stdout)
    results = scene.results("kinds")
    cells = results["cells"]
    kinds = {cell["kernel"]: cell for cell in cells}
    need("outputs", {kinds[name]["output"] for name in
                     ("probabilities", "ids", "exact", "my_log1p")} ==
         {"probabilities", "ids", "masked_logits"})
    for name in ("probabilities", "ids", "my_log1p"):
        timed = [cell for cell in cells if cell["kernel"] == name and cell["timed"]]
        need(f"{name} was not timed", timed and all(cell["sample_count"] > 0 for cell in timed))
    figures = kinds["ids"]["statistic_figures"]
    need("figures", figures["draws"] >= 16384 and figures["chi2"] < figures["chi2_limit"] and
         figures["outside"] == 0 and 0 < figures["smallest_defect"] < 0.1, figures)
    need("figures of pairs and seeds", figures["pairs_chi2"] < figures["pairs_chi2_limit"] and
         figures["pairs"] >= 16384 and 0 < figures["smallest_repeat"] < 0.1 and
         figures["seed_bits"] >= 60 and figures["repeated"] == figures["reseeded"] > 0, figures)
    need("kept", kinds["ids"]["kept"] is None and kinds["probabilities"]["kept"] > 0)
    need("value error",
         0 < kinds["probabilities"]["statistic_figures"]["value_error_share_of_bound"] < 1)
    greedy = [cell for cell in cells if cell["statistic"] == "greedy" and
              cell["kernel"] == "my_log1p"]
    need("my_log1p's statistic", len(greedy) == 1 and greedy[0]["verdict"] == "accepted")
    # A printed name is a case.
    name = kinds["ids"]["name"]
    scene.sweep("one", "--plugin", library, "--case", name, profile="kinds.json", code=0)
    cached_oracle(scene, library)
    verify(scene, library)
    resume_other_library(scene)


def cached_oracle(scene, library):
    """The oracle's cache is read in a plug-in's process, and written by this program alone."""
    folder = os.path.join(scene.folder, "oracle")
    words = ("--plugin", library, "--gate-only", "--oracle-cache", folder, "--force", "--filter")
    for kernels, read, computed, kept in (("probabilities", 0, 4, 0), ("exact|probabilities", 2, 4, 2)):
        scene.sweep("cached", *words, f"/({kernels})/", profile="kinds.json", code=0)
        counts = scene.results("cached")["run"]["oracle_cache"]
        need(f"{kernels}: counts of the oracle's cache",
             counts == {"read": read, "computed": computed, "damaged": 0, "unwritten": 0}, counts)
        need(f"{kernels}: entries", sum(len(files) for _, _, files in os.walk(folder)) == kept)


def verify(scene, library):
    """The receipt binds the library; masks are made again where --plugin allows it to be run."""
    receipt = os.path.join("kinds", "receipt.json")
    shutil.copy(library, os.path.join(scene.folder, "mine.so"))
    scene.sweep("kinds", "--plugin", "mine.so", "--filter", "probabilities/|ids/|my_log1p/n",
                "--force", profile="kinds.json", code=0)
    run = scene.run("--verify", receipt)
    need("bound", "plugins      1 verified" in run.stdout, run.stdout)
    need("the mend", "--plugin LIBRARY, with the run's SHA-256, runs it again" in run.stdout,
         run.stdout)
    again = scene.run("--verify", receipt, "--plugin", "mine.so")
    need("masks made again", "a plug-in's" not in again.stdout and
         "changed: masks" not in again.stdout and "masks" in again.stdout, again.stdout)
    # Another library under the same path.
    shutil.copy(scene.library("hostile"), os.path.join(scene.folder, "mine.so"))
    run = scene.run("--verify", receipt, "--plugin", "mine.so", code=1)
    need("another library", "changed: plugins: " in run.stdout and
         "another one than the run's" in run.stdout, run.stdout)
    os.remove(os.path.join(scene.folder, "mine.so"))
    run = scene.run("--verify", receipt)
    need("no library", "not recomputable here: plugins: " in run.stdout, run.stdout)
    need("the plan", "plan" in run.stdout and "changed: plan" not in run.stdout, run.stdout)


def resume_other_library(scene):
    """An interrupted run is of the library that it began with."""
    words = ("--filter", "probabilities/", "--resume")
    shutil.copy(scene.library("kinds"), os.path.join(scene.folder, "mine.so"))
    scene.sweep("half", "--plugin", "mine.so", *words, profile="kinds.json", code=0)
    with open(os.path.join(scene.folder, "mine.so"), "ab") as file:
        file.write(b"\0")
    run = scene.sweep("half", "--plugin", "mine.so", *words, profile="kinds.json", code=2)
    need("a changed library", "different: plugins" in run.stderr, run.stderr)


def main():
    what, program, libraries, sources = sys.argv[1:]
    tests = {"plugin_hostile": (test_hostile, test_others_first, test_interrupted),
             "plugin_broken": (test_broken,), "plugin_kinds": (test_kinds,),
             "plugin_cuda": (test_cuda,)}
    with tempfile.TemporaryDirectory() as folder:
        scene = Scene(program, libraries, sources, folder)
        for test in tests[what]:
            test(scene)
    finish(what)


if __name__ == "__main__":
    main()
