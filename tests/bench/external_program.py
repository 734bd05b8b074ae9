"""A program of --external that goes wrong in the way its first word says (docs/external.md)."""
import array
import math
import os
import shutil
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../docs/adapters"))
from plain_sort import top_p  # noqa: E402
from protocol import Program, Ranges, write_npy  # noqa: E402

way = sys.argv.pop(1)
program = Program(way)
arguments = program.arguments
logits, p, (rows, vocab) = program.read()


def probabilities(work):
    for row in range(rows):
        start, end = row * vocab, (row + 1) * vocab
        most = max(work[start:end])
        weights = [math.exp(x - most) for x in work[start:end]]
        mass = math.fsum(weights)
        work[start:end] = array.array("f", [w / mass for w in weights])


def compute():
    work = logits[:]
    top_p(work, p, rows, vocab)
    if way.startswith("probabilities"):
        probabilities(work)
    if way == "probabilities_off":
        work = array.array("f", [x * 1.001 for x in work])
    if way == "keeps_all":
        work = logits[:]
    return work


if way == "exit":
    print("no such kernel: mend it", file=sys.stderr)
    sys.exit(7)
if way == "absent":
    print("PyTorch is not usable here: No module named 'torch'", file=sys.stderr)
    sys.exit(3)
if way == "limits":
    print("batches up to 2 alone", file=sys.stderr)
    sys.exit(4)
if way == "signal":
    os.kill(os.getpid(), signal.SIGSEGV)
if way == "hang":
    if os.fork() == 0:  # what it started has to end with it
        time.sleep(1000)
    time.sleep(1000)

work = compute()
shape, descr = (rows, vocab), "<f4"
if way == "shape":
    shape = (vocab, rows)
if way == "dtype":
    work, descr = array.array("d", work), "<f8"
if way == "garbage":
    with open(arguments.out, "wb") as file:
        file.write(b"no array")
elif way != "no_output":
    write_npy(arguments.out, work, shape, descr)

if way == "leaves" and os.fork() == 0:  # a helper that nobody waits for
    time.sleep(1000)

if way == "daemon" and os.fork() == 0:  # out of its process group
    os.setsid()
    if os.fork() == 0:
        time.sleep(1000)
    os._exit(0)
if way == "fifo":
    os.unlink(arguments.out)
    os.mkfifo(arguments.out)
if way == "fifo_trace":
    os.mkfifo(os.environ["TOPP_INJECT_OUT"])
    sys.exit(0)
if way == "removes_all":
    shutil.rmtree(os.path.dirname(arguments.out))
    sys.exit(0)

sample = Ranges()
repeats = {"few_ranges": arguments.repeats - 1, "many_ranges": arguments.repeats + 1,
           "one_more": arguments.repeats + 1,
           "no_ranges": 0}.get(way, arguments.repeats)
if arguments.repeats:
    sample.push(b"warm-up")  # ranges of other names are nobody's
    sample.pop()
    for _ in range(repeats):
        with sample:
            if way == "nested":
                with sample:
                    pass
            time.sleep(1e-4)
if way == "one_more":
    os._exit(0)  # no exit handler says that there were too many
if way == "drift":
    work[0] = 1.0
if program.last and arguments.repeats:
    write_npy(program.last, work, shape, descr)
