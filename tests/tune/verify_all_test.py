#!/usr/bin/env python3
"""Every schedule of small search spaces is executed and compared with the reference.

verify_all_test.py HARPE. Larger sweeps, run by hand, are in docs/search.md.
"""

import json
import subprocess
import sys

ATTENTION = ["batch=1", "seq=32", "heads=4", "head_dim=8", "dtype=f32"]
GROUPED = ATTENTION + ["kv_heads=2"]
CAUSAL = ["causal=true"]
PRODUCT = ["m=32", "n=32", "k=32", "dtype=f32"]
DECODE = ["batch=2", "kv=32", "heads=4", "kv_heads=2", "head_dim=8", "dtype=f32"]

CASES = [
    ["attention", *ATTENTION],
    ["attention", *ATTENTION, *CAUSAL],
    ["attention", *GROUPED],
    ["attention", *GROUPED, *CAUSAL],
    ["attention_bwd", *ATTENTION],
    ["attention_bwd", *GROUPED, *CAUSAL],
    ["gemm", *PRODUCT],
    ["ag_gemm", *PRODUCT],
    ["gemm_rs", *PRODUCT],
    ["gemm_ar", *PRODUCT],
    ["decode", *DECODE],
]
MESHES = [["--mesh", "x=2"], ["--mesh", "x=4", "--cuts", "0"], ["--mesh", "x=3"]]
MORE = [
    ["attention", *ATTENTION, "--mesh", "node=2,gpu=2", "--cuts", "0"],
    ["decode", *DECODE, "--mesh", "node=2,gpu=2"],
    ["gemm", *PRODUCT, "--mesh", "x=4", "--cuts", "0", "--contract", "free"],
    ["attention", *GROUPED, "--mesh", "x=4", "--cuts", "0", "--contract", "free"],
]
# Reasons that only the walk over ranks and steps can find; any other is a fault of the space.
KNOWN_REFUSALS = ("is not a rotation", "blocks that no rank along these axes holds")


def check(harpe: str, words: list[str]) -> tuple[int, int]:
    command = [harpe, "tune", *words, "--verify-all", "--json", "-"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    name = " ".join(words)
    assert done.returncode == 0, f"{name}: {done.returncode}\n{done.stderr}"
    result = json.loads(done.stdout)
    refused = sum(entry["count"] for entry in result["not_lowered"])
    assert result["wrong"] == 0, f"{name}: {result['wrong']} wrong\n{done.stderr}"
    assert result["unique"] == result["candidates"], f"{name}: duplicates"
    assert result["verified"] + refused == result["unique"], f"{name}: some were not looked at"
    assert result["verified"] > 0, f"{name}: nothing was looked at"
    assert refused <= 0.15 * result["unique"], f"{name}: {refused} refused"
    for entry in result["not_lowered"]:
        assert any(known in entry["reason"] for known in KNOWN_REFUSALS), f"{name}: {entry}"
    print(f"{name}: {result['verified']} right, {refused} refused, {result['verify_s']:.1f} s")
    return result["verified"], refused


def main() -> int:
    verified = refused = 0
    cases = [[*case, *mesh] for mesh in MESHES for case in CASES] + MORE
    for words in cases:
        right, none = check(sys.argv[1], words)
        verified += right
        refused += none
    print(f"{verified} schedules right, {refused} without a plan")
    assert verified > 4000
    return 0


if __name__ == "__main__":
    sys.exit(main())
