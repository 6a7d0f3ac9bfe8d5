"""An operator of one's own: described by a text, planned, proved, run on CPU ranks, compared.

    python -m harpe.examples.own_operator
"""

import numpy as np

import harpe

PROJECT = """
// Hidden states times a projection: tokens are distributed, features of the result are wanted.
program project {
  param tokens = 300
  param hidden = 96
  param features = 160
  param dtype : dtype = f32
  axis T = tokens grain 4
  axis H = hidden grain 4
  axis F = features grain 4
  buffer states : dtype[T, H] in
  buffer weights : dtype[H, F] in
  buffer result : dtype[T, F] out
  nest product over (T, H, F) {
    result sum= matmul(states, weights)
  }
}
"""


def main() -> None:
    plan = harpe.plan(PROJECT, mesh="tp=4", schedule="ring", tokens=301)
    print(plan)
    print(f"proved: {plan.certificate.covers}, {plan.certificate.order_edges} edges of order")

    rng = np.random.default_rng(1)
    states = rng.standard_normal((301, 96), dtype=np.float32)
    weights = rng.standard_normal((96, 160), dtype=np.float32)
    result = harpe.run(plan, {"states": states, "weights": weights})["result"]

    # A sum of n products in f32 is off by at most n + 1 roundings of the sum of their sizes.
    exact = states.astype(np.float64) @ weights.astype(np.float64)
    scale = np.abs(states).astype(np.float64) @ np.abs(weights).astype(np.float64)
    error = np.max(np.abs(result - exact) / scale)
    bound = (96 + 1) * 2.0**-24
    print(f"largest error {error:.1e} of its scale, rounding explains {bound:.1e}")
    if not error <= bound:
        raise SystemExit("the result is wrong")


if __name__ == "__main__":
    main()
