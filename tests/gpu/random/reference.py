"""The meaning of operators in NumPy and f64, and bounds on the errors of their outputs.

Nothing here comes from harpe. Each reference returns its outputs as (values, unit). `unit` is the
expected size of the rounding errors of each element; the bound is a multiple of it. A sum of K
products of random signs has a size of about s = sqrt(sum of the squares of its products), however
much of it cancels. Storing the sum in 16 bits rounds it once, with an error of u |sum|. Each rank
whose partial sum travels in 16 bits adds an error of about u s. Attention rounds its weights P to
16 bits before it multiplies them by the values, and the backward pass rounds dS and P: with
independent errors, u sqrt(P^2 V^2). All else is f32, with errors of about 2^-24 relative to sums of
absolute values.
"""
import numpy as np

# The largest relative error of rounding to nearest: half a unit in the last place.
UNIT = {"bf16": 2.0**-8, "f16": 2.0**-11, "f32": 2.0**-24, "f64": 2.0**-24}
SINGLE = 2.0**-24
# The largest absolute error of rounding small values: half of the smallest value above 0.
SMALLEST = {"bf16": 2.0**-134, "f16": 2.0**-25, "f32": 2.0**-150, "f64": 2.0**-150}
# The accepted error in units: sums of random signs stay within 6 standard deviations.
MOST_UNITS = 6.0


def to_dtype(values, dtype):
    """The values rounded to numbers of `dtype`."""
    if dtype == "f64":
        return values
    values = values.astype(np.float32)
    if dtype == "f16":
        return values.astype(np.float16).astype(np.float32)
    if dtype == "bf16":
        bits = values.view(np.uint32)
        even = (bits >> np.uint32(16)) & np.uint32(1)
        rounded = (bits + np.uint32(0x7FFF) + even) & np.uint32(0xFFFF0000)
        return rounded.view(np.float32)
    return values


def rounding(values, dtype):
    """The rounding error of each value when it is stored as `dtype`."""
    return np.maximum(UNIT[dtype] * np.abs(values), SMALLEST[dtype])


def half_rounding(values, dtype):
    """The same for intermediate values, which kernels keep in 16 bits for 16-bit types, else in
    f32."""
    return rounding(values, dtype) if dtype in ("bf16", "f16") else np.zeros_like(values)


def compare(found, expected, unit):
    """The worst error of an element and of all together, as fractions of their bounds.

    All together: the root mean square of the errors is at most that of the units, plus an allowance
    for few elements.
    """
    if found.shape != expected.shape:
        return np.inf, np.inf
    same = found == expected  # also for infinities
    with np.errstate(invalid="ignore"):
        error = np.where(same, 0.0, np.abs(found - expected))
    error = np.where(np.isfinite(error), error, np.inf)
    unit = np.maximum(unit, SMALLEST["f32"])
    of_all = np.sqrt(np.mean(error**2)) / np.sqrt(np.mean(unit**2))
    return float((error / unit).max() / MOST_UNITS), float(of_all / (1 + 5 / np.sqrt(error.size)))


class Product:
    """gemm, ag_gemm, gemm_rs, gemm_ar: c = a b."""

    def __init__(self, case, rng):
        size, dtype = case.sizes, case.dtype
        self.inputs = {"a": to_dtype(rng.standard_normal((size["m"], size["k"])), dtype),
                       "b": to_dtype(rng.standard_normal((size["k"], size["n"])), dtype)}
        self.case = case

    def outputs(self):
        a, b = (self.inputs[name].astype(np.float64) for name in "ab")
        dtype, ranks = self.case.dtype, self.case.ranks
        c = a @ b
        spread = np.sqrt(a**2 @ b**2)
        unit = rounding(c, dtype) + (ranks - 1) * half_rounding(spread, dtype)
        unit += (4 + np.sqrt(self.case.sizes["k"])) * SINGLE * spread
        return {"c": (c, unit)}


def seen(size, segments):
    """The keys that each query sees: [batch or 1, 1, queries, keys]."""
    queries, keys = size["seq"], size["kv_seq"]
    distance = np.arange(keys)[None, :] - np.arange(queries)[:, None] - (keys - queries)
    sees = np.ones((queries, keys), bool)
    if size.get("causal"):
        sees &= distance <= 0
    if size.get("window"):
        sees &= (distance <= 0) & (distance > -size["window"])
    if size.get("prefix"):
        sees |= (np.arange(keys) < size["prefix"])[None, :]
    sees = sees[None, None]
    if segments is not None:
        sees = sees & (segments[:, None, :, None] == segments[:, None, None, :])
    return sees


def by_heads(tensor, group=1):
    """[batch, rows, heads, columns] as [batch, heads, rows, columns], with heads repeated."""
    return np.repeat(np.moveaxis(tensor.astype(np.float64), 2, 1), group, axis=1)


def scores_of(q, k, sees):
    with np.errstate(invalid="ignore"):
        return np.where(sees, q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1]), -np.inf)


