"""Linear operators on 2 and 4 ranks: values, gradients, groups, launches, refusals."""
import gc
import itertools
import unittest
import weakref

# First: it ends the file if torch is missing.
from ops_ranks import Pool, assert_near, cut, find_status

import numpy
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

import harpe
import harpe.ops as hp
from harpe.ops._questions import Products, WeightGradient

LEADING = (), (1,), (3,), (2, 2)
DTYPES = torch.float32, torch.bfloat16, torch.float16, torch.float64


def draw(seed, *shapes, dtype):
    """Random tensors, equal on all ranks."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)
            for shape in shapes]


def differentiate(x, w, bias, g):
    """A linear layer and its gradients in f64, and the same sums over absolute values."""
    def compute(x, w, bias, g):
        rows = g.flatten(0, -2)
        return [x @ w.t() + bias, g @ w, rows.t() @ x.flatten(0, -2), rows.sum(0)]
    tensors = [tensor.double() for tensor in (x, w, bias, g)]
    return compute(*tensors), compute(*(tensor.abs() for tensor in tensors))


def check_linear(name, leading, dtype, with_bias, group=None, rows=6):
    """Compares y and gradients with one rank's own computation. `rows`: of a rank."""
    group = group or dist.group.WORLD
    ranks = group.size()
    gathers, s = name == "ag_linear", rows * ranks
    n, k = (4 * ranks, 5) if gathers else (7, 5 * ranks)
    where = {"ag_linear": (-2, 0, 0, -1), "linear_rs": (-1, 1, None, -2),
             "linear_ar": (-1, 1, None, None)}[name]
    x, w, bias, g = draw(1, (*leading, s, k), (n, k), (n,), (*leading, s, n), dtype=dtype)
    bias = bias if with_bias else torch.zeros_like(bias)
    own = [whole.clone() if dim is None else cut(whole, dim, group)
           for whole, dim in zip((x, w, bias, g), where)]
    inputs = [tensor.requires_grad_() for tensor in own[:3]]
    y = getattr(hp, name)(*inputs[:3 if with_bias else 2], group=group)
    y.backward(own[3])
    exact, scale = differentiate(x, w, bias, g)
    rows = x.shape[:-1].numel()
    for found, exact, scale, dim, terms in zip(
            (y, *(tensor.grad for tensor in inputs)), exact, scale, where[3:] + where[:3],
            (k + 1, n, rows, rows)):
        if found is not None:  # None: the gradient of an absent bias
            part = (lambda whole: whole if dim is None else cut(whole, dim, group))
            assert_near(found.detach(), part(exact), terms, part(scale),
                        (name, leading, dtype, dim, terms))


def check_all_linears():
    for name, leading in itertools.product(("ag_linear", "linear_rs", "linear_ar"), LEADING):
        for dtype, with_bias in itertools.product(DTYPES, (False, True)):
            check_linear(name, leading, dtype, with_bias)
    # Weight gradients sum over two or four chunks of `rows` rows.
    for name, rows in itertools.product(("ag_linear", "linear_rs"), (128, 256)):
        check_linear(name, (), torch.float32, True, rows=rows)


def check_ag_linears(columns=(4, 2, 3)):
    """`columns`: of each result on a rank."""
    ranks = dist.get_world_size()
    x, *weights = draw(2, (2, 4 * ranks, 5), *((n * ranks, 5) for n in columns),
                       dtype=torch.float64)
    own = [cut(x, 1), *(cut(w, 0) for w in weights)]
    parts = [tensor.clone().requires_grad_() for tensor in own]
    alone = [tensor.clone().requires_grad_() for tensor in own]
    together = hp.ag_linears(parts[0], parts[1:], group=dist.group.WORLD)
    for y, w in zip(together, weights):
        torch.testing.assert_close(y, cut(x @ w.t(), -1))
    single = [hp.ag_linear(alone[0], w, group=dist.group.WORLD) for w in alone[1:]]
    gradients = [torch.randn_like(y) for y in together]
    torch.autograd.backward(together, gradients)
    torch.autograd.backward(single, gradients)
    for one, other in zip(parts, alone):
        torch.testing.assert_close(one.grad, other.grad)


class Spread(torch.autograd.Function):
    """Maps a whole tensor, equal on all ranks, to each rank's block; backward gathers gradients."""

    @staticmethod
    def forward(ctx, whole, dim):
        ctx.dim = dim
        return cut(whole, dim)

    @staticmethod
    def backward(ctx, g):
        return join(g, ctx.dim), None


