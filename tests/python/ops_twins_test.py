"""Operators with the signatures of other libraries: values against plain GEMMs, refusals."""
import itertools
import unittest

from ops_ranks import Pool, cut, find_status  # first: it ends the file if torch is missing

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory  # noqa: F401, it defines torch's operators

import harpe
import harpe.ops as hp


def draw(*shape):
    """Whole numbers, so that sums are exact; equal on all ranks."""
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randint(-4, 5, shape, generator=generator).float()


def keep(B, transposed):
    return B.t().contiguous().t() if transposed else B


def gather_and_multiply():
    """Every dimension, B matrices in both orders, one or several, with and without A."""
    ranks, group = dist.get_world_size(), dist.group.WORLD
    for shape, number, transposed, return_A in itertools.product(
            ((4, 6), (3, 4, 6), (2, 3, 4, 6)), (1, 2), (False, True), (False, True)):
        for dim in range(len(shape) - 1):
            whole = draw(*(size * ranks if i == dim else size for i, size in enumerate(shape)))
            Bs = [keep(cut(draw(6, size * ranks), 1), transposed) for size in (5, 8)[:number]]
            A, made = hp.fused_all_gather_matmul(cut(whole, dim), Bs, dim, group.group_name,
                                                 return_A=return_A)
            assert (A is None) == (not return_A) and len(made) == number
            assert A is None or torch.equal(A, whole)
            assert all(torch.equal(C, whole @ B) for C, B in zip(made, Bs))
    assert not find_status(group).misses
    mixed = [keep(Bs[0], False), keep(Bs[1], True)]
    _, made = hp.fused_all_gather_matmul(cut(whole, dim), mixed, dim, group.group_name)
    assert all(torch.equal(C, whole @ B) for C, B in zip(made, mixed))


def multiply_and_scatter():
    ranks, group = dist.get_world_size(), dist.group.WORLD
    for shape, transposed, reduce_op in itertools.product(
            ((8, 6), (4, 8, 6), (4, 8, 4, 6)), (False, True), ("sum", "avg")):
        for dim in range(len(shape) - 1):
            A, B = draw(*shape[:-1], 6 * ranks), draw(6 * ranks, 5)
            made = hp.fused_matmul_reduce_scatter(
                cut(A, len(shape) - 1), keep(cut(B, 0), transposed), reduce_op, dim,
                group.group_name)
            exact = cut(A @ B, dim)
            assert torch.equal(made, exact / ranks if reduce_op == "avg" else exact)
    assert not find_status(group).misses


def check_registration():
    ranks, name = dist.get_world_size(), dist.group.WORLD.group_name
    x, B = draw(4 * ranks, 6), draw(6, 8)
    for operator, inputs, options in (
            (torch.ops.harpe.fused_all_gather_matmul, (x, [B], 0, name), dict(return_A=False)),
            (torch.ops.harpe.fused_all_gather_matmul, (x, [B, B], 0, name), {}),
            (torch.ops.harpe.fused_matmul_reduce_scatter, (x, B, "avg", 0, name), {})):
        torch.library.opcheck(operator, inputs, options)
    schemas = [str(getattr(torch.ops.harpe, name).default._schema).removeprefix("harpe::")
               for name in ("fused_all_gather_matmul", "fused_matmul_reduce_scatter")]
    for schema, theirs in zip(schemas, ("fused_all_gather_matmul", "fused_matmul_reduce_scatter")):
        theirs = str(getattr(torch.ops.symm_mem, theirs).default._schema)
        assert schema.replace("A_shard", "A") == theirs.removeprefix("symm_mem::"), (schema, theirs)


def attend():
    """Windows count as in flash-attention; a refusal names the option that has no plan."""
    group = dist.group.WORLD
    torch.manual_seed(0)  # equal on all ranks
    q, k, v = torch.randn(3, 1, 6, 2, 8)
    for theirs, ours in ((dict(), dict()), (dict(causal=True), dict(causal=True)),
                         (dict(causal=True, window_size=(3, 0), softmax_scale=0.5,
                               deterministic=True), dict(causal=True, window=4, scale=0.5)),
                         (dict(window_size=(2, 0)), dict(causal=True, window=3))):
        assert torch.equal(hp.flash_attn_func(q, k, v, group=group, **theirs),
                           hp.attention(q, k, v, group=group, **ours))
    named = []
    for option in (dict(dropout_p=0.1), dict(softcap=30.0), dict(alibi_slopes=torch.ones(2)),
                   dict(return_attn_probs=True), dict(window_size=(3, 3))):
        try:
            hp.flash_attn_func(q, k, v, group=group, **option)
        except harpe.Refused as refused:
            assert refused.code == "I311" and f"`{[*option][0]}`" in str(refused), refused
            named.append(*option)
    return named


def refuse_arguments():
    ranks, name = dist.get_world_size(), dist.group.WORLD.group_name
    x, B = draw(4 * ranks, 6), draw(6, 5)
    codes = []
    for call in (lambda: hp.fused_all_gather_matmul(x, [B], 1, name),
                 lambda: hp.fused_all_gather_matmul(x, [B], -2, name),
                 lambda: hp.fused_all_gather_matmul(x, [B[:4]], 0, name),
                 lambda: hp.fused_matmul_reduce_scatter(x, B, "max", 0, name),
                 lambda: hp.fused_matmul_reduce_scatter(x[1:], B, "sum", 0, name),
                 lambda: hp.fused_matmul_reduce_scatter(x, B, "sum", 1, name)):
        try:
            call()
        except harpe.Refused as refused:
            codes.append(refused.code)
    try:
        hp.fused_matmul_reduce_scatter(x.requires_grad_(), B, "sum", 0, name).sum().backward()
    except NotImplementedError as error:
        assert "fused_matmul_reduce_scatter has no gradient" in str(error)
        codes.append("no gradient")
    return codes


class Twins(unittest.TestCase):
    RANKS = 2

    @classmethod
    def setUpClass(cls):
        cls.pool = Pool(cls.RANKS)
        cls.addClassCleanup(cls.pool.close)

    def test_gather(self):
        self.pool.call(gather_and_multiply)

    def test_scatter(self):
        self.pool.call(multiply_and_scatter)

    def test_registration(self):
        self.pool.call(check_registration)

    def test_attention(self):
        for named in self.pool.call(attend):
            self.assertEqual(named, ["dropout_p", "softcap", "alibi_slopes", "return_attn_probs",
                                     "window_size"])

    def test_refusals(self):
        for codes in self.pool.call(refuse_arguments):
            self.assertEqual(codes, ["I311"] * 6 + ["no gradient"])


class TwinsOnFour(Twins):
    RANKS = 4


if __name__ == "__main__":
    unittest.main()
