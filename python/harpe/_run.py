"""Execution on CPU ranks, with NumPy arrays."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from harpe import _dtypes, _harpe
from harpe._errors import make_refusal
from harpe._plan import Plan
from harpe._question import (CpuKernels, Progress, call_options, integer, milliseconds,
                             uses_own)
from harpe._values import Comparison


class Results(dict[str, np.ndarray]):
    """Outputs by name, and statistics of the run."""

    times_us: Sequence[float]  # wall time of each execution
    bytes_moved: int  # between ranks, by one execution
    copied_bytes: int  # inputs and outputs, into and out of the library's tensors
    checks: Sequence[Comparison]  # with `check=True`
    products: Mapping[str, str]  # by input type: the library that computed GEMMs


def run(plan: Plan, inputs: Mapping[str, npt.ArrayLike], check: bool = False, *,
        iterations: int = 1, wait_limit: float = 10.0, cpu_kernels: CpuKernels = "libraries",
        progress: Progress = None) -> Results:
    """Executes a plan on CPU ranks, which are threads of this process, and returns its outputs.

    `inputs`: whole arrays by name, with the shapes in `plan.buffers` and any strides. Their element
    type may differ from the buffer's within f16, bf16, f32, f64 and within i32, i64; each element
    is rounded once. Outputs are new whole arrays of the buffers' types. If `ml_dtypes` is
    installed, its `bfloat16` represents bf16 in inputs and outputs; otherwise bf16 values are in
    float32 arrays.
    `check`: compares outputs with the program's reference, which is slow. `iterations`: number of
    consecutive executions. `wait_limit`: seconds after which a rank stops waiting for another rank.
    `cpu_kernels`: "libraries" (oneDNN, OpenBLAS) compute GEMMs if one suits the machine, or Harpe's
    "own" loops do. Equal plans, inputs and kernels give equal bits. `progress`: as for `plan`,
    first for the steps of all ranks, then for the check.

    Calls on several threads run in parallel. An interrupt is noticed within a tenth of a second; if
    a rank computes one step for longer, after that step.
    Raises Refused: I301 no such input; I310 an input is missing; I311 an array cannot be used; I304
    an index is out of range; P22x values that masks read; I401 a check failed; I505 `progress`
    cancelled the run. Fault: which rank waited for which.
    """
    given = {name: _native(name, np.asarray(value)) for name, value in inputs.items()}
    results = Results({name: np.empty(tuple(buffer.shape), _dtypes.widened(buffer.dtype))
                       for name, buffer in plan.buffers.items() if buffer.role == "out"})
    with call_options(progress=progress) as options:
        (results.times_us, results.bytes_moved, results.copied_bytes, results.checks,
         products) = _harpe.run(
            plan._handle, {name: _describe(array) for name, array in given.items()},
            {name: _describe(array) for name, array in results.items()}, check,
            integer("iterations", iterations, 1), milliseconds("wait_limit", wait_limit),
            uses_own(cpu_kernels), options)
    results.products = dict(products)
    return results


def draw_inputs(plan: Plan, seed: int = 0) -> dict[str, np.ndarray]:
    """Reproducible inputs of a plan: those that the command line draws with that seed, in the types
    of `run`'s outputs. Computing inputs that depend on other inputs, such as o on q, k and v, takes
    as long as a check; an interrupt ends it."""
    with call_options() as options:
        drawn = _harpe.draw_inputs(plan._handle, integer("seed", seed, below=2**64), options)
    return {name: _decode(dtype, data).reshape(shape)
            for name, (dtype, shape, data) in drawn.items()}


def _decode(name: str, data: bytearray) -> np.ndarray:
    if name == "bf16" and name not in _dtypes.known():
        return (np.frombuffer(data, np.uint16).astype(np.uint32) << 16).view(np.float32)
    return np.frombuffer(data, _dtypes.widened(name))


def _native(name: str, array: np.ndarray) -> np.ndarray:
    """The array in this machine's byte order with strides of whole elements; usually unchanged."""
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if _dtypes.name_of(array.dtype) is None:
        raise make_refusal("I311", argument=f"inputs[{name}]", found=array.dtype,
                           wanted=f"of {', '.join(_dtypes.DTYPES)} or bf16")
    if any(stride % array.itemsize for stride in array.strides):
        array = np.ascontiguousarray(array)
    return array


def _describe(array: np.ndarray) -> tuple[int, str, tuple[int, ...], tuple[int, ...]]:
    """What the extension takes for an array: address, type, shape, strides in elements."""
    strides = tuple(stride // array.itemsize for stride in array.strides)
    dtype = _dtypes.name_of(array.dtype)
    assert dtype is not None
    return array.__array_interface__["data"][0], dtype, array.shape, strides
