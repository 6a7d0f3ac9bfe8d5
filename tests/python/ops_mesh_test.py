"""Eight ranks as a mesh (2, 4): attention over one dimension, linear layers over the other."""
import unittest

from ops_ranks import Pool, cut, find_status  # first: it ends the file if torch is missing

import torch
import torch.distributed as dist
import torch.nn.functional as functional
from torch.distributed.device_mesh import init_device_mesh

import harpe
import harpe.ops as hp

BATCH, POSITIONS, WIDTH, HEADS, SIZE = 2, 32, 12, 4, 6


def draw():
    """x, wq, wk, wv and wo; equal on all ranks."""
    generator = torch.Generator().manual_seed(3)
    shapes = (BATCH, POSITIONS, WIDTH), *((HEADS * SIZE, WIDTH),) * 3, (WIDTH, HEADS * SIZE)
    return [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]


def compute_alone(x, wq, wk, wv, wo):
    q, k, v = (functional.linear(x, w).unflatten(-1, (-1, SIZE)).transpose(1, 2)
               for w in (wq, wk, wv))
    o = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    return functional.linear(o.transpose(1, 2).flatten(2), wo)


def compute_together(x, wq, wk, wv, wo, tp, cp):
    q, k, v = (each.unflatten(-1, (-1, SIZE)) for each in hp.ag_linears(x, [wq, wk, wv], group=tp))
    o = hp.attention(q, k, v, group=cp, causal=True, layout="zigzag")
    return hp.linear_rs(o.flatten(2), wo, group=tp)


def compare():
    """Compares results and gradients; returns the operators that each group has executed."""
    mesh = init_device_mesh("cpu", (2, 4), mesh_dim_names=("cp", "tp"))
    groups = {name: mesh.get_group(name) for name in ("cp", "tp")}
    for group in groups.values():
        hp.init(group, on_miss="error")
    whole = [each.requires_grad_() for each in draw()]
    wanted = compute_alone(*whole)
    (wanted * torch.arange(POSITIONS)[:, None]).sum().backward()

    def cut_sequence(each):
        return cut(harpe.cp.shard(each, 1, group=mesh["cp"], layout="zigzag"), 1, groups["tp"])

    own = [cut_sequence(whole[0].detach()).requires_grad_(),
           *(cut(w.detach(), 0, groups["tp"]).requires_grad_() for w in whole[1:4]),
           cut(whole[4].detach(), 1, groups["tp"]).requires_grad_()]
    found = compute_together(*own, mesh["tp"], mesh["cp"])
    torch.testing.assert_close(found, cut_sequence(wanted.detach()))
    at = cut_sequence(torch.arange(POSITIONS).expand(BATCH, POSITIONS))
    (found * at[..., None]).sum().backward()
    torch.testing.assert_close(own[0].grad, cut_sequence(whole[0].grad))
    for part, each, dim in zip(own[1:], whole[1:], (0, 0, 0, 1)):
        dist.all_reduce(part.grad, group=groups["cp"])  # summed: a rank has a part of the sequence
        torch.testing.assert_close(part.grad, cut(each.grad, dim, groups["tp"]))
    return {name: {plan.question.split()[0] for plan in find_status(group).plans if plan.launches}
            for name, group in groups.items()}


class Mesh(unittest.TestCase):
    def test_two_by_four(self):
        pool = Pool(8)
        self.addCleanup(pool.close)
        for executed in pool.call(compare):
            self.assertEqual(executed["cp"], {"attention", "attention_backward"})
            self.assertGreaterEqual(executed["tp"], {"ag_linears", "linear_rs"})


if __name__ == "__main__":
    unittest.main()
