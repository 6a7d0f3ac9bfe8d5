#!/usr/bin/env python3
"""One Llama block, forward and backward, by `harpe.ops` and by what else PyTorch offers.

    torchrun --nproc-per-node 2 bench/pytorch_block.py [--model 70b] [--tokens 8192] [--json FILE]

Tensor and sequence parallel: each rank holds a part of the sequence and of every linear weight, as
in `harpe.examples.block`, whose layers are used. The ways take turns within a round, so that clocks
are the same for all:

    harpe   harpe.ops.ag_linears and linear_rs
    nccl    NCCL's all-gather and reduce-scatter around torch's products
    async   PyTorch's asynchronous tensor parallelism: torch.ops.symm_mem.fused_*; GPUs only

Every way's results and gradients are compared with those of `nccl` before anything is timed. Rank 0
prints the median of each way's turns, on the rank where they took longest, and the median of the
rounds' ratios to `harpe`. `--device cpu` runs a small block on CPU ranks, to see that it works.
"""
import argparse
import dataclasses
import json
import os
import statistics
import time
from collections.abc import Callable

# Before anything of CUDA is opened.
os.environ["NCCL_NVLS_ENABLE"] = "0"
os.environ["TORCH_SYMM_MEM_DISABLE_MULTICAST"] = "1"

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

import harpe.ops as hp  # noqa: E402
from harpe.examples._ranks import add_device, join_ranks  # noqa: E402
from harpe.examples.block import DIVIDED, Sizes, compute_block  # noqa: E402

Tensor = torch.Tensor
MODELS = {"70b": Sizes(1, 8192, 8192, 64, 8, 28672), "8b": Sizes(1, 8192, 4096, 32, 8, 14336),
          "32b": Sizes(1, 8192, 5120, 64, 8, 25600), "tiny": Sizes(1, 64, 64, 8, 4, 96)}
BOUND = 0.03  # of the largest element: bf16 rounds partial sums, and each way its own


