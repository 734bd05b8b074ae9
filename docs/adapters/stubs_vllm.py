"""Stands in for the parts of vLLM that its Triton kernel files import, where vLLM is not installed:
Triton itself, small helpers, and the launcher of newer versions. Anything else that they import is
a placeholder that does nothing, as warm-up and logging are not wanted here."""
import contextlib
import functools
import importlib.abc
import importlib.machinery
import inspect
import sys
import types

PROCESSORS_WITHOUT_GPU = 132


def num_compute_units(device=None):
    import torch
    if not torch.cuda.is_available():
        return PROCESSORS_WITHOUT_GPU
    return torch.cuda.get_device_properties(device or 0).multi_processor_count


def next_power_of_2(number):
    return 1 if number < 1 else 1 << (number - 1).bit_length()


@contextlib.contextmanager
def gpu_sync_allowed():
    yield


def argument_of(parameter, given, settings):
    """A kernel's parameter: set by the dispatcher, or the argument of its name (in capitals, with
    _PTR behind it), or that one's stride: X_STRIDE, X_STRIDE_1."""
    if parameter in settings:
        return settings[parameter]
    name, stride, axis = parameter.lower().partition("_stride")
    name = name.removesuffix("_ptr")
    if name in given:
        return given[name].stride(int(axis.strip("_") or 0)) if stride else given[name]
    raise TypeError(f"no argument for the kernel's {parameter}")


def triton_kernel_dispatcher_with_warmup(kernel, **_):
    """The function below the decorator gives a grid and settings; its own arguments are passed on
    to the kernel's parameters of the same names in capitals."""
    def decorate(dispatch):
        signature = inspect.signature(dispatch)

        @functools.wraps(dispatch)
        def launch(*positional, **named):
            given = signature.bind(*positional, **named).arguments
            grid, settings = dispatch(*positional, **named)
            parameters = kernel.arg_names
            arguments = {name: argument_of(name, given, settings) for name in parameters}
            options = {name: value for name, value in settings.items() if name not in parameters}
            kernel[grid](**arguments, **options)
        return launch
    return decorate


class Platform:
    """What a file asks of the machine: CUDA or not, and no to everything else."""

    def __getattr__(self, name):
        import torch
        cuda = torch.cuda.is_available()
        answer = cuda if name in ("is_cuda", "is_cuda_alike") else name == "is_cpu" and not cuda
        return lambda: answer


class Placeholder:
    def __init__(self, *_, **__):
        pass

    def __getattr__(self, name):
        return Placeholder()

    def __call__(self, *_, **__):
        return Placeholder()

    def __bool__(self):
        return False


KNOWN = {"num_compute_units": num_compute_units, "next_power_of_2": next_power_of_2,
         "gpu_sync_allowed": gpu_sync_allowed, "current_platform": Platform(),
         "triton_kernel_dispatcher_with_warmup": triton_kernel_dispatcher_with_warmup}


class Stub(types.ModuleType):
    __path__ = []

    def __getattr__(self, name):
        if name == "triton":
            import triton
            return triton
        if name == "tl":
            import triton.language
            return triton.language
        if name.startswith("__"):
            raise AttributeError(name)
        return KNOWN.get(name, Placeholder())


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if name == "vllm" or name.startswith("vllm."):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return Stub(spec.name)

    def exec_module(self, module):
        pass


def install():
    sys.meta_path.append(Finder())
