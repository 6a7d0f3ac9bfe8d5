"""Context-parallel attention in packages for PyTorch, for peers_torch.py."""
import contextlib
import functools

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from peers_common import Work, draw, part_of, rows_apart, widen
from peers_parameters import rounding_of, sizes_of

BOUND = 8  # in roundings: of probabilities, results and merged partial results
GRADIENT_BOUND = 16  # compared with a gradient that has as many roundings
SAMPLED = 16  # queries per rank


class Case:
    """Whole tensors [batch, seq, heads, dim], equal on all ranks, with the reference of
    attention."""

    def __init__(self, here, parameters):
        sizes = sizes_of(parameters, "batch", "seq", "heads", "kv_heads", "head_dim", "causal")
        self.here = here
        self.causal = sizes["causal"]
        self.rounding = rounding_of(sizes["dtype"], sizes["seq"])
        self.seq, self.heads, self.kv_heads = sizes["seq"], sizes["heads"], sizes["kv_heads"]
        self.part = part_of(self.seq, here, "seq")
        self.scale = sizes["head_dim"] ** -0.5
        shape = (sizes["batch"], self.seq)
        self.q = draw(here, sizes["dtype"], 1, *shape, self.heads, sizes["head_dim"])
        self.k = draw(here, sizes["dtype"], 2, *shape, self.kv_heads, sizes["head_dim"])
        self.v = draw(here, sizes["dtype"], 3, *shape, self.kv_heads, sizes["head_dim"])
        self.do = draw(here, sizes["dtype"], 4, *shape, self.heads, sizes["head_dim"])

    def own(self):
        """Positions of this rank's contiguous part."""
        first = self.here.rank * self.part
        return torch.arange(first, first + self.part, device=self.here.device)

    def zigzag(self):
        """Positions of this rank's two chunks, an early and a late one."""
        half, odd = divmod(self.part, 2)
        if odd:
            raise ValueError(f"{self.part} positions of a rank are not two chunks")
        rank, last = self.here.rank, 2 * self.here.ranks - 1
        chunks = (torch.arange(at * half, (at + 1) * half) for at in (rank, last - rank))
        return torch.cat(list(chunks)).to(self.here.device)

    def local(self, positions):
        return [each[:, positions].contiguous() for each in (self.q, self.k, self.v)]

    def wanted(self, positions):
        """The reference for the first sequence at these positions: in f32, one group of heads at a
        time."""
        group = self.heads // self.kv_heads
        q = widen(self.q[0, positions])
        hidden = torch.arange(self.seq, device=q.device)[None] > positions[:, None]
        parts = []
        for head in range(self.kv_heads):
            k, v = (widen(each[0, :, head]) for each in (self.k, self.v))
            scores = torch.einsum("qgd,kd->gqk", q[:, head * group:(head + 1) * group], k)
            if self.causal:
                scores = scores.masked_fill(hidden, float("-inf"))
            p = torch.softmax(scores * self.scale, -1)
            parts.append(torch.einsum("gqk,kd->qgd", p, v))
        return torch.cat(parts, 1)

    def difference(self, positions):
        """The difference of an output [batch, part, heads, dim] at some of its positions."""
        at = torch.linspace(0, len(positions) - 1, min(SAMPLED, len(positions))).long()
        at = at.to(positions.device)
        expected = self.wanted(positions[at])
        return lambda o: rows_apart(o[0, at], expected)

    @functools.cached_property
    def gradients(self):
        """Whole dq, dk, dv, computed on one GPU."""
        leaves = [each.detach().clone().requires_grad_() for each in (self.q, self.k, self.v)]
        o = F.scaled_dot_product_attention(*(each.transpose(1, 2) for each in leaves),
                                           is_causal=self.causal,
                                           enable_gqa=self.heads != self.kv_heads)
        return torch.autograd.grad(o.transpose(1, 2), leaves, self.do)

    def gradient_difference(self, positions):
        expected = [each[:, positions].clone() for each in self.gradients]
        del self.gradients  # frees the whole tensors of all ranks
        return lambda found: max(rows_apart(*pair) for pair in zip(found, expected))


def backward_of(forward, leaves, do):
    """Times the gradients alone; the forward pass ran before."""
    o = forward(*leaves)
    return lambda: torch.autograd.grad(o, leaves, do, retain_graph=True)


def library_work(here, suite, parameters, forward, is_zigzag):
    """For packages whose function takes this rank's [batch, part, heads, dim]."""
    case = Case(here, parameters)
    positions = case.zigzag() if is_zigzag and case.causal else case.own()
    leaves = case.local(positions)

    def call(*tensors):
        return forward(*tensors, case.causal)
    if suite == "attention_bwd":
        leaves = [each.requires_grad_() for each in leaves]
        do = case.do[:, positions].contiguous()
        return Work(backward_of(call, leaves, do), case.gradient_difference(positions),
                    GRADIENT_BOUND * case.rounding, capturable=False)

    def run():
        with torch.no_grad():
            return call(*leaves)
    return Work(run, case.difference(positions), BOUND * case.rounding)


def ring_flash_attn(here, suite, parameters):
    import ring_flash_attn as package

    def forward(q, k, v, causal):
        function = (package.zigzag_ring_flash_attn_func if causal
                    else package.ring_flash_attn_func)
        return function(q, k, v, causal=causal)
    return library_work(here, suite, parameters, forward, True)