class Nccl:
    """all_gather(x) wi, and reduce_scatter of the sum of xi wi, by rows; weights are [k, n]."""

    def __init__(self, group: dist.ProcessGroup):
        self.group, self.ranks = group, dist.get_world_size(group)

    def gather(self, x: Tensor, weights: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        whole = x.new_empty(x.shape[0] * self.ranks, x.shape[1])
        dist.all_gather_into_tensor(whole, x.contiguous(), group=self.group)
        return whole, [whole @ w for w in weights]

    def scatter(self, xs: list[Tensor], weights: list[Tensor]) -> Tensor:
        total = xs[0] @ weights[0]
        for x, w in zip(xs[1:], weights[1:]):
            total.addmm_(x, w)
        part = total.new_empty(total.shape[0] // self.ranks, total.shape[1])
        dist.reduce_scatter_tensor(part, total, group=self.group)
        return part


class Async(Nccl):
    """The same by PyTorch's fused operators over symmetric memory."""

    def __init__(self, group: dist.ProcessGroup):
        super().__init__(group)
        import torch.distributed._symmetric_memory as memory
        if hasattr(memory, "enable_symm_mem_for_group"):
            memory.enable_symm_mem_for_group(group.group_name)

    def gather(self, x: Tensor, weights: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        return torch.ops.symm_mem.fused_all_gather_matmul(x.contiguous(), weights, 0,
                                                          self.group.group_name)

    def scatter(self, xs: list[Tensor], weights: list[Tensor]) -> Tensor:
        x, w = (xs[0], weights[0]) if len(xs) == 1 else (torch.cat(xs, 1), torch.cat(weights))
        return torch.ops.symm_mem.fused_matmul_reduce_scatter(x, w, "sum", 0,
                                                              self.group.group_name)


class Gather(torch.autograd.Function):
    """all_gather(x) wi^T for each weight; what was gathered is saved."""

    @staticmethod
    def forward(ctx, way: Nccl, x: Tensor, *weights: Tensor) -> tuple[Tensor, ...]:
        whole, made = way.gather(x, [w.t() for w in weights])
        ctx.way = way
        ctx.save_for_backward(whole, *weights)
        return tuple(made)

    @staticmethod
    def backward(ctx, *gradients: Tensor):
        whole, *weights = ctx.saved_tensors
        of_x = ctx.way.scatter(list(gradients), weights)
        return None, of_x, *(each.t() @ whole for each in gradients)


class Scatter(torch.autograd.Function):
    """reduce_scatter(x w^T)."""

    @staticmethod
    def forward(ctx, way: Nccl, x: Tensor, w: Tensor) -> Tensor:
        ctx.way = way
        ctx.save_for_backward(x, w)
        return way.scatter([x], [w.t()])

    @staticmethod
    def backward(ctx, gradient: Tensor):
        x, w = ctx.saved_tensors
        whole, (of_x,) = ctx.way.gather(gradient, [w])
        return None, of_x, whole.t() @ x


@dataclasses.dataclass
class Block:
    """This rank's part of a block, its input and the gradient of its output."""
    sizes: Sizes
    x: Tensor
    weights: dict[str, Tensor]
    gradient: Tensor

    def run(self, gather: Callable[..., list[Tensor]], scatter: Callable[..., Tensor]) -> Tensor:
        for tensor in (self.x, *self.weights.values()):
            tensor.grad = None
        y = compute_block(self.x, self.weights, self.sizes.head_dim, gather, scatter)
        y.backward(self.gradient)
        return y

    def results(self, way: Callable[["Block"], Tensor]) -> dict[str, Tensor]:
        y = way(self).detach()
        named = {"x": self.x, **self.weights}
        return {"y": y} | {f"gradient of {name}": t.grad.clone() for name, t in named.items()}


def draw_block(sizes: Sizes, device: torch.device) -> Block:
    """Rows of `x` and parts of weights are the rank's own; norms are the same on all."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    generator = torch.Generator(device=device).manual_seed(1 + rank)

    def draw(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, device=device, dtype=dtype)

    h, kv = sizes.hidden, sizes.kv_heads * sizes.head_dim
    shapes = {"norm": (h,), "wq": (h, h), "wk": (kv, h), "wv": (kv, h), "wo": (h, h), "norm2": (h,),
              "w1": (sizes.inter, h), "w3": (sizes.inter, h), "w2": (h, sizes.inter)}
    weights = {}
    for name, shape in shapes.items():
        part = [size // ranks if dim == DIVIDED[name] else size for dim, size in enumerate(shape)]
        weights[name] = (torch.ones(part, device=device, dtype=dtype) if len(part) == 1
                         else draw(*part) * shape[-1]**-0.5).requires_grad_()
    rows = (sizes.batch, sizes.seq // ranks, h)
    return Block(sizes, draw(*rows).requires_grad_(), weights, draw(*rows))


def ways_of(group: dist.ProcessGroup, device: torch.device) -> dict[str, Callable[[Block], Tensor]]:
    """Those that run here, by name."""
    def by(way: Nccl) -> Callable[[Block], Tensor]:
        return lambda block: block.run(
            lambda x, weights: [y[None] for y in Gather.apply(way, x[0], *weights)],
            lambda x, w: Scatter.apply(way, x[0], w)[None])

    ways = {"harpe": lambda block: block.run(
        lambda x, weights: hp.ag_linears(x, weights, group=group),
        lambda x, w: hp.linear_rs(x, w, group=group))}
    ways["nccl"] = by(Nccl(group))
    if device.type == "cuda":
        ways["async"] = by(Async(group))
    return ways


def check(block: Block, ways: dict[str, Callable[[Block], Tensor]]) -> None:
    """Ends the program where a way differs from `nccl` on any rank."""
    wanted = block.results(ways["nccl"])
    for name, way in ways.items():
        for what, found in block.results(way).items():
            expected = wanted[what].float()
            apart = ((found.float() - expected).abs().max() / expected.abs().max()).detach()
            dist.all_reduce(apart, dist.ReduceOp.MAX)
            if not apart.item() < BOUND:
                raise SystemExit(f"{name}: {what} differs by {apart.item():.1e} of its largest "
                                 f"element; {BOUND} may be rounding")


def time_turn(device: torch.device, run: Callable[[], Tensor], iterations: int) -> float:
    """Milliseconds of an execution, on the rank where it took longest."""
    if device.type == "cuda":
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        dist.barrier()
        begin.record()
        for _ in range(iterations):
            run()
        end.record()
        torch.cuda.synchronize()
        taken = begin.elapsed_time(end)
    else:
        dist.barrier()
        start = time.perf_counter()
        for _ in range(iterations):
            run()
        taken = (time.perf_counter() - start) * 1e3
    longest = torch.tensor(taken / iterations, device=device, dtype=torch.float64)
    dist.all_reduce(longest, dist.ReduceOp.MAX)
    return longest.item()


def report(args: argparse.Namespace, sizes: Sizes, turns: dict[str, list[float]]) -> None:
    rows = {name: {"ms": statistics.median(times),
                   "over_harpe": statistics.median(t / ours for t, ours in
                                                   zip(times, turns["harpe"]))}
            for name, times in turns.items()}
    print(f"block of {args.model}, {sizes.seq} tokens, {dist.get_world_size()} ranks, forward and "
          f"backward; medians of {args.rounds} rounds")
    for name, row in rows.items():
        print(f"  {name:6} {row['ms']:9.3f} ms  {row['over_harpe']:.3f} of harpe's")
    for plan in (plan for status in hp.status() for plan in status.plans):
        print(f"  {plan.schedule}, {plan.copied_bytes // max(1, plan.launches)} bytes copied a "
              f"launch: {plan.question}")
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump({"model": args.model, "tokens": sizes.seq, "ranks": dist.get_world_size(),
                       "rounds": args.rounds, "device": args.device, "ways": rows}, file)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_device(parser)
    parser.add_argument("--model", choices=MODELS, help="default 70b, on CPU ranks tiny")
    parser.add_argument("--tokens", type=int, help="default 8192, of tiny 64")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--iters", type=int, default=3, help="executions of a turn")
    parser.add_argument("--json", metavar="FILE", help="write the medians there too")
    args = parser.parse_args()
    args.model = args.model or ("70b" if args.device == "cuda" else "tiny")
    sizes = MODELS[args.model]
    sizes = dataclasses.replace(sizes, seq=args.tokens or sizes.seq)
    device = join_ranks(args.device)
    ranks = dist.get_world_size()
    if sizes.seq % ranks or sizes.kv_heads % ranks:
        raise SystemExit(f"{ranks} ranks do not divide {sizes.seq} tokens and {sizes.kv_heads} key "
                         "heads; --tokens sets the former")
    block, ways = draw_block(sizes, device), ways_of(dist.group.WORLD, device)
    check(block, ways)
    turns: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(args.rounds):
        for name, way in ways.items():
            turns[name].append(time_turn(device, lambda: way(block), args.iters))
    if dist.get_rank() == 0:
        report(args, sizes, turns)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