def soften(scores):
    """Softmax weights and lse; a query that sees no key has zero weights and -inf."""
    with np.errstate(invalid="ignore", divide="ignore"):
        most = scores.max(-1, keepdims=True)
        weights = np.exp(scores - np.where(np.isfinite(most), most, 0.0))
        total = weights.sum(-1, keepdims=True)
        lse = (np.log(total) + most)[..., 0]
        return np.where(total > 0, weights / np.where(total > 0, total, 1.0), 0.0), lse


class Attention:
    """attention: o and lse."""

    def __init__(self, case, rng):
        size, dtype = case.sizes, case.dtype
        self.case = case
        self.group = size["heads"] // size["kv_heads"]
        batch, queries, keys = size["batch"], size["seq"], size["kv_seq"]
        q = rng.standard_normal((batch, queries, size["heads"], size["head_dim"])) * case.spread
        k = rng.standard_normal((batch, keys, size["kv_heads"], size["head_dim"]))
        v = rng.standard_normal((batch, keys, size["kv_heads"], size["v_head_dim"]))
        self.inputs = {name: to_dtype(x, dtype) for name, x in (("q", q), ("k", k), ("v", v))}
        self.segments = None
        if size.get("packed"):
            ends = rng.random((batch, queries)) < 4 / queries
            self.segments = np.cumsum(ends, axis=1).astype(np.int32)
            self.inputs["seg"] = self.segments

    def weigh(self):
        q, k, v = (self.inputs[name] for name in "qkv")
        k, v = by_heads(k, self.group), by_heads(v, self.group)
        q = by_heads(q)
        weights, lse = soften(scores_of(q, k, seen(self.case.sizes, self.segments)))
        return q, k, v, weights, lse

    def outputs(self):
        _, _, v, weights, lse = self.weigh()
        return attend(weights, v, lse, self.case)


def single_units(case):
    """The f32 errors of scores and of sums of weights, relative to the weighted values."""
    return (16 + 4 * case.spread * np.sqrt(case.sizes["head_dim"])) * SINGLE


def weighed(weights, values, dtype):
    """The error of `weights @ values` from rounding the weights."""
    return np.sqrt(half_rounding(weights, dtype)**2 @ values**2)


def attend(weights, v, lse, case):
    o = weights @ v
    unit = rounding(o, case.dtype) + weighed(weights, v, case.dtype)
    unit += single_units(case) * (weights @ np.abs(v))
    unit_of_lse = single_units(case) + 2 * SINGLE * np.abs(np.where(np.isfinite(lse), lse, 0.0))
    return {"o": (np.moveaxis(o, 1, 2), np.moveaxis(unit, 1, 2)), "lse": (lse, unit_of_lse)}


class Gradient(Attention):
    """attention_bwd: dq, dk, dv, from the reference's o and lse."""

    def __init__(self, case, rng):
        super().__init__(case, rng)
        size, dtype = case.sizes, case.dtype
        shape = (size["batch"], size["seq"], size["heads"], size["v_head_dim"])
        self.inputs["do"] = to_dtype(rng.standard_normal(shape), dtype)
        _, _, v, self.weights, lse = self.weigh()
        self.inputs["o"] = to_dtype(np.moveaxis(self.weights @ v, 1, 2), dtype)
        self.inputs["lse"] = lse.astype(np.float32)

    def of_key_heads(self, per_head):
        """Sums over the heads that share keys, as [batch, keys, heads, columns]."""
        batch, _, keys, columns = per_head.shape
        grouped = per_head.reshape(batch, -1, self.group, keys, columns)
        return np.moveaxis(grouped.sum(2), 1, 2)

    def outputs(self):
        dtype, scale = self.case.dtype, 1 / np.sqrt(self.case.sizes["head_dim"])
        q, k, v = (self.inputs[name] for name in "qkv")
        q, k, v = by_heads(q), by_heads(k, self.group), by_heads(v, self.group)
        d_o, o = by_heads(self.inputs["do"]), by_heads(self.inputs["o"])
        delta = (d_o * o).sum(-1, keepdims=True)
        d_p = d_o @ np.swapaxes(v, -1, -2)
        d_s = self.weights * (d_p - delta) * scale
        loose = self.weights * (np.abs(d_p) + np.abs(delta)) * scale * single_units(self.case)
        turned, weights = np.swapaxes(d_s, -1, -2), np.swapaxes(self.weights, -1, -2)
        of_keys = self.of_key_heads
        results = {}
        dq = d_s @ k
        unit = rounding(dq, dtype) + weighed(d_s, k, dtype) + loose @ np.abs(k)
        results["dq"] = (np.moveaxis(dq, 1, 2), np.moveaxis(unit, 1, 2))
        dk = of_keys(turned @ q)
        unit = rounding(dk, dtype) + of_keys(weighed(turned, q, dtype))
        unit += of_keys(np.swapaxes(loose, -1, -2) @ np.abs(q))
        results["dk"] = (dk, unit)
        dv = of_keys(weights @ d_o)
        unit = rounding(dv, dtype) + of_keys(weighed(weights, d_o, dtype))
        unit += single_units(self.case) * of_keys(weights @ np.abs(d_o))
        results["dv"] = (dv, unit)
        return results


