"""The protocol of `bench_topp --external` (docs/external.md) for kernels in Python.

    from protocol import Program
    Program("what it is").run(kernel)               # lists of floats, no packages needed
    Program("what it is").run_torch(make_kernel)    # tensors on the device that bench_topp runs on

Standard library alone; PyTorch is imported by run_torch().
"""
import argparse
import array
import ast
import ctypes
import os
import sys

ABSENT, PAST_LIMITS = 3, 4  # exit codes: cannot run here; not for this shape


def leave(code, message):
    print(message, file=sys.stderr)
    sys.exit(code)


def absent(package, why):
    leave(ABSENT, f"{package} is not usable here: {why}")


def read_npy(path, descr="<f4"):
    """The values of a C-order .npy file as (array, shape)."""
    with open(path, "rb") as file:
        start = file.read(10)
        if start[:6] != b"\x93NUMPY":
            leave(2, f"{path}: no .npy file")
        wide = start[6] > 1
        length = int.from_bytes(start[8:10] + (file.read(2) if wide else b""), "little")
        header = ast.literal_eval(file.read(length).decode("latin1"))
        if header["descr"] != descr or header["fortran_order"]:
            leave(2, f"{path}: wanted {descr} in C order")
        values = array.array({"<f4": "f", "<i8": "q"}[descr])
        values.frombytes(file.read())
    return values, header["shape"]


def write_npy(path, values, shape, descr="<f4"):
    """Writes what the buffer `values` holds, through a temporary name."""
    header = str({"descr": descr, "fortran_order": False, "shape": tuple(shape)}).encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    with open(path + ".part", "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
        file.write(values)
    os.replace(path + ".part", path)


class Ranges:
    """NVTX 3 ranges without any package: what nvtxRangePushA() and nvtxRangePop() are inside."""

    def __init__(self):
        self.push = self.pop = None
        path = os.environ.get("NVTX_INJECTION64_PATH")
        if not path:
            return
        slot = ctypes.c_void_p
        self.slots = (slot * 16)()
        table = (ctypes.POINTER(slot) * 17)()
        for i in range(16):
            table[i] = ctypes.cast(ctypes.byref(self.slots, i * ctypes.sizeof(slot)),
                                   ctypes.POINTER(slot))
        self.table = table

        @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p),
                          ctypes.POINTER(ctypes.c_uint))
        def get_slots(module, out, count):
            if module != 1:  # the core functions
                return 0
            out[0] = ctypes.addressof(table)
            if count:
                count[0] = 16
            return 1

        class Callbacks(ctypes.Structure):
            _fields_ = [("size", ctypes.c_size_t), ("get_slots", type(get_slots))]

        self.callbacks = Callbacks(ctypes.sizeof(Callbacks), get_slots)

        @ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32)
        def get_table(number):
            return ctypes.addressof(self.callbacks) if number == 1 else None

        self.keep = get_slots, get_table
        self.library = ctypes.CDLL(path)
        if self.library.InitializeInjectionNvtx2(get_table) and self.slots[9] and self.slots[11]:
            self.push = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p)(self.slots[9])
            self.pop = ctypes.CFUNCTYPE(ctypes.c_int)(self.slots[11])

    def __enter__(self):
        if self.push:
            self.push(b"sample")

    def __exit__(self, *_):
        if self.pop:
            self.pop()


class Program:
    """The command line of a program; `arguments` holds it, the program's own options too."""

    def __init__(self, description, *options):
        parser = argparse.ArgumentParser(description=description)
        parser.add_argument("--input", required=True, help=".npy, <f4 [rows, vocabulary]")
        parser.add_argument("--p", required=True, help=".npy, <f4 [rows]")
        parser.add_argument("--out", required=True, help=".npy to write")
        parser.add_argument("--repeats", type=int, default=0)
        parser.add_argument("--draws", type=int, default=1, help="ids: draws of each row")
        parser.add_argument("--seed", type=int, default=0, help="ids: of the draws")
        for names, settings in options:
            parser.add_argument(*names, **settings)
        self.arguments = parser.parse_args()
        self.device = os.environ.get("TOPP_DEVICE", "cpu")
        self.graph = os.environ.get("TOPP_LAUNCH") == "graph"
        self.last = os.environ.get("TOPP_OUT_LAST")

    def read(self):
        """(logits, p, (rows, vocabulary)); the first two are flat arrays of binary32."""
        logits, shape = read_npy(self.arguments.input)
        return logits, read_npy(self.arguments.p)[0], shape

    def run(self, kernel):
        """kernel(logits, p, rows, vocab) masks the flat array in place."""
        pristine, p, shape = self.read()
        work = pristine[:]
        kernel(work, p, *shape)
        write_npy(self.arguments.out, work, shape)
        sample = Ranges()
        for _ in range(self.arguments.repeats):
            work = pristine[:]
            with sample:
                kernel(work, p, *shape)
        if self.arguments.repeats and self.last:
            write_npy(self.last, work, shape)

    def run_torch(self, make_kernel, output="masked_logits"):
        """make_kernel(torch, device) -> kernel(logits, p) -> the tensor that holds the output (its
        input, masked in place, or another). output "ids": kernel(logits, p, generator) -> [rows].
        """
        try:
            import torch
        except ImportError as error:
            absent("PyTorch", error)
        if self.device == "cuda" and not torch.cuda.is_available():
            absent("CUDA", "PyTorch finds no device")
        import protocol_torch
        protocol_torch.run(self, torch, make_kernel, output)
