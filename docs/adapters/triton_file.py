#!/usr/bin/env python3
"""One upstream Triton file, given by path, on the very bytes of a case.

    bench_topp --sweep --external "python3 docs/adapters/triton_file.py --file topk_topp_triton.py"

The file may be vLLM's vllm/v1/sample/ops/topk_topp_triton.py of any version, without vLLM: what it
imports from there is stood in for here (stubs_vllm.py), unless vLLM is installed. Wanted is a
function that takes (logits, k, p), k None, and returns the masked logits.
"""
import importlib.util
import os
import sys

from protocol import Program, absent, leave


def load(path):
    if not os.path.isfile(path):
        leave(2, f"--file {path}: there is no such file")
    if importlib.util.find_spec("vllm") is None:
        import stubs_vllm
        stubs_vllm.install()
    spec = importlib.util.spec_from_file_location("upstream_kernel", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # Triton reads the source back from it
    spec.loader.exec_module(module)
    return module


def make_kernel(torch, device):
    try:
        import triton  # noqa: F401
    except ImportError as error:
        absent("Triton", error)
    arguments = program.arguments
    function = getattr(load(arguments.file), arguments.function, None)
    if function is None:
        leave(2, f"--file {arguments.file}: it has no function {arguments.function}")
    return lambda logits, p: function(logits, None, p)


if __name__ == "__main__":
    program = Program(__doc__.splitlines()[0],
                      (["--file"], {"required": True, "help": "the kernel's Python file"}),
                      (["--function"], {"default": "apply_top_k_top_p_triton"}))
    program.run_torch(make_kernel)