class Join(torch.autograd.Function):
    """The inverse of Spread."""

    @staticmethod
    def forward(ctx, own, dim):
        ctx.dim = dim
        return join(own, dim)

    @staticmethod
    def backward(ctx, g):
        return cut(g, ctx.dim), None


def join(own, dim):
    parts = [torch.empty_like(own) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, own.contiguous())
    return torch.cat(parts, dim)


def check_gradients_by_differences():
    """Functions of whole tensors, which all ranks evaluate together."""
    ranks, world = dist.get_world_size(), dist.group.WORLD
    spread, gather = Spread.apply, Join.apply
    x, w, v, bias = (tensor.requires_grad_() for tensor in draw(
        3, (2 * ranks, 3), (2 * ranks, 3), (3, 2 * ranks), (3,), dtype=torch.float64))

    def through(x, w, v, bias):
        y = hp.ag_linear(spread(x, 0), spread(w, 0), group=world)
        return gather(hp.linear_rs(torch.tanh(y), spread(v, 1), bias, group=world), 0)

    assert torch.autograd.gradcheck(through, (x, w, v, bias))

    def reduce(x, v, bias):
        y = spread(x @ x.new_ones(3, 2 * ranks), 1)
        return hp.linear_ar(y, spread(v, 1), bias, group=world)

    assert torch.autograd.gradcheck(reduce, (x, v, bias))


def count_launches():
    """Harpe's plans compute the results, one launch per call, with equal bits."""
    ranks = dist.get_world_size()
    x, w = draw(4, (8, 33), (16, 33), dtype=torch.float32)
    before = {plan.question: plan.launches for plan in find_status(dist.group.WORLD).plans}
    results = [hp.ag_linear(x, w, group=dist.group.WORLD) for _ in range(5)]
    assert all(torch.equal(result, results[0]) for result in results)
    after = find_status(dist.group.WORLD)
    asked = f"ag_linear of [1, {8 * ranks}, 33], [{16 * ranks}, 33] f32"
    assert asked not in before
    assert [plan.launches for plan in after.plans if plan.question == asked] == [5], after
    assert not after.misses and after.ranks == ranks
    return after.heap_bytes


def take_any_strides():
    """Views, gradients without strides, and results that torch keeps."""
    ranks, world = dist.get_world_size(), dist.group.WORLD
    x, w = draw(5, (10, 4 * ranks, 6), (12, 8 * ranks), dtype=torch.float32)
    own = cut(x, 1).transpose(0, 2)                        # [6, 4, 10]
    weight = w[:, :10].t().contiguous().t()  # column-major
    found = hp.ag_linear(own, weight, group=world)
    x, w = x.transpose(0, 2).double(), join(weight, 0).double()
    assert_near(found, cut(x @ w.t(), -1), 10, cut(x.abs() @ w.abs().t(), -1), "strides")
    one = own.clone().requires_grad_()
    hp.ag_linear(one, weight, group=world).sum().backward()
    two = own.clone().requires_grad_()
    hp.ag_linear(two, weight, group=world).backward(torch.ones_like(found))
    assert torch.equal(one.grad, two.grad)


