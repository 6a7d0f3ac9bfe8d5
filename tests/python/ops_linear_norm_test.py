"""`linear_ar_norm` on 2 and 4 ranks: values, gradients, one plan per row bucket, refusals."""
import itertools
import unittest

from ops_ranks import Pool, cut, find_status  # first: it ends the file if torch is missing

import torch
import torch.distributed as dist

import harpe
import harpe.ops as hp

LEADING = (5,), (1, 8), (2, 3), (2, 2, 1)
DTYPES = torch.float32, torch.bfloat16, torch.float16, torch.float64
EPS = 1e-5


def draw(leading, n, k, dtype):
    """x, w, a residual and the norm's weight: whole, and equal on all ranks."""
    generator = torch.Generator().manual_seed(n + k)
    shapes = (*leading, k), (n, k), (*leading, n), (n,)
    x, w, residual, weight = (torch.randn(shape, generator=generator, dtype=torch.float64)
                              for shape in shapes)
    return [each.to(dtype) for each in (x, w / k**0.5, residual, 1 + weight / 4)]


def normalise(total, weight, eps=EPS):
    """Like vLLM's fused_add_rms_norm and `RMSNorm.forward_native`, in the type of `total`."""
    return total * torch.rsqrt(total.square().mean(-1, keepdim=True) + eps) * weight


def check_values(leading, dtype, group=None):
    """Compares residual_out with whole tensors in f64, and y with the norm of that residual_out."""
    group = group or dist.group.WORLD
    n, k = 24, 8 * group.size()
    x, w, residual, weight = draw(leading, n, k, dtype)
    kept = residual.clone()
    y, out = hp.linear_ar_norm(cut(x, -1, group), cut(w, 1, group), residual, weight, eps=EPS,
                               group=group)
    assert torch.equal(residual, kept) and y.shape == out.shape == residual.shape
    assert y.dtype == out.dtype == dtype
    product = x.double() @ w.double().t()
    scale = x.abs().double() @ w.abs().double().t()
    unit = torch.finfo(dtype).eps
    sums = torch.finfo(torch.float64 if dtype == torch.float64 else torch.float32).eps
    # One rounding each: of a rank's part, of their sum, and of the sum with the residual.
    bound = 3 * unit * (scale + residual.abs().double()) + (k + 8) * sums * scale
    error = (out.double() - product - residual.double()).abs()
    assert bool((error <= bound).all()), (leading, dtype, (error - bound).max())
    exact = normalise(out.double(), weight.double())
    error = (y.double() - exact).abs()
    assert bool((error <= (unit + 16 * sums) * exact.abs() + 1e-300).all()), (leading, dtype)
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    by_torch = torch.nn.functional.rms_norm(out.to(wide), (n,), weight.to(wide), EPS)
    torch.testing.assert_close(y.to(wide), by_torch, atol=4 * unit, rtol=4 * unit)


def check_all_values():
    for leading, dtype in itertools.product(LEADING, DTYPES):
        check_values(leading, dtype)


class Spread(torch.autograd.Function):
    """Maps a whole tensor, equal on all ranks, to each rank's block; backward gathers gradients."""

    @staticmethod
    def forward(ctx, whole, dim):
        ctx.dim = dim
        return cut(whole, dim)

    @staticmethod
    def backward(ctx, g):
        parts = [torch.empty_like(g) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, g.contiguous())
        return torch.cat(parts, ctx.dim), None


def check_gradients():
    """Checks by differences, for both results together and for each, and against PyTorch."""
    world, ranks = dist.group.WORLD, dist.get_world_size()
    inputs = [each.requires_grad_() for each in draw((3,), 4, 2 * ranks, torch.float64)]

    def through(x, w, residual, weight):
        return hp.linear_ar_norm(Spread.apply(x, -1), Spread.apply(w, 1), residual, weight, eps=EPS,
                                 group=world)

    assert torch.autograd.gradcheck(through, inputs)
    for kept in 0, 1:
        assert torch.autograd.gradcheck(lambda *given: through(*given)[kept], inputs)
    for dtype, tolerance in (torch.float32, 1e-5), (torch.bfloat16, 0.1):
        own = [each.detach().to(dtype).requires_grad_() for each in inputs]
        whole = [each.detach().to(dtype).double().requires_grad_() for each in inputs]
        y, out = through(*own)
        x, w, residual, weight = whole
        total = x @ w.t() + residual
        (y.double() * 2 + out.double()).sum().backward()
        (normalise(total, weight) * 2 + total).sum().backward()
        for one, other in zip(own, whole):
            torch.testing.assert_close(one.grad.double(), other.grad, atol=tolerance,
                                       rtol=tolerance)


