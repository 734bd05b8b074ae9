#!/usr/bin/env python3
"""compare --report in a real browser. usage: report_browser_test.py PERFWATCH SOURCE_DIR [SCREENSHOT_PREFIX]
Exit code 77 without chromium: ctest shows the test as skipped."""
import json, os, subprocess, sys, tempfile

sys.dont_write_bytecode = True
PERFWATCH, SOURCE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
sys.path.append(os.path.join(SOURCE, "tests", "bench"))
import report_browser as browser
from made_up import results, scale, write


def make_pair():
    """Before and after with every outcome a page has to show."""
    base, new = results(1, 40), results(2, 40)
    scale(new["cells"][3], 1.08)
    scale(new["cells"][4], 1.9)
    scale(new["cells"][5], 0.9)
    scale(new["cells"][6], 1.04, cycles=False)
    new["cells"][7].update(verdict="rejected", rule=None, reason="row 3 <drops> a token & keeps", samples=None)
    new["cells"][8].update(samples=None, unmeasured="records were dropped")
    new["cells"][9]["samples"]["time_ns"] = [t * (1 + 0.2 * (i // 16 % 2)) for i, t in
                                             enumerate(new["cells"][9]["samples"]["time_ns"])]
    new["cells"][9]["samples"]["cycles"] = None
    new["cells"][10]["name"] = "topp/exact/forced=1e9@13/" + "long/" * 40 + "vocab:1"
    new["cells"][11]["name"] = "topp/mine/normal/c11"
    new["cells"][12]["name"] = "topp/theirs/normal/c12"
    new["run"]["plugins"] = [{"path": "/opt/its kernels/lib.so", "variants": [{"name": "mine"}]}]
    new["run"]["externals"] = [{"name": "theirs", "command": "python3 theirs.py", "output": "ids", "contract": "exact",
                                "launch": "stream", "repeats": 7}]
    new["run"]["device"]["uuid"] = "GPU-2"
    return write("base.json", base), write("new.json", new)


def compare(*words):
    done = subprocess.run([PERFWATCH, "compare", *words], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def check_text(page, verdict):
    """What can be read without JavaScript."""
    names = [c["name"] for c in verdict["cells"]]
    places = [page.index('<td data-s="%s">' % n.replace("&", "&amp;")) for n in names]
    assert places == sorted(places), "not in the order of the verdict, worst first"
    assert "<drops>" not in page and "accepted -&gt; rejected, row 3 &lt;drops&gt; a token &amp; keeps" in page
    assert page.count("<figcaption>") >= 5, "no blocks before and after"
    for words in ("So: slower beyond doubt", "the clock changed", "records were dropped", "device.uuid", "Exit code 1",
                  "margin of 2%", "better</text>", ">before</text>", ">after</text>",
                  "bench_topp --profile t --device cuda --case topp/exact/normal/c3<",
                  "cuda --plugin &#39;/opt/its kernels/lib.so&#39; --case topp/mine/normal/c11<",
                  "cuda --external &#39;theirs=python3 theirs.py&#39; --external-output ids --external-contract exact "
                  "--external-launch stream --external-repeats 7 --case topp/theirs/normal/c12<"):
        assert words in page, words
    assert not browser.reaches_out(page), browser.reaches_out(page)[:2]


def main():
    chromium = browser.find_chromium()
    if not chromium:
        print("skipped: needs chromium (ci/setup --tests)")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        base, new = make_pair()
        code, out, err = compare("--report", "page.html", "--json", "v.json", base, new)
        assert code == 1 and "regressed" in out, (code, out, err)
        page, verdict = open("page.html", encoding="utf-8").read(), json.load(open("v.json"))
        check_text(page, verdict)
        assert compare("--report", "-", base, new)[1] == page, "another page on standard output"
        with open("probed.html", "w", encoding="utf-8") as file:
            file.write(browser.probed(page, "exact  NORMAL/C1", "outcome", "regressed"))
        names = [c["name"].lower() for c in verdict["cells"]]
        backgrounds = set()
        for width, dark in ((1280, False), (390, True)):
            seen = browser.probe(chromium, os.path.abspath("probed.html"), width, dark)
            browser.check_page(seen, names, [n for n in names if "exact" in n and "normal/c1" in n])
            assert len(seen["byPick"]) == verdict["counts"]["regressed"] > 0, seen["byPick"]
            assert seen["svgs"] > 5
            backgrounds.add(seen["background"])
        assert len(backgrounds) == 2, "light and dark look alike"
        # Pairs that were refused, and files of Google Benchmark, have a page too.
        other = json.load(open(new))
        other["run"]["device"]["model"] = "NVIDIA H100"
        code, out, err = compare("--report", "refused.html", base, write("other.json", other))
        page = open("refused.html", encoding="utf-8").read()
        assert code == 3 and "same conditions" in page and "NVIDIA H100" in page and "No cell was compared" in page
        rows = [{"name": "f<b>", "run_name": "f<b>", "run_type": "iteration", "real_time": v, "time_unit": "us",
                 "items_per_second": 1e6 / v} for v in (1, 2, 3)]
        json.dump({"context": {"date": "2026-02-01T12:00:00Z", "num_cpus": 8}, "benchmarks": rows}, open("g.json", "w"))
        code, out, err = compare("--report", "g.html", "g.json", "g.json")
        page = open("g.html", encoding="utf-8").read()
        assert code == 0 and "f&lt;b&gt; [items_per_second]" in page and "bench_topp --profile" not in page, (code, err)
        if len(sys.argv) > 3:
            for dark in (False, True):
                shot = "%s-%s.png" % (sys.argv[3], "dark" if dark else "light")
                browser.browse(chromium, os.path.abspath("page.html"), 1280, dark, ("--screenshot=" + shot,))
    print("the page works in %s" % chromium)
    return 0


if __name__ == "__main__":
    sys.exit(main())
