"""An operator of one's own: written in Python, planned, proved, run on CPU ranks, compared.

    python -m harpe.examples.own_operator
"""

import numpy as np

import harpe


def write_project() -> harpe.Program:
    """Hidden states times a projection: tokens are divided at first, features of the result at
    last."""
    p = harpe.ProgramBuilder("project")
    tokens, hidden = p.parameter("tokens", 300), p.parameter("hidden", 96)
    features, dtype = p.parameter("features", 160), p.parameter("dtype", "f32")
    T, H = p.axis("T", tokens, align=4), p.axis("H", hidden, align=4)
    F = p.axis("F", features, align=4)
    states, weights = p.input("states", dtype, [T, H]), p.input("weights", dtype, [H, F])
    result = p.output("result", dtype, [T, F])
    p.nest("product", over=[T, H, F]).sum(result, "matmul", states, weights)
    return p.build()


def main() -> None:
    project = write_project()
    print(project)
    plan = harpe.plan(project, mesh="tp=4", schedule="ring", tokens=301)
    print(plan)
    print(f"proved: {plan.certificate.covers}, {plan.certificate.order_edges} edges of order")

    rng = np.random.default_rng(1)
    states = rng.standard_normal((301, 96), dtype=np.float32)
    weights = rng.standard_normal((96, 160), dtype=np.float32)
    result = harpe.run(plan, {"states": states, "weights": weights})["result"]

    # A sum of n products in f32 differs by at most n + 1 roundings of the sum of their magnitudes.
    exact = states.astype(np.float64) @ weights.astype(np.float64)
    scale = np.abs(states).astype(np.float64) @ np.abs(weights).astype(np.float64)
    error = np.max(np.abs(result - exact) / scale)
    bound = (96 + 1) * 2.0**-24
    print(f"largest error {error:.1e} of its scale, rounding explains {bound:.1e}")
    if not error <= bound:
        raise SystemExit("the result is wrong")


if __name__ == "__main__":
    main()
