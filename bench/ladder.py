#!/usr/bin/env python3
"""The three taxes step by step, on GPUs: from library collectives to one fused kernel.

    bench/ladder.py HARPE [--ranks 2] [--cases TEXT] [--libraries FOLDER,...] [-o ladder.jsonl]

Each step is a schedule of the same operator under `harpe taxes --backend cuda`, so its parts are
measured (docs/taxes.md). For decode, `library` is the faster of the baselines of `harpe bench
decode`, which have no parts. Prints a table in Markdown; `-o` appends a JSON line for each step.
Exit status 1 if a step did not run.
"""
import argparse
import json
import subprocess
import sys
import tempfile

# (step, schedule, who does collectives)
GATHER = [("NCCL, then GEMM", "bulk", "nccl"),
          ("own collective, then GEMM", "bulk", "pull"),
          ("copies by engines, the GEMM waits inside", "push", "auto"),
          ("one kernel a rank", "fused", "auto")]
DECODE = [("own copies, a kernel for each step", "push", "auto"),
          ("one kernel sends states, another combines", "hierarchical", "auto"),
          ("one kernel a rank", "bulk", "auto")]
DECODE_SIZES = ["heads=64", "kv_heads=8", "head_dim=128"]
CASES = [("ag_gemm", "tp", GATHER, ["m=2048", "n=10240", "k=8192"]),
         ("ag_gemm", "tp", GATHER, ["m=8192", "n=10240", "k=8192"]),
         ("decode", "cp", DECODE, ["batch=1", "kv=32768", *DECODE_SIZES]),
         ("decode", "cp", DECODE, ["batch=8", "kv=32768", *DECODE_SIZES])]
PARTS = ["roofline", "launch", "synchronization", "locality", "residual"]


def harpe(args, words):
    """The report of a command, or None if it failed."""
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        command = [args.harpe, *words, "--backend", "cuda", "--json", out.name]
        if args.libraries:
            command += ["--libraries", args.libraries]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            print(f"{' '.join(words)}: exit {done.returncode}: {done.stderr[-300:]}",
                  file=sys.stderr)
            return None
        with open(out.name, encoding="utf-8") as file:
            return json.load(file)


def library_of(args, operator, sizes):
    """The libraries' time in microseconds, or None if they did not run."""
    report = harpe(args, ["bench", operator, *sizes, "--ranks", str(args.ranks), "--rounds", "5",
                          "--schedules", "bulk"])
    return report["cases"][0]["baseline_us"] if report else None


def steps_of(args, operator, axis, steps, sizes):
    """One row per step; None for a step that did not run."""
    if operator == "decode":
        theirs = library_of(args, operator, sizes)
        step = {"step": "own kernel, then NCCL", "schedule": "library", "time_us": theirs}
        yield step if theirs else None
    for step, schedule, collectives in steps:
        report = harpe(args, ["taxes", operator, *sizes, "--mesh", f"{axis}={args.ranks}",
                              "--schedule", schedule, "--collectives", collectives])
        if not report:
            yield None
            continue
        found = report["schedules"][0]
        keys = ["time_us", *(f"{part}_us" for part in PARTS)]
        yield {"step": step, "schedule": schedule, **{key: found[key] for key in keys}}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("harpe")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--cases", default="", help="only those with this in their names")
    parser.add_argument("--libraries", help="as of `harpe taxes`")
    parser.add_argument("-o", "--output")
    args = parser.parse_args()
    print("| case | step | schedule | time | " + " | ".join(PARTS) + " |")
    print("|---" * (4 + len(PARTS)) + "|")
    is_complete = True
    for operator, axis, steps, sizes in CASES:
        name = f"`{operator}` {' '.join(sizes)}"
        if args.cases not in name:
            continue
        for row in steps_of(args, operator, axis, steps, sizes):
            if row is None:
                is_complete = False
                continue
            parts = " | ".join(f"{row[f'{part}_us']:.1f}" if f"{part}_us" in row else "–"
                               for part in PARTS)
            print(f"| {name} | {row['step']} | `{row['schedule']}` | {row['time_us']:,.1f} | "
                  f"{parts} |", flush=True)
            if args.output:
                with open(args.output, "a", encoding="utf-8") as file:
                    file.write(json.dumps({"operator": operator, "sizes": sizes,
                                           "ranks": args.ranks, **row}) + "\n")
    return 0 if is_complete else 1


if __name__ == "__main__":
    sys.exit(main())
