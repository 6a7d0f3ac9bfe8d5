#!/usr/bin/env python3
"""Short GEMMs on GPUs: `auto`'s choice compared with every schedule and the libraries.

    bench/short.py HARPE [--ranks 2] [--unseen | --drawn SEED] [--schedules bulk,auto]
                   [--seconds 200] [-o short.jsonl]

Runs `harpe bench` for linears of Llama-3 8B, 70B and Qwen3-32B at few rows, with all schedules and
NCCL + cuBLASLt alternating. With `--drawn` the linears are those of 15 models at 136 to 1,280 rows,
drawn at random. Prints for each case the time of `auto` over that of the fastest schedule and over
the libraries' time, as measured by `harpe bench`, also with several executions in one graph. `-o`
appends a JSON line for each case: its sizes, the times of schedules and libraries
by name, why others have none, and the libraries' time without communication.
"""
import argparse
import json
import math
import random
import subprocess
import sys
import tempfile
import time

# (columns, depth) before they are divided over the ranks.
SEEN = {"ag_gemm": [(10240, 8192), (28672, 4096), (57344, 8192)],
        "gemm_rs": [(8192, 8192), (4096, 14336), (8192, 28672)],
        "gemm_ar": [(8192, 8192), (4096, 4096), (8192, 28672)]}
UNSEEN = {"ag_gemm": [(10240, 5120), (6144, 4096)],
          "gemm_rs": [(5120, 8192), (4096, 4096)],
          "gemm_ar": [(5120, 25600), (4096, 14336)]}
ROWS = {"ag_gemm": [8, 64, 256], "gemm_rs": [8, 64, 256], "gemm_ar": [1, 16, 128]}
UNSEEN_ROWS = {"ag_gemm": [4, 32, 128], "gemm_rs": [2, 48, 192], "gemm_ar": [1, 8, 96]}
# Hidden size, inner size, and columns of queries, keys and values, to draw from.
MODELS = [(8192, 29568, 10240), (12288, 28672, 14336), (4608, 36864, 8192), (5376, 21504, 8192),
          (5120, 25600, 10240), (5120, 17408, 7168), (5120, 17920, 7680), (7168, 18432, 9216),
          (8192, 22528, 10240), (7168, 20480, 9216), (4096, 14336, 6144), (6144, 24576, 8192),
          (3584, 18944, 4608), (2560, 9728, 6144), (8192, 28672, 10240)]
DRAWN_ROWS = [136, 144, 152, 160, 176, 200, 208, 224, 248, 264, 288, 304, 320, 352, 384, 416, 448,
              480, 512, 544, 608, 640, 704, 768, 896, 1000, 1152, 1280]
DRAWN = 14  # of each operator; repetitions are left out


def draw_case(drawn, op):
    hidden, inner, heads = drawn.choice(MODELS)
    m = drawn.choice(DRAWN_ROWS)
    if op == "ag_gemm":
        n, k = drawn.choice([2 * inner, heads]), hidden
    else:
        n, k = hidden, drawn.choice([inner, heads if heads < hidden * 1.2 else inner, hidden])
    return op, m if op == "gemm_ar" else m - m % 16, n, k


def cases(args):
    if args.drawn is not None:
        drawn = random.Random(args.drawn)
        yield from dict.fromkeys(draw_case(drawn, op) for _ in range(DRAWN) for op in SEEN)
        return
    shapes, rows = (UNSEEN, UNSEEN_ROWS) if args.unseen else (SEEN, ROWS)
    for at in range(3):
        for op, sizes in shapes.items():
            for n, k in sizes:
                yield op, rows[op][at], n, k


def run(args, op, m, n, k):
    parameters = [f"m={m}", f"n={n}", f"k={k}"]
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        command = [args.harpe, "bench", op, *parameters, "--backend", "cuda",
                   "--ranks", str(args.ranks), "--rounds", str(args.rounds), "--json", out.name]
        if args.schedules:
            command += ["--schedules", args.schedules]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            print(f"{op} {' '.join(parameters)}: exit {done.returncode}: {done.stderr[-300:]}")
        with open(out.name, encoding="utf-8") as file:
            text = file.read()
        return json.loads(text) if text else None


def times_of(report):
    """Schedules and libraries by name, in microseconds, and why others have no time."""
    ours, theirs, reasons = {}, {}, {}
    for entry in report["cases"][0]["entries"]:
        time_us = entry.get("time_us")
        if time_us:
            (theirs if entry["baseline"] else ours)[entry["name"]] = time_us
        else:
            reasons[entry["name"]] = entry.get("reason")
    return ours, theirs, reasons


def over_libraries_in_graph(report):
    """`auto`'s time over the libraries' in a graph of several executions; None if not measured."""
    ours, theirs = None, []
    for entry in report["cases"][0]["entries"]:
        time_us = entry.get("in_graph_us")
        if time_us and entry["baseline"]:
            theirs.append(time_us)
        elif entry["name"] == "auto":
            ours = time_us
    return ours / min(theirs) if ours and theirs else None


def mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("harpe")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--unseen", action="store_true", help="other shapes, for few rows too")
    kinds.add_argument("--drawn", type=int, metavar="SEED", help="shapes drawn at random")
    parser.add_argument("--schedules", help="as of `harpe bench`: only these, where they apply")
    parser.add_argument("--seconds", type=float, default=200)
    parser.add_argument("-o", "--output")
    args = parser.parse_args()
    begun = time.time()
    to_best, to_libraries, to_graphs = [], [], []
    for op, m, n, k in cases(args):
        if time.time() - begun > args.seconds:
            print("the time is over")
            break
        report = run(args, op, m, n, k)
        if report is None:
            continue
        ours, theirs, reasons = times_of(report)
        if args.output:
            row = {"operator": op, "m": m, "n": n, "k": k, "ranks": args.ranks, "ours": ours,
                   "theirs": theirs, "reasons": reasons,
                   "over_libraries_in_graph": over_libraries_in_graph(report),
                   "arithmetic_us": report["cases"][0].get("arithmetic_us")}
            with open(args.output, "a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
        if "auto" not in ours or not theirs:
            print(f"{op:8} {m:4}x{n}x{k}: {json.dumps(reasons)}", flush=True)
            continue
        named = {name: us for name, us in ours.items() if name != "auto"}
        best = min(named or ours, key=ours.get)
        library = min(theirs.values())
        to_best.append(ours["auto"] / min(ours[best], ours["auto"]))
        to_libraries.append(ours["auto"] / library)
        in_graph = over_libraries_in_graph(report)
        if in_graph:
            to_graphs.append(in_graph)
        print(f"{op:8} {m:4}x{n}x{k}: auto {ours['auto']:7.1f} us, {best} {ours[best]:7.1f}, "
              f"libraries {library:7.1f}; auto over best {to_best[-1]:.2f}, over libraries "
              f"{to_libraries[-1]:.2f}" + (f", in a graph {in_graph:.2f}" if in_graph else ""),
              flush=True)
    if to_best:
        print(f"{len(to_best)} cases: auto over the best schedule {mean(to_best):.3f} in the mean, "
              f"{max(to_best):.2f} at worst; over libraries {mean(to_libraries):.2f} in the mean, "
              f"{max(to_libraries):.2f} at worst"
              + (f"; in graphs {mean(to_graphs):.2f}" if to_graphs else ""))


if __name__ == "__main__":
    sys.exit(main())
