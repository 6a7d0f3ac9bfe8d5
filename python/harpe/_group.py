"""Programs that are ranks, each in a thread or process of its own, and execute plans together."""

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from harpe import _dtypes, _harpe
from harpe._libraries import library_folders as installed_folders
from harpe._plan import Plan
from harpe._progress import Bar
from harpe._question import (Cache, CpuKernels, Progress, cache_folder, integer, milliseconds,
                             uses_own)
from harpe._values import GroupStatus, LocalTensor


class Exchange(Protocol):
    """How ranks exchange a few bytes before they can access each other's memory. Any store or
    collective that a program has can implement it. `harpe.local_exchanges` and `harpe.meet` make
    some."""

    @property
    def rank(self) -> int: ...

    @property
    def ranks(self) -> int: ...

    def all_gather(self, own: bytes, /) -> Sequence[bytes]:
        """Returns every rank's bytes in the order of ranks. All ranks call it equally often, and it
        returns once all have called. An exception in it becomes the cause of a Fault."""
        ...


def local_exchanges(ranks: int, *, limit: float = 60.0) -> Sequence[Exchange]:
    """Exchanges for ranks that are threads of this process, in rank order; one thread uses each. If
    a rank waits longer than `limit` seconds for the others, the exchange fails on all ranks."""
    return _harpe.local_exchanges(integer("ranks", ranks, below=2**31),
                                  milliseconds("limit", limit))


def meet(*, address: str, rank: int, ranks: int, secret: str = "", limit: float = 30.0) -> Exchange:
    """Connects processes through a socket; returns once all ranks have connected.

    `address`: "HOST:PORT", where rank 0 listens and all others connect. `secret`: the same for all
    ranks; "" trusts any process that reaches the address. `limit`: seconds for all ranks to
    connect, and for each exchange. Raises Fault: N010 a rank did not connect. Refused: I311 an
    argument; N011 to N014 a rank was rejected.
    """
    return _harpe.meet(address, secret, integer("rank", rank, below=2**31),
                       integer("ranks", ranks, 1, 2**31), milliseconds("limit", limit))


class Group:
    """One rank of several on one host. A group owns the memory that its ranks access on each other;
    the executables of many plans share it.

    All ranks make the *collective* calls, which include joining, in the same order. Threads that
    call one group wait for each other. A group ends with its last executable, without waiting for
    other ranks.

    `exchange`: how the ranks connect; its rank is this rank. `gpu`: this rank's GPU; None is the
    host's CPU. `heap_bytes`: memory reserved at once; plans that need more extend it.
    `tensor_bytes`: memory for `empty` and `allocate`. `result_bytes`: on GPUs, memory for results
    of `harpe.ops` that other ranks write. `wait_limit`: seconds that an execution waits for another
    rank. `cpu_kernels`: as for `harpe.run`, for CPU ranks.

    For GPUs: `kernel_cache` is the folder of compiled kernels; True is the user's cache, shared
    with the command line, and with None each process compiles its own. `library_folders` are
    searched for NVIDIA's libraries, then `nvidia/*/lib` and `torch/lib` beside Python's packages,
    then the CUDA toolkit. `progress`: True shows a line while `compile` compiles a kernel; a
    function is called before each kernel with ("compiling NAME", number of kernels before it, 0).

    Raises Fault: N010 other ranks do not join. Refused: I311 an argument; N002, N017 another rank
    cannot join, or is on another host; G0xx no such GPU.
    """

    def __init__(self, *, exchange: Exchange, gpu: int | None = None, heap_bytes: int = 0,
                 tensor_bytes: int = 0, result_bytes: int = 0, wait_limit: float = 60.0,
                 cpu_kernels: CpuKernels = "libraries", kernel_cache: Cache = True,
                 library_folders: Iterable[str | os.PathLike[str]] = (),
                 progress: Progress = None) -> None:
        folders = [os.fspath(folder) for folder in library_folders]
        if gpu is not None:
            folders += installed_folders()
        self._compiling = Compiling(progress) if progress else None
        self._handle = _harpe.join(exchange, gpu, heap_bytes, tensor_bytes,
                                   result_bytes, milliseconds("wait_limit", wait_limit),
                                   uses_own(cpu_kernels),
                                   _kernel_folder(kernel_cache), folders, self._compiling)
        self.gpu = gpu
        self.rank: int = self._handle.rank
        self.ranks: int = self._handle.ranks

    @property
    def status(self) -> GroupStatus:
        return self._handle.status

    def empty(self, shape: Sequence[int], dtype: Any) -> np.ndarray:
        """An array in the group's memory for tensors (`tensor_bytes`). Executables always use it in
        place, also if other ranks access it. The memory is free again when the array ends.

        `dtype`: a NumPy dtype, or a name such as "bf16". Raises Refused: I311 no free range is that
        long. TypeError: for a group of GPUs, whose memory other packages use through `allocate`.
        """
        if self.gpu is not None:
            raise TypeError("arrays of NumPy are in the host's memory; use `allocate` on GPUs")
        exact = _dtypes.known().get(dtype) if isinstance(dtype, str) else None
        exact = exact or np.dtype(dtype)
        memory = np.from_dlpack(self.allocate(math.prod(shape) * exact.itemsize))
        return memory.view(exact).reshape(shape)

    def allocate(self, bytes: int) -> Any:
        """Memory that other ranks can access, as bytes that DLPack exports.

        On GPUs, executables use such an array in place if the arrays of all ranks have the same
        offset. That holds if ranks allocate and free in the same order. If only some ranks' arrays
        do, a launch is refused (I311). Raises Refused: I311 no free range is that long.
        """
        return self._handle.allocate(bytes)

    def check(self) -> None:
        """Raises the failure that ended the group's executions, if it is already known: Fault, or
        Refused if ranks launched different plans. Later launches raise the same until `reset`."""
        self._handle.check()

    def reset(self) -> None:
        """Collective, after a failure: abandons the failed executions and clears faults and
        signals. Executables remain usable. Raises Fault: N010 a rank does not take part."""
        self._handle.reset()

    def __repr__(self) -> str:
        place = "the host" if self.gpu is None else f"GPU {self.gpu}"
        memory = f"{self.status.heap_bytes / 2**20:,.1f} MiB for peers"
        return f"<harpe.Group rank {self.rank} of {self.ranks} on {place}, {memory}>"


