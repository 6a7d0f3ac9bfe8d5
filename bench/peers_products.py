"""GEMMs with collectives, and decode, as users of PyTorch and of harpe.ops write them, for
peers_torch.py. All ways of a case share its operands."""
import dataclasses
import functools
import itertools

import torch
import torch.distributed as dist

from peers_common import TYPES, Work, copy_cold, draw, part_of, rows_apart, widen
from peers_parameters import rounding_of, sizes_of

SAMPLED = 128  # rows


def sampled_rows(count, here):
    """Rows spread evenly over `count`, including the first and the last."""
    return torch.linspace(0, count - 1, min(SAMPLED, count), device=here.device).long()


class Gemm:
    """c = a b on several ranks: this rank's a, equal copies of its b, and the reference: `wanted`
    at `rows` of c, within `bound`."""

    def __init__(self, a, b, rows, wanted, bound):
        self.a, self.rows, self.wanted, self.bound = a, rows, wanted, bound
        self.weights = [each for each, in copy_cold(b)]
        self.next_b = itertools.cycle(self.weights).__next__

    def difference(self, c):
        return rows_apart(c[self.rows], self.wanted)

    def work(self, run):
        return Work(run, self.difference, self.bound, len(self.weights))


class Gathered(Gemm):
    """a's rows are divided and gathered, b's columns are divided."""

    def __init__(self, here, parameters):
        sizes = sizes_of(parameters, "m", "n", "k")
        rows, columns = part_of(sizes["m"], here, "m"), part_of(sizes["n"], here, "n")
        whole = draw(here, sizes["dtype"], 1, sizes["m"], sizes["k"])
        b = draw(here, sizes["dtype"], 2 + here.rank, sizes["k"], columns)
        sampled = sampled_rows(sizes["m"], here)
        super().__init__(whole[here.rank * rows:(here.rank + 1) * rows].clone(), b, sampled,
                         widen(whole[sampled]) @ widen(b),
                         4 * rounding_of(sizes["dtype"], sizes["k"]))


class Reduced(Gemm):
    """The sums are divided; each rank gets some rows of the total, or all."""

    def __init__(self, here, parameters, scattered):
        sizes = sizes_of(parameters, "m", "n", "k")
        depth = part_of(sizes["k"], here, "k")
        rows = part_of(sizes["m"], here, "m") if scattered else sizes["m"]
        a = draw(here, sizes["dtype"], 1, sizes["m"], sizes["k"])
        b = draw(here, sizes["dtype"], 2, sizes["k"], sizes["n"])
        mine = slice(here.rank * depth, (here.rank + 1) * depth)
        sampled = sampled_rows(rows, here)
        first = here.rank * rows if scattered else 0
        # Each partial sum is rounded, and each step of a ring rounds; no partial sum is much larger
        # than the total's largest element.
        bound = (2 * here.ranks + 2) * rounding_of(sizes["dtype"], sizes["k"])
        super().__init__(a[:, mine].contiguous(), b[mine].clone(), sampled,
                         widen(a[first + sampled]) @ widen(b), bound)
        self.out = rows, sizes["n"]  # the shape of this rank's part of c


