"""A laptop plans Llama-3-70B for eight H200: one layer with tensor and sequence parallelism.

    python -m harpe.examples.plan_only [--tokens 8192] [--machine h200x8]

Activations are divided by position between the GEMMs of a layer, and weights by column or row, so
every GEMM has a collective before or after it. Attention itself needs none: each rank has its own
heads.
"""

import argparse
import textwrap

import harpe

HIDDEN, INTER, HEADS, KV_HEADS, HEAD_DIM, LAYERS = 8192, 28672, 64, 8, 128, 80

PRODUCTS = [
    ("queries, keys, values", "ag_gemm", {"n": (HEADS + 2 * KV_HEADS) * HEAD_DIM, "k": HIDDEN}),
    ("attention's output", "gemm_rs", {"n": HIDDEN, "k": HEADS * HEAD_DIM}),
    ("gate and up", "ag_gemm", {"n": 2 * INTER, "k": HIDDEN}),
    ("down", "gemm_rs", {"n": HIDDEN, "k": INTER}),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, default=8192)
    parser.add_argument("--machine", default="h200x8")
    options = parser.parse_args()

    print(f"One layer of Llama-3-70B, {options.tokens} tokens in bf16, on {options.machine}.")
    print("All times are predicted by a simulation: nothing was measured, no GPU was used.\n")
    print(f"{'':22} {'µs':>8}  {'roofline':>8} {'launch':>7} {'sync':>7} {'locality':>8} "
          f"{'rest':>7}  schedule")
    total = 0.0
    for name, op, sizes in PRODUCTS:
        plan = harpe.plan(op, mesh="tp=8", machine=options.machine, progress=True,
                          m=options.tokens, **sizes)
        parts = plan.taxes()
        total += parts.time_us
        print(f"{name:22} {parts.time_us:8.1f}  {parts.roofline_us:8.1f} {parts.launch_us:7.1f} "
              f"{parts.synchronization_us:7.1f} {parts.locality_us:8.1f} {parts.residual_us:7.1f}  "
              f"{op}: {plan.schedule}")
        for step in plan.facts.steps:  # for a schedule that a search composed
            print(textwrap.fill(step, 100, initial_indent="  ", subsequent_indent="  "))
    print(f"\nThe GEMMs of all {LAYERS} layers: predicted {total * LAYERS / 1000:.1f} ms.")


if __name__ == "__main__":
    main()
