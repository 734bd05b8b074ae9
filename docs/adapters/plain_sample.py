#!/usr/bin/env python3
"""A top-p sampler in plain Python: writes ids, <i8 [draws, rows].

    bench_topp --sweep --profile smoke --device cpu \\
      --external "python3 docs/adapters/plain_sample.py" --external-output ids
"""
import bisect
import itertools
import math
import random

from protocol import Program, Ranges, write_npy


def nucleus(row, p):
    """(tokens, cumulative weights) of the smallest set whose mass reaches p."""
    order = sorted(range(len(row)), key=lambda token: (-row[token], token))
    weights = [math.exp(row[token] - row[order[0]]) for token in order]
    masses = list(itertools.accumulate(weights))
    count = len(order) if p >= 1 else bisect.bisect_left(masses, p * math.fsum(weights)) + 1
    return order[:count], masses[:count]


def draw(row, p, generator, times):
    tokens, masses = nucleus(row, p)
    return generator.choices(tokens, cum_weights=masses, k=times)


if __name__ == "__main__":
    import array

    program = Program(__doc__.splitlines()[0])
    arguments = program.arguments
    logits, p, (rows, vocab) = program.read()
    each = [logits[row * vocab:(row + 1) * vocab] for row in range(rows)]
    generator = random.Random(arguments.seed)
    columns = [draw(row, q, generator, arguments.draws) for row, q in zip(each, p)]
    ids = array.array("q", itertools.chain.from_iterable(zip(*columns)))
    write_npy(arguments.out, ids, (arguments.draws, rows), "<i8")
    sample = Ranges()
    for _ in range(arguments.repeats):
        with sample:
            for row, q in zip(each, p):
                draw(row, q, generator, 1)
