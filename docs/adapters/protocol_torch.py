"""Program.run_torch(): the protocol's steps on tensors, on a stream or by a CUDA graph."""
import ctypes

from protocol import Ranges, write_npy


class Cuda:
    def __init__(self, torch):
        self.synchronize = torch.cuda.synchronize
        self.push = torch.cuda.nvtx.range_push
        self.pop = torch.cuda.nvtx.range_pop

    def __enter__(self):
        self.synchronize()  # nothing of before may reach into the range
        self.push("sample")

    def __exit__(self, *_):
        self.synchronize()  # nothing of the range may reach out of it
        self.pop()


def save(torch, path, tensor):
    """Types that .npy does not know (bfloat16) are written as what they are, bytes: refused there."""
    names = {torch.float32: "<f4", torch.int64: "<i8", torch.float16: "<f2", torch.float64: "<f8",
             torch.int32: "<i4"}
    host = tensor.detach().cpu().contiguous()
    data = ctypes.string_at(host.data_ptr(), host.numel() * host.element_size())
    write_npy(path, data, host.shape, names.get(host.dtype, "|V%d" % host.element_size()))


def capture(torch, call):
    """The call as a CUDA graph; what it allocates stays the graph's."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        call()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph, held = torch.cuda.CUDAGraph(), []
    with torch.cuda.graph(graph):
        held.append(call())
    return graph, held[0]


def run(program, torch, make_kernel, output):
    arguments, device = program.arguments, program.device
    logits, p, shape = program.read()
    pristine = torch.frombuffer(logits, dtype=torch.float32).reshape(shape).to(device)
    p = torch.frombuffer(p, dtype=torch.float32).to(device)
    work = pristine.clone()
    kernel = make_kernel(torch, device)
    if output == "ids":
        generator = torch.Generator(device).manual_seed(arguments.seed)
        drawn = []
        for _ in range(arguments.draws):
            work.copy_(pristine)
            drawn.append(kernel(work, p, generator).to(torch.int64).reshape(-1))
        result = torch.stack(drawn)
        call = lambda: kernel(work, p, generator)
    else:
        result = kernel(work, p)
        call = lambda: kernel(work, p)
    save(torch, arguments.out, result)
    if not arguments.repeats:
        return
    if device == "cuda" and program.graph:
        work.copy_(pristine)
        graph, result = capture(torch, call)
        call = graph.replay
    else:
        graph = None
    sample = Cuda(torch) if device == "cuda" else Ranges()
    for _ in range(arguments.repeats):
        work.copy_(pristine)
        with sample:
            returned = call()
    if program.last and output != "ids":
        save(torch, program.last, result if graph else returned)
