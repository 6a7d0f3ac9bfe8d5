"""harpe.ops on GPUs, against plain PyTorch: values, gradients, CUDA graphs, cost of a call.

PYTHONPATH=… python ops_gpu_test.py [RANKS]

Ranks are processes; they share GPUs if there are too few. Skipped (77) without PyTorch or a GPU.
"""
import os
import socket
import sys
import time

RANKS = int(sys.argv[1]) if len(sys.argv) > 1 else 2


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


try:
    import torch
    import torch.distributed as dist
except ImportError:
    skip("there is no PyTorch")
if not torch.cuda.is_available():
    skip("there is no GPU")

import torch.nn.functional as functional

import harpe
import harpe.ops as hp


def draw(seed, *shape, scale=1.0):
    made = torch.Generator(device="cpu").manual_seed(seed)
    return (torch.randn(*shape, generator=made) * scale).to("cuda", torch.bfloat16)


def close(name, found, wanted, share=0.03):
    found, wanted = found.float(), wanted.float()
    off = (found - wanted).abs().max().item()
    most = wanted.abs().max().item()
    assert off <= share * most, f"{name} is off by {off} of {most}"
    assert torch.isfinite(found).all(), name


class Linears:
    """Inputs and weights of a column- and a row-parallel linear layer: whole, and this rank's
    part."""

    def __init__(self, rank, ranks, s=512, k=256, n=512):
        self.x, self.w = draw(1, s, k), draw(2, n, k, scale=0.05)
        self.y, self.v = draw(3, s, n), draw(4, k, n, scale=0.05)
        rows, columns = slice(rank * s // ranks, (rank + 1) * s // ranks), slice(
            rank * n // ranks, (rank + 1) * n // ranks)
        self.rows, self.columns = rows, columns
        self.own = dict(x=self.x[rows].clone(), w=self.w[columns].clone(),
                        y=self.y[:, columns].contiguous(), v=self.v[:, columns].contiguous())


def check_norm(t, reduced, group):
    """All rows, and a number of rows without a plan, which the operator copies."""
    y, v = t.own["y"].detach(), t.own["v"].detach()
    residual, weight = reduced.roll(1, 0), reduced[0]
    for rows in len(y), 3:
        normalised, total = hp.linear_ar_norm(y[:rows], v, residual[:rows], weight, group=group)
        close("residual_out", total, (reduced + residual)[:rows])
        close("linear_ar_norm", normalised,
              functional.rms_norm(total.float(), weight.shape, weight.float(), 1e-6))


def check_linears(rank, ranks, group):
    t = Linears(rank, ranks)
    whole = [each.clone().requires_grad_() for each in (t.x, t.w, t.y, t.v)]
    own = {name: each.requires_grad_() for name, each in t.own.items()}
    gathered = functional.linear(whole[0], whole[1])
    close("ag_linear", hp.ag_linear(own["x"], own["w"], group=group), gathered[:, t.columns])
    scattered = functional.linear(whole[2], whole[3])
    close("linear_rs", hp.linear_rs(own["y"], own["v"], group=group), scattered[t.rows])
    close("linear_ar", hp.linear_ar(own["y"], own["v"], group=group), scattered)
    check_norm(t, scattered.detach(), group)
    (gathered.float().square().sum() + scattered.float().square().sum()).backward()
    for each in own.values():
        each.grad = None
    (hp.ag_linear(own["x"], own["w"], group=group).float().square().sum()
     + hp.linear_rs(own["y"], own["v"], group=group).float().square().sum()).backward()
    close("gradient of x", own["x"].grad, whole[0].grad[t.rows])
    close("gradient of w", own["w"].grad, whole[1].grad[t.columns])
    close("gradient of y", own["y"].grad, whole[2].grad[:, t.columns])
    close("gradient of v", own["v"].grad, whole[3].grad[:, t.columns])


def check_attention(rank, ranks, group):
    b, s, h, g, d = 1, 512, 8, 4, 64
    whole = [draw(5, b, s, h, d), draw(6, b, s, g, d), draw(7, b, s, g, d)]
    own = slice(rank * s // ranks, (rank + 1) * s // ranks)
    parts = [each[:, own].contiguous().requires_grad_() for each in whole]
    whole = [each.float().requires_grad_() for each in whole]
    wanted = functional.scaled_dot_product_attention(
        *(each.transpose(1, 2) for each in whole), is_causal=True, enable_gqa=True).transpose(1, 2)
    found = hp.attention(*parts, group=group, causal=True)
    close("attention", found, wanted[:, own])
    weight = draw(8, b, s, h, d)
    (wanted * weight.float()).sum().backward()
    (found * weight[:, own]).sum().backward()
    for name, part, each in zip("qkv", parts, whole):
        close(f"gradient of {name}", part.grad, each.grad[:, own], 0.05)


def check_decode(rank, ranks, group):
    b, t, h, g, d = 4, 1024, 8, 4, 64
    q, k, v = draw(9, b, h, d), draw(10, b, t, g, d), draw(11, b, t, g, d)
    own = slice(rank * t // ranks, (rank + 1) * t // ranks)
    lengths = torch.tensor([t, 700, 65, 1], dtype=torch.int32, device="cuda")
    seen = torch.arange(t, device="cuda") < lengths[:, None, None, None]
    wanted = functional.scaled_dot_product_attention(
        q.float().unsqueeze(2), k.transpose(1, 2).float(), v.transpose(1, 2).float(),
        attn_mask=seen, enable_gqa=True).squeeze(2)
    found = hp.decode(q, k[:, own].contiguous(), v[:, own].contiguous(), group=group,
                      lengths=lengths)
    close("decode", found, wanted)


class Pool:
    """Caches of sequences in blocks of one pool, and their attention."""

    def __init__(self, rank, ranks, page=16, b=4, h=8, g=4, d=64, most=64):
        blocks = 2 * b * most
        self.q, self.k, self.v = draw(9, b, h, d), draw(10, blocks, page, g, d), draw(
            11, blocks, page, g, d)
        own = slice(rank * blocks // ranks, (rank + 1) * blocks // ranks)
        self.own = self.k[own].clone(), self.v[own].clone()
        order = torch.Generator().manual_seed(3)
        self.table = torch.randperm(blocks, generator=order)[:b * most].view(b, most).int().cuda()
        self.table[1, :2] = self.table[0, :2]  # a prefix shared by two sequences
        self.lengths = torch.tensor([page * most, 700, 65, 1], dtype=torch.int32, device="cuda")

    def compute_alone(self):
        k, v = (x[self.table.long()].flatten(1, 2).transpose(1, 2).float()
                for x in (self.k, self.v))
        seen = torch.arange(k.shape[2], device="cuda") < self.lengths[:, None, None, None]
        return functional.scaled_dot_product_attention(self.q.float().unsqueeze(2), k, v,
                                                       attn_mask=seen, enable_gqa=True).squeeze(2)

    def call(self, group):
        return hp.decode(self.q, *self.own, group=group, lengths=self.lengths,
                         block_table=self.table)


def check_pool(rank, ranks, group):
    """Against the reference, and in a graph whose lengths and tables change between replays."""
    pool = Pool(rank, ranks)
    close("decode of a pool", pool.call(group), pool.compute_alone())
    for page in 1, 64, 256:
        other = Pool(rank, ranks, page=page, most=1024 // page)
        close(f"decode of pages of {page}", other.call(group), other.compute_alone())
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = pool.call(group)
    table = pool.table.clone()
    for round in range(3):
        pool.lengths.copy_(torch.tensor([3, 16, 17, 1000 + round]))
        pool.table.copy_(table.roll(round, 0))
        beyond = torch.arange(64, device="cuda") * 16 >= pool.lengths[:, None]
        pool.table.masked_fill_(beyond, 0)
        torch.cuda.synchronize()
        dist.barrier(group)
        graph.replay()
        assert torch.equal(found, pool.call(group)), "graph and eager"
        close("decode of a pool, in a graph", found, pool.compute_alone())
        torch.cuda.synchronize()
        dist.barrier(group)


def check_compiled(rank, ranks, group):
    """Eager and compiled results have equal bits, including gradients."""
    t = Linears(rank, ranks)
    x, w = (each.detach().requires_grad_() for each in (t.own["x"], t.own["w"]))

    def compute(x, w):
        return hp.linear_rs(torch.relu(hp.ag_linear(x, w, group=group)), w.t().contiguous(),
                            group=group)

    made = []
    for each in compute, torch.compile(compute, fullgraph=True):
        y = each(x, w)
        made.append((y, *torch.autograd.grad(y.sum(), (x, w))))
    for eager, compiled in zip(*made):
        assert torch.equal(eager, compiled), "eager and compiled"


def check_moe(rank, ranks, group):
    t, width, experts, inner, choices = 128, 128, 8, 256, 2
    x, w1, w3 = draw(12, t, width), *(draw(i, experts, inner, width, scale=0.05) for i in (13, 14))
    w2, scores = draw(15, experts, width, inner, scale=0.05), draw(16, t, experts).float()
    weights, ids = scores.softmax(-1).topk(choices)
    made = torch.zeros(t, width, device="cuda")
    for choice in range(choices):
        up, gate, down = w3[ids[:, choice]], w1[ids[:, choice]], w2[ids[:, choice]]
        hidden = (functional.silu(torch.einsum("tk,tfk->tf", x.float(), gate.float()))
                  * torch.einsum("tk,tfk->tf", x.float(), up.float()))
        made += weights[:, choice, None] * torch.einsum("tf,tkf->tk", hidden, down.float())
    tokens = slice(rank * t // ranks, (rank + 1) * t // ranks)
    own = slice(rank * experts // ranks, (rank + 1) * experts // ranks)
    found = hp.moe(x[tokens].contiguous(), ids[tokens].to(torch.int32), weights[tokens],
                   *(each[own].contiguous() for each in (w1, w3, w2)), group=group)
    close("moe", found, made[tokens])


def check_graphs(rank, ranks, group):
    t = Linears(rank, ranks)
    x, w = t.own["x"].detach(), t.own["w"].detach()
    with torch.no_grad():
        hp.ag_linear(x, w, group=group)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = hp.ag_linear(x, w, group=group)
            z = y * 2
            try:
                hp.ag_linear(x[:, :128], w[:, :128], group=group)
            except harpe.Refused as refused:
                assert "ag_linear" in str(refused), refused
            else:
                raise AssertionError("a first call in a capture")
        for round in range(3):
            x.copy_(draw(40 + round, *t.x.shape)[t.rows])
            torch.cuda.synchronize()
            dist.barrier(group)
            graph.replay()
            eager = hp.ag_linear(x, w, group=group)
            torch.cuda.synchronize()
            dist.barrier(group)
            assert torch.equal(eager, y) and torch.equal(eager * 2, z), "graph and eager"


def check_heap(rank, ranks, group):
    """Inputs in the shared heap are read in place, with the same bits. If only one rank's input is
    in the heap, the call is refused."""
    if ranks == 1:
        return  # no other rank reads them
    own = dist.new_group(list(range(ranks)))
    hp.init(own, tensors=8 << 20, on_miss="error", timeout=60)
    t, make = Linears(rank, ranks), harpe.plan
    harpe.plan = lambda *program, **more: make(*program, **{"schedule": "pull", **more})
    w = t.own["w"].detach()
    rows = [harpe.empty(t.own["x"].shape, dtype=torch.bfloat16, group=own) for _ in range(2)]
    assert all(each.is_cuda and each.data_ptr() % 256 == 0 for each in rows)
    for round in range(6):
        given = rows[round % 2].copy_(draw(50 + round, *t.x.shape)[t.rows])
        found = hp.ag_linear(given, w, group=own)
        assert torch.equal(found, hp.ag_linear(given.clone(), w, group=own)), "in the heap"
        close("ag_linear in the heap",
              found, functional.linear(draw(50 + round, *t.x.shape), t.w)[:, t.columns])
    harpe.plan = make
    plan, = (each for status in hp.status() if status.name == own.group_name
             for each in status.plans)
    assert plan.copied_bytes == 6 * given.nbytes, f"{plan}: of those elsewhere alone"
    torch.cuda.synchronize()
    dist.barrier(own)
    if rank == 0:
        hp.ag_linear(given, w, group=own)
    dist.barrier(own)
    if rank == 1:
        try:
            hp.ag_linear(given.clone(), w, group=own)
        except harpe.Refused as refused:
            assert "at the same place" in str(refused), refused
        else:
            raise AssertionError("rank 1 is refused")
    dist.barrier(own)
    try:
        harpe.check(own)
    except harpe.Refused as refused:
        assert refused.code == "I311", refused
    else:
        raise AssertionError("rank 0 is told")
    harpe.reset(own)
    assert torch.equal(found, hp.ag_linear(given, w, group=own)), "after a reset"
    del rows, given
    status, = (each for each in hp.status() if each.name == own.group_name)
    assert status.tensor_bytes == 0


def check_results(rank, ranks, group):
    """Results in shared memory are not copied while ranks hold them, those of graphs included.
    Results that do not fit are copied."""
    own = dist.new_group(list(range(ranks)))
    t = Linears(rank, ranks)
    y, v = t.own["y"].detach(), t.own["v"].detach()
    bytes = y.shape[0] * v.shape[0] * y.itemsize
    hp.init(own, results=12 * bytes, on_miss="error", timeout=60)
    make = harpe.plan  # with a schedule that reads no peers' inputs
    harpe.plan = lambda *program, **more: make(*program, **{"schedule": "push", **more})
    wanted = [hp.linear_ar(y + each, v, group=own).clone() for each in range(3)]
    harpe.plan = make
    for each in range(3):
        close("linear_ar", wanted[each], hp.linear_ar(y + each, v, group=group))
    held, side = [], torch.cuda.Stream()
    for round in range(40):
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side if round % 5 == 4 else torch.cuda.current_stream()):
            made = hp.linear_ar(y + round % 3, v, group=own)
            held.append((made, wanted[round % 3]))
        torch.cuda.current_stream().wait_stream(side)
        assert all(torch.equal(*each) for each in held), f"round {round}"
        if len(held) > 2 - (rank + round) % 2:
            del held[(rank * round) % len(held)], made
    found = count_copied(own, "linear_ar")
    assert found == 0, f"{found} bytes are copied"
    if ranks > 1:
        before = held[0][0].clone()
        more = [hp.linear_ar(y + 1, v, group=own) for _ in range(16)]
        assert count_copied(own, "linear_ar") >= 4 * bytes, "there is no room for all"
        assert all(torch.equal(each, more[0]) for each in more) and torch.equal(held[0][0], before)
        del more
    check_captured_results(rank, ranks, own, wanted, lambda each: (y + each, v))


def check_captured_results(rank, ranks, group, wanted, operands):
    """What a graph no longer needs, its later calls write again; what it holds, nothing else
    writes. After the graph's end other graphs have its memory."""
    places = []
    for _ in range(20):  # more than there is room for at once
        graph, kept, given = torch.cuda.CUDAGraph(), [], [operands(each) for each in range(3)]
        torch.cuda.synchronize()
        dist.barrier(group)
        with torch.cuda.graph(graph):
            kept.append(hp.linear_ar(*given[0], group=group))
            dropped = []
            for each in (1, 2, 1):
                made = hp.linear_ar(*given[each], group=group)
                dropped.append(made.data_ptr())
                kept.append(made.clone())
                del made
                dist.barrier(group)  # all ranks have given it back
        places.append(kept[0].data_ptr())
        if ranks > 1:
            assert len(set(dropped)) == 1 and dropped[0] != places[-1], "places in a graph"
        for round in range(3):
            torch.cuda.synchronize()
            dist.barrier(group)
            graph.replay()
            eager = hp.linear_ar(*given[1], group=group)
            assert torch.equal(eager, wanted[1]), "eager beside a graph"
            for found, each in zip(kept, (0, 1, 2, 1)):
                assert torch.equal(found, wanted[each]), f"result {each} of round {round}"
        torch.cuda.synchronize()
        dist.barrier(group)
        del graph, kept
        torch.cuda.synchronize()
        time.sleep(0.05)  # the driver ends graphs on a thread of its own
        dist.barrier(group)
    if ranks > 1:
        assert len(set(places)) < 20, "memory of ended graphs is free"


def check_columns(rank, ranks, group):
    """Sums that are divided by columns, with a norm and in a graph."""
    own = dist.new_group(list(range(ranks)))
    hp.init(own, on_miss="error", timeout=60)
    t, make = Linears(rank, ranks), harpe.plan
    y, v, wanted = t.own["y"].detach(), t.own["v"].detach(), functional.linear(t.y, t.v)
    harpe.plan = lambda *program, **more: make(*program, **{"schedule": "push_n", **more})
    made = hp.linear_ar(y, v, group=own)
    close("linear_ar by columns", made, wanted)
    check_norm(t, wanted, own)
    harpe.plan = make
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        captured = hp.linear_ar(y, v, group=own)
    for _ in range(3):
        torch.cuda.synchronize()
        dist.barrier(own)
        graph.replay()
        assert torch.equal(captured, made), "by columns in a graph"
    torch.cuda.synchronize()
    dist.barrier(own)


def check_joined(rank, ranks, group):
    """Blocks that compute once they have copied, in clusters: each result has the bits of the
    others."""
    own = dist.new_group(list(range(ranks)))
    hp.init(own, on_miss="error", timeout=60)
    m, n, k = 1536, 10240, 8192  # its kernel's blocks do so on two ranks
    x, w = draw(51 + rank, m // ranks, k), draw(61 + rank, n // ranks, k, scale=0.05)
    whole = torch.cat([draw(51 + each, m // ranks, k) for each in range(ranks)])
    make = harpe.plan
    harpe.plan = lambda *program, **more: make(*program, **{"schedule": "fused", **more})
    first = hp.ag_linear(x, w, group=own)
    harpe.plan = make
    close("ag_linear behind copies", first, functional.linear(whole, w))
    differ = torch.zeros((), device="cuda", dtype=torch.int64)
    calls = 3000 if ranks <= torch.cuda.device_count() else 50
    for _ in range(calls):
        differ += (hp.ag_linear(x, w, group=own) != first).any()
    assert differ.item() == 0, f"{differ.item()} of {calls} results differ"
    if ranks == 2:
        assert count_copied(own, "ag_linear") == 0, "x is sent from where it lies"


def count_copied(group, operator):
    return sum(plan.copied_bytes for status in hp.status() if status.name == group.group_name
               for plan in status.plans if plan.question.startswith(f"{operator} "))


def time_calls(rank, ranks, group):
    """Times calls of operators, without and with gradients; the latter only until the results."""
    t = Linears(rank, ranks)
    pool = Pool(rank, ranks)
    if ranks > 1:
        return  # ranks that share a GPU wait for it
    for more, name in (False, ""), (True, " with gradients"):
        x, w, y, v = (t.own[each].detach().requires_grad_(more) for each in "xwyv")
        time_call(rank, ranks, "torch.nn.functional.linear" + name, lambda: functional.linear(x, w))
        time_call(rank, ranks, "ag_linear" + name, lambda: hp.ag_linear(x, w, group=group))
        time_call(rank, ranks, "linear_rs" + name, lambda: hp.linear_rs(y, v, group=group))
        time_call(rank, ranks, "linear_ar" + name, lambda: hp.linear_ar(y, v, group=group))
    time_call(rank, ranks, "decode of a pool", lambda: pool.call(group))


def time_call(rank, ranks, name, call):
    """The host's time per call with few calls in flight."""
    times = []
    for at in range(2100):
        begin = time.perf_counter()
        made = call()  # noqa: F841, so that it is freed outside
        times.append(time.perf_counter() - begin)
        if at % 16 == 15:
            torch.cuda.synchronize()
    times = sorted(times[100:])
    if rank == 0:
        print(f"{name}, {ranks} ranks: a call takes {times[len(times) // 2] * 1e6:.1f} us at "
              f"the median, {times[len(times) * 99 // 100] * 1e6:.1f} at 99 of 100", flush=True)


def run_rank(rank, ranks, port):
    os.environ.update(MASTER_ADDR="localhost", MASTER_PORT=str(port))
    torch.cuda.set_device(rank % torch.cuda.device_count())
    dist.init_process_group("gloo", rank=rank, world_size=ranks)
    hp.init(dist.group.WORLD, on_miss="error", timeout=60)
    for check in (check_linears, check_attention, check_decode, check_pool, check_moe, check_graphs,
                  check_compiled, check_heap, check_results, check_columns, check_joined,
                  time_calls):
        begin = time.perf_counter()
        check(rank, ranks, dist.group.WORLD)
        torch.cuda.synchronize()
        dist.barrier()
        if rank == 0:
            print(f"{check.__name__}: right in {time.perf_counter() - begin:.1f} s", flush=True)
    if rank == 0:
        for status in hp.status():
            assert not status.misses
            for plan in status.plans:
                print(f"  {plan.question}: {plan.schedule}, {plan.launches} launches, "
                      f"{plan.copied_bytes / max(1, plan.launches):.0f} bytes copied a launch")
    dist.destroy_process_group()


def find_port():
    with socket.socket() as taken:
        taken.bind(("localhost", 0))
        return taken.getsockname()[1]


if __name__ == "__main__":
    print(f"{RANKS} ranks on {min(RANKS, torch.cuda.device_count())} GPUs", flush=True)
    torch.multiprocessing.spawn(run_rank, (RANKS, find_port()), nprocs=RANKS)