def use_meshes():
    """A (2, 2) mesh: every rank is in two groups, and each group can be named in three ways."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("cp", "tp"))
    for name in "cp", "tp":
        for group in mesh[name], mesh.get_group(name), mesh.get_group(name).group_name:
            x, w = draw(6, (6, 5), (8, 5), dtype=torch.float64)
            ranks = mesh.get_group(name)
            found = hp.ag_linear(cut(x, 0, ranks), cut(w, 0, ranks), group=group)
            torch.testing.assert_close(found, cut(x @ w.t(), 1, ranks))
        check_linear("linear_rs", (2,), torch.float32, True, mesh.get_group(name))
    assert find_status(mesh.get_group("cp")).name != find_status(mesh.get_group("tp")).name
    pair = dist.new_group([1, 3])
    if dist.get_rank() in (1, 3):
        check_linear("ag_linear", (), torch.float32, False, pair)
    try:
        hp.ag_linear(x, w, group=mesh)
    except harpe.Refused as refused:
        return refused.code, refused.message


def refuse_arguments():
    """All are refused before anything is executed, so the group stays usable."""
    ranks, world = dist.get_world_size(), dist.group.WORLD
    x, w = torch.ones(4, 6), torch.ones(8, 6)
    for call in (lambda: hp.ag_linear(x, w.double(), group=world),
                 lambda: hp.ag_linear(x.int(), w.int(), group=world),
                 lambda: hp.ag_linear(x, w[:, :5], group=world),
                 lambda: hp.ag_linear(x[0], w, group=world),
                 lambda: hp.ag_linear(x, w, torch.ones(7), group=world),
                 lambda: hp.linear_rs(torch.ones(2 * ranks + 1, 6), w, group=world),
                 lambda: hp.ag_linears(x, [w, w[:, :3]], group=world),
                 lambda: hp.ag_linear(x, w, group=None),
                 lambda: hp.ag_linear(x, w, group=3),
                 lambda: hp.ag_linear(x, w, group="nobody's"),
                 lambda: hp.ag_linear(x.to_sparse(), w, group=world),
                 lambda: hp.init(world),
                 lambda: hp.init(world, on_miss="never")):
        try:
            call()
        except harpe.Refused as refused:
            assert refused.code == "I311", refused
        else:
            raise AssertionError("not refused")
    check_linear("ag_linear", (), torch.float32, False)


NO_TENSORS = [
    "`x` must be a tensor, but is None",
    "`x` must be a tensor, but is a list",
    "`w` must be a tensor, but is a numpy.ndarray",
    "`bias` must be a tensor or None, but is a float",
    "`weights` must be a list of tensors, but is None",
    "`weights` must be a list of tensors, but is a list with None",
    "`q` must be a tensor, but is None",
    "`lengths` must be a tensor or None, but is a list",
    "`topk_ids` must be a tensor, but is a list",
    "`Bs` must be a list of tensors, but is a tensor",
]


def refuse_what_is_no_tensor():
    """Refusals use the names of the operators' signatures, with and without gradients."""
    world, x, w = dist.group.WORLD, torch.ones(4, 6), torch.ones(3, 6, requires_grad=True)
    texts = []
    for call in (lambda: hp.ag_linear(None, w, group=world),
                 lambda: hp.linear_rs([[1.0]], w, group=world),
                 lambda: hp.linear_ar(x, w.detach().numpy(), group=world),
                 lambda: hp.ag_linear(x, w, 1.0, group=world),
                 lambda: hp.ag_linears(x, None, group=world),
                 lambda: hp.ag_linears(x, (w, None), group=world),
                 lambda: hp.attention(None, x, x, group=world),
                 lambda: hp.decode(x, x, x, lengths=[3], group=world),
                 lambda: hp.moe(x, [1], x, x, x, x, group=world),
                 lambda: hp.fused_all_gather_matmul(x, w, 0, world.group_name)):
        try:
            call()
        except harpe.Refused as refused:
            assert refused.code == "I311", refused
            texts.append(refused.message)
    return texts


def fall_back(on_miss):
    """Rows without columns have no plan: PyTorch computes the result, or the call is an error."""
    group = dist.new_group(list(range(dist.get_world_size())))
    hp.init(group, on_miss=on_miss)
    try:
        with unittest.TestCase().assertLogs("harpe") as logged:
            for _ in range(3):
                y = hp.ag_linear(torch.ones(2, 0), torch.ones(3, 0), group=group)
                z = hp.linear_rs(torch.ones(0, 2), torch.ones(3, 2), torch.ones(3), group=group)
    except harpe.Refused as refused:
        return refused.code, [miss.calls for miss in find_status(group).misses]
    assert y.abs().sum() == 0 and y.shape == (2 * group.size(), 3) and z.shape == (0, 3)
    assert len(logged.records) == 2, logged.output
    return [(miss.question, miss.calls) for miss in find_status(group).misses]


def count_kept(calls):
    """How many tensors of `calls` refused calls are kept afterwards."""
    group = dist.new_group(list(range(dist.get_world_size())))
    hp.init(group, on_miss="error")
    kept = []
    for _ in range(calls):
        x = torch.ones(2, 0)
        kept.append(weakref.ref(x))
        try:
            hp.ag_linear(x, torch.ones(3, 0), group=group)
        except harpe.Refused:
            pass
        del x
    gc.collect()
    return sum(tensor() is not None for tensor in kept)


