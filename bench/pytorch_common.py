"""Shared by pytorch_block.py and pytorch_decode.py: alternates several implementations."""
import argparse
import json
import os
import statistics
from collections.abc import Callable
from typing import Any

# Must be set before CUDA is initialised.
os.environ["NCCL_NVLS_ENABLE"] = "0"
os.environ["TORCH_SYMM_MEM_DISABLE_MULTICAST"] = "1"

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

import harpe.ops as hp  # noqa: E402
from harpe.examples._ranks import add_device, join_ranks  # noqa: E402
from peers_common import start_clock  # noqa: E402

Tensor = torch.Tensor
# Relative to the largest element. Each implementation rounds partial sums in its own way.
BOUNDS = {torch.bfloat16: 0.03, torch.float32: 1e-4}


def begin(parser: argparse.ArgumentParser, models: dict[str, Any],
          iterations: int) -> tuple[argparse.Namespace, torch.device]:
    """The arguments, including one of `models`, and the device of this rank's tensors."""
    add_device(parser)
    parser.add_argument("--model", choices=models, help="default 70b, on CPU ranks tiny")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--iters", type=int, default=iterations, help="executions of a turn")
    parser.add_argument("--json", metavar="FILE", help="write the medians there too")
    args = parser.parse_args()
    args.model = args.model or ("70b" if args.device == "cuda" else "tiny")
    return args, join_ranks(args.device)


def check(results: dict[str, dict[str, Tensor]], reference: str) -> None:
    """Ends the program if some results differ from the reference's on any rank."""
    for name, found in results.items():
        for what, expected in results[reference].items():
            bound, expected = BOUNDS[expected.dtype], expected.float()
            apart = (found[what].float() - expected).abs().max() / expected.abs().max()
            dist.all_reduce(apart, dist.ReduceOp.MAX)
            if not apart.item() < bound:
                raise SystemExit(f"{name}: {what} differs by {apart.item():.1e} of its largest "
                                 f"element; {bound} may be rounding")


def time_turn(device: torch.device, run: Callable[[], Any], iterations: int) -> float:
    """Milliseconds of an execution, on the slowest rank."""
    dist.barrier()
    if device.type == "cuda":
        torch.cuda.synchronize()
    stop = start_clock(device)
    for _ in range(iterations):
        run()
    longest = torch.tensor(stop() / 1e3 / iterations, device=device, dtype=torch.float64)
    dist.all_reduce(longest, dist.ReduceOp.MAX)
    return longest.item()


def time_in_turns(device: torch.device, ways: dict[str, Callable[[], Any]],
                  args: argparse.Namespace) -> dict[str, list[float]]:
    turns: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(args.rounds):
        for name, run in ways.items():
            turns[name].append(time_turn(device, run, args.iters))
    return turns


def report(args: argparse.Namespace, what: str, turns: dict[str, list[float]]) -> None:
    """Rank 0 prints medians, medians of each round's ratio to `harpe`, and Harpe's plans."""
    rows = {name: {"ms": statistics.median(times),
                   "over_harpe": statistics.median(t / ours for t, ours in
                                                   zip(times, turns["harpe"]))}
            for name, times in turns.items()}
    ranks = dist.get_world_size()
    print(f"{what}, {ranks} ranks; medians of {args.rounds} rounds")
    for name, row in rows.items():
        print(f"  {name:6} {row['ms']:9.3f} ms  {row['over_harpe']:.3f} of harpe's")
    for plan in (plan for status in hp.status() for plan in status.plans):
        print(f"  {plan.schedule}, {plan.copied_bytes // max(1, plan.launches)} bytes copied a "
              f"launch: {plan.question}")
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump({"what": what, "ranks": ranks, "rounds": args.rounds,
                       "device": args.device, "ways": rows}, file)
