"""Modules of harpe.nn against whole layers; copies, pickles, training; the example."""
import copy
import io
import os
import pathlib
import pickle
import re
import tempfile
import unittest

from ops_ranks import Pool, cut, find_status  # first: it ends the file if torch is missing

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import parallelize_module
from torch.nn.parallel import DistributedDataParallel

import harpe
import harpe.nn

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/pytorch.md"


def make_layers(ranks, bias):
    """Whole layers and their parallel parts, equal on all ranks."""
    torch.manual_seed(1)
    whole = torch.nn.Sequential(torch.nn.Linear(6, 4 * ranks, bias), torch.nn.Tanh(),
                                torch.nn.Linear(4 * ranks, 5, bias)).double()
    group = dist.group.WORLD
    parts = torch.nn.Sequential(
        harpe.nn.ColumnParallelLinear.from_linear(whole[0], group=group), torch.nn.Tanh(),
        harpe.nn.RowParallelLinear.from_linear(whole[2], group=group))
    return whole, parts, torch.randn(2, 3 * ranks, 6, dtype=torch.float64)


def train(bias):
    """Some steps: losses and parameters stay equal to those of the whole layers."""
    ranks = dist.get_world_size()
    whole, parts, x = make_layers(ranks, bias)
    optimizers = [torch.optim.Adam(each.parameters(), lr=0.1) for each in (whole, parts)]
    for _ in range(4):
        loss = whole(x).square().sum()
        loss.backward()
        own = parts(cut(x, 1)).square().sum()
        own.backward()
        dist.all_reduce(own.detach_())
        torch.testing.assert_close(own, loss.detach())
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
    torch.testing.assert_close(parts[0].weight, cut(whole[0].weight.detach(), 0))
    torch.testing.assert_close(parts[2].weight, cut(whole[2].weight.detach(), 1))
    if bias:
        torch.testing.assert_close(parts[2].bias, whole[2].bias)


def copy_and_save():
    _, parts, x = make_layers(dist.get_world_size(), True)
    with torch.no_grad():
        expected = parts(cut(x, 1))
        stored = io.BytesIO()
        torch.save(parts.state_dict(), stored)
        stored.seek(0)
        others = [copy.deepcopy(parts), pickle.loads(pickle.dumps(parts)), copy.deepcopy(parts)]
        for parameter in others[2].parameters():
            parameter.zero_()
        others[2].load_state_dict(torch.load(stored))
        assert all(torch.equal(other(cut(x, 1)), expected) for other in others)
    return str(parts[0])


class Residual(torch.nn.Module):
    """A residual block; a parallel style replaces its linear layers."""

    def __init__(self, inner):
        super().__init__()
        self.norm = torch.nn.LayerNorm(6, bias=False)
        self.up, self.down = torch.nn.Linear(6, inner), torch.nn.Linear(inner, 6)

    def forward(self, x):
        return x + self.down(torch.tanh(self.up(self.norm(x))))


def make_block(group):
    """The block, equal on all ranks: whole, and with its linear layers divided."""
    torch.manual_seed(2)
    whole = Residual(4 * group.size()).double()
    own = parallelize_module(copy.deepcopy(whole), group, {"up": harpe.nn.GatherColwise(),
                                                           "down": harpe.nn.RowwiseScatter()})
    assert type(own.up) is harpe.nn.ColumnParallelLinear and own.up.weight.shape == (4, 6)
    assert type(own.down) is harpe.nn.RowParallelLinear and own.down.weight.shape == (6, 4)
    try:
        parallelize_module(own, group, {"norm": harpe.nn.GatherColwise()})
    except harpe.Refused as refused:
        assert "an nn.Linear" in str(refused)
    else:
        raise AssertionError("a LayerNorm has been divided")
    return whole, own


