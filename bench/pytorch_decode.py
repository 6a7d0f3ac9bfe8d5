#!/usr/bin/env python3
"""One layer of a decoder, a token of each sequence, by `harpe.ops` and by NCCL with PyTorch.

    torchrun --nproc-per-node 2 bench/pytorch_decode.py [--model 70b] [--batch 8]
             [--positions 8192] [--json FILE]

Tensor parallelism: each rank has some heads with their keys and values, and its part of every
linear weight. Both implementations use PyTorch's activation and the same cache, which is not
written. The script times one CUDA graph of each, alternating:

    harpe   harpe.ops.ag_linear in a group of this rank alone for the projections to queries, gate
            and up; harpe.ops.decode over the rank's heads; harpe.ops.linear_ar_norm after it and
            after the second half: GEMM, all-reduce, residual connection and norm
    nccl    torch's GEMMs, scaled_dot_product_attention, which splits the keys of one query,
            NCCL's all-reduce, an addition and rms_norm

The results of both are compared before timing starts. `--device cpu` runs a small layer on CPU
ranks, without graphs, as a test of the script.
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
from torch.nn import functional  # noqa: E402

import harpe.ops as hp  # noqa: E402

Tensor = torch.Tensor


@dataclasses.dataclass(frozen=True)
class Sizes:
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    inter: int
    positions: int


MODELS = {"70b": Sizes(8192, 64, 8, 128, 28672, 8192), "8b": Sizes(4096, 32, 8, 128, 14336, 8192),
          "32b": Sizes(5120, 64, 8, 128, 25600, 8192), "tiny": Sizes(64, 8, 4, 16, 96, 64)}


class Layer:
    """This rank's part. The residual, x and the norms are the same on all ranks."""

    def __init__(self, sizes: Sizes, batch: int, device: torch.device) -> None:
        rank, ranks = dist.get_rank(), dist.get_world_size()
        dtype = torch.bfloat16 if device.type == "cuda" else torch.float32

        def draw(seed: int, *shape: int, scale: float = 1) -> Tensor:
            generator = torch.Generator(device=device).manual_seed(seed)
            return torch.randn(shape, generator=generator, device=device, dtype=dtype) * scale

        def weight(seed: int, rows: int, columns: int) -> Tensor:
            return draw(seed * ranks + rank, rows, columns, scale=columns**-0.5)

        heads, kv_heads = sizes.heads // ranks, sizes.kv_heads // ranks
        inter, self.head_dim = sizes.inter // ranks, sizes.head_dim
        cache = (batch, sizes.positions, kv_heads, sizes.head_dim)
        self.x, self.residual = draw(1, batch, sizes.hidden), draw(2, batch, sizes.hidden)
        self.norms = [1 + 0.1 * draw(seed, sizes.hidden) for seed in (3, 4)]
        self.keys, self.values = (draw(seed * ranks + rank, *cache) for seed in (5, 6))
        self.queries = weight(7, heads * sizes.head_dim, sizes.hidden)
        self.out = weight(8, sizes.hidden, heads * sizes.head_dim)
        self.gate_up = weight(9, 2 * inter, sizes.hidden)
        self.down = weight(10, sizes.hidden, inter)

    def run(self, project: Callable[[Tensor, Tensor], Tensor], attend: Callable[..., Tensor],
            reduce: Callable[..., tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
        """`project(x, w)`; `attend(q, keys, values)`, q [batch, heads, size]; `reduce(x, w,
        residual, norm)`."""
        q = project(self.x, self.queries).unflatten(-1, (-1, self.head_dim))
        o = attend(q, self.keys, self.values).flatten(1)
        x, residual = reduce(o, self.out, self.residual, self.norms[0])
        gate, up = project(x, self.gate_up).chunk(2, -1)
        return reduce(functional.silu(gate) * up, self.down, residual, self.norms[1])


def attend_with_torch(q: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    return functional.scaled_dot_product_attention(
        q[:, :, None], keys.transpose(1, 2), values.transpose(1, 2), enable_gqa=True)[:, :, 0]


def reduce_with_nccl(x: Tensor, w: Tensor, residual: Tensor,
                     norm: Tensor) -> tuple[Tensor, Tensor]:
    total = functional.linear(x, w)
    dist.all_reduce(total)
    residual = total + residual
    return functional.rms_norm(residual, norm.shape, norm, 1e-6), residual


def ways_of(layer: Layer) -> dict[str, Callable[[], tuple[Tensor, Tensor]]]:
    alone = [dist.new_group([rank]) for rank in range(dist.get_world_size())][dist.get_rank()]

    def project(x: Tensor, w: Tensor) -> Tensor:
        return hp.ag_linear(x[None], w, group=alone)[0]

    def attend(q: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        return hp.decode(q, keys, values, group=alone)

    def reduce(x: Tensor, w: Tensor, residual: Tensor, norm: Tensor) -> tuple[Tensor, Tensor]:
        y, residual = hp.linear_ar_norm(x[None], w, residual[None], norm, group=dist.group.WORLD)
        return y[0], residual[0]

    return {"harpe": lambda: layer.run(project, attend, reduce),
            "nccl": lambda: layer.run(functional.linear, attend_with_torch, reduce_with_nccl)}


def captured(run: Callable[[], object]) -> Callable[[], None]:
    """A CUDA graph of `run`. Requires: it ran before, because plans are made at first calls."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph.replay


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=8, help="sequences")
    parser.add_argument("--positions", type=int, help="of each; default 8192, of tiny 64")
    args, device = begin(parser, MODELS, iterations=20)
    sizes = MODELS[args.model]
    sizes = dataclasses.replace(sizes, positions=args.positions or sizes.positions)
    ranks = dist.get_world_size()
    if sizes.kv_heads % ranks:
        raise SystemExit(f"{ranks} ranks do not divide {sizes.kv_heads} key heads")
    ways = ways_of(Layer(sizes, args.batch, device))
    with torch.no_grad():
        check({name: dict(zip(("y", "residual"), run())) for name, run in ways.items()}, "nccl")
        if device.type == "cuda":
            ways = {name: captured(run) for name, run in ways.items()}
        turns = time_in_turns(device, ways, args)
    if dist.get_rank() == 0:
        report(args, f"decoder layer of {args.model}, {args.batch} sequences of {sizes.positions} "
               "positions", turns)
    ways.clear()  # a communicator must outlive the graphs with its kernels
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
