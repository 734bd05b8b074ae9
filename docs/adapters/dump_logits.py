#!/usr/bin/env python3
"""Logits of real decoding steps as one .npy, <f4 [steps, vocabulary], for a sweep over them.

    dump_logits.py --model DIR --out rows.npy [--prompts FILE] [--steps 16]

runs a local Hugging Face model (packages torch and transformers) and takes the row of each prompt
at each step. In a serving engine the same rows come from a logits processor:

    Dump("rows.npy")      transformers: model.generate(..., logits_processor=[Dump("rows.npy")])
    dump_logits:VllmDump  vLLM: --logits-processors, with DUMP_LOGITS=rows.npy in the environment

docs/captured-logits.md is the guide.
"""
import argparse
import array
import ctypes
import os
import struct
import sys

PROMPTS = ("The capital of France is", "def quicksort(values):", "Dear Sir or Madam,",
           "1, 1, 2, 3, 5, 8,", "Once upon a time", "E = mc", "Der schnelle braune Fuchs",
           "The patient was admitted with")
HEADER_BYTES = 128


class Rows:
    """A .npy that grows: whole after every row, as the header is written anew behind each."""

    def __init__(self, path, most_rows=4096):
        self.path, self.most, self.count, self.vocab = path, most_rows, 0, None
        self.file = open(path, "wb")

    def add(self, row_bytes):
        """One row of binary32, little-endian. False once there are most_rows of them."""
        if self.count >= self.most:
            return False
        if self.vocab not in (None, len(row_bytes) // 4):
            raise ValueError(f"{self.path}: a row of {len(row_bytes) // 4} logits after rows of "
                             f"{self.vocab}")
        self.vocab = len(row_bytes) // 4
        self.file.seek(HEADER_BYTES + self.count * len(row_bytes))
        self.file.write(row_bytes)
        self.count += 1
        shape = f"({self.count}, {self.vocab})"
        text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}"
        self.file.seek(0)
        self.file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", HEADER_BYTES - 10))
        self.file.write(text.ljust(HEADER_BYTES - 11).encode() + b"\n")
        self.file.flush()
        return True


def bytes_of(row):
    """A tensor's (or list's) row as binary32: widened exactly from binary16 and bfloat16."""
    if hasattr(row, "detach"):
        row = row.detach().float().cpu().contiguous()
        return ctypes.string_at(row.data_ptr(), 4 * row.numel())
    return array.array("f", row).tobytes()


class Dump:
    """A logits processor of transformers: writes every row it sees and changes none."""

    def __init__(self, path, most_rows=4096):
        self.rows = Rows(path, most_rows)

    def __call__(self, input_ids, scores):
        for row in scores:
            self.rows.add(bytes_of(row))
        return scores


try:
    from vllm.v1.sample.logits_processor import LogitsProcessor
except Exception:  # no vLLM here: the class below is not wanted
    LogitsProcessor = object


class VllmDump(LogitsProcessor):
    """A logits processor of vLLM (V1): the batch's rows as they reach the sampler."""

    def __init__(self, vllm_config, device, is_pin_memory):
        self.rows = Rows(os.environ.get("DUMP_LOGITS", "logits.npy"),
                         int(os.environ.get("DUMP_LOGITS_ROWS", "1024")))

    def is_argmax_invariant(self):
        return False  # else it is left out of greedy batches

    def update_state(self, batch_update):
        pass

    def apply(self, logits):
        for row in logits:
            if not self.rows.add(bytes_of(row)):
                break
        return logits


def read_prompts(path):
    if not path:
        return list(PROMPTS)
    with open(path, encoding="utf-8") as file:
        return [line.rstrip("\n") for line in file if line.strip()]


def dump_model(options):
    try:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer
    except ImportError as error:
        print(f"torch and transformers are needed for --model: {error}", file=sys.stderr)
        sys.exit(3)
    if not os.path.isdir(options.model):
        print(f"--model {options.model}: there is no such folder; models are not downloaded",
              file=sys.stderr)
        sys.exit(2)
    tokenizer = AutoTokenizer.from_pretrained(options.model, local_files_only=True)
    model = AutoModelForCausalLM.from_pretrained(options.model, local_files_only=True).eval()
    torch.manual_seed(options.seed)
    dump = Dump(options.out)
    for prompt in read_prompts(options.prompts):
        tokens = tokenizer(prompt, return_tensors="pt")
        with torch.no_grad():
            model.generate(**tokens, max_new_tokens=options.steps, do_sample=True, top_k=0,
                           logits_processor=[dump], pad_token_id=tokenizer.eos_token_id)
    print(f"{options.out}: {dump.rows.count} rows of {dump.rows.vocab} logits")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", required=True, help="folder of a Hugging Face model")
    parser.add_argument("--out", required=True, help=".npy to write")
    parser.add_argument("--prompts", help="text file, one prompt a line (default: eight of all sorts)")
    parser.add_argument("--steps", type=int, default=16, help="tokens generated for each prompt")
    parser.add_argument("--seed", type=int, default=0)
    dump_model(parser.parse_args())


if __name__ == "__main__":
    main()