class Compiling:
    """Reports which kernel is being compiled, to a function or in a line."""

    def __init__(self, progress: Progress) -> None:
        self._bar = Bar() if progress is True else None
        self._report = self._bar or progress
        self._done = 0

    def __call__(self, kernel: str) -> None:
        self._report(f"compiling {kernel}", self._done, 0)
        self._done += 1

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


def _kernel_folder(cache: Cache) -> str | None:
    folder = cache_folder(cache)
    return folder if folder is None or cache is not True else os.path.join(folder, "kernels")


class Executable:
    """One rank's part of a plan, in a group's memory; `harpe.compile` makes it.

    A call with one array per input, by name, executes the plan once, together with all other ranks.
    All ranks launch a group's executables in the same order.

        exe(q=q, k=k, v=v, out={"o": o})    # into the caller's arrays
        o = exe(q=q, k=k, v=v)["o"]         # into new NumPy arrays

    Arrays have exactly the type and shape in `tensors`, with any strides. An array is anything with
    the buffer protocol (NumPy), DLPack (torch) or, on GPUs, the CUDA array interface; bf16 is that
    of ml_dtypes or torch. A tuple (address, type such as "bf16", shape, strides in elements) is
    cheapest and is not checked. Arrays are used in place, except that arrays which are not dense,
    and arrays whose place is "heap" but which are not from `Group.empty`, are copied and counted in
    `copied_bytes`. Outputs must not overlap other arrays.
    """

    def __init__(self, handle: _harpe.Executable, plan: Plan, group: Group) -> None:
        self._launch = handle.launch
        self._handle = handle
        self.plan = plan
        self.group = group
        self.tensors: Mapping[str, LocalTensor] = {each.name: each for each in handle.tensors}
        self._outputs = [(each.name, tuple(each.shape), each.dtype)
                         for each in handle.tensors if each.role == "out"]

    def __call__(self, inputs: Mapping[str, Any] | None = None, /, *,
                 out: Mapping[str, Any] | None = None, stream: Any = None,
                 **more: Any) -> Mapping[str, Any]:
        """Executes the plan once; returns `out`, or new NumPy arrays by name.

        `inputs`: a mapping, for names that are no Python identifiers. On CPU ranks the calling
        thread computes without the interpreter's lock, the results are ready on return, and
        `stream` is unused. On GPUs the work is ordered in `stream`, a cudaStream_t as an int or an
        object with `cuda_stream` (None: the default stream), `out` is required, the call returns
        without waiting, and arrays must live until the work is done.

        Raises Refused: I301, I305, I310 names; I311 an array, or ranks that launch different plans.
        Fault: the failure of an execution, which later calls raise too until `Group.reset`. An
        interrupt ends a launch of CPU ranks that waits for another rank; this is a fault of the
        group.
        """
        if out is None:
            out = self._make_outputs()
        if stream is not None and not isinstance(stream, int):
            stream = stream.cuda_stream
        self._launch({**inputs, **more} if inputs else more,
                     out if isinstance(out, dict) else dict(out), stream or 0)
        return out

    @property
    def launches(self) -> int:
        return self._handle.launches

    @property
    def copied_bytes(self) -> int:
        """Between arrays and the group's memory, over all launches."""
        return self._handle.copied_bytes

    def _make_outputs(self) -> dict[str, np.ndarray]:
        if self.group.gpu is not None:
            raise TypeError("`out` is required on GPUs: arrays in their memory")
        return {name: np.empty(shape, _dtypes.exact(dtype)) for name, shape, dtype in self._outputs}

    def __repr__(self) -> str:
        rank = f"rank {self.group.rank} of {self.group.ranks}"
        return (f"<harpe.Executable {self.plan.op} on {self.plan.mesh}: {self.plan.schedule}, "
                f"{rank}, {self.launches:,} launches>")


def compile(plan: Plan, /, *, group: Group) -> Executable:
    """This rank's part of a plan. Collective: all ranks of the group call it with the same plan.

    Raises Refused: I311 the plan is for another number of ranks; N015 ranks have different plans;
    N017 another rank failed; X0xx, G0xx the back end cannot execute the plan; X005, G073 memory.
    Fault: N010 a rank does not take part.
    """
    try:
        return Executable(_harpe.load(group._handle, plan._handle), plan, group)
    finally:
        if group._compiling is not None:
            group._compiling.close()
