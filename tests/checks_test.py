#!/usr/bin/env python3
"""checks.py itself: what must end a Python test with a failure does. usage: checks_test.py"""
import os
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
from checks import check, finish, run

CASES = [  # name, a test, its exit code, what it says
    ("good", "check('a', True); need('b', [1]); finish('x')", 0, "2 checks, 0 failed; x"),
    ("nothing checked", "finish()", 1, "0 checks, 0 failed"),
    ("a failure, gone on from", "check('a', 0, 'shown'); check('b', 1); finish()", 1,
     "FAILED a: shown\n2 checks, 1 failed"),
    ("a failure that ends the test", "need('a', None, 7); print('on'); finish()", 1,
     "AssertionError: a: 7"),
    ("words for a condition", "check(True, 'a'); finish()", 1, "TypeError: not words and a cond"),
    ("words for a condition, ended", "need('a', 'b'); finish()", 1, "TypeError: not words and a co"),
    ("planted failures", "with planted() as seen:\n check('a', 0)\ncheck('b', seen == ['a'])\n"
     "check('c', 0)\nfinish()", 1, "3 checks, 1 failed"),
    ("another exit code", "need_run(1, 'true'); finish()", 1, "true: exit code 0, not 1"),
    ("NaN", "strict('[NaN]')", 1, "ValueError: NaN is no JSON"),
    ("a member twice", """strict('{"a": 1, "a": 1}')""", 1, "ValueError: a member twice"),
]

for name, text, wanted, says in CASES:
    code, out, err = run(sys.executable, "-c", "from checks import *\n" + text, cwd=HERE)
    check(name, code == wanted and says in out + err and "on\n" not in out, (code, out, err))
finish()
