"""Parameters of a case, as `harpe ops` lists them, for peers_torch.py."""

# The largest relative change of a number when it is rounded to a type.
ROUNDING = {"bf16": 2.0 ** -9, "f16": 2.0 ** -12, "f32": 2.0 ** -25, "f64": 2.0 ** -54}
# Parameters that must equal another one, because every peer has a single value for both.
SAME_AS = {"kv_seq": "seq", "v_head_dim": "head_dim"}


def parse_value(text):
    """`true`, a type, or a number."""
    if text in ("true", "false"):
        return text == "true"
    if text in ROUNDING:
        return text
    try:
        return int(text)
    except ValueError:
        return float(text)


def values_of(parameters):
    """["m=512", "causal=true", "dtype=f16"] as {"m": 512, "causal": True, "dtype": "f16"}."""
    found = {}
    for word in parameters:
        name, equals, text = word.partition("=")
        try:
            if not equals:
                raise ValueError
            found[name] = parse_value(text)
        except ValueError:
            raise ValueError(f"parameter `{word}` is neither a number, a type nor a bool") from None
    return found


def sizes_of(parameters, *known):
    """The values of the parameters that a peer supports, and `dtype`. All others must be off: a
    peer that ignored a window would be faster than one that supports it."""
    values = {"dtype": "bf16", "causal": False, **values_of(parameters)}
    if "heads" in values:
        values.setdefault("kv_heads", values["heads"])
    if values["dtype"] not in ROUNDING:
        raise ValueError(f"there is no type `{values['dtype']}`")
    for name, value in values.items():
        is_same = name in SAME_AS and value == values.get(SAME_AS[name])
        if name not in ("dtype", *known) and value != 0 and not is_same:
            raise ValueError(f"this way knows no `{name}`")
    missing = [name for name in known if name not in values]
    if missing:
        raise ValueError(f"`{missing[0]}` is not said")
    return values


def rounding_of(dtype, depth):
    """The error bound of a sum of `depth` products, relative to the largest sum: the rounding of
    the result and, if sums are no wider than it, of the additions, whose errors have random
    signs."""
    return ROUNDING[dtype] * (1 if dtype in ("bf16", "f16") else 4 * depth ** 0.5)