def yunchang_ulysses(here, suite, parameters):
    import yunchang
    yunchang.set_seq_parallel_pg(here.ranks, 1, here.rank, here.ranks)
    layer = yunchang.UlyssesAttention(dist.group.WORLD)
    return library_work(here, suite, parameters,
                        lambda q, k, v, causal: layer(q, k, v, causal=causal), False)


def yunchang_usp(here, suite, parameters):
    import yunchang
    if here.ranks % 2:
        raise ValueError(f"{here.ranks} ranks are not two groups")
    yunchang.set_seq_parallel_pg(2, here.ranks // 2, here.rank, here.ranks)
    layer = yunchang.LongContextAttention(ring_impl_type="basic")
    return library_work(here, suite, parameters,
                        lambda q, k, v, causal: layer(q, k, v, causal=causal), False)


def exchange_heads(tensor, ranks):
    """[batch, part, heads, dim] to [batch, seq, heads / ranks, dim]."""
    batch, part, heads, dim = tensor.shape
    sent = tensor.view(batch, part, ranks, heads // ranks, dim).permute(2, 0, 1, 3, 4).contiguous()
    got = torch.empty_like(sent)
    dist.all_to_all_single(got, sent)
    return got.permute(1, 0, 2, 3, 4).reshape(batch, ranks * part, heads // ranks, dim)


def exchange_positions(tensor, ranks):
    """The inverse exchange."""
    batch, seq, heads, dim = tensor.shape
    sent = tensor.view(batch, ranks, seq // ranks, heads, dim).transpose(0, 1).contiguous()
    got = torch.empty_like(sent)
    dist.all_to_all_single(got, sent)
    return got.permute(1, 2, 0, 3, 4).reshape(batch, seq // ranks, ranks * heads, dim)


def torch_ulysses(here, _, parameters):
    """Two NCCL all-to-alls around PyTorch's attention."""
    case = Case(here, parameters)
    part_of(case.heads, here, "heads")
    part_of(case.kv_heads, here, "kv_heads")
    leaves = case.local(case.own())

    def run():
        with torch.no_grad(), sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            q, k, v = (exchange_heads(each, here.ranks).transpose(1, 2) for each in leaves)
            o = F.scaled_dot_product_attention(q, k, v, is_causal=case.causal,
                                               enable_gqa=case.heads != case.kv_heads)
            return exchange_positions(o.transpose(1, 2), here.ranks)
    return Work(run, case.difference(case.own()), BOUND * case.rounding)


def context_parallel_parts():
    """PyTorch's entry points, whose module differs by version: (context_parallel,
    set_rotate_method, its options)."""
    from torch.distributed.tensor.experimental import context_parallel
    try:
        from torch.distributed.tensor.experimental._context_parallel import _attention as inside
    except ImportError:
        from torch.distributed.tensor.experimental import _attention as inside
    return context_parallel, inside.set_rotate_method, inside._cp_options  # pylint: disable=W0212


@functools.lru_cache(maxsize=1)
def mesh_of(ranks):
    from torch.distributed.device_mesh import init_device_mesh
    return init_device_mesh("cuda", (ranks,))


def torch_context_parallel(rotation, here, suite, parameters):
    """PyTorch's ring, with keys gathered or passed on. It does not support grouped heads, so keys
    are repeated."""
    context_parallel, set_rotate_method, options = context_parallel_parts()
    case = Case(here, parameters)
    set_rotate_method(rotation)
    options.enable_load_balance = case.causal
    group = case.heads // case.kv_heads
    is_backward = suite == "attention_bwd"
    if is_backward and group > 1:
        raise ValueError("gradients of repeated keys are not what the others compute")
    tensors = [case.q, *(each.repeat_interleave(group, 2) for each in (case.k, case.v)), case.do]
    tensors = [each.transpose(1, 2).contiguous() for each in tensors]
    positions = torch.arange(case.seq, device=here.device)
    state = {}

    # Inside the context, the buffers are cut into this rank's parts; after it they are whole again.
    @contextlib.contextmanager
    def within():
        usual = F.scaled_dot_product_attention
        try:
            with context_parallel(mesh_of(here.ranks), buffers=[*tensors, positions],
                                  buffer_seq_dims=[2, 2, 2, 2, 0]), \
                    sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
                prepare()
                yield
        finally:  # otherwise a failure inside would leave it replaced
            F.scaled_dot_product_attention = usual

    def attend(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=case.causal)

    def prepare():
        mine = positions.clone()
        leaves = [each.detach() for each in tensors[:3]]
        if is_backward:
            leaves = [each.requires_grad_() for each in leaves]
            state["run"] = backward_of(attend, leaves, tensors[3])
            difference = case.gradient_difference(mine)
            state["difference"] = lambda found: difference(
                [each.transpose(1, 2) for each in found])
        else:
            state["run"] = lambda: attend(*leaves)
            difference = case.difference(mine)
            state["difference"] = lambda o: difference(o.transpose(1, 2))

    def run():
        with contextlib.nullcontext() if is_backward else torch.no_grad():
            return state["run"]()
    if is_backward:
        _ = case.gradients  # computed first, because attention is the ring's from here on
    bound = GRADIENT_BOUND if is_backward else BOUND
    return Work(run, lambda found: state["difference"](found), bound * case.rounding,
                capturable=not is_backward,
                context=within)


WAYS = {"ring_flash_attn": ring_flash_attn, "yunchang_ulysses": yunchang_ulysses,
        "yunchang_usp": yunchang_usp, "torch_ulysses": torch_ulysses,
        "torch_cp_allgather": functools.partial(torch_context_parallel, "allgather"),
        "torch_cp_alltoall": functools.partial(torch_context_parallel, "alltoall")}
