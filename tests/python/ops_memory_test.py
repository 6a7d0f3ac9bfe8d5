"""Tensors in memory that other ranks access: what is copied, their lifetime, and refusals."""
import gc
import unittest

from ops_ranks import Pool, cut, find_status  # first: it ends the file if torch is missing

import torch
import torch.distributed as dist

import harpe
import harpe.ops as hp
from harpe.examples.block import DIVIDED, Sizes, compute_together, draw_weights


def make_group(**options):
    group = dist.new_group(list(range(dist.get_world_size())))
    hp.init(group, on_miss="error", **options)
    return group


def count_copied(group):
    return {plan.question.split()[0]: plan.copied_bytes for plan in find_status(group).plans}


_plan = harpe.plan


def choose(**schedules):
    """Sets the schedules of operators by name, for which harpe.ops would search otherwise."""
    def plan(program, **options):
        if "schedule" not in options and program.name in schedules:
            options["schedule"] = schedules[program.name]
        return _plan(program, **options)

    harpe.plan = plan


def train_block():
    """The Llama block, forward and backward: its tensors are PyTorch's own, and none is copied."""
    group, sizes = make_group(), Sizes()
    choose(ag_gemm="push", gemm_rs="push")
    own = {name: (w if DIVIDED[name] is None else cut(w, DIVIDED[name])).requires_grad_()
           for name, w in draw_weights(sizes).items()}
    x = torch.randn(sizes.batch, sizes.seq // group.size(), sizes.hidden)
    for _ in range(3):
        compute_together(x, own, sizes.head_dim, group).square().mean().backward()
    return count_copied(group)


def call_reduce():
    """Other ranks write linear_ar's result. Without a heap it is copied, with one it is in place;
    once the heap is full it is copied again."""
    choose(gemm_ar="push")
    group, bare = make_group(tensors=16 * 64 * 96 * 4), make_group()
    x, w = torch.ones(64, 32), torch.ones(96, 32)
    kept, counts = [], []
    for _ in range(18):
        wanted = hp.linear_ar(x, w, group=bare)
        kept.append(hp.linear_ar(x, w, group=group))
        assert torch.equal(kept[-1], wanted)
        counts.append(count_copied(group)["linear_ar"])
    full = find_status(group).tensor_bytes
    kept.clear()
    gc.collect()
    return counts, count_copied(bare)["linear_ar"], full, find_status(group).tensor_bytes


def gather():
    """Other ranks read these rows. Bits are equal whether or not a rank keeps them in the heap."""
    choose(ag_gemm="pull")
    group = make_group(tensors=1 << 20)
    rank, w = group.rank(), torch.ones(6, 8)
    x = torch.randn(4, 8, generator=torch.Generator().manual_seed(rank))
    wanted = hp.ag_linear(x, w, group=group)
    rows = [hp.empty((2, 4, 8), dtype=x.dtype, group=group)[1].copy_(x) for _ in range(2)]
    for round in range(8):
        given = x if (round + rank) % 3 == 0 else rows[round % 2]
        assert torch.equal(hp.ag_linear(given, w, group=group), wanted)
    before = count_copied(group)["ag_linear"]
    for round in range(3):
        rows[round % 2].add_(1)
        assert torch.equal(hp.ag_linear(rows[round % 2], w, group=group),
                           hp.ag_linear(rows[round % 2].clone(), w, group=group))
    copied = count_copied(group)["ag_linear"] - before
    leaf = rows[0].requires_grad_()
    hp.ag_linear(leaf, w, group=group).sum().backward()
    assert torch.equal(leaf.grad, torch.full((4, 8), 6.0 * group.size()))
    return before, copied, 3 * x.nbytes


def refuse():
    group = make_group(tensors=1000)
    one = hp.empty((3, 5), dtype=torch.bfloat16, group=group)
    assert one.shape == (3, 5) and one.dtype == torch.bfloat16 and one.is_contiguous()
    assert one.data_ptr() % 256 == 0 and not one._is_view()
    assert hp.empty((0, 3), group=group).shape == (0, 3)
    view, held = one[1], find_status(group).tensor_bytes
    try:
        harpe.empty((129,), dtype=torch.float64, group=group)
    except harpe.Refused as refused:
        text = str(refused)
    one = None
    assert find_status(group).tensor_bytes == held == 256
    del view
    assert find_status(group).tensor_bytes == 0
    try:
        hp.empty((1,), group=make_group())
    except harpe.Refused as refused:
        return text, str(refused)


class Memory(unittest.TestCase):
    RANKS = 2

    @classmethod
    def setUpClass(cls):
        cls.pool = Pool(cls.RANKS)
        cls.addClassCleanup(cls.pool.close)

    def test_a_block_copies_nothing(self):
        for copied in self.pool.call(train_block):
            self.assertEqual(set(copied.values()), {0}, copied)
            self.assertGreaterEqual({*copied}, {"ag_linears", "linear_rs"})

    def test_results_that_others_write(self):
        size = 64 * 96 * 4
        for counts, bare, full, left in self.pool.call(call_reduce):
            self.assertEqual(counts[:16], [0] * 16)
            self.assertEqual(counts[16:], [size, 2 * size])
            self.assertEqual(bare, 18 * size)
            self.assertEqual((full, left), (16 * size, 0))

    def test_inputs_that_others_read(self):
        for before, copied, of_others in self.pool.call(gather):
            self.assertGreater(before, 0)
            self.assertEqual(copied, of_others)

    def test_refusals(self):
        for full, none in self.pool.call(refuse):
            self.assertIn("error[I311]", full)
            self.assertIn("256 of its 768 bytes are taken", full)
            self.assertIn("0 of its 0 bytes are taken", none)


class MemoryOfFour(Memory):
    RANKS = 4


if __name__ == "__main__":
    unittest.main()
