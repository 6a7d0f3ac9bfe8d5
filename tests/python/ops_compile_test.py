"""Operators under torch.compile, torch.library's own checks, checkpointing, policies."""
import unittest

from ops_ranks import Pool, find_status  # first: it ends the file if torch is missing

import torch
import torch.distributed as dist
from torch._dynamo.testing import CompileCounterWithBackend
from torch.distributed.device_mesh import init_device_mesh
from torch.utils.checkpoint import (CheckpointPolicy, checkpoint,
                                    create_selective_checkpoint_contexts)

import harpe.ops as hp


def compute(x, w, v, bias, group):
    """All operators in one function of a sequence."""
    y = hp.ag_linear(x, w, group=group)
    a, b = hp.ag_linears(x, [w, w * 2], group=group)
    z = hp.linear_rs(torch.tanh(y + a * b), v, bias, group=group)
    q = z.unflatten(-1, (3, 4))
    o, lse = hp.attention(q, q[:, :, :1], q[:, :, :1], causal=True, group=group, return_lse=True)
    z = hp.linear_ar(o.flatten(2), v, bias, group=group)
    y, total = hp.linear_ar_norm(o.flatten(2), v, z, bias, group=group)
    return (y + total).square().mean() + lse.mean().detach()


def draw(positions):
    """x, w, v and bias with 12 features; equal on all ranks."""
    generator = torch.Generator().manual_seed(positions)
    return [torch.randn(shape, generator=generator).requires_grad_() for shape in
            ((2, positions, 12), (12, 12), (12, 12), (12,))]


def compile_all():
    """One graph, forward and backward, serves groups of every kind and any number of positions."""
    mesh = init_device_mesh("cpu", (dist.get_world_size(),), mesh_dim_names=("tp",))
    for group in mesh["tp"], mesh.get_group(), mesh.get_group().group_name:
        torch._dynamo.reset()
        counter = CompileCounterWithBackend("aot_eager")
        compiled = torch.compile(compute, fullgraph=True, dynamic=True, backend=counter)
        for positions in 8, 10, 16, 22, 30:
            eager, traced = draw(positions), draw(positions)
            result = compute(*eager, group)
            found = compiled(*traced, group)
            result.backward()
            found.backward()
            torch.testing.assert_close(found, result)
            for one, other in zip(eager, traced):
                torch.testing.assert_close(one.grad, other.grad)
        assert counter.frame_count <= 2, counter.frame_count
    torch._dynamo.reset()


def check_registration():
    """torch.library.opcheck of every operator, with and without gradients."""
    ranks, group = dist.get_world_size(), dist.group.WORLD.group_name
    x, w, v, bias = draw(4 * ranks)
    q = torch.randn(1, 4, 4, 8, requires_grad=True)
    k = torch.randn(1, 4, 2, 8, requires_grad=True)
    mask = None, True, 3, 0.5, "contiguous", group
    o, lse = torch.ops.harpe._attention(q.detach(), k.detach(), k.detach(), *mask)
    rows = torch.randn(2, 4 * ranks**2, 12)
    arguments = {
        "ag_linear": (x, w, bias, group), "linear_rs": (x, v, bias, group),
        "linear_ar": (x, v, None, group), "linear_ar_norm": (x, v, x, bias, 1e-6, group),
        "ag_linears": (x, [w, v], group),
        "attention": (q, k, k, *mask), "_ag_matmul": (x, w, None, group),
        "_matmul_rs": (x, w, None, group), "_ag_linear_weight": (rows, x, False, group),
        "_linear_rs_weight": (x, rows, True, group),
        "_ag_linear_gradients": (rows, x, torch.randn(12, x.shape[-1]), group),
        "_linear_rs_gradients": (x, rows, torch.randn(x.shape[-1], 12), group),
        "_attention_backward": (torch.randn_like(o), q, k, k, o, lse, *mask)}
    defined = {name for name in dir(torch.ops.harpe) if not name.startswith("__")}
    assert not {*arguments} - defined
    for name, inputs in arguments.items():
        if not name.startswith("_"):
            torch.library.opcheck(getattr(torch.ops.harpe, name), inputs)
            name = f"_{name}"
        torch.library.opcheck(getattr(torch.ops.harpe, name), _detach(inputs))


def _detach(inputs):
    if isinstance(inputs, torch.Tensor):
        return inputs.detach()
    return type(inputs)(map(_detach, inputs)) if isinstance(inputs, (tuple, list)) else inputs


def recompute():
    """Checkpointing gives the same gradients, and a policy sees the operators by name."""
    group = dist.group.WORLD
    seen = []

    def choose(context, operator, *args, **kwargs):
        if operator.namespace == "harpe":
            seen.append(operator.name())
            return CheckpointPolicy.MUST_SAVE
        return CheckpointPolicy.PREFER_RECOMPUTE

    def count_launches():
        return sum(plan.launches for plan in find_status(group).plans)

    compute(*draw(8), group)
    results, launches = [], []
    for options in None, {}, dict(context_fn=lambda: create_selective_checkpoint_contexts(choose)):
        inputs, before = draw(8), count_launches()
        value = (compute(*inputs, group) if options is None else
                 checkpoint(compute, *inputs, group, use_reentrant=False, **options))
        value.backward()
        results.append([value.detach(), *(tensor.grad for tensor in inputs)])
        launches.append(count_launches() - before)
    for other in results[1:]:
        assert all(map(torch.equal, results[0], other))
    assert launches[1] == launches[0] + 6, launches  # every operator of the forward pass again
    return sorted({*seen}), launches[2] - launches[0]


class Compile(unittest.TestCase):
    RANKS = 2

    @classmethod
    def setUpClass(cls):
        cls.pool = Pool(cls.RANKS)
        cls.addClassCleanup(cls.pool.close)

    def test_one_graph_for_any_length(self):
        self.pool.call(compile_all)

    def test_registration(self):
        self.pool.call(check_registration)

    def test_checkpointing(self):
        for seen, more in self.pool.call(recompute):
            self.assertEqual(seen, ["harpe::_ag_linear", "harpe::_attention", "harpe::_linear_ar",
                                    "harpe::_linear_ar_norm", "harpe::_linear_rs",
                                    "harpe::ag_linears"])
            self.assertEqual(more, 0)  # saved results are not recomputed


if __name__ == "__main__":
    unittest.main()
