#!/usr/bin/env python3
"""FlashInfer's top-p: renormalised probabilities, or sampled ids. Its softmax is timed too.

    --external "python3 docs/adapters/flashinfer_topp.py" --external-output probabilities
    --external "ids=python3 docs/adapters/flashinfer_topp.py --ids" --external-output ids
"""
from protocol import Program, absent


def make_kernel(torch, device):
    try:
        import flashinfer
    except Exception as error:
        absent("FlashInfer", error)
    if device != "cuda":
        absent("FlashInfer", "it has kernels for CUDA alone")
    sampling = flashinfer.sampling

    def renormalise(logits, p):
        return sampling.top_p_renorm_probs(torch.softmax(logits, dim=-1), p)

    def sample(logits, p, generator):
        return sampling.top_p_sampling_from_probs(torch.softmax(logits, dim=-1), p,
                                                  deterministic=True, generator=generator)

    return sample if program.arguments.ids else renormalise


if __name__ == "__main__":
    program = Program(__doc__.splitlines()[0],
                      (["--ids"], {"action": "store_true", "help": "sample instead"}))
    program.run_torch(make_kernel, "ids" if program.arguments.ids else "probabilities")
