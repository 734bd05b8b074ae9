"""docs/cases.md: every id it calls kept out by a test stands in that test's file.

usage: cases_test.py SOURCE_DIR
"""
import os
import pathlib
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from checks import check, finish

source = pathlib.Path(sys.argv[1])
rows = re.findall(r"^\| ([a-z]{3}-\d\d) \|.*\| ([^|]*) \|$", (source / "docs/cases.md").read_text(), re.M)
check("the collection has 48 cases", len(rows) == 48, len(rows))
for name, where in rows:
    for path in re.findall(r"tests/\S+\.(?:c|py)\b", where):
        text = (source / path).read_text().replace("_", "-")
        family, number = name.split("-")
        # A test of two ids is called ker_08_09.
        found = name in text or re.search(rf"{family}-\d\d-{number}\b", text)
        check(f"{path} holds {name}, as docs/cases.md says", found)
    check(f"{name}: a test or a reason", "tests/" in where or "GPU" in where, where)
finish()
