"""Ranks of programs, each in a thread or a process of its own, that execute plans together."""

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
    """How ranks exchange a few bytes before they reach each other's memory: any store or collective
    that a program has. `harpe.local_exchanges` and `harpe.meet` make some."""

    @property
    def rank(self) -> int: ...

    @property
    def ranks(self) -> int: ...

    def all_gather(self, own: bytes, /) -> Sequence[bytes]:
        """What every rank gave, in the order of ranks. All ranks call it equally often, and it
        returns once all have. What it raises becomes a Fault, whose cause it is."""
        ...


def local_exchanges(ranks: int, *, limit: float = 60.0) -> Sequence[Exchange]:
    """Of ranks that are threads of this process, in their order; each is used by one thread. A rank
    that waits longer than `limit` seconds for the others ends the exchange for all."""
    return _harpe.local_exchanges(integer("ranks", ranks, below=2**31),
                                  milliseconds("limit", limit))


def meet(*, address: str, rank: int, ranks: int, secret: str = "", limit: float = 30.0) -> Exchange:
    """Of processes that meet at a socket; returns once all have come.

    `address`: "HOST:PORT", where rank 0 listens and all others connect. `secret`: the same for all
    ranks; "" trusts whoever reaches the address. `limit`: seconds, of coming together and of each
    exchange. Raises Fault: N010 a rank did not come. Refused: I311 an argument; N011 to N014 who
    was refused.
    """
    return _harpe.meet(address, secret, integer("rank", rank, below=2**31),
                       integer("ranks", ranks, 1, 2**31), milliseconds("limit", limit))


class Group:
    """One rank of several, on one host. A group owns the memory that its ranks reach of each other;
    the executables of many plans share it.

    *Collective* calls, of which joining is one, are made by all ranks in the same order. Threads
    that call one group wait for each other. A group ends with its last executable, without waiting
    for other ranks.

    `exchange`: how the ranks meet; its rank is this rank. `gpu`: the GPU that this rank runs on;
    None is this host's processor. `heap_bytes`: of memory, taken at once; more is taken as plans
    need it. `tensor_bytes`: of memory for `empty` and `allocate`. `result_bytes`: on GPUs,
    of memory for results of `harpe.ops` that other ranks write. `wait_limit`: seconds that an
    execution waits for another rank. `cpu_kernels`: as for `harpe.run`, on this host's processor.

    Of GPUs: `kernel_cache` is the folder that keeps compiled kernels; True is the user's cache,
    which the command line shares, and None compiles anew in each process. `library_folders` are
    searched for NVIDIA's libraries, then `nvidia/*/lib` and `torch/lib` beside Python's packages,
    and CUDA's toolkit. `progress`: True shows a line while `compile` compiles a kernel; a function
    is called before each, with ("compiling NAME", how many before it, 0).

    Raises Fault: N010 other ranks do not come. Refused: I311 an argument; N002, N017 another rank
    cannot, or is on another host; G0xx no such GPU.
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
        """An array in the group's memory for tensors (`tensor_bytes`), which executables use in
        place whatever other ranks do with it. The memory is free again once the array is.

        `dtype`: what NumPy takes, or a name such as "bf16". Raises Refused: I311 no free piece is
        as long. TypeError: a group of GPUs, whose memory `allocate` gives to other packages.
        """
        if self.gpu is not None:
            raise TypeError("arrays of NumPy are in the host's memory; use `allocate` on GPUs")
        exact = _dtypes.known().get(dtype) if isinstance(dtype, str) else None
        exact = exact or np.dtype(dtype)
        memory = np.from_dlpack(self.allocate(math.prod(shape) * exact.itemsize))
        return memory.view(exact).reshape(shape)

    def allocate(self, bytes: int) -> Any:
        """Memory that other ranks reach, as bytes that DLPack exports.

        On GPUs executables use it in place where all ranks' arrays lie at the same place of it, as
        they do if ranks allocate and free in the same order; where only some do, a launch is
        refused (I311). Raises Refused: I311 no free piece is as long.
        """
        return self._handle.allocate(bytes)

    def check(self) -> None:
        """Raises what ended the group's executions, as far as is known now: Fault, or Refused where
        ranks launched different plans. Later launches raise the same, until `reset`."""
        self._handle.check()

    def reset(self) -> None:
        """Collective, after a failure: gives up what is under way and begins anew; executables go
        on. Raises Fault: N010 a rank does not come."""
        self._handle.reset()

    def __repr__(self) -> str:
        place = "the host" if self.gpu is None else f"GPU {self.gpu}"
        memory = f"{self.status.heap_bytes / 2**20:,.1f} MiB for peers"
        return f"<harpe.Group rank {self.rank} of {self.ranks} on {place}, {memory}>"


class Compiling:
    """Tells a function, or shows in a line, which kernel is compiled."""

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
    """One rank's part of a plan, on a group's memory; `harpe.compile` makes it.

    Called with one array per input, by name, it executes the plan once, together with all other
    ranks: they launch a group's executables in the same order.

        exe(q=q, k=k, v=v, out={"o": o})    # into arrays of the caller's
        o = exe(q=q, k=k, v=v)["o"]         # into new NumPy arrays

    Arrays have exactly the type and the shape of `tensors`, any strides, and are used where they
    are: what has the buffer protocol (NumPy), DLPack (torch) or, on GPUs, the CUDA array interface;
    bf16 is that of ml_dtypes or torch. A tuple (address, type such as "bf16", shape, strides in
    elements) costs least, and is believed. Copied, and counted in `copied_bytes`, are those whose
    place is "heap", but for those of `Group.empty`, and those that are not dense. Outputs do not
    overlap other arrays.
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

        `inputs`: a mapping, for names that Python's arguments cannot have. On CPU ranks the calling
        thread computes without the interpreter's lock, results are there on return, and `stream` is
        not used. On GPUs the work is ordered in `stream`, a cudaStream_t as an int or an object
        with `cuda_stream` (None: the default one), `out` is required, the call returns without
        waiting, and arrays have to stay until the work is over.

        Raises Refused: I301, I305, I310 names; I311 an array, or ranks that launch different plans.
        Fault: what happened to an execution; from then on, until `Group.reset`, that. An interrupt
        ends a launch of CPU ranks that waits for another rank, and is a fault of the group.
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
        """Between arrays and the group's memory, of all launches."""
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
    """This rank's part of a plan. Collective: all ranks of the group, with the same plan.

    Raises Refused: I311 a plan of other ranks; N015 ranks have different plans; N017 another rank
    cannot; X0xx, G0xx what cannot be executed; X005, G073 memory. Fault: N010 a rank does not come.
    """
    try:
        return Executable(_harpe.load(group._handle, plan._handle), plan, group)
    finally:
        if group._compiling is not None:
            group._compiling.close()
