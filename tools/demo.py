#!/usr/bin/env python3
"""demo.py HARPE FOLDER: runs one causal attention on 8 ranks under three schedules.

Each schedule is lowered, proved, executed on CPU ranks and compared with the reference in double
precision; traces and JSON results go to FOLDER.
"""
import json
import os
import subprocess
import sys

OPERATOR = ["attention", "batch=1", "seq=2048", "heads=8", "head_dim=64", "causal=true"]
MESH = "cp=8"
SCHEDULES = ["allgather", "ring", "zigzag_ring"]
ITERATIONS = 5
MIB = 1 << 20


def run(harpe, command, arguments, result):
    """The JSON object of one command; exits with the command's status if it fails."""
    status = subprocess.run([harpe, command, *arguments, "--json", result], check=False,
                            stdout=subprocess.DEVNULL).returncode
    if status != 0:
        sys.exit(status)
    with open(result, encoding="utf-8") as file:
        return json.load(file)


def row(harpe, folder, schedule):
    trace = os.path.join(folder, f"{schedule}.trace.json")
    what = [*OPERATOR, "--mesh", MESH, "--schedule", schedule]
    proof = run(harpe, "verify", what, os.path.join(folder, f"{schedule}.verify.json"))
    done = run(harpe, "run", [*what, "--check", "--iters", str(ITERATIONS), "--trace", trace],
               os.path.join(folder, f"{schedule}.run.json"))
    output = max(done["check"]["outputs"], key=lambda one: one["error"] / one["bound"])
    times = sorted(done["time_us"])
    certificate = proof["certificate"]
    return [schedule,
            f"{certificate['tasks']} tasks, {certificate['edges']} edges",
            f"{done['bytes_moved'] / MIB:.1f} MiB",
            f"{done['memory_bytes'] / MIB:.1f} MiB",
            f"{times[len(times) // 2] / 1000:.1f} ms",
            f"{output['error']:.1e} of {output['bound']:.1e}",
            trace]


def main():
    harpe, folder = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    print(f"harpe run {' '.join(OPERATOR)} --mesh {MESH}, on CPU ranks\n")
    table = [["schedule", "verified", "moved", "memory/rank", f"time (of {ITERATIONS})",
              "error of bound", "trace"]]
    table += [row(harpe, folder, schedule) for schedule in SCHEDULES]
    widths = [max(len(line[column]) for line in table) for column in range(len(table[0]))]
    for line in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())
    print("\nThe traces open in https://ui.perfetto.dev: a process per rank, a thread per queue.")


if __name__ == "__main__":
    main()
