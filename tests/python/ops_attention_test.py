"""Attention on 2 and 4 ranks: layouts, masks, scales, shared key heads, gradients, fallback."""
import itertools
import logging
import unittest

from ops_ranks import Pool, find_status  # first: it ends the file if torch is missing

import torch
import torch.distributed as dist

import harpe
import harpe.ops as hp

MASKS = dict(), dict(causal=True), dict(causal=True, window=5), dict(causal=True, documents=True)
LAYOUTS = "contiguous", "zigzag"
TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 3e-2}


def draw(positions, dtype, key_heads=2):
    """q with four heads of 8, v with heads of 6; equal on all ranks."""
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(2, positions, heads, size, generator=generator, dtype=torch.float64)
            .to(dtype) for heads, size in ((4, 8), (key_heads, 8), (key_heads, 6), (4, 6))]


def draw_documents(positions):
    """Two sequences of packed documents, some shorter and some longer than a rank's block."""
    ends = torch.tensor([[2, 3, positions - 4], [1, positions // 2 + 1, positions]])
    return (torch.arange(positions)[None, :, None] >= ends[:, None]).sum(-1)


def attend(q, k, v, causal=False, window=None, scale=None, documents=None):
    """Attention without ranks, in f64."""
    q, k, v = (x.double() for x in (q, k, v))
    shared = q.shape[2] // k.shape[2]
    scores = torch.einsum("bqhd,bkhd->bhqk", q, k.repeat_interleave(shared, 2))
    scores = scores * (q.shape[3]**-0.5 if scale is None else scale)
    after = torch.arange(k.shape[1]) - torch.arange(q.shape[1])[:, None] - k.shape[1] + q.shape[1]
    hidden = (after > 0) & bool(causal)
    if window:
        hidden = hidden | (after <= -window)
    if documents is not None:
        hidden = hidden | (documents[:, :, None] != documents[:, None])[:, None]
    scores = scores.masked_fill(hidden, float("-inf"))
    weights = scores.softmax(-1).nan_to_num(0.0)
    return (torch.einsum("bhqk,bkhd->bqhd", weights, v.repeat_interleave(shared, 2)),
            scores.logsumexp(-1))


def check_attention(dtype, layout, mask, scale, key_heads=2, group=None):
    """Compares o, lse and gradients with one rank's own computation."""
    group = group or dist.group.WORLD
    q, k, v, do = draw(6 * group.size(), dtype, key_heads)

    def cut(x, dim=1):
        return harpe.cp.shard(x, dim, group=group, layout=layout)

    if mask.get("documents"):
        mask = {**mask, "documents": draw_documents(q.shape[1])}
    own = [cut(x).requires_grad_() for x in (q, k, v)]
    whole = [x.clone().requires_grad_() for x in (q, k, v)]
    o, lse = hp.attention(*own, group=group, layout=layout, scale=scale, return_lse=True, **mask)
    assert not lse.requires_grad and o.dtype == dtype
    o_, lse_ = attend(*whole, scale=scale, **mask)
    o.backward(cut(do))
    o_.backward(do.double())
    for found, exact, dim in ((o, o_, 1), (lse, lse_, 2),
                              *((x.grad, y.grad, 1) for x, y in zip(own, whole))):
        torch.testing.assert_close(found.double(), cut(exact, dim).double(), atol=TOLERANCE[dtype],
                                   rtol=TOLERANCE[dtype])


def check_all():
    for layout, mask, scale in itertools.product(LAYOUTS, MASKS, (None, 0.3)):
        check_attention(torch.float64, layout, mask, scale)
        check_attention(torch.float32, layout, mask, scale)
    for key_heads in 1, 4:
        check_attention(torch.bfloat16, "zigzag", MASKS[1], None, key_heads)
    status = find_status(dist.group.WORLD)
    assert not status.misses and all(plan.launches for plan in status.plans)
    return sorted({plan.schedule for plan in status.plans})


def fall_back():
    """Without a plan, for example on several hosts, PyTorch's own path gives the same results."""
    logging.getLogger("harpe").setLevel(logging.ERROR)  # other tests check the log
    made, harpe.plan = harpe.plan, _refuse
    try:
        group = dist.new_group(list(range(dist.get_world_size())))
        for layout, mask in itertools.product(LAYOUTS, MASKS):
            check_attention(torch.float64, layout, mask, None, group=group)
    finally:
        harpe.plan = made
    status = find_status(group)
    assert not status.plans and all(miss.calls == 1 for miss in status.misses)
    return len(status.misses)


def _refuse(*args, **kwargs):
    raise harpe.Refused("not here", message="not here")


def check_positions():
    """shard, positions and unshard agree."""
    world = dist.group.WORLD
    whole = torch.arange(8 * world.size())
    for layout in LAYOUTS:
        own = harpe.cp.shard(whole, 0, group=world, layout=layout)
        assert torch.equal(own, harpe.cp.positions(8, group=world, layout=layout))
        assert torch.equal(harpe.cp.unshard(own, 0, group=world, layout=layout), whole)
    return own.tolist()


def refuse_arguments():
    q, k, v, _ = draw(6, torch.float32)
    world = dist.group.WORLD
    positions = 6 * dist.get_world_size()
    for change in (dict(layout="striped"), dict(window=3), dict(causal=True, window=-1),
                   dict(k=k[:, :, :, :4]), dict(v=v[:, :4]), dict(q=q[:, :, :3]), dict(q=q[0]),
                   dict(k=k.double()), dict(q=q[:, :5], layout="zigzag"),
                   dict(documents=torch.zeros(2, 5).int()),
                   dict(documents=torch.zeros(2, positions)),
                   dict(k=k[:, :4], v=v[:, :4], documents=torch.zeros(2, positions).int())):
        asked = {**dict(q=q, k=k, v=v, group=world), **change}
        try:
            hp.attention(asked.pop("q"), asked.pop("k"), asked.pop("v"), **asked)
        except harpe.Refused as refused:
            assert refused.code == "I311", refused
        else:
            raise AssertionError(f"{change} is not refused")


class Attention(unittest.TestCase):
    RANKS = 2

    @classmethod
    def setUpClass(cls):
        cls.pool = Pool(cls.RANKS)
        cls.addClassCleanup(cls.pool.close)

    def test_values_and_gradients(self):
        for schedules in self.pool.call(check_all):
            self.assertTrue(schedules)

    def test_fallback(self):
        self.assertEqual(self.pool.call(fall_back), [16] * self.RANKS)

    def test_positions(self):
        held = self.pool.call(check_positions)
        self.assertEqual(held[0][:4] + held[0][4:], [*range(4), *range(8 * self.RANKS - 4,
                                                                      8 * self.RANKS)])

    def test_refusals(self):
        self.pool.call(refuse_arguments)


class AttentionOnFour(Attention):
    RANKS = 4


if __name__ == "__main__":
    unittest.main()