class Decode:
    """One query per sequence, with divided keys. q is [batch, kv_heads, group, dim], and the caches
    are [batch, kv_heads, keys, dim]."""

    def __init__(self, here, parameters):
        sizes = sizes_of(parameters, "batch", "kv", "heads", "kv_heads", "head_dim")
        dtype = sizes["dtype"]
        batch, heads, kv_heads, dim = (sizes[name] for name in ("batch", "heads", "kv_heads",
                                                                "head_dim"))
        self.heads, self.dtype = heads, TYPES[dtype]
        cache = (batch, kv_heads, part_of(sizes["kv"], here, "kv"), dim)
        self.q = draw(here, dtype, 1, batch, kv_heads, heads // kv_heads, dim)
        k, v = (torch.cat([draw(here, dtype, seed + 2 * rank, *cache)[0]
                           for rank in range(here.ranks)], 1) for seed in (2, 3))
        scores = widen(self.q[0]) @ widen(k).transpose(1, 2) * dim ** -0.5
        self.wanted = (torch.softmax(scores, -1) @ widen(v)).reshape(heads, dim)  # sequence 0
        self.bound = 8 * rounding_of(dtype, sizes["kv"])
        self.caches = copy_cold(*(draw(here, dtype, seed + 2 * here.rank, *cache)
                                  for seed in (2, 3)))

    def work(self, run):
        return Work(run, lambda o: rows_apart(o[0], self.wanted), self.bound, len(self.caches))


OPERANDS = {"ag_gemm": Gathered, "gemm_rs": functools.partial(Reduced, scattered=True),
            "gemm_ar": functools.partial(Reduced, scattered=False), "decode": Decode}


@functools.lru_cache(maxsize=1)
def draw_operands(here, suite, parameters):
    return OPERANDS[suite](here, parameters)


def operands_of(here, suite, parameters):
    """The operands of a case, which are drawn once for all its ways."""
    return draw_operands(here, suite, tuple(parameters))


def nccl(here, suite, parameters):
    case = operands_of(here, suite, parameters)
    if suite == "decode":
        return decode_with_nccl(here, case)
    if suite == "ag_gemm":
        full = case.a.new_empty(here.ranks * len(case.a), case.a.shape[1])

        def gather():
            dist.all_gather_into_tensor(full, case.a)
            return full @ case.next_b()
        return case.work(gather)
    if suite == "gemm_ar":
        def reduce():
            c = case.a @ case.next_b()
            dist.all_reduce(c)
            return c
        return case.work(reduce)
    out = case.a.new_empty(case.out)

    def scatter():
        dist.reduce_scatter_tensor(out, case.a @ case.next_b())
        return out
    return case.work(scatter)


def decode_with_nccl(here, case):
    """Partial results are gathered and merged."""
    batch, dim = case.q.shape[0], case.q.shape[-1]
    own = torch.empty(batch, case.heads, dim + 1, device=here.device)
    every = torch.empty(here.ranks, batch, case.heads, dim + 1, device=here.device)
    caches = itertools.cycle(case.caches)

    def run():
        # The heads of a group are passed as queries.
        o, lse = torch.ops.aten._scaled_dot_product_flash_attention(  # pylint: disable=W0212
            case.q, *next(caches), 0.0, False)[:2]
        own[..., :dim] = o.reshape(batch, case.heads, dim)
        own[..., dim] = lse.reshape(batch, case.heads)
        dist.all_gather_into_tensor(every, own)
        weights = torch.softmax(every[..., dim:], 0)
        return (every[..., :dim] * weights).sum(0).to(case.dtype)
    return case.work(run)


def fused(operators, here, suite, parameters):
    """`operators` has functions with the names and signatures of torch.ops.symm_mem's. They need
    not return the gathered a."""
    case, group = operands_of(here, suite, parameters), dist.group.WORLD.group_name
    if suite == "ag_gemm":
        return case.work(lambda: operators.fused_all_gather_matmul(
            case.a, [case.next_b()], 0, group, return_A=False)[1][0])
    return case.work(lambda: operators.fused_matmul_reduce_scatter(
        case.a, case.next_b(), "sum", 0, group))


@functools.lru_cache(maxsize=1)
def import_harpe():
    """harpe.ops. A call without a plan raises the reason: PyTorch does not compute it instead."""
    import harpe.ops
    harpe.ops.init(dist.group.WORLD, on_miss="error")
    return harpe.ops


def list_plans(operators):
    return [plan for ranks in operators.status() for plan in ranks.plans]


def harpe(here, suite, parameters):
    operators = import_harpe()
    work = {"gemm_ar": linear_ar, "decode": decode_with_harpe}.get(suite, fused)(
        operators, here, suite, parameters)
    launches = {plan.question: plan.launches for plan in list_plans(operators)}

    def describe_plan():
        """The plan that has run since then: its schedule, and the bytes that a launch copies
        between tensors and memory that other ranks can access."""
        plan = next(plan for plan in list_plans(operators)
                    if plan.launches > launches.get(plan.question, 0))
        return {"plan": plan.schedule, "copied_bytes": plan.copied_bytes // plan.launches}
    return dataclasses.replace(work, facts=describe_plan)


def linear_ar(operators, here, suite, parameters):
    """With weights in nn.Linear's layout, [n, k]."""
    case = operands_of(here, suite, parameters)
    weights = itertools.cycle([b.t().contiguous() for b in case.weights])
    return case.work(lambda: operators.linear_ar(case.a, next(weights), group=dist.group.WORLD))


def decode_with_harpe(operators, here, suite, parameters):
    """With caches [batch, keys, kv_heads, dim]."""
    case = operands_of(here, suite, parameters)
    q = case.q.flatten(1, 2)
    caches = itertools.cycle([[each.transpose(1, 2).contiguous() for each in caches]
                              for caches in case.caches])
    return case.work(lambda: operators.decode(q, *next(caches), group=dist.group.WORLD))


def symmetric_memory():
    import torch.distributed._symmetric_memory as memory
    return memory


def torch_async_tp(here, suite, parameters):
    memory = symmetric_memory()
    if hasattr(memory, "enable_symm_mem_for_group"):
        memory.enable_symm_mem_for_group(dist.group.WORLD.group_name)
    return fused(torch.ops.symm_mem, here, suite, parameters)


def torch_two_shot(here, suite, parameters):
    """A GEMM into symmetric memory, in which the ranks add up the sums in place."""
    return added_up(here, suite, parameters, torch.ops.symm_mem.two_shot_all_reduce_)


def torch_one_shot(here, suite, parameters):
    """The same, but each rank reads and adds up all sums."""
    return added_up(here, suite, parameters, torch.ops.symm_mem.one_shot_all_reduce)


def added_up(here, suite, parameters, all_reduce):
    memory = symmetric_memory()
    case = operands_of(here, suite, parameters)
    out = memory.empty(*case.out, dtype=case.a.dtype, device=here.device)
    memory.rendezvous(out, dist.group.WORLD)
    name = dist.group.WORLD.group_name

    def run():
        torch.mm(case.a, case.next_b(), out=out)
        return all_reduce(out, "sum", name)
    return case.work(run)


WAYS = {"harpe": harpe, "nccl": nccl, "torch_async_tp": torch_async_tp,
        "torch_two_shot": torch_two_shot, "torch_one_shot": torch_one_shot}
