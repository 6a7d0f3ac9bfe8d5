#!/usr/bin/env python3
"""Libraries instead of a schedule, on GPUs: they run, are right, take turns, and are remembered.

library_test.py HARPE. Skipped (77) without two GPUs, NCCL and cuBLASLt.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

SKIPPED = 77
CASES = [
    ("ag_gemm", ["m=2048", "n=4096", "k=4096"]),
    ("gemm_rs", ["m=2048", "n=4096", "k=4096"]),
    ("gemm_ar", ["m=512", "n=4096", "k=4096", "dtype=f16"]),
    ("attention", ["seq=2048", "heads=8", "head_dim=128", "causal=true"]),
    ("attention_bwd", ["seq=1024", "heads=8", "head_dim=64"]),
    ("decode", ["batch=4", "kv=4096", "heads=8", "kv_heads=4", "head_dim=128"]),
    ("moe", ["tokens=512", "hidden=512", "experts=8", "topk=2", "inter=512"]),
]


def harpe(folder: str, *words: str) -> tuple[dict, str]:
    command = [sys.argv[1], *words, "--json", "-"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder,
                          timeout=300)
    assert done.returncode == 0, f"{' '.join(command)}: {done.returncode}\n{done.stderr}"
    return json.loads(done.stdout), done.stderr


# The number of GPUs, and the names of missing libraries.
def examine(folder: str) -> tuple[int, set[str]]:
    found, _ = harpe(folder, "doctor")
    return len(found["gpus"]), {one["name"] for one in found["libraries"] if not one["version"]}


def check_run(folder: str, mesh: list[str], name: str, sizes: list[str]) -> None:
    ran, _ = harpe(folder, "run", name, *sizes, *mesh, "--schedule", "library", "--backend", "cuda",
                   "--check", "--iters", "5")
    assert ran["schedule"] == "library" and len(ran["time_us"]) == 5, ran
    assert ran["check"]["passed"] and ran["check"]["outputs"], ran["check"]
    times = {one["name"]: one["time_us"] for one in ran["libraries"]}
    timed = [time for time in times.values() if time is not None]
    assert len(times) == 1 or times[ran["library"]] == min(timed), times
    print(f"{name}: {ran['library']}, {min(ran['time_us']):.1f} us")


# `auto` runs what the cache remembers, and reports it if that is a library.
def check_tuned(folder: str, mesh: list[str], name: str, sizes: list[str]) -> None:
    cache = ["--cache", str(pathlib.Path(folder) / "cache"), "--backend", "cuda"]
    tuned, _ = harpe(folder, "tune", name, *sizes, *mesh, *cache, "--measure", "--top", "2")
    measured = tuned["measured"]
    baseline = measured["baseline"]
    assert baseline, (measured["no_baseline"], measured["baselines"])
    assert all(one["rounds"] == measured["rounds"] for one in measured["baselines"]), measured
    best = measured["schedules"][0]["measured_us"]
    assert abs(baseline["ratio"] - baseline["time_us"] / best) < 1e-9, baseline
    is_baseline = baseline["time_us"] < best
    assert measured["fastest"] == ("baseline" if is_baseline else "schedule"), measured["fastest"]
    ran, said = harpe(folder, "run", name, *sizes, *mesh, *cache, "--check")
    assert (ran["schedule"] == "library") == is_baseline, (ran["schedule"], measured["fastest"])
    assert ("note: " in said) == is_baseline, said
    print(f"{name}: baseline {baseline['ratio']:.3f} of the fastest schedule's time")


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        gpus, missing = examine(folder)
        if gpus < 2 or missing & {"NVRTC", "NCCL", "cuBLASLt"}:
            print("skipped: fewer than two GPUs, or no libraries")
            return SKIPPED
        ranks = 4 if gpus >= 4 else 2
        for name, sizes in CASES:
            if name == "attention_bwd" and "cuDNN" in missing:
                continue
            check_run(folder, ["--mesh", f"x={ranks}"], name, sizes)
        for name, sizes in [CASES[0], CASES[2]]:
            check_tuned(folder, ["--mesh", f"x={ranks}"], name, sizes)
    return 0


if __name__ == "__main__":
    sys.exit(main())