def count_plans():
    """One plan serves all row counts of a bucket; beyond the last bucket each count has its own.
    Under one plan a row has the same bits, whichever rows lie beside it."""
    ranks = dist.get_world_size()
    group = dist.new_group(list(range(ranks)))
    x, w, residual, weight = draw((300,), 8, 4 * ranks, torch.bfloat16)
    own, part = cut(x, -1, group), cut(w, 1, group)
    results = {}
    for rows in (*range(1, 9), 15, 16, 17, 33, 100, 200, 255, 256, 257, 300):
        results[rows] = hp.linear_ar_norm(own[:rows], part, residual[:rows], weight, group=group)
        assert all(each.shape == (rows, 8) and each.is_contiguous() for each in results[rows])
    for fewer, more in (3, 4), (5, 8), (200, 256):
        for one, other in zip(results[fewer], results[more]):
            assert torch.equal(one, other[:fewer])
    for results_of_one in results.values():
        torch.testing.assert_close(results_of_one[1], results[300][1][:len(results_of_one[1])],
                                   atol=0.1, rtol=0.02)
    plans = find_status(group).plans
    assert not find_status(group).misses
    return sorted(int(plan.question.split(", ")[1]) for plan in plans)


def warm_all_rows():
    """After a warm-up of the buckets, no row count needs a new plan."""
    ranks = dist.get_world_size()
    group = dist.new_group(list(range(ranks)))
    harpe.warmup([("linear_ar_norm", dict(x=(rows, 8), w=(6, 8), residual=(rows, 6),
                                          norm_weight=(6,), eps=EPS)) for rows in hp.row_buckets],
                 group=group, dtype=torch.float32)
    made = {plan.question for plan in find_status(group).plans}
    assert len(made) == len(hp.row_buckets), made
    for rows in 1, 3, 77, 256:
        hp.linear_ar_norm(torch.ones(rows, 8), torch.ones(6, 8), torch.ones(rows, 6), torch.ones(6),
                          eps=EPS, group=group)
    assert {plan.question for plan in find_status(group).plans} == made


def refuse_arguments():
    """Refuses before anything is executed, for row counts equal to a bucket and not."""
    world, texts = dist.group.WORLD, []
    for rows in 4, 3:
        given = dict(x=torch.ones(rows, 6), w=torch.ones(8, 6), residual=torch.ones(rows, 8),
                     norm_weight=torch.ones(8), eps=EPS)
        for change in (dict(residual=torch.ones(rows, 6)), dict(residual=torch.ones(1, rows, 8)),
                       dict(norm_weight=torch.ones(6)), dict(norm_weight=torch.ones(8).bfloat16()),
                       dict(w=torch.ones(8, 5)), dict(x=torch.ones(6)), dict(eps=-1.0),
                       dict(eps=None)):
            try:
                hp.linear_ar_norm(**given | change, group=world)
            except harpe.Refused as refused:
                texts.append(refused.message)
                assert refused.code == "I311", refused
            else:
                raise AssertionError(f"{change} is not refused")
        hp.linear_ar_norm(**given, group=world)
    return texts


def fall_back():
    """Rows without columns have no plan, so PyTorch computes the result."""
    group = dist.new_group(list(range(dist.get_world_size())))
    hp.init(group)
    with unittest.TestCase().assertLogs("harpe"):
        y, out = hp.linear_ar_norm(torch.ones(3, 0), torch.ones(4, 0), torch.full((3, 4), 2.0),
                                   torch.full((4,), 3.0), eps=0.0, group=group)
    assert torch.equal(out, torch.full((3, 4), 2.0)) and torch.equal(y, torch.full((3, 4), 3.0))
    return [miss.question for miss in find_status(group).misses]


class LinearNorm(unittest.TestCase):
    RANKS = 2

    @classmethod
    def setUpClass(cls):
        cls.pool = Pool(cls.RANKS)
        cls.addClassCleanup(cls.pool.close)

    def test_values(self):
        self.pool.call(check_all_values)

    def test_gradients(self):
        self.pool.call(check_gradients)

    def test_one_plan_serves_a_bucket_of_rows(self):
        for rows in self.pool.call(count_plans):
            self.assertEqual(rows, sorted([*hp.row_buckets, 257, 300]))

    def test_warm_up_of_buckets(self):
        self.pool.call(warm_all_rows)

    def test_refusals(self):
        for texts in self.pool.call(refuse_arguments):
            self.assertEqual(texts[0], "`residual` must be of shape [4, 8], but is of shape [4, 6]")
            self.assertEqual(texts[8], "`residual` must be of shape [3, 8], but is of shape [3, 6]")

    def test_fallback(self):
        for missed in self.pool.call(fall_back):
            self.assertEqual(missed, ["linear_ar_norm of [1, 4, 0], [4, 0], eps 0 f32"])


class LinearNormOnFour(LinearNorm):
    RANKS = 4


if __name__ == "__main__":
    unittest.main()
