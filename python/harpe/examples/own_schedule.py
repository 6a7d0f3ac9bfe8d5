"""A schedule of one's own: written step by step, proved, priced beside the named ones, run.

    python -m harpe.examples.own_schedule

A ring of rings for ag_gemm, which has no such named schedule: blocks of A travel around the two
ranks of a pair, and once per such round from pair to pair. A rank holds two blocks of each ring at
a time.
"""

from typing import Any

import harpe

QUESTION: dict[str, Any] = dict(m=16384, n=10240, k=8192)  # queries, keys and values of Llama-3-70B
SMALL: dict[str, Any] = dict(m=301, n=97, k=64, dtype="f32")  # blocks of unequal sizes


def write_rings(**parameters: Any) -> harpe.Schedule:
    """A schedule for eight ranks as four pairs."""
    s = harpe.Schedule("ag_gemm", mesh="tp=8", name="rings", **parameters)
    s = s.refine("tp", [4, 2], into=["pairs", "pair"])
    s = s.tile("M", [4, 2], into=["m0", "m1", "rows"]).tile("N", [8], into=["n0", "columns"])

    # Homes: A by rows, B and C by columns, over all ranks.
    s = s.shard("a", "m0", "pairs").shard("a", "m1", "pair")
    s = s.shard("b", "n0", ["pairs", "pair"]).shard("c", "n0", ["pairs", "pair"])

    # A rank computes its columns of C, row block by row block, starting with its own.
    s = s.parallelize("mm", "n0", ["pairs", "pair"])
    s = s.serialize("mm", "m0").shift("mm.m0", ["pairs"])
    s = s.serialize("mm", "m1").shift("mm.m1", ["pair"])

    # Each rank sends the block that it computes with to the neighbour that needs it one step later.
    for ring, loop in ("pairs", "m0"), ("pair", "m1"):
        s = s.stage("mm", "a", over=ring, at=loop, how="relay", by="src")
        s = s.pipeline("mm", "a", over=ring, depth=2)
    return s


def main() -> None:
    rings = write_rings(**QUESTION)
    print(rings)
    plan = harpe.plan("ag_gemm", mesh="tp=8", machine="h200x8", schedule=rings, **QUESTION)
    print(f"proved: {plan.certificate.covers}, {plan.certificate.order_edges} edges of order\n")

    print("Predicted on h200x8 by a simulation; nothing was measured:")
    named = [each.name for each in harpe.schedules("ag_gemm", mesh="tp=8", **QUESTION)
             if each.refusal is None]
    plans = [plan, *(harpe.plan("ag_gemm", mesh="tp=8", machine="h200x8", schedule=name,
                                **QUESTION) for name in named)]
    for each in sorted(plans, key=lambda each: each.predicted_us or 0):
        print(f"{each.schedule:14} {each.predicted_us:8.1f} µs "
              f"{each.memory_bytes / 2**20:8.1f} MiB a rank")

    try:  # an impossible step is refused when it is added
        rings.pipeline("mm", "a", over="pair", depth=1)
    except harpe.Refused as refused:
        print(f"\n{refused}\n")

    small = harpe.plan("ag_gemm", mesh="tp=8", schedule=write_rings(**SMALL), **SMALL)
    check = harpe.run(small, harpe.draw_inputs(small), check=True).checks[0]
    print(f"run on 8 CPU ranks: largest error {check.error:.1e}, rounding explains "
          f"{check.bound:.1e}")


if __name__ == "__main__":
    main()
