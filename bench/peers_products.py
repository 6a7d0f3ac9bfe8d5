"""GEMMs with collectives as users of PyTorch write them, for peers_torch.py."""
import torch
import torch.distributed as dist

from peers_common import TYPES, Work, draw, part_of, rows_apart, widen
from peers_parameters import rounding_of, sizes_of

SAMPLED = 128  # rows


def sampled_rows(count, here):
    """Rows spread evenly over `count`, including the first and the last."""
    return torch.linspace(0, count - 1, min(SAMPLED, count), device=here.device).long()


class Gathered:
    """c = a b: a's rows are divided and gathered, b's columns are divided."""

    def __init__(self, here, parameters):
        sizes = sizes_of(parameters, "m", "n", "k")
        rows, columns = part_of(sizes["m"], here, "m"), part_of(sizes["n"], here, "n")
        self.whole = draw(here, sizes["dtype"], 1, sizes["m"], sizes["k"])
        self.a = self.whole[here.rank * rows:(here.rank + 1) * rows].clone()
        self.b = draw(here, sizes["dtype"], 2 + here.rank, sizes["k"], columns)
        self.rows = sampled_rows(sizes["m"], here)
        self.wanted = widen(self.whole[self.rows]) @ widen(self.b)
        self.bound = 4 * rounding_of(sizes["dtype"], sizes["k"])

    def difference(self, c):
        return rows_apart(c[self.rows], self.wanted)

    def work(self, run):
        return Work(run, self.difference, self.bound)


class Reduced:
    """c = a b: the sums are divided; each rank gets some rows of the total, or all."""

    def __init__(self, here, parameters, scattered):
        sizes = sizes_of(parameters, "m", "n", "k")
        depth = part_of(sizes["k"], here, "k")
        rows = part_of(sizes["m"], here, "m") if scattered else sizes["m"]
        a = draw(here, sizes["dtype"], 1, sizes["m"], sizes["k"])
        b = draw(here, sizes["dtype"], 2, sizes["k"], sizes["n"])
        mine = slice(here.rank * depth, (here.rank + 1) * depth)
        self.a, self.b = a[:, mine].contiguous(), b[mine].contiguous()
        self.out_rows = rows
        self.rows = sampled_rows(self.out_rows, here)
        first = here.rank * rows if scattered else 0
        self.wanted = widen(a[first + self.rows]) @ widen(b)
        # Each partial sum is rounded, and each step of a ring rounds; no partial sum is much larger
        # than the total's largest element.
        self.bound = (2 * here.ranks + 2) * rounding_of(sizes["dtype"], sizes["k"])

    def difference(self, c):
        return rows_apart(c[self.rows], self.wanted)

    def work(self, run):
        return Work(run, self.difference, self.bound)


def nccl(here, suite, parameters):
    if suite == "decode":
        return decode(here, parameters)
    if suite == "ag_gemm":
        case = Gathered(here, parameters)
        full = torch.empty_like(case.whole)

        def gather():
            dist.all_gather_into_tensor(full, case.a)
            return full @ case.b
        return case.work(gather)
    case = Reduced(here, parameters, suite == "gemm_rs")
    if suite == "gemm_ar":
        def reduce():
            c = case.a @ case.b
            dist.all_reduce(c)
            return c
        return case.work(reduce)
    out = torch.empty(case.out_rows, case.b.shape[1], device=here.device, dtype=case.b.dtype)

    def scatter():
        dist.reduce_scatter_tensor(out, case.a @ case.b)
        return out
    return case.work(scatter)


def symmetric_memory():
    import torch.distributed._symmetric_memory as memory
    return memory


def torch_async_tp(here, suite, parameters):
    memory = symmetric_memory()
    name = dist.group.WORLD.group_name
    if hasattr(memory, "enable_symm_mem_for_group"):
        memory.enable_symm_mem_for_group(name)
    operators = torch.ops.symm_mem
    if suite == "ag_gemm":
        case = Gathered(here, parameters)
        return case.work(lambda: operators.fused_all_gather_matmul(
            case.a, [case.b], gather_dim=0, group_name=name)[1][0])
    case = Reduced(here, parameters, True)
    return case.work(lambda: operators.fused_matmul_reduce_scatter(
        case.a, case.b, "sum", scatter_dim=0, group_name=name))


def torch_two_shot(here, _, parameters):
    """A GEMM into symmetric memory, in which the ranks add up the sums in place."""
    return added_up(here, parameters, torch.ops.symm_mem.two_shot_all_reduce_)


def torch_one_shot(here, _, parameters):
    """The same, but each rank reads and adds up all sums."""
    return added_up(here, parameters, torch.ops.symm_mem.one_shot_all_reduce)


def added_up(here, parameters, all_reduce):
    memory = symmetric_memory()
    case = Reduced(here, parameters, False)
    out = memory.empty(case.out_rows, case.b.shape[1], dtype=case.b.dtype, device=here.device)
    memory.rendezvous(out, dist.group.WORLD)
    name = dist.group.WORLD.group_name

    def run():
        torch.mm(case.a, case.b, out=out)
        return all_reduce(out, "sum", name)
    return case.work(run)


def decode(here, parameters):
    """One query per sequence, with divided keys: partial results are gathered and merged."""
    sizes = sizes_of(parameters, "batch", "kv", "heads", "kv_heads", "head_dim")
    dtype = sizes["dtype"]
    batch, heads, kv_heads, dim = (sizes[name] for name in ("batch", "heads", "kv_heads",
                                                            "head_dim"))
    keys = part_of(sizes["kv"], here, "kv")
    group = heads // kv_heads
    q = draw(here, dtype, 1, batch, kv_heads, group, dim)
    k, v = (draw(here, dtype, seed + 2 * here.rank, batch, kv_heads, keys, dim)
            for seed in (2, 3))
    own = torch.empty(batch, heads, dim + 1, device=here.device)
    every = torch.empty(here.ranks, batch, heads, dim + 1, device=here.device)

    def run():
        # The heads of a group are passed as queries.
        o, lse = torch.ops.aten._scaled_dot_product_flash_attention(  # pylint: disable=W0212
            q, k, v, 0.0, False)[:2]
        own[..., :dim] = o.reshape(batch, heads, dim)
        own[..., dim] = lse.reshape(batch, heads)
        dist.all_gather_into_tensor(every, own)
        weights = torch.softmax(every[..., dim:], 0)
        return (every[..., :dim] * weights).sum(0).to(TYPES[dtype])

    def wanted():
        """The reference for the first sequence."""
        rows = []
        for rank in range(here.ranks):
            part = [widen(draw(here, dtype, seed + 2 * rank, batch, kv_heads, keys, dim)[0])
                    for seed in (2, 3)]
            rows.append(part)
        all_k, all_v = (torch.cat([row[at] for row in rows], 1) for at in (0, 1))
        scores = widen(q[0]) @ all_k.transpose(1, 2) * dim ** -0.5
        return (torch.softmax(scores, -1) @ all_v).reshape(heads, dim)

    expected = wanted()
    return Work(run, lambda o: rows_apart(o[0], expected), 8 * rounding_of(dtype, sizes["kv"]))


WAYS = {"nccl": nccl, "torch_async_tp": torch_async_tp, "torch_two_shot": torch_two_shot,
        "torch_one_shot": torch_one_shot}