class Decode:
    """decode: one query per sequence, keys in pages, lengths."""

    def __init__(self, case, rng):
        size, dtype = case.sizes, case.dtype
        self.case = case
        batch, keys, page = size["batch"], size["kv"], size.get("page", 0)
        q = rng.standard_normal((batch, size["heads"], size["head_dim"])) * case.spread
        k = rng.standard_normal((batch, keys, size["kv_heads"], size["head_dim"]))
        v = rng.standard_normal((batch, keys, size["kv_heads"], size["v_head_dim"]))
        self.inputs = {name: to_dtype(x, dtype) for name, x in (("q", q), ("k", k), ("v", v))}
        lengths = np.full(batch, keys)
        if size.get("ragged"):
            lengths = rng.integers(0, keys + 1, batch)
            self.inputs["lengths"] = lengths.astype(np.int32)
        # The key that each slot holds, or `keys` for none.
        held = np.tile(np.arange(keys), (batch, 1))
        if page:
            tables = np.stack([rng.permutation(keys // page) for _ in range(batch)])
            tables[rng.random(tables.shape) < 0.1] = -1
            self.inputs["pages"] = tables.astype(np.int32)
            held[:] = keys
            for entry, table in enumerate(tables):
                for place, at in enumerate(table):
                    if at >= 0:
                        held[entry, at * page:(at + 1) * page] = place * page + np.arange(page)
        self.sees = (held < lengths[:, None])[:, None, None, :]

    def outputs(self):
        group = self.case.sizes["heads"] // self.case.sizes["kv_heads"]
        k, v = by_heads(self.inputs["k"], group), by_heads(self.inputs["v"], group)
        q = self.inputs["q"].astype(np.float64)[:, :, None, :]
        weights, lse = soften(scores_of(q, k, self.sees))
        results = attend(weights, v, lse, self.case)
        return {"o": tuple(x[:, 0] for x in results["o"]),
                "lse": tuple(x[..., 0] for x in results["lse"])}


class Experts:
    """moe and moe_capped: silu(x w1) (x w3) by each token's chosen experts, then w2."""

    def __init__(self, case, rng):
        size, dtype = case.sizes, case.dtype
        self.case = case
        tokens, hidden, experts, inner = (size[name] for name in
                                          ("tokens", "hidden", "experts", "inter"))
        shapes = {"x": (tokens, hidden), "w1": (experts, hidden, inner),
                  "w3": (experts, hidden, inner), "w2": (experts, inner, hidden)}
        self.inputs = {name: to_dtype(rng.standard_normal(shape) / np.sqrt(shape[-2] if name != "x"
                                                                            else 1), dtype)
                       for name, shape in shapes.items()}
        self.inputs["router"] = rng.standard_normal((tokens, experts)).astype(np.float32)

    def choices(self):
        """(token, expert, weight) of each choice within the expert's capacity."""
        size = self.case.sizes
        logits = self.inputs["router"].astype(np.float64)
        left = {expert: size.get("capacity", size["tokens"]) for expert in range(size["experts"])}
        for token, row in enumerate(logits):
            chosen = np.argsort(-row, kind="stable")[:size["topk"]]
            weights = np.exp(row[chosen] - row[chosen[0]])
            for expert, weight in zip(chosen, weights / weights.sum()):
                left[expert] -= 1
                if left[expert] >= 0:
                    yield token, expert, weight

    def outputs(self):
        dtype = self.case.dtype
        inputs = {name: self.inputs[name].astype(np.float64) for name in ("x", "w1", "w3", "w2")}
        y = np.zeros_like(inputs["x"])
        unit = np.zeros_like(y)
        choices = list(self.choices())
        for expert in range(self.case.sizes["experts"]):
            tokens = np.array([t for t, e, _ in choices if e == expert], int)
            weights = np.array([w for _, e, w in choices if e == expert])[:, None]
            if tokens.size == 0:
                continue
            x, w2 = inputs["x"][tokens], inputs["w2"][expert]
            gate, up = x @ inputs["w1"][expert], x @ inputs["w3"][expert]
            sigmoid = 1 / (1 + np.exp(-gate))
            act = gate * sigmoid * up
            # Errors from rounding gate, up and the activation.
            steep = np.abs(gate * sigmoid * (1 + gate * (1 - sigmoid)) * up)
            off = half_rounding(steep, dtype) + 2 * half_rounding(act, dtype)
            off += 8 * SINGLE * (steep + np.abs(act))
            made = act @ w2
            of_made = half_rounding(made, dtype) + 8 * SINGLE * np.abs(made)
            np.add.at(y, tokens, weights * made)
            np.add.at(unit, tokens, weights * (of_made + np.sqrt(off**2 @ w2**2)))
        return {"y": (y, unit + rounding(y, dtype))}


OPERATORS = {"gemm": Product, "ag_gemm": Product, "gemm_rs": Product, "gemm_ar": Product,
             "attention": Attention, "attention_bwd": Gradient, "decode": Decode, "moe": Experts,
             "moe_capped": Experts}
