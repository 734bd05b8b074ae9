"""What the scripts beside it share: reading a results.json, and leaving a whole file or none."""
import json
import os
import sys

SCHEMA = "topp-bench.results/1"
STANDARD = ("-", "/dev/stdout")


class Unusable(Exception):
    """A file, what is wrong with it and what helps."""


def refuse_constant(text):
    raise ValueError(f"{text} is no JSON")


def read(path, parse_float=float):
    try:
        with open(path, encoding="utf-8") as file:
            results = json.load(file, parse_float=parse_float, parse_constant=refuse_constant)
    except OSError as error:
        raise Unusable(f"{path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise Unusable(f"{path}: {error}: wanted the whole results.json of a run") from None
    if not isinstance(results, dict) or results.get("schema") != SCHEMA:
        raise Unusable(f"{path}: schema is not {SCHEMA}: wanted the results.json of a run")
    if not isinstance(results.get("cells"), list):
        raise Unusable(f"{path}: cells: no list of them: wanted the results.json of a run")
    return results


def made_of(path, place, make, value):
    """make(value); where it misses something, the place that misses it."""
    try:
        return make(value)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        why = f"no member {error}" if isinstance(error, KeyError) else error
        raise Unusable(f"{path}: {place}: {why}: wanted a file as bench_topp left it") from None


def write_all(path, data):
    """A file is replaced when all is written; what is no file (a device, a pipe) stays what it is."""
    standard = path in STANDARD
    whole = not standard and (os.path.isfile(path) or not os.path.exists(path))
    target = os.path.realpath(path) if os.path.islink(path) else path  # a link stays one
    opened = 1 if standard else target + ".partial" if whole else path
    try:
        with open(opened, "wb", closefd=not standard) as file:
            file.write(data)
        if whole:
            os.replace(opened, target)
    except OSError:
        if whole and os.path.isfile(opened):
            os.remove(opened)
        raise


def write(path, text):
    try:
        write_all(path, text.encode(errors="backslashreplace"))
    except OSError as error:
        where = "standard output" if path in STANDARD else path
        raise Unusable(f"{where}: {error.strerror}: name a file that can be written") from None


def main(work, usage, counts):
    """work(words...) with one of these counts of words; exit code 2 where it cannot be done."""
    if len(sys.argv) - 1 not in counts:
        print(f"usage: {usage}", file=sys.stderr)
        sys.exit(2)
    try:
        work(*sys.argv[1:])
    except Unusable as error:
        print(f"{usage.split()[0]}: {error}", file=sys.stderr)
        sys.exit(2)
