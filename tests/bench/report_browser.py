"""The report page in a real browser: no console error, sorting and filtering, nothing too wide.

usage: report_browser.py BENCH_TOPP RESULTS_JSON [SCREENSHOT_PREFIX]
Exit code 77 without chromium or gnuplot: ctest shows the test as skipped.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

# Runs in a copy of the page after its own script; leaves what it saw in an element.
PROBE = """
<script>
(function () {
  'use strict';
  var seen = {errors: window.probeErrors, tables: document.querySelectorAll('table.cells').length};
  var table = document.getElementById('all'), body = table.tBodies[0];
  function column(i) {
    return Array.prototype.map.call(body.rows, function (r) {
      return r.hidden ? 'hidden' : r.cells[i].getAttribute('data-v');
    });
  }
  var head = table.tHead.rows[0].cells[2];
  head.querySelector('button').click();
  seen.ascending = column(2); seen.sort1 = head.getAttribute('aria-sort');
  head.querySelector('button').click();
  seen.descending = column(2); seen.sort2 = head.getAttribute('aria-sort');
  var bar = document.getElementById('all-filters'), text = bar.querySelector('input');
  seen.barHidden = bar.hidden; seen.rows = body.rows.length;
  function shown() {
    return Array.prototype.filter.call(body.rows, function (r) {
      return r.getClientRects().length;
    }).map(function (r) { return r.getAttribute('data-name'); });
  }
  text.value = 'WORDS'; text.dispatchEvent(new Event('input'));
  seen.byText = shown(); seen.said = bar.querySelector('output').textContent;
  text.value = ''; text.dispatchEvent(new Event('input'));
  var pick = bar.querySelector('select[name=PICK]');
  pick.value = 'PICKED'; pick.dispatchEvent(new Event('change'));
  seen.byPick = shown();
  pick.value = ''; pick.dispatchEvent(new Event('change'));
  document.querySelectorAll('details').forEach(function (d) { d.open = true; });
  var wide = document.documentElement.clientWidth;
  seen.scrollWidth = document.documentElement.scrollWidth; seen.clientWidth = wide;
  seen.tooWide = Array.prototype.filter.call(document.querySelectorAll('body *'), function (e) {
    return !e.closest('.scroll') && !e.closest('svg *') && e.tagName !== 'SCRIPT' &&
      e.getBoundingClientRect().right > wide + 1;
  }).map(function (e) { return e.tagName + '.' + e.className; }).slice(0, 5);
  var ids = {}; seen.twice = [];
  document.querySelectorAll('[id]').forEach(function (e) {
    if (ids[e.id]) { seen.twice.push(e.id); } ids[e.id] = true;
  });
  seen.svgs = document.querySelectorAll('figure svg').length;
  seen.background = getComputedStyle(document.body).backgroundColor;
  var out = document.createElement('pre');
  out.id = 'probe'; out.textContent = JSON.stringify(seen);
  document.body.appendChild(out);
})();
</script>
"""
EARLY = (
    "<script>window.probeErrors=[];window.addEventListener('error',function(e){"
    "window.probeErrors.push(String(e.message))});</script>"
)


def probed(page, words, pick, picked):
    """The page with the probe in it; what the probe types and chooses."""
    script = PROBE.replace("WORDS", words).replace("PICKED", picked).replace("PICK", pick)
    return page.replace("<head>", "<head>" + EARLY).replace("</body>", script + "</body>")


def find_chromium():
    return shutil.which("chromium") or shutil.which("chromium-browser")


def reaches_out(page):
    """Addresses in the page that a browser would fetch."""
    return [m for word in ("http://", "https://", "src=")
            for m in re.findall(r"[^\s]*%s[^\s]*" % word, page) if "www.w3.org" not in m]


def browse(chromium, page, width, dark=False, more=("--dump-dom",)):
    with tempfile.TemporaryDirectory() as home:
        return subprocess.run(
            [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--user-data-dir=" + home, "--window-size=%d,2400" % width, "--hide-scrollbars",
             "--blink-settings=preferredColorScheme=%d" % (0 if dark else 1),
             "--enable-logging=stderr", *more, "file://" + page],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, text=True,
            env=dict(os.environ, HOME=home),
        )


def probe(chromium, page, width, dark):
    ran = browse(chromium, page, width, dark)
    found = re.search(r'<pre id="probe">(.*?)</pre>', ran.stdout, re.S)
    assert found, "the page's probe left nothing:\n" + ran.stderr[-2000:]
    text = found.group(1)
    for code, plain in (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")):
        text = text.replace(code, plain)
    console = [line for line in ran.stderr.splitlines() if "CONSOLE" in line]
    assert not console, "console: " + console[0]
    return json.loads(text)


def check_order(values, up):
    numbers = [float(v) for v in values if v not in ("", None)]
    assert numbers == sorted(numbers, reverse=not up), "not sorted"
    blanks = [i for i, v in enumerate(values) if v == ""]
    assert not blanks or min(blanks) >= len(numbers), "cells without a time are not last"


def check_page(seen, names, wanted):
    """Of any page of the house: names of its cells, and those that the typed words leave."""
    assert seen["errors"] == [], seen["errors"]
    assert seen["rows"] == len(names) and not seen["barHidden"]
    assert (seen["sort1"], seen["sort2"]) == ("ascending", "descending")
    check_order(seen["ascending"], True)
    check_order(seen["descending"], False)
    assert wanted and sorted(seen["byText"]) == sorted(wanted), "the text filter"
    assert seen["said"] == "%d of %d cells" % (len(wanted), len(names)), seen["said"]
    assert seen["scrollWidth"] <= seen["clientWidth"], "the page is wider than its window"
    assert seen["tooWide"] == [], seen["tooWide"]
    assert seen["twice"] == [], "ids twice: %s" % seen["twice"][:3]


def check(seen, cells):
    names = [c["name"].lower() for c in cells]
    check_page(seen, names, [n for n in names if "exact" in n and "batch:1/" in n])
    assert len(seen["byPick"]) == sum(c["kernel"] == "floor" for c in cells) > 0
    assert seen["svgs"] > 5, "no charts"


def main():
    program, results = sys.argv[1:3]
    chromium = find_chromium()
    if not chromium or not shutil.which("gnuplot"):
        print("skipped: needs chromium and gnuplot (ci/setup --tests)")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        if results.endswith(".json"):
            shutil.copy(results, folder + "/results.json")
        else:
            subprocess.run([program, "--sweep", "--profile", results, "--device", "cpu", "--out",
                            folder], check=True, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
        subprocess.run([program, "--report", folder], check=True, stdout=subprocess.DEVNULL)
        cells = json.load(open(folder + "/results.json"))["cells"]
        page = open(folder + "/report.html", encoding="utf-8").read()
        assert not reaches_out(page), "the page reaches out: %s" % reaches_out(page)[:2]
        # Without JavaScript: every cell and its command stand in the text.
        for cell in cells:
            assert page.count("--case &#39;%s&#39;" % cell["name"]) >= 1, cell["name"]
        copy = folder + "/probed.html"
        with open(copy, "w", encoding="utf-8") as file:
            file.write(probed(page, "exact  BATCH:1/", "kernel", "floor"))
        backgrounds = set()
        for width, dark in ((1280, False), (390, True)):
            seen = probe(chromium, copy, width, dark)
            check(seen, cells)
            backgrounds.add(seen["background"])
        assert len(backgrounds) == 2, "light and dark look alike"
        if len(sys.argv) > 3:
            for dark in (False, True):
                shot = "%s-%s.png" % (sys.argv[3], "dark" if dark else "light")
                browse(chromium, folder + "/report.html", 1280, dark, ("--screenshot=" + shot,))
    print("the page works in %s" % chromium)
    return 0


if __name__ == "__main__":
    sys.exit(main())
