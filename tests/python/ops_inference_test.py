"""Decoding and experts on 2 and 4 ranks: values, data-dependent inputs, fallback, refusals."""
import logging
import unittest

from ops_ranks import Pool, cut, find_status  # first: it ends the file if torch is missing

import torch
import torch.distributed as dist

import harpe
import harpe.ops as hp

TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 3e-2}


def check_decode(dtype, lengths, scale, key_heads, group=None):
    """Compares decode with one rank's own computation in f64."""
    group = group or dist.group.WORLD
    generator = torch.Generator().manual_seed(1)
    positions = 6 * group.size()
    q, k, v = (torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype) for shape in
               ((3, 4, 8), (3, positions, key_heads, 8), (3, positions, key_heads, 6)))
    o, lse = hp.decode(q, cut(k, 1, group), cut(v, 1, group), lengths=lengths, scale=scale,
                       group=group, return_lse=True)
    compare_decode(o, lse, q, k, v, lengths, 8**-0.5 if scale is None else scale)


def compare_decode(o, lse, q, k, v, lengths, scale):
    """Compares with attention of q over k and v [batch, positions, heads, size], in f64."""
    shared = q.shape[1] // k.shape[2]
    scores = torch.einsum("bhd,bkhd->bhk", q.double(), k.double().repeat_interleave(shared, 2))
    scores = scores * scale
    if lengths is not None:
        hidden = torch.arange(k.shape[1]) >= lengths[:, None]
        scores = scores.masked_fill(hidden[:, None], float("-inf"))
    exact = torch.einsum("bhk,bkhd->bhd", scores.softmax(-1).nan_to_num(0.0),
                         v.double().repeat_interleave(shared, 2))
    for found, right in (o, exact), (lse, scores.logsumexp(-1)):
        torch.testing.assert_close(found.double(), right, atol=TOLERANCE[q.dtype],
                                   rtol=TOLERANCE[q.dtype])


