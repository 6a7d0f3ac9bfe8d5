"""One block of a Llama model, forward and backward, on several ranks beside one.

    torchrun --nproc-per-node 2 -m harpe.examples.block --device cpu

Each rank holds a part of the sequence and of every linear weight: tensor and sequence parallelism
by `harpe.ops`. The same block in plain PyTorch, with whole weights and the whole sequence, gives
the same loss and gradients.
"""

import argparse
import dataclasses
from collections.abc import Callable

import torch
import torch.distributed as dist
import torch.nn.functional as functional

import harpe.ops as hp
from harpe.examples._ranks import add_device, join_ranks

Tensor = torch.Tensor
Weights = dict[str, Tensor]

# The dimension of each weight that is divided over ranks; None: every rank has the whole weight.
DIVIDED = {"norm": None, "wq": 0, "wk": 0, "wv": 0, "wo": 1,
           "norm2": None, "w1": 0, "w3": 0, "w2": 1}


@dataclasses.dataclass(frozen=True)
class Sizes:
    batch: int = 2
    seq: int = 64
    hidden: int = 64
    heads: int = 8
    kv_heads: int = 4
    inter: int = 96

    @property
    def head_dim(self) -> int:
        return self.hidden // self.heads


def draw_weights(sizes: Sizes) -> Weights:
    """Draws weights, the same on all ranks."""
    h, kv = sizes.hidden, sizes.kv_heads * sizes.head_dim
    shapes = {"norm": (h,), "wq": (h, h), "wk": (kv, h), "wv": (kv, h), "wo": (h, h),
              "norm2": (h,), "w1": (sizes.inter, h), "w3": (sizes.inter, h), "w2": (h, sizes.inter)}
    generator = torch.Generator().manual_seed(0)
    return {name: torch.randn(shape, generator=generator) * shape[-1]**-0.5 for name, shape in
            shapes.items()}


def rotate(x: Tensor) -> Tensor:
    """Rotary embedding of x [b, s, heads, size], computed in f32."""
    half = x.shape[3] // 2
    frequency = 10_000.0 ** (-torch.arange(half, device=x.device) / half)
    angle = (torch.arange(x.shape[1], device=x.device)[:, None] * frequency)[:, None]
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * angle.cos() - b * angle.sin(),
                      a * angle.sin() + b * angle.cos()], -1).to(x.dtype)


def attend(q: Tensor, k: Tensor, v: Tensor, head_dim: int) -> Tensor:
    """Causal attention over the given heads: [b, s, heads * head_dim] in and out."""
    q, k, v = (x.unflatten(-1, (-1, head_dim)) for x in (q, k, v))
    q, k, v = (x.transpose(1, 2) for x in (rotate(q), rotate(k), v))
    return functional.scaled_dot_product_attention(q, k, v, is_causal=True,
                                                   enable_gqa=True).transpose(1, 2).flatten(2)


def compute_block(x: Tensor, w: Weights, head_dim: int, gather: Callable[..., list[Tensor]],
                  scatter: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """`gather(x, weights)` and `scatter(x, weight)` are the linear layers."""
    normal = functional.rms_norm(x, x.shape[-1:], w["norm"])
    q, k, v = gather(normal, [w["wq"], w["wk"], w["wv"]])
    x = x + scatter(attend(q, k, v, head_dim), w["wo"])
    normal = functional.rms_norm(x, x.shape[-1:], w["norm2"])
    gate, up = gather(normal, [w["w1"], w["w3"]])
    return x + scatter(functional.silu(gate) * up, w["w2"])


def compute_alone(x: Tensor, w: Weights, head_dim: int) -> Tensor:
    return compute_block(x, w, head_dim,
                         lambda x, weights: [functional.linear(x, each) for each in weights],
                         functional.linear)


def compute_together(x: Tensor, w: Weights, head_dim: int, group: dist.ProcessGroup) -> Tensor:
    return compute_block(x, w, head_dim,
                         lambda x, weights: hp.ag_linears(x, weights, group=group),
                         lambda x, weight: hp.linear_rs(x, weight, group=group))


def run(sizes: Sizes, device: torch.device) -> float:
    """Prints both losses, and the largest difference of gradients; returns the latter."""
    group, rank, ranks = dist.group.WORLD, dist.get_rank(), dist.get_world_size()

    def cut(whole: Tensor, dim: int | None) -> Tensor:
        part = whole if dim is None else whole.chunk(ranks, dim)[rank]
        return part.detach().clone().requires_grad_()

    generator = torch.Generator().manual_seed(1)
    x, target = (torch.randn(sizes.batch, sizes.seq, sizes.hidden, generator=generator).to(device)
                 for _ in range(2))
    weights = {name: w.to(device).requires_grad_() for name, w in draw_weights(sizes).items()}
    x.requires_grad_()
    alone = functional.mse_loss(compute_alone(x, weights, sizes.head_dim), target)
    alone.backward()

    own_x = cut(x, 1)
    own = {name: cut(w, DIVIDED[name]) for name, w in weights.items()}
    y = compute_together(own_x, own, sizes.head_dim, group)
    loss = functional.mse_loss(y, cut(target, 1)) / ranks  # this rank's part of the mean
    loss.backward()
    loss = loss.detach()
    dist.all_reduce(loss)
    for name in "norm", "norm2":  # each rank has only its part of the sequence
        dist.all_reduce(own[name].grad)

    worst = torch.zeros((), device=device)
    pairs = {"x": (own_x, x, 1)} | {name: (own[name], w, DIVIDED[name])
                                    for name, w in weights.items()}
    if rank == 0:
        print(f"loss {loss.item():.6f} on {ranks} ranks, {alone.item():.6f} on one")
    for name, (part, whole, dim) in pairs.items():
        expected = cut(whole.grad, dim)
        error = ((part.grad - expected).abs().max() / whole.grad.abs().max()).detach()
        dist.all_reduce(error, dist.ReduceOp.MAX)
        worst = torch.maximum(worst, error)
        if rank == 0:
            print(f"gradient of {name:5} differs by {error.item():.1e} of its largest element")
    worst = torch.maximum(worst, (loss - alone.detach()).abs() / alone.detach())
    return worst.item()


def print_plans() -> None:
    for status in hp.status():
        for plan in status.plans:
            print(f"{plan.launches} launch{'es' * (plan.launches != 1)} of {plan.schedule}: "
                  f"{plan.question}")
        for miss in status.misses:
            print(f"by PyTorch: {miss.question}: {miss.reason}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_device(parser)
    device = join_ranks(parser.parse_args().device)
    worst = run(Sizes(), device)
    if dist.get_rank() == 0:
        print_plans()
    dist.destroy_process_group()
    if not worst < 1e-4:  # f32: some hundred roundings of 6e-8 each
        raise SystemExit("the results differ")


if __name__ == "__main__":
    main()
