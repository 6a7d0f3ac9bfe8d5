"""Plans made before the first call, and schedules pinned by a file."""
import json
import pathlib
import tempfile
import unittest

from ops_ranks import Pool, find_status  # first: it ends the file if torch is missing

import torch
import torch.distributed as dist

import harpe
import harpe.ops as hp


def list_plans(group):
    return {plan.question: plan.launches for plan in find_status(group).plans}


def compute(group):
    """Forward and backward: 5 plans."""
    generator = torch.Generator().manual_seed(1)
    x, w, v = (torch.randn(shape, generator=generator).requires_grad_() for shape in
               ((4, 6), (8, 6), (6, 8)))
    y = hp.linear_rs(torch.tanh(hp.ag_linear(x, w, group=group)), v, group=group)
    y.square().sum().backward()
    return y.detach(), x.grad


def warm():
    """Warming executes nothing, and later calls make no more plans."""
    group = dist.new_group(list(range(dist.get_world_size())))
    with harpe.warming(group):
        y, gradient = compute(group)
    assert not y.any() and not gradient.any()
    made = list_plans(group)
    assert len(made) == 4 and not any(made.values()), made
    y, gradient = compute(group)
    assert y.any() and gradient.any()
    assert list_plans(group) == dict.fromkeys(made, 1)


def warm_up():
    """From shapes alone, with and without gradients; the calls themselves make no more plans."""
    ranks = dist.get_world_size()
    group = dist.new_group(list(range(ranks)))
    harpe.warmup([("ag_linear", dict(x=(4, 6), w=(8, 6))),
                  ("linear_rs", dict(x=(4 * ranks, 8), w=(6, 8)))],
                 group=group, dtype=torch.float32, gradients=True)
    made = list_plans(group)
    assert len(made) == 4
    compute(group)
    assert list_plans(group) == dict.fromkeys(made, 1)
    harpe.warmup([("ag_linears", dict(x=(4, 8), weights=[(6, 8), (4, 8)])),
                  ("linear_ar", dict(x=(4, 8), w=(6, 8), bias=(6,))),
                  ("linear_ar_norm", dict(x=(3, 8), w=(6, 8), residual=(3, 6), norm_weight=(6,))),
                  ("attention", dict(q=(1, 4, 2, 8), k=(1, 4, 2, 8), v=(1, 4, 2, 8), causal=True,
                                     documents=(1, 4 * ranks))),
                  ("decode", dict(q=(2, 2, 8), k_cache=(2, 4, 2, 8), v_cache=(2, 4, 2, 8),
                                  lengths=(2,))),
                  ("moe", dict(x=(4, 8), topk_ids=(4, 2), topk_weights=(4, 2), w1=(2, 4, 8),
                               w3=(2, 4, 8), w2=(2, 8, 4)))], group=group, device="cpu")
    assert len(list_plans(group)) == len(made) + 6 and not find_status(group).misses
    try:
        harpe.warmup([("linear", {})], group=group)
    except harpe.Refused as refused:
        return refused.code


def lock(folder):
    """A file is written once; afterwards it selects the schedule."""
    ranks = dist.get_world_size()
    path = pathlib.Path(folder) / "plans.lock"
    schedules = []
    for edit in None, lambda text: text.replace("schedule ", "schedule of_file_", 1):
        if edit and dist.get_rank() == 0:
            pinned = json.loads(path.read_text())
            path.write_text(json.dumps({key: edit(text) for key, text in pinned.items()}))
        dist.barrier()
        harpe.lock(path)
        group = dist.new_group(list(range(ranks)))
        hp.ag_linear(torch.ones(4, 6), torch.ones(8, 6), group=group)
        schedules += [plan.schedule for plan in find_status(group).plans]
    harpe.lock(None)
    dist.barrier()
    (key, _), = json.loads(path.read_text()).items()
    assert key == f"ag_linear of [1, {4 * ranks}, 6], [{8 * ranks}, 6] f32 on {ranks} ranks, cpu"
    assert schedules[1] == f"of_file_{schedules[0]}", schedules
    other = path.with_name(f"other {dist.get_rank()}")
    other.write_text("[1]")
    try:
        harpe.lock(other)
    except harpe.Refused as refused:
        return refused.code


class Warming(unittest.TestCase):
    RANKS = 2

    @classmethod
    def setUpClass(cls):
        cls.pool = Pool(cls.RANKS)
        cls.addClassCleanup(cls.pool.close)

    def test_warming(self):
        self.pool.call(warm)

    def test_warmup(self):
        self.assertEqual(self.pool.call(warm_up), ["I311"] * self.RANKS)

    def test_lock(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(self.pool.call(lock, folder), ["I311"] * self.RANKS)


if __name__ == "__main__":
    unittest.main()
