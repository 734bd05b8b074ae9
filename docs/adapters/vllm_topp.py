#!/usr/bin/env python3
"""The top-p of the vLLM that is installed: whatever its sampler picks for this batch."""
from protocol import Program, absent


def make_kernel(torch, device):
    try:
        from vllm.v1.sample.ops.topk_topp_sampler import apply_top_k_top_p
    except Exception as error:  # its imports fail in many ways
        absent("vLLM", error)
    return lambda logits, p: apply_top_k_top_p(logits, None, p)


if __name__ == "__main__":
    Program(__doc__.splitlines()[0]).run_torch(make_kernel)