def draw_pool(dtype, page, blocks, shares_prefix):
    """q, a pool of `blocks` blocks, and a table of random blocks for three sequences; two of them
    may share their first block. Unused blocks hold NaN."""
    generator = torch.Generator().manual_seed(page)
    q = torch.randn(3, 4, 8, generator=generator, dtype=torch.float64)
    k, v = (torch.randn(blocks, page, 2, size, generator=generator, dtype=torch.float64)
            for size in (8, 6))
    table = torch.randperm(blocks, generator=generator)[:(blocks - 1) // 3 * 3].view(3, -1)
    if shares_prefix:
        table[1, 0] = table[0, 0]
    unused = torch.ones(blocks, dtype=torch.bool)
    unused[table.flatten()] = False
    k[unused] = v[unused] = float("nan")
    return *(x.to(dtype) for x in (q, k, v)), table.int()


def check_pool(dtype, page, blocks, lengths, shares_prefix, group=None):
    group = group or dist.group.WORLD
    q, k, v, table = draw_pool(dtype, page, blocks, shares_prefix)
    kept = k[table.long()].flatten(1, 2), v[table.long()].flatten(1, 2)
    if lengths is not None:
        lengths = torch.tensor(lengths(page * table.shape[1]))
        beyond = torch.arange(table.shape[1]) * page >= lengths[:, None]
        table = table.masked_fill(beyond, 0)  # a common padding: an existing block
        kept = (x.nan_to_num(0.0) for x in kept)
    o, lse = hp.decode(q, cut(k, 0, group), cut(v, 0, group), lengths=lengths, block_table=table,
                       group=group, return_lse=True)
    compare_decode(o, lse, q, *kept, lengths, 8**-0.5)


def pool_all(group=None):
    """Lengths of 0, 1, part of a page and whole pages; tables narrower than the pool."""
    for page, blocks in (16, 8), (1, 12), (64, 4), (256, 4), (5, 16):
        check_pool(torch.float64, page, blocks, None, False, group)
        check_pool(torch.float32, page, blocks, lambda most: [0, most, most - 1], True, group)
    check_pool(torch.bfloat16, 16, 8, lambda most: [1, 16, 17], True, group)


def refuse_tables():
    """Blocks that do not exist or that a sequence uses twice; caches with gaps; wrong shapes."""
    group = dist.group.WORLD
    q, cache = torch.ones(2, 4, 8), torch.ones(3, 4, 2, 8)
    blocks, texts = 3 * group.size(), []
    for change in (
            dict(block_table=torch.tensor([[0, 1], [blocks, 0]])),
            dict(block_table=torch.tensor([[1, 1], [0, 2]])),
            dict(lengths=torch.tensor([8, 9])),
            dict(block_table=torch.tensor([0, 1])), dict(block_table=torch.ones(2, 2)),
            dict(block_table=torch.zeros(1, 2).int()), dict(q=torch.ones(2, 4, 4)),
            dict(k=torch.ones(3, 2, 4, 2, 8)[:, 0])):
        asked = {**dict(q=q, k=cache, v=cache, lengths=torch.tensor([8, 8]),
                        block_table=torch.tensor([[1, 0], [2, 0]])), **change}
        try:
            hp.decode(asked.pop("q"), asked.pop("k"), asked.pop("v"), **asked, group=group)
        except harpe.Refused as refused:
            texts.append(str(refused).splitlines()[0])
        else:
            raise AssertionError(f"{change} is not refused")
        hp.check(group)
    hp.decode(q, cache, cache, lengths=torch.tensor([4, 1]),  # unread beyond the lengths
              block_table=torch.tensor([[1, 1], [2, blocks]]), group=group)
    return texts


def decode_all(group=None):
    positions = 6 * dist.get_world_size()
    for lengths in None, torch.tensor([0, 5, positions]), torch.tensor([1, 2, 3]).int():
        check_decode(torch.float64, lengths, 0.3, 2, group)
        check_decode(torch.float32, lengths, None, 4, group)
        check_decode(torch.bfloat16, lengths, None, 1, group)
    pool_all(group)


def draw_experts(dtype, ranks):
    generator = torch.Generator().manual_seed(2)
    x, router, w1, w3, w2 = (torch.randn(shape, generator=generator, dtype=torch.float64) for shape
                             in ((6 * ranks, 8), (6 * ranks, 2 * ranks), *((2 * ranks, 12, 8),) * 2,
                                 (2 * ranks, 8, 12)))
    weights, ids = router.softmax(-1).topk(3)
    return (x.to(dtype), ids, weights.float(), *(w.to(dtype) for w in (w1, w3, w2)))


def check_experts(dtype, group=None):
    group = group or dist.group.WORLD
    whole = draw_experts(dtype, group.size())
    y = hp.moe(*(cut(each, 0, group) for each in whole), group=group)
    x, ids, weights, w1, w3, w2 = (each if each is whole[1] else each.double() for each in whole)
    exact = torch.zeros_like(x)
    for token, choice in torch.cartesian_prod(*map(torch.arange, ids.shape)):
        expert, row = ids[token, choice], x[token]
        row = torch.nn.functional.silu(w1[expert] @ row) * (w3[expert] @ row)
        exact[token] += weights[token, choice] * (w2[expert] @ row)
    scale = exact.abs().max()
    torch.testing.assert_close(y.double() / scale, cut(exact, 0, group) / scale,
                               atol=max(TOLERANCE[dtype], 1e-6), rtol=0)


def experts_all(group=None):
    for dtype in TOLERANCE:
        check_experts(dtype, group)


def count_launches():
    status = find_status(dist.group.WORLD)
    assert not status.misses
    return sorted({plan.question.split()[0] for plan in status.plans if plan.launches})


def fall_back():
    logging.getLogger("harpe").setLevel(logging.ERROR)  # other tests check the log
    made, harpe.plan = harpe.plan, _refuse
    try:
        group = dist.new_group(list(range(dist.get_world_size())))
        decode_all(group)
        experts_all(group)
    finally:
        harpe.plan = made
    return len(find_status(group).misses), len(find_status(group).plans)


def _refuse(*args, **kwargs):
    raise harpe.Refused("not here", message="not here")


def refuse_arguments():
    """Wrong shapes; experts that do not exist; gradients."""
    group = dist.group.WORLD
    x, ids, weights, w1, w3, w2 = (cut(each, 0) for each in draw_experts(torch.float32,
                                                                        group.size()))
    for change in (dict(x=x[0]), dict(ids=ids[:, 0]), dict(ids=weights), dict(weights=ids),
                   dict(w1=w1[:, :, :3]), dict(w3=w3[:1]), dict(w2=w3), dict(w2=w2.double())):
        asked = {**dict(x=x, ids=ids, weights=weights, w1=w1, w3=w3, w2=w2), **change}
        try:
            hp.moe(*asked.values(), group=group)
        except harpe.Refused as refused:
            assert refused.code == "I311", refused
        else:
            raise AssertionError(f"{change} is not refused")
    q, k = torch.ones(2, 4, 8), torch.ones(2, 6, 2, 8)
    for change in (dict(q=q[0]), dict(k=k[:1]), dict(v=k[:, :3]), dict(lengths=torch.ones(2)),
                   dict(lengths=torch.tensor([1]))):
        asked = {**dict(q=q, k=k, v=k, lengths=None), **change}
        try:
            hp.decode(asked["q"], asked["k"], asked["v"], lengths=asked["lengths"], group=group)
        except harpe.Refused as refused:
            assert refused.code == "I311", refused
        else:
            raise AssertionError(f"{change} is not refused")
    y = hp.moe(x.requires_grad_(), ids, weights, w1, w3, w2, group=group)
    try:
        y.sum().backward()
    except NotImplementedError as error:
        return str(error)


def check_registration():
    group = dist.group.WORLD
    inputs = [cut(each, 0) for each in draw_experts(torch.float32, group.size())]
    torch.library.opcheck(torch.ops.harpe._moe, (*inputs, group.group_name))
    q, k = torch.ones(2, 4, 8), torch.ones(2, 6, 2, 8)
    for lengths in None, torch.tensor([3, 4]):
        for table in None, torch.tensor([[0], [1]]).int():
            torch.library.opcheck(torch.ops.harpe._decode,
                                  (q, k, k, lengths, table, 0.5, group.group_name))


class Inference(unittest.TestCase):
    RANKS = 2

    @classmethod
    def setUpClass(cls):
        cls.pool = Pool(cls.RANKS)
        cls.addClassCleanup(cls.pool.close)

    def test_values(self):
        self.pool.call(decode_all)
        self.pool.call(experts_all)
        self.assertEqual(self.pool.call(count_launches), [["decode", "moe"]] * self.RANKS)

    def test_fallback(self):
        self.assertEqual(self.pool.call(fall_back), [(9 - 3 + 3 + 11, 0)] * self.RANKS)

    def test_refusals(self):
        for message in self.pool.call(refuse_arguments):
            self.assertEqual(message, "harpe.ops.moe has no gradient")

    def test_tables(self):
        blocks = 3 * self.RANKS
        wanted = [f"`block_table` holds {blocks} at [1, 0], and mask `paged` takes -1 to "
                  f"{blocks - 1}",
                  "`block_table` holds page 1 at [0, 0] and again at [0, 1]",
                  "`lengths` holds 9 at [1], and mask `length` takes 0 to 8",
                  *["`block_table`"] * 3, "`k_cache`", "`k_cache`"]
        for texts in self.pool.call(refuse_tables):
            for text, part in zip(texts, wanted, strict=True):
                self.assertIn(part, text)

    def test_registration(self):
        self.pool.call(check_registration)


class InferenceOnFour(Inference):
    RANKS = 4


if __name__ == "__main__":
    unittest.main()
