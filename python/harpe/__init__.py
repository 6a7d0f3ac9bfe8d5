"""Plans of operators that several processors compute together.

    plan = harpe.plan("ag_gemm", mesh="tp=8", machine="h200x8", m=8192, n=57344, k=8192)
    plan.predicted_us, plan.memory_bytes, plan.why
    out = harpe.run(plan, {"a": a, "b": b})        # on CPU ranks, threads of this process
    exe = harpe.compile(plan, group=group)         # this program is one rank of several
    exe(a=own_a, b=own_b, out={"c": own_c})

Planning, proofs, predictions and runs on CPU ranks need neither a GPU nor PyTorch. Only
`harpe.ops`, the PyTorch operators, needs PyTorch. Sizes are global, over all ranks. A call that is
refused raises `Refused`; a failure at run time raises `Fault`. docs/python.md is the guide.
"""

import importlib
from typing import TYPE_CHECKING, Any

from harpe import _harpe
from harpe._catalogue import describe, doctor, explain, machines, operators, schedules
from harpe._errors import Bug, Error, Fault, Refused
from harpe._group import Exchange, Executable, Group, compile, local_exchanges, meet
from harpe._plan import Plan, Simulation, Tuned, load, plan, show, simulate, taxes, tune, verify
from harpe._program import (Array, Axis, Mask, Nest, Parameter, Program, ProgramBuilder, Route,
                            Size)
from harpe._run import Results, draw_inputs, run
from harpe._schedule import Schedule
from harpe._values import (BufferInfo, Buffer, Candidate, Certificate, Comparison, Doctor,
                           Explanation, GpuFacts, GroupStatus, HostFacts, LibraryFacts, LocalTensor,
                           MachineInfo, OperatorInfo, ParameterInfo, PlanFacts, Prediction,
                           Refusal, ScheduleInfo, Share, Taxes, TransportFacts, Why)

__version__: str = _harpe.version()

__all__ = [
    "Array", "Axis", "Buffer", "BufferInfo", "Bug", "Candidate", "Certificate", "Comparison",
    "Doctor", "Error", "Exchange", "Executable", "Explanation", "Fault", "GpuFacts", "Group",
    "GroupStatus", "HostFacts", "LibraryFacts", "LocalTensor", "MachineInfo", "Mask", "Nest",
    "OperatorInfo", "Parameter", "ParameterInfo", "Plan", "PlanFacts", "Prediction", "Program",
    "ProgramBuilder", "Refusal", "Refused", "Results", "Route", "Schedule", "ScheduleInfo",
    "Share", "Simulation", "Size", "Taxes", "TransportFacts", "Tuned", "Why",
    "compile", "describe", "doctor", "draw_inputs", "explain", "load", "local_exchanges",
    "machines", "meet", "operators", "plan", "run", "schedules", "show", "simulate", "taxes",
    "tune", "verify",
]

if TYPE_CHECKING:
    from harpe import cp, nn, ops
    from harpe.ops import check, empty, init, lock, reset, status, warming, warmup

_OF_OPS = "check", "empty", "init", "lock", "reset", "status", "warming", "warmup"


def __getattr__(name: str) -> Any:
    """Imports what needs PyTorch when it is first used."""
    if name in ("ops", "nn", "cp"):
        return importlib.import_module(f"harpe.{name}")
    if name in _OF_OPS:
        return getattr(importlib.import_module("harpe.ops"), name)
    raise AttributeError(f"module 'harpe' has no attribute '{name}'")
