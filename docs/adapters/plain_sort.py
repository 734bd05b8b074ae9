#!/usr/bin/env python3
"""Top-p by sorting, in plain Python: slow, exact, and without any package. A program to start from.

    bench_topp --sweep --profile smoke --device cpu --external "python3 docs/adapters/plain_sort.py"
"""
import math

from protocol import Program


def top_p(logits, p, rows, vocab):
    for row in range(rows):
        if p[row] >= 1.0:
            continue
        start = row * vocab
        order = sorted(range(vocab), key=lambda token: (-logits[start + token], token))
        most = logits[start + order[0]]
        weights = [math.exp(logits[start + token] - most) for token in order]
        wanted, mass = p[row] * math.fsum(weights), 0.0
        for place, token in enumerate(order):
            if mass >= wanted:
                logits[start + token] = -math.inf
            mass += weights[place]


if __name__ == "__main__":
    Program(__doc__.splitlines()[0]).run(top_p)
