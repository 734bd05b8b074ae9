"""docs/cases.md: every id it calls kept out by a test stands in that test's file.

usage: cases_test.py SOURCE_DIR
"""
import pathlib
import re
import sys

source = pathlib.Path(sys.argv[1])
rows = re.findall(r"^\| ([a-z]{3}-\d\d) \|.*\| ([^|]*) \|$", (source / "docs/cases.md").read_text(), re.M)
assert len(rows) == 48, f"{len(rows)} rows where the collection has 48"
checked = 0
for name, where in rows:
    for path in re.findall(r"tests/\S+\.(?:c|py)\b", where):
        text = (source / path).read_text().replace("_", "-")
        family, number = name.split("-")
        # A test of two ids is called ker_08_09.
        found = name in text or re.search(rf"{family}-\d\d-{number}\b", text)
        assert found, f"docs/cases.md says that {path} holds {name}: it does not"
        checked += 1
    assert "tests/" in where or "GPU" in where, f"{name}: neither test nor reason"
print(f"{len(rows)} cases, {checked} of them found in the tests named")
