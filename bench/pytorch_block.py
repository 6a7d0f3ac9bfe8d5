#!/usr/bin/env python3
"""One Llama block, forward and backward, by `harpe.ops` and by what else PyTorch offers.

    torchrun --nproc-per-node 2 bench/pytorch_block.py [--model 70b] [--tokens 8192] [--json FILE]

Tensor and sequence parallelism: each rank holds a part of the sequence and of every linear weight,
as in `harpe.examples.block`, whose layers are used. The implementations alternate within a round,
so that clocks are the same for all:

    harpe   harpe.ops.ag_linears and linear_rs
    nccl    NCCL's all-gather and reduce-scatter around torch's GEMMs
    async   PyTorch's asynchronous tensor parallelism: torch.ops.symm_mem.fused_*; GPUs only

All results and gradients are compared with those of `nccl` before timing starts. Rank 0 prints the
median of each implementation's turns, on the slowest rank, and the median of the rounds' ratios to
`harpe`. `--device cpu` runs a small block on CPU ranks, as a test of the script.
"""
import argparse
import dataclasses
import pathlib
import sys
from collections.abc import Callable

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from pytorch_common import begin, check, report, time_in_turns  # noqa: E402, first

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

import harpe.ops as hp  # noqa: E402
from harpe.examples.block import DIVIDED, Sizes, compute_block  # noqa: E402

Tensor = torch.Tensor
MODELS = {"70b": Sizes(1, 8192, 8192, 64, 8, 28672), "8b": Sizes(1, 8192, 4096, 32, 8, 14336),
          "tiny": Sizes(1, 64, 64, 8, 4, 96)}


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
    """The same with PyTorch's fused operators over symmetric memory."""

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
    """all_gather(x) wi^T for each weight; saves the gathered x."""

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
    """Rows of `x` and parts of weights differ by rank; norms are the same on all ranks."""
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
    """The implementations that run here, by name."""
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, help="default 8192, of tiny 64")
    args, device = begin(parser, MODELS, iterations=3)
    sizes = MODELS[args.model]
    sizes = dataclasses.replace(sizes, seq=args.tokens or sizes.seq)
    ranks = dist.get_world_size()
    if sizes.seq % ranks or sizes.kv_heads % ranks:
        raise SystemExit(f"{ranks} ranks do not divide {sizes.seq} tokens and {sizes.kv_heads} key "
                         "heads; --tokens sets the former")
    block, ways = draw_block(sizes, device), ways_of(dist.group.WORLD, device)
    check({name: block.results(way) for name, way in ways.items()}, "nccl")
    turns = time_in_turns(device, {name: lambda way=way: way(block) for name, way in ways.items()},
                          args)
    if dist.get_rank() == 0:
        report(args, f"block of {args.model}, {sizes.seq} tokens, forward and backward", turns)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
