"""Element types in NumPy."""

import functools
from typing import Any

import numpy as np

DTYPES: dict[str, np.dtype[Any]] = {
    "f32": np.dtype(np.float32), "f64": np.dtype(np.float64), "f16": np.dtype(np.float16),
    "i32": np.dtype(np.int32), "i64": np.dtype(np.int64)}


@functools.cache
def known() -> dict[str, np.dtype[Any]]:
    """NumPy's types by the library's names; includes bf16 if `ml_dtypes` is installed."""
    try:
        import ml_dtypes
    except ImportError:
        return DTYPES
    return DTYPES | {"bf16": np.dtype(ml_dtypes.bfloat16)}


def exact(name: str) -> np.dtype[Any]:
    """Raises ModuleNotFoundError if NumPy has no such type."""
    if name == "bf16" and name not in known():
        raise ModuleNotFoundError("arrays of bf16 need ml_dtypes: pip install 'harpe[bf16]'",
                                  name="ml_dtypes")
    return known()[name]


def widened(name: str) -> np.dtype[Any]:
    """The exact type, or float32 for bf16 if NumPy has no bf16."""
    return known().get(name, DTYPES["f32"])


def name_of(dtype: np.dtype[Any]) -> str | None:
    return next((name for name, each in known().items() if each == dtype), None)
