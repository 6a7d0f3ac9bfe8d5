"""Trains a layer of attention on a long sequence that ranks divide, beside one rank that has it all.

    torchrun --nproc-per-node 2 -m harpe.examples.long_context --device cpu
    torchrun --nproc-per-node 2 -m harpe.examples.long_context --device cuda --positions 32768

Every rank holds its part of the sequence, in zigzag order, and all weights. The layer learns to
predict the token some positions earlier. The example prints both losses at each step.
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
Attend = Callable[[Tensor, Tensor, Tensor], Tensor]

TOKENS, HEADS, KV_HEADS, SIZE, BACK = 16, 4, 2, 16, 5
LAYOUT = "zigzag"


def rotate(x: Tensor, at: Tensor) -> Tensor:
    """Rotary embedding of x [b, s, heads, size], at positions [s] of the whole sequence."""
    half = x.shape[3] // 2
    frequency = 100.0 ** (-torch.arange(half, device=x.device) / half)
    angle = (at.to(x.device)[:, None] * frequency)[:, None].to(x.dtype)
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)


class Layer(torch.nn.Module):
    """Logits of tokens [b, s]; `attend(q, k, v)` is causal attention over the whole sequence."""

    def __init__(self, attend: Attend) -> None:
        super().__init__()
        self.attend = attend
        width = HEADS * SIZE
        self.embed = torch.nn.Embedding(TOKENS, width)
        self.qkv = torch.nn.Linear(width, (HEADS + 2 * KV_HEADS) * SIZE, bias=False)
        self.out = torch.nn.Linear(width, TOKENS, bias=False)

    def forward(self, tokens: Tensor, at: Tensor) -> Tensor:
        made = self.qkv(self.embed(tokens)).unflatten(-1, (-1, SIZE))
        q, k, v = made.split([HEADS, KV_HEADS, KV_HEADS], 2)
        return self.out(self.attend(rotate(q, at), rotate(k, at), v).flatten(2))


def attend_alone(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    return functional.scaled_dot_product_attention(q, k, v, is_causal=True,
                                                   enable_gqa=True).transpose(1, 2)


def train(attend: Attend, batches: list[tuple[Tensor, Tensor]], at: Tensor, *, rows: int,
          dtype: torch.dtype, divided: bool) -> list[float]:
    """The losses of each step, over all `rows`; weights are f32, attention is in `dtype`."""
    device = batches[0][0].device
    torch.manual_seed(0)
    layer = Layer(lambda q, k, v: attend(*(x.to(dtype) for x in (q, k, v))).float()).to(device)
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.02)
    losses = []
    for tokens, wanted in batches:
        logits = layer(tokens, at)
        loss = functional.cross_entropy(logits.flatten(0, 1), wanted.flatten(),
                                        reduction="sum") / rows
        optimizer.zero_grad()
        loss.backward()
        loss = loss.detach()
        if divided:  # each rank has only its part
            for tensor in loss, *(parameter.grad for parameter in layer.parameters()):
                dist.all_reduce(tensor)
        optimizer.step()
        losses.append(loss.item())
    return losses


def run(positions: int, steps: int, device: torch.device, dtype: torch.dtype) -> float:
    """Prints the losses; returns their largest difference."""
    group = dist.group.WORLD
    generator = torch.Generator().manual_seed(1)
    sequences = torch.randint(TOKENS, (steps, 1, positions + BACK), generator=generator)
    whole = [(each[:, BACK:].to(device), each[:, :-BACK].to(device)) for each in sequences]

    def cut(x: Tensor) -> Tensor:
        return harpe.cp.shard(x, 1, group=group, layout=LAYOUT)

    own = [(cut(tokens), cut(wanted)) for tokens, wanted in whole]
    at = harpe.cp.positions(positions // group.size(), group=group, layout=LAYOUT)

    def train_together() -> list[float]:
        return train(lambda q, k, v: hp.attention(q, k, v, group=group, causal=True, layout=LAYOUT),
                     own, at, rows=positions, dtype=dtype, divided=True)

    together, again = train_together(), train_together()
    alone = train(attend_alone, whole, torch.arange(positions), rows=positions, dtype=dtype,
                  divided=False)
    if dist.get_rank() == 0:
        for step, (one, other) in enumerate(zip(together, alone)):
            print(f"step {step}: loss {one:.6f} on {group.size()} ranks, {other:.6f} on one")
        print(f"once more: {'the same bits' if again == together else 'OTHER BITS'}")
    if again != together:
        raise SystemExit("the same steps have other losses")
    return max(abs(one - other) for one, other in zip(together, alone))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_device(parser)
    parser.add_argument("--positions", type=int, default=512, help="of the whole sequence")
    parser.add_argument("--steps", type=int, default=8)
    asked = parser.parse_args()
    device = join_ranks(asked.device)
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    harpe.init(dist.group.WORLD, on_miss="error")
    worst = run(asked.positions, asked.steps, device, dtype)
    dist.destroy_process_group()
    if not worst < (1e-4 if dtype == torch.float32 else 0.05):
        raise SystemExit(f"the losses differ by {worst:.1e}")


if __name__ == "__main__":
    main()
