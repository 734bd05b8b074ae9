#!/usr/bin/env python3
"""An independent judge of the top-p reference: sorted, math.exp and math.fsum, nothing else.

  python_judge.py --bench FILE.npy P ROWS
      solves the first ROWS rows of a 2-D little-endian binary32 .npy for one p and prints one JSON
      line: {"rows_per_second": ..., "kept": [...], "status": [...]}
  python_judge.py --rows < REQUESTS
      one answer a line for each request read (see read_request)
  python_judge.py --sums < REQUESTS
      one answer a line for each sum: int64 count, then count binary64 values; the answer is the hex
      of math.fsum, or "overflow" or "invalid"
"""
import ast
import json
import math
import struct
import sys
import time


def widened(p):
    """The binary32 value nearest to p, as binary64."""
    return struct.unpack("<f", struct.pack("<f", p))[0]


def scan(weights, target):
    """Smallest n whose compensated (Neumaier) prefix reaches target, None if there is none."""
    total, lost = 0.0, 0.0
    for index, weight in enumerate(weights):
        moved = total + weight
        if abs(total) >= abs(weight):
            lost += (total - moved) + weight
        else:
            lost += (weight - moved) + total
        total = moved
        if total + lost >= target:
            return index + 1
    return None


class Row:
    """One row of logits: sorted and weighed once, cut for any p."""

    def __init__(self, logits):
        self.status = "ok"
        if any(x != x or x == math.inf for x in logits):
            self.status = "nonfinite_input"
            return
        valid = [i for i, x in enumerate(logits) if x != -math.inf]
        if not valid:
            self.status = "empty_row"
            return
        # sorted() is stable, also in reverse: equal logits stay in ascending order of id.
        self.order = sorted(valid, key=logits.__getitem__, reverse=True)
        top = logits[self.order[0]]
        self.weights = [math.exp(logits[i] - top) for i in self.order]
        self.normalizer = math.fsum(self.weights)

    def cut(self, p):
        """status, n, id of the last kept token, normalizer, prefix, prefix of one token less."""
        if self.status != "ok":
            return self.status, 0, -1, 0.0, 0.0, 0.0
        n = len(self.order) if p >= 1.0 else scan(self.weights, p * self.normalizer)
        if n is None:
            return "oracle_boundary_ambiguous", 0, -1, self.normalizer, 0.0, 0.0
        prefix = math.fsum(self.weights[:n])
        less = math.fsum(self.weights[: n - 1])
        if p < 1.0:
            target = p * self.normalizer
            if not prefix >= target or (n > 1 and not less < target):
                return "oracle_boundary_ambiguous", n, -1, self.normalizer, prefix, less
        return "ok", n, self.order[n - 1], self.normalizer, prefix, less


def read_npy(path):
    """Shape and a function that gives row i of a version 1 or 2 file, C order, '<f4'."""
    with open(path, "rb") as file:
        data = file.read()
    if data[:6] != b"\x93NUMPY":
        raise SystemExit(f"{path}: not a .npy file")
    start, form = (10, "<H") if data[6] == 1 else (12, "<I")
    length = struct.unpack_from(form, data, 8)[0]
    header = ast.literal_eval(data[start : start + length].decode("latin1"))
    if header["descr"] != "<f4" or header["fortran_order"] or len(header["shape"]) != 2:
        raise SystemExit(f"{path}: want '<f4', C order, two dimensions")
    rows, vocab = header["shape"]
    first = start + length
    return rows, lambda i: struct.unpack_from(f"<{vocab}f", data, first + 4 * vocab * i)


def bench(path, p, wanted):
    rows, row = read_npy(path)
    inputs = [list(row(i)) for i in range(min(rows, wanted))]
    p = widened(p)
    begin = time.perf_counter()
    answers = [Row(logits).cut(p) for logits in inputs]
    seconds = time.perf_counter() - begin
    print(json.dumps({"rows_per_second": len(inputs) / seconds,
                      "kept": [answer[1] for answer in answers],
                      "status": [answer[0] for answer in answers]}))


def read_request(file):
    """int64 vocab, int64 count, count binary32 p, vocab binary32 logits; None at the end."""
    head = file.read(16)
    if not head:
        return None
    vocab, count = struct.unpack("<qq", head)
    ps = struct.unpack(f"<{count}f", file.read(4 * count))
    return list(struct.unpack(f"<{vocab}f", file.read(4 * vocab))), ps


def judge_rows(file):
    """A line per row and p: status n token normalizer prefix prefix_less (hex)."""
    while (request := read_request(file)) is not None:
        logits, ps = request
        row = Row(logits)
        for p in ps:
            status, n, token, *sums = row.cut(p)
            print(status, n, token, *(value.hex() for value in sums))


def judge_sums(file):
    while head := file.read(8):
        count = struct.unpack("<q", head)[0]
        values = struct.unpack(f"<{count}d", file.read(8 * count))
        try:
            print(math.fsum(values).hex())
        except OverflowError:
            print("overflow")
        except ValueError:
            print("invalid")


def main(arguments):
    if len(arguments) == 4 and arguments[0] == "--bench":
        bench(arguments[1], float(arguments[2]), int(arguments[3]))
    elif arguments == ["--rows"]:
        judge_rows(sys.stdin.buffer)
    elif arguments == ["--sums"]:
        judge_sums(sys.stdin.buffer)
    else:
        raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
