#!/usr/bin/env python3
"""Plans allocate little more GPU memory than their reports say.

allocated_test.py HARPE FAKES: uses GPUs that do nothing (tests/support/fake_libcuda.cpp) but count
allocations.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

# The largest accepted excess over the planned bytes, as a fraction, and its reason.
CASES = (
    # The GEMMs of the last part add up the total, so it needs no state of its own.
    (("gemm_rs", "m=2048", "n=2048", "k=2048"), "push", 2, 0.01),
    (("gemm_ar", "m=2048", "n=2048", "k=2048"), "push", 2, 0.01),
    # Four consecutive GEMMs with tiles cut along K: parts of one.
    (("ag_gemm", "m=512", "n=5120", "k=8192"), "ring", 4, 0.13),
    (("ag_gemm", "m=512", "n=5120", "k=8192"), "fetch", 4, 0.13),
    # Totals of cells that are folded one after another.
    (("attention_bwd", "seq=2048", "heads=32", "kv_heads=8", "head_dim=128"), "allgather", 2, 0.03),
)


def find_memory(value):
    """Yields every object of a report that states an entry's memory."""
    if isinstance(value, dict):
        if "planned_bytes" in value:
            yield value
        value = list(value.values())
    for inner in value if isinstance(value, list) else ():
        yield from find_memory(inner)


def measure(harpe, fakes, operator, schedule, ranks):
    environment = {**os.environ, "LD_LIBRARY_PATH": str(fakes), "FAKE_GPUS": str(ranks)}
    with tempfile.TemporaryDirectory() as folder:
        words = [harpe, "bench", *operator, "--schedules", schedule, "--ranks", str(ranks),
                 "--backend", "cuda", "--collectives", "pull", "--rounds", "1", "--iters", "1",
                 "--nvrtc", str(fakes / "libnvrtc.so.13"), "--cache", folder, "--json", "-"]
        done = subprocess.run(words, capture_output=True, text=True, check=True, env=environment)
    (memory,) = find_memory(json.loads(done.stdout))
    return memory["planned_bytes"], memory["allocated_bytes"]


def main(harpe, fakes):
    fakes, passed = pathlib.Path(fakes).resolve(), 0
    for operator, schedule, ranks, most in CASES:
        planned, allocated = measure(harpe, fakes, operator, schedule, ranks)
        more = allocated / planned - 1
        fits = -1e-9 <= more <= most
        passed += fits
        print(f"{' '.join(operator)} {schedule} on {ranks} ranks: {planned} bytes planned, "
              f"{allocated} allocated, {100 * more:.1f} % more, at most {100 * most:.0f} %"
              f"{'' if fits else ': FAILED'}")
    print(f"{passed} passed, {len(CASES) - passed} failed")
    return 0 if passed == len(CASES) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