class Linears(unittest.TestCase):
    RANKS = 2

    @classmethod
    def setUpClass(cls):
        cls.pool = Pool(cls.RANKS)
        cls.addClassCleanup(cls.pool.close)

    def test_values_and_gradients(self):
        self.pool.call(check_all_linears)

    def test_one_gather_for_several_weights(self):
        self.pool.call(check_ag_linears)

    def test_large_weights(self):
        self.pool.call(check_ag_linears, (4096, 4097))

    def test_gradients_by_differences(self):
        self.pool.call(check_gradients_by_differences)

    def test_plans_answer_once_a_call(self):
        self.assertTrue(all(self.pool.call(count_launches)))

    def test_any_strides(self):
        self.pool.call(take_any_strides)

    def test_refusals(self):
        self.pool.call(refuse_arguments)
        for texts in self.pool.call(refuse_what_is_no_tensor):
            self.assertEqual(texts, NO_TENSORS)

    def test_refused_calls_keep_no_tensors(self):
        self.assertEqual(self.pool.call(count_kept, 3), [0] * self.RANKS)

    def test_fallback_is_logged_once_and_listed(self):
        for found in self.pool.call(fall_back, "fallback"):
            self.assertEqual(found, [
                (f"ag_linear of [1, {2 * self.RANKS}, 0], [{3 * self.RANKS}, 0] f32", 3),
                (f"linear_rs of [1, 0, {2 * self.RANKS}], [3, {2 * self.RANKS}], bias [3] f32", 3)])

    def test_misses_may_be_errors(self):
        for code, calls in self.pool.call(fall_back, "error"):
            self.assertTrue(code)
            self.assertEqual(calls, [0])


class WeightGradients(unittest.TestCase):
    """Plans for GPUs: one kernel per rank sums over its own rows and over arriving rows."""

    def test_one_kernel_for_each_result(self):
        for gathered, ranks, product in itertools.product(("g", "x"), (2, 4), (False, True)):
            question = WeightGradient(name="gradient", gathered=gathered, batch=1, m=4096, n=4096,
                                      k=4096, dtype="bf16", product=product)
            text = question.make_plan(ranks).show("launches")
            kernels = ranks * (2 if product else 1)
            self.assertEqual(text.count("kernel gemm"), kernels, text)
            self.assertEqual(text.count("kernel gemm_sm90"), kernels, text)
            self.assertEqual(text.count("kernel move"), 0, text)
            arrivals = ranks * ranks * (5 if product else 4)
            self.assertEqual(text.count(" arrival "), arrivals, text)

    def test_values_of_both(self):
        for gathered, ranks, batch in itertools.product(("g", "x"), (1, 2, 4), (1, 3)):
            question = WeightGradient(name="gradient", gathered=gathered, batch=batch, m=8 * ranks,
                                      n=3 * ranks, k=5 * ranks, dtype="f64", product=True)
            plan = question.make_plan(ranks)
            inputs = harpe.draw_inputs(plan, seed=5)
            g, x, u = (inputs[name] for name in "gxu")
            found = harpe.run(plan, inputs)
            numpy.testing.assert_allclose(found["of_x"], g @ u, rtol=1e-12, atol=1e-12)
            rows = g.reshape(-1, g.shape[-1])
            numpy.testing.assert_allclose(found["w"], rows.T @ x.reshape(-1, x.shape[-1]),
                                          rtol=1e-12, atol=1e-12)


class SeveralProducts(unittest.TestCase):
    """Plans that gather rows once, and plans that send them for each product."""

    def test_values(self):
        for ranks, batch, transposed in itertools.product((2, 4), (1, 3), (True, False)):
            question = Products(name="products", batch=batch, m=8 * ranks,
                                ns=(4 * ranks, 3 * ranks), k=5, dtype="f64", transposed=transposed)
            for schedule in question._gather_once(ranks), question._send(ranks):
                plan = question.prove_plan(ranks, schedule)
                inputs = harpe.draw_inputs(plan, seed=3)
                for name, found in harpe.run(plan, inputs).items():
                    b = inputs[f"b{name[1:]}"]
                    wanted = inputs["a"] @ (b.T if transposed else b)
                    numpy.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)

    def test_large_products_hide_what_is_sent(self):
        for ranks, ns, faster in ((2, (28672, 28672), "push"), (2, (8192, 1024, 1024), "push"),
                                  (8, (8192, 1024, 1024), "gather_once")):
            question = Products(name="products", batch=1, m=8192, ns=ns, k=8192, dtype="bf16")
            plan = question.make_plan(ranks)
            self.assertEqual(plan.schedule, faster, ns)
            if faster == "push":
                text = plan.show("launches")
                self.assertEqual(text.count("kernel gemm_sm90"), ranks * len(ns), text)
                self.assertEqual(text.count("kernel move"), 0, text)


class LinearsOnFour(Linears):
    RANKS = 4

    def test_meshes_and_subgroups(self):
        for code, message in self.pool.call(use_meshes):
            self.assertEqual(code, "I311")
            self.assertIn("one dimension of a DeviceMesh", message)


if __name__ == "__main__":
    unittest.main()
