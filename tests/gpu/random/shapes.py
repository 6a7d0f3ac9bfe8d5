"""Random operators, shapes, ranks and schedules for `random_test.py`."""
import dataclasses
import random

MOST_RANKS = 4


@dataclasses.dataclass
class Case:
    """One run of harpe, and what the reference needs of it."""
    operator: str
    sizes: dict  # parameters of the operator, as values
    mesh: str
    ranks: int
    schedule: str = "auto"
    iterations: int = 1
    options: tuple = ()
    spread: float = 1.0  # of queries: a larger one concentrates the weights

    @property
    def dtype(self):
        return self.sizes["dtype"]

    def words(self):
        """The command line without its files."""
        values = [f"{name}={str(value).lower() if isinstance(value, bool) else value}"
                  for name, value in self.sizes.items()]
        return ["run", self.operator, *values, "--mesh", self.mesh, "--schedule", self.schedule,
                "--iters", str(self.iterations), *self.options]


def draw_extent(rng, most):
    """A small or odd extent, or whole tiles; most often one that cuts a tile."""
    kind = rng.random()
    if kind < 0.15:
        return rng.randint(1, min(16, most))
    if kind < 0.4:
        return max(1, rng.randint(1, max(1, most // 64)) * 64)
    if kind < 0.6:
        return max(8, rng.randint(1, max(1, most // 8)) * 8)
    return rng.randint(1, most)


def draw_dtype(rng):
    return rng.choices(("bf16", "f16", "f32", "f64"), (12, 5, 3, 1))[0]


def draw_ranks(rng, gpus):
    """(mesh, ranks); usually as many ranks as GPUs."""
    most = min(MOST_RANKS, 4 * gpus)
    ranks = gpus if gpus <= most and rng.random() < 0.6 else rng.randint(1, most)
    if ranks == 4 and rng.random() < 0.4:
        return "a=2,b=2", ranks
    return f"r={ranks}", ranks


def product_sizes(rng, _ranks):
    while True:
        m, n, k = (draw_extent(rng, 2048) for _ in range(3))
        if m * n * k <= 4e8:
            return {"m": m, "n": n, "k": k, "dtype": draw_dtype(rng)}


def draw_heads(rng):
    """Groups of 1 to 16 query heads; mostly head widths that tensor-core kernels support."""
    key_heads = rng.choice((1, 1, 2, 3, 4, 5, 8))
    group = rng.choice((1, 1, 2, 3, 4, 5, 7, 8, 16))
    width = rng.choices((64, 128, 192, 96, 80, 40, 33), (10, 10, 3, 2, 1, 1, 1))[0]
    values = {192: 128}.get(width, width)
    if rng.random() < 0.1:
        values = rng.choice((32, 64, 128))
    return {"heads": key_heads * group, "kv_heads": key_heads, "head_dim": width,
            "v_head_dim": values}


def draw_masks(rng, sizes):
    if rng.random() < 0.45:
        sizes["causal"] = True
    if rng.random() < 0.2:
        sizes["window"] = rng.randint(1, sizes["seq"])
    # A prefix only widens other masks; alone it is refused.
    if ("causal" in sizes or "window" in sizes) and rng.random() < 0.2:
        sizes["prefix"] = rng.randint(1, sizes["kv_seq"])
    if sizes["seq"] == sizes["kv_seq"] and rng.random() < 0.15:
        sizes["packed"] = True


def attention_sizes(rng, _ranks, most_work=2e8, most=1600):
    while True:
        sizes = {"batch": rng.choice((1, 1, 1, 2, 3)), "seq": draw_extent(rng, most)}
        sizes["kv_seq"] = sizes["seq"] if rng.random() < 0.65 else draw_extent(rng, most)
        sizes |= draw_heads(rng)
        draw_masks(rng, sizes)
        sizes["dtype"] = draw_dtype(rng)
        work = sizes["batch"] * sizes["heads"] * sizes["seq"] * sizes["kv_seq"]
        if work * (sizes["head_dim"] + sizes["v_head_dim"]) <= most_work:
            return sizes


def gradient_sizes(rng, ranks):
    return attention_sizes(rng, ranks, most_work=6e7, most=700)


def decode_sizes(rng, _ranks):
    sizes = {"batch": rng.choice((1, 1, 2, 3, 5, 8)), "kv": draw_extent(rng, 4096)}
    sizes |= draw_heads(rng)
    if rng.random() < 0.2:
        sizes |= {"kv_heads": 1, "heads": rng.choice((12, 24, 32, 64))}
    if rng.random() < 0.25:
        sizes["page"] = rng.choice((1, 8, 16, 48, 64, 100))
        sizes["kv"] = sizes["page"] * rng.randint(1, max(1, 2048 // sizes["page"]))
    if rng.random() < 0.3:
        sizes["ragged"] = True
    sizes["dtype"] = draw_dtype(rng)
    return sizes


def expert_sizes(rng, ranks):
    experts = rng.choice((1, 2, 3, 4, 5, 8, 12, 16))
    wide = rng.random() < 0.7
    return {"tokens": draw_extent(rng, 700), "hidden": draw_width(rng, wide),
            "experts": experts * (ranks if rng.random() < 0.5 else 1),
            "topk": rng.randint(1, min(4, experts)), "inter": draw_width(rng, wide),
            "dtype": draw_dtype(rng)}


def draw_width(rng, wide):
    return 64 * rng.randint(1, 6) if wide else rng.randint(1, 200)


def capped_sizes(rng, ranks):
    sizes = expert_sizes(rng, ranks)
    sizes["capacity"] = rng.randint(1, sizes["tokens"])
    return sizes


# Per operator: how its sizes are drawn, and its weight in the draw.
OPERATORS = {
    "gemm": (product_sizes, 4), "ag_gemm": (product_sizes, 4), "gemm_rs": (product_sizes, 4),
    "gemm_ar": (product_sizes, 4), "attention": (attention_sizes, 8),
    "attention_bwd": (gradient_sizes, 5), "decode": (decode_sizes, 6), "moe": (expert_sizes, 4),
    "moe_capped": (capped_sizes, 2),
}


def draw(seed, index, gpus, schedules_of):
    """Case `index` of a seed; `schedules_of(case)` names the schedules that apply."""
    rng = random.Random(f"{seed} {index}")
    operator = rng.choices(list(OPERATORS), [often for _, often in OPERATORS.values()])[0]
    mesh, ranks = draw_ranks(rng, gpus)
    case = Case(operator, OPERATORS[operator][0](rng, ranks), mesh, ranks)
    case.schedule = rng.choice(["auto", *schedules_of(case)])
    case.iterations = rng.choice((1, 1, 2, 3))
    case.spread = rng.choice((0.5, 1.0, 3.0))
    if rng.random() < 0.25:
        case.options += ("--inject", f"delay={rng.randrange(1000)}")
    if 1 < ranks <= gpus and rng.random() < 0.04:  # in separate processes
        case.options += ("--launch", str(ranks))
    elif ranks > gpus:
        case.options += ("--share-gpus",)
    return case