def train_beside(wrap):
    """Tensor parallelism by styles with data parallelism by `wrap` equals one rank with all
    data."""
    ranks = dist.get_world_size()
    mesh = init_device_mesh("cpu", (2, ranks // 2), mesh_dim_names=("dp", "tp"))
    dp, tp = mesh["dp"], mesh["tp"]
    whole, own = make_block(tp)
    own = wrap(own, dp)
    data = torch.randn(4, 2, 2 * tp.size(), 6, dtype=torch.float64)
    optimizers = [torch.optim.SGD(each.parameters(), lr=0.1) for each in (whole, own)]
    for x in data:
        whole(x).square().sum().backward()
        loss = own(cut(cut(x, 0, dp.get_group()), 1, tp.get_group())).square().sum()
        loss.backward()
        for name, parameter in own.named_parameters():
            gradient = parameter.grad
            if isinstance(gradient, DTensor):
                gradient = gradient.to_local()
            gradient.mul_(dp.size())  # to that of the sum, not the mean, of losses
            if name.endswith("norm.weight"):  # a rank has a part of the sequence
                dist.all_reduce(gradient, group=tp.get_group())
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
    found = {name.removeprefix("module."): each.full_tensor() if isinstance(each, DTensor) else each
             for name, each in own.named_parameters()}
    for name, dim in (("norm.weight", None), ("up.weight", 0), ("up.bias", 0), ("down.weight", 1),
                      ("down.bias", None)):
        exact = whole.get_parameter(name)
        torch.testing.assert_close(found[name], exact if dim is None else
                                   cut(exact.detach(), dim, tp.get_group()))
    status = find_status(tp.get_group())
    assert status.plans and not status.misses


def train_beside_ddp():
    train_beside(lambda block, dp: DistributedDataParallel(block, process_group=dp.get_group()))


def train_beside_fsdp():
    train_beside(lambda block, dp: fully_shard(block, mesh=dp))


def attend():
    """The module gives the operator's results."""
    world = dist.group.WORLD
    attention = harpe.nn.ContextParallelAttention(group=world, causal=True, layout="zigzag")
    q, k, v = torch.randn(3, 1, 4, 2, 8)
    documents = torch.tensor([[0, 0, 1] + [2] * (4 * world.size() - 3)])
    for option in {}, dict(documents=documents):
        assert torch.equal(attention(q, k, v, **option),
                           harpe.ops.attention(q, k, v, group=world, causal=True, layout="zigzag",
                                               **option))
    return str(attention)


def cast():
    """Under autocast operators compute in bf16, like linear layers, and gradients are f32."""
    world = dist.group.WORLD
    x, w = torch.randn(4, 6, requires_grad=True), torch.randn(5, 6, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16):
        made = [harpe.ops.ag_linear(x, w, group=world), *harpe.ops.ag_linears(x, [w], group=world)]
        q = torch.randn(1, 4, 2, 8)
        assert harpe.ops.attention(q, q, q, group=world).dtype == torch.bfloat16
        exact = harpe.ops.ag_linear(x.double(), w.double(), group=world)
    assert exact.dtype == torch.float64
    for y in made:
        assert y.dtype == torch.bfloat16 and torch.equal(y, made[0])
        x.grad = w.grad = None
        y.float().square().sum().backward()
        assert x.grad.dtype == w.grad.dtype == torch.float32
        torch.testing.assert_close(y.double(), exact, atol=0.1, rtol=0.02)


def make_new():
    """Layers on a DeviceMesh, and refusals of sizes that ranks cannot divide."""
    ranks = dist.get_world_size()
    mesh = init_device_mesh("cpu", (ranks,), mesh_dim_names=("tp",))
    layer = harpe.nn.ColumnParallelLinear(6, 4 * ranks, group=mesh["tp"])
    assert layer.weight.shape == (4, 6) and layer.bias.shape == (4,)
    assert layer(torch.ones(2, 6)).shape == (2 * ranks, 4)
    codes = []
    for kind, sizes in ((harpe.nn.ColumnParallelLinear, (6, 2 * ranks + 1)),
                        (harpe.nn.RowParallelLinear, (2 * ranks + 1, 6))):
        try:
            kind(*sizes, group=mesh["tp"])
        except harpe.Refused as refused:
            codes.append(refused.code)
    return codes, find_status(mesh.get_group()).misses


def run_page(blocks, folder):
    """Runs the code blocks of docs/pytorch.md in order."""
    os.chdir(folder)
    names = {}
    for block in blocks:
        exec(block, names)
    harpe.lock(None)
    os.chdir("/")
    return tuple(names["z"].shape), tuple(names["out"].shape), names["q"].shape[1]


class Modules(unittest.TestCase):
    RANKS = 2

    @classmethod
    def setUpClass(cls):
        cls.pool = Pool(cls.RANKS)
        cls.addClassCleanup(cls.pool.close)

    def test_training(self):
        self.pool.call(train, True)
        self.pool.call(train, False)

    def test_copies(self):
        for text in self.pool.call(copy_and_save):
            self.assertIn("in_features=6", text)

    def test_new(self):
        for codes, misses in self.pool.call(make_new):
            self.assertEqual(codes, ["I311", "I311"])
            self.assertEqual(misses, [])

    def test_beside_data_parallel(self):
        self.pool.call(train_beside_ddp)
        self.pool.call(train_beside_fsdp)

    def test_attention(self):
        for text in self.pool.call(attend):
            self.assertIn("layout=zigzag", text)

    def test_autocast(self):
        self.pool.call(cast)

    def test_code_blocks_of_the_page(self):
        text = PAGE.read_text(encoding="utf-8")
        blocks = re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)
        self.assertEqual(len(blocks), 9)
        with tempfile.TemporaryDirectory() as folder:
            for shapes in self.pool.call(run_page, blocks, folder):
                self.assertEqual(shapes, ((1, 64, 96), (1, 64, 128), 64))
            self.assertTrue(os.path.exists(f"{folder}/plans.lock"))


class OnMesh(unittest.TestCase):
    def test_beside_data_parallel(self):
        """Two data-parallel times two tensor-parallel ranks."""
        pool = Pool(4)
        self.addCleanup(pool.close)
        pool.call(train_beside_ddp)
        pool.call(train_beside_fsdp)


if __name__ == "__main__":
    unittest.main()
