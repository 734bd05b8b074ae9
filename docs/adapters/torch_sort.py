#!/usr/bin/env python3
"""Top-p by PyTorch's sort, softmax and cumulative sum: the usual way without a kernel of one's own."""
from protocol import Program


def make_kernel(torch, device):
    def top_p(logits, p):
        ordered, token = logits.sort(dim=-1, descending=True, stable=True)
        weights = ordered.softmax(dim=-1)
        before = weights.cumsum(dim=-1) - weights  # the mass of what comes first
        wanted = torch.where(p < 1.0, p, torch.inf).unsqueeze(1)
        ordered.masked_fill_(before >= wanted, -torch.inf)
        return logits.scatter_(-1, token, ordered)

    return top_p


if __name__ == "__main__":
    Program(__doc__.splitlines()[0]).run_torch(make_kernel)
