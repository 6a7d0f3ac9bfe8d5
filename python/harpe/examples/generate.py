"""Generates tokens with a cache of keys that ranks divide, each step one CUDA graph on GPUs.

    torchrun --nproc-per-node 2 -m harpe.examples.generate --device cpu

Rank r of P holds positions r t/P, … of the cache. Every step writes the new key and value on the
rank that holds their position, and attends with `harpe.ops.decode`; only the GPU knows the length
of each sequence. A single rank that recomputes all positions at each step generates the same
tokens.
"""

import argparse
from collections.abc import Callable

import torch
import torch.distributed as dist
import torch.nn.functional as functional

import harpe
import harpe.ops as hp
from harpe.examples._ranks import add_device, join_ranks

Tensor = torch.Tensor

TOKENS, HEADS, KV_HEADS, SIZE = 64, 4, 2, 64
WIDTH = HEADS * SIZE


def draw_weights(device: torch.device, dtype: torch.dtype) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(0)
    shapes = {"embed": (TOKENS, WIDTH), "qkv": ((HEADS + 2 * KV_HEADS) * SIZE, WIDTH),
              "out": (TOKENS, WIDTH)}
    return {name: (torch.randn(shape, generator=generator) * 4 * WIDTH**-0.5).to(device, dtype)
            for name, shape in shapes.items()}


def project(tokens: Tensor, weights: dict[str, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """q, k and v [..., heads, size]."""
    made = functional.linear(weights["embed"][tokens], weights["qkv"]).unflatten(-1, (-1, SIZE))
    return made.split([HEADS, KV_HEADS, KV_HEADS], -2)


def choose(o: Tensor, weights: dict[str, Tensor]) -> Tensor:
    return functional.linear(o.flatten(-2).to(weights["out"].dtype), weights["out"]).argmax(-1)


class Step:
    """One more token of every sequence. All state is on the device, so that a graph can hold it."""

    def __init__(self, first: Tensor, positions: int, weights: dict[str, Tensor],
                 group: dist.ProcessGroup) -> None:
        self.tokens, self.weights, self.group = first.clone(), weights, group
        self.lengths = torch.zeros_like(first, dtype=torch.int32)
        held, (batch,) = positions // group.size(), first.shape
        self.first_held = group.rank() * held
        self.keys, self.values = (weights["qkv"].new_zeros(batch, held, KV_HEADS, SIZE)
                                  for _ in range(2))

    def __call__(self) -> None:
        q, k, v = project(self.tokens, self.weights)
        at = self.lengths.long() - self.first_held
        mine = (at >= 0) & (at < self.keys.shape[1])
        rows, at = torch.arange(len(at), device=at.device), at.clamp(0, self.keys.shape[1] - 1)
        for cache, new in (self.keys, k), (self.values, v):
            cache[rows, at] = torch.where(mine[:, None, None], new, cache[rows, at])
        self.lengths += 1
        o = hp.decode(q.contiguous(), self.keys, self.values, group=self.group,
                      lengths=self.lengths)
        self.tokens.copy_(choose(o, self.weights))


def make_graph(step: Step) -> Callable[[], None]:
    """Captures the step as one CUDA graph, and undoes what the step changed before the capture."""
    step()
    step()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def generate(first: Tensor, steps: int, positions: int, weights: dict[str, Tensor],
             group: dist.ProcessGroup) -> Tensor:
    """[steps, batch]."""
    step = Step(first, positions, weights, group)
    run = make_graph(step) if first.is_cuda else step
    step.tokens.copy_(first)
    step.lengths.zero_()
    made = []
    for _ in range(steps):
        run()
        made.append(step.tokens.clone())
    return torch.stack(made)


def generate_alone(first: Tensor, steps: int, weights: dict[str, Tensor]) -> Tensor:
    tokens = first[:, None]
    for _ in range(steps):
        q, k, v = (x.transpose(1, 2) for x in project(tokens, weights))
        o = functional.scaled_dot_product_attention(q[:, :, -1:], k, v, enable_gqa=True)
        tokens = torch.cat([tokens, choose(o.transpose(1, 2), weights)], 1)
    return tokens[:, 1:].t()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_device(parser)
    parser.add_argument("--positions", type=int, default=128, help="that the cache has room for")
    parser.add_argument("--steps", type=int, default=32)
    asked = parser.parse_args()
    device = join_ranks(asked.device)
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    group = dist.group.WORLD
    harpe.init(group, on_miss="error")
    weights = draw_weights(device, dtype)
    first = torch.arange(4, device=device)
    together = generate(first, asked.steps, asked.positions, weights, group)
    again = generate(first, asked.steps, asked.positions, weights, group)
    alone = generate_alone(first, asked.steps, weights)
    same = (together == alone).all(1).long().cumprod(0).sum().item()
    if dist.get_rank() == 0:
        for sequence in together.t().tolist():
            print(*sequence)
        print(f"one rank generates the same first {same} of {asked.steps} tokens; once more: "
              f"{'the same' if torch.equal(together, again) else 'OTHERS'}")
    dist.destroy_process_group()
    # In 16 bits, two tokens may be equally likely, and the order of sums then decides between them.
    if not torch.equal(together, again) or (dtype == torch.float32 and same < asked.steps):
        raise SystemExit("the tokens differ")


if __name__ == "__main__":
    main()
