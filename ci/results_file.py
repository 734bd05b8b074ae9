"""What the scripts beside it share: reading a results.json, and leaving a whole file or none."""
import json
import os
import sys

SCHEMA = "topp-bench.results/1"


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
    return results


def made_of(path, place, make, value):
    """make(value); where it misses something, the place that misses it."""
    try:
        return make(value)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        why = f"no member {error}" if isinstance(error, KeyError) else error
        raise Unusable(f"{path}: {place}: {why}: wanted a file as bench_topp left it") from None


def write(path, text):
    partial = path + ".partial"
    try:
        with open(partial, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(partial, path)
    except OSError as error:
        if os.path.isfile(partial):
            os.remove(partial)
        raise Unusable(f"{path}: {error.strerror}: name a file that can be written") from None


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
