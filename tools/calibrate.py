#!/usr/bin/env python3
"""Writes h200x8.machine from a folder of measurements (docs/machine.md#calibration).

    tools/calibrate.py FOLDER MACHINE... > src/machine/presets/h200x8.machine

Reads `h200x8_ceilings.jsonl` (links, launches) and the rows of single kernels and single
collectives in `h200x8_peers.jsonl`. `harpe validate` uses the rows of whole schedules. Machines
that `harpe profile` made of fewer such GPUs (bench/h200x4/h200x4.machine,
bench/h200x2/h200x2.machine, bench/h200x1/h200x1.machine: most GPUs first, the latest last) provide

- the first: how our own copies and signals between GPUs start, because our executor makes them;
- only the last: GEMMs by our own kernels, because the others timed older kernels;
- all: collectives, and GEMMs of few rows by libraries; if several have the same figure, the last
  one counts.

Errors of predictions are added after that:

    harpe validate --measured bench/h200x4 --machine FILE -o FILE
    harpe validate --measured bench/h200x2/recent --machine FILE -o FILE
"""
import json
import math
import pathlib
import re
import sys

NOTE = "8 x H200, 2026-11-21"
SMS = 132
HEADS, HEAD_DIM = 32, 128  # of the attention rows
BYTES = 2  # of a bf16
FEW_ROWS = 64  # of GEMMs whose columns a kernel streams through all SMs (docs/kernels.md)
FEW_QUERIES = 16  # of a head group, which another kernel takes
FEW_START = "10us"  # of that kernel, fitted to plans of decode (docs/simulator.md)
FEW_NOTE = "2 x H200, 2026-11-28"


def read(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def time(us):
    return f"{us:.6f}".rstrip("0").rstrip(".") + "us"


def size(count):
    for unit, factor in (("gib", 2**30), ("mib", 2**20), ("kib", 2**10)):
        if count % factor == 0:
            return f"{count // factor}{unit}"
    return f"{count}b"


def source(note, origin="measured"):
    return f'from {origin} "{note}"'


def matmul_model(shape, peak, half_depth, start):
    _, rows, columns, depth = shape
    tiles = math.ceil(rows / 128) * math.ceil(columns / 128)
    padded = math.ceil(tiles / SMS) * SMS * 128 * 128
    return start + 2e-6 * padded * depth * (1 + half_depth / depth) / peak


def attention_model(shape, flops, peak, start):
    return start + 1e-6 * flops / peak


def fit(samples, model, candidates):
    """The candidate with the least squared logarithmic error."""
    def error(candidate):
        return sum(math.log(model(sample, *candidate) / sample["us"]) ** 2 for sample in samples)
    return min(candidates, key=error)


def own_copies(profile):
    """Lines of the transports that our executor uses, and the latency of its signals."""
    text = profile.read_text(encoding="utf-8")
    lines = re.findall(r"^  (transport (?:ce|sm|tma) at nvlink .*)$", text, re.MULTILINE)
    return lines, re.search(r"level nvlink .* latency=(\S+) from measured (.*)", text).groups()


def collectives(peers):
    columns = (("all_gather", "ag_us"), ("reduce_scatter", "rs_us"), ("all_reduce", "ar_us"),
               ("all_to_all", "a2a_us"), ("send_recv", "ring_p2p_us"))
    rows = [row for row in peers if row["kind"] == "nccl"]
    large = rows[-1]
    start = min(row["ring_p2p_us"] for row in rows)
    yield (f"transport nccl at nvlink start={time(start)} "
           f"bandwidth={round(large['ag_GBs'])}gbs sms=20 "
           + source(f"NCCL 2.28, least send and largest all-gather, {NOTE}; SMs published"))
    for name, column in columns:
        for row in rows:
            yield (f"collective {name} at nvlink ranks=8 bytes={size(row['bytes_in'])} "
                   f"time={time(row[column])} " + source(f"NCCL 2.28, {NOTE}"))


def product(rows):
    samples = []
    for row in rows:
        if row["kind"] == "gemm":
            shape = (1, row["m"], row["n"], row["k"])
            samples.append({"shape": shape, "us": row["us"], "causal": False,
                            "flops": 2 * row["m"] * row["n"] * row["k"],
                            "bytes": BYTES * (row["m"] * row["k"] + row["k"] * row["n"]
                                              + row["m"] * row["n"])})
    def model(sample, *candidate):
        return matmul_model(sample["shape"], *candidate)
    candidates = [(peak, half, 2) for peak in range(800, 1000, 5) for half in range(0, 400, 16)]
    return samples, fit(samples, model, candidates)


def attention(rows, kind, multiplier, tensors):
    samples = []
    for row in rows:
        if row["kind"] == kind:
            length = row["s"]
            pairs = length * (length + 1) // 2 if row["causal"] else length * length
            samples.append({"shape": (HEADS, length, length, HEAD_DIM), "us": row["cudnn_us"],
                            "causal": row["causal"], "flops": multiplier * HEADS * HEAD_DIM * pairs,
                            "bytes": BYTES * tensors * HEADS * length * HEAD_DIM})
    whole = [sample for sample in samples if not sample["causal"]]
    fastest = max(sample["flops"] / sample["us"] for sample in samples) * 1e-6
    first = 5 * math.ceil(fastest / 5)  # a bound for every sample
    candidates = [(peak, start) for peak in range(first, first + 100, 5) for start in range(0, 41)]
    def model(sample, *candidate):
        return attention_model(sample["shape"], sample["flops"], *candidate)
    return samples, fit(whole, model, candidates)


# The head dimension at which attention reaches half of its limit for large dimensions.
ATTENTION_RAMP = 16


def rates(peers):
    """Lines of rates and of samples."""
    samples, (peak, half_depth, start) = product(peers)
    shown = [("matmul", samples)]
    tiles = f"peak={peak}tflops tile_rows=128 tile_columns=128"
    form = f"half_depth={half_depth} memory_share=0.9 start={time(start)} "
    lines = [f"rate matmul bf16 {tiles} {form}" + source(f"fit to cuBLAS, {NOTE}"),
             f"rate matmul f16 {tiles} {form}" + source("as bf16", "assumed"),
             f"rate matmul bf16 by own {tiles} few_rows={FEW_ROWS} {form}"
             + source(f"fit to cuBLAS, {NOTE}; few_rows as kernels are chosen"),
             f"rate matmul f16 by own {tiles} few_rows={FEW_ROWS} {form}"
             + source("as bf16", "assumed"),
             f"rate matmul f8e4m3 peak={round(1.8 * peak)}tflops tile_rows=128 tile_columns=128 "
             f"half_depth={2 * half_depth} memory_share=0.9 start={time(start)} "
             + source("1.8 x bf16; the data sheet has twice", "assumed"),
             f"rate matmul * peak=52tflops tile_rows=128 tile_columns=128 half_depth=64 "
             f"memory_share=0.9 start={time(start)} "
             + source("four fifths of the data sheet's 67 in f32 and f64", "assumed")]
    for leaf, kind, multiplier, tensors in (("attn_fwd", "sdpa_fwd", 4, 4),
                                            ("attn_bwd", "sdpa_bwd", 10, 8)):
        samples, (peak, start) = attention(peers, kind, multiplier, tensors)
        shown.append((leaf, samples))
        peak = round(peak * (1 + ATTENTION_RAMP / HEAD_DIM), 2)
        form = (f"half_depth={ATTENTION_RAMP} memory_share=0.9 "
                f"start={time(start)} ")
        tiles = "tile_rows=16 tile_columns=0 "
        # Thread blocks of the forward kernels hold 128 rows; decode has a kernel of its own.
        held = f"held_rows=128 few_rows={FEW_QUERIES} " if leaf == "attn_fwd" else ""
        few = f"few_start={FEW_START} " if leaf == "attn_fwd" else ""
        note = f"; few_start to decode on {FEW_NOTE}" if leaf == "attn_fwd" else ""
        lines.append(f"rate {leaf} bf16 peak={peak:g}tflops {tiles}{held}{form}{few}"
                     + source(f"fit to cuDNN 9.19, {NOTE}{note}"))
        lines.append(f"rate {leaf} f16 peak={peak:g}tflops {tiles}{held}{form}{few}"
                     + source("as bf16", "assumed"))
        form = tiles + form
        lines.append(f"rate {leaf} * peak=40tflops {form}" + source("below a product's", "assumed"))
    lines.append("rate gather_rows * memory_share=0.6 start=2us "
                 + source("rows in random order", "assumed"))
    lines.append("rate combine_rows * memory_share=0.6 start=2us "
                 + source("rows in random order", "assumed"))
    lines.append("rate * * memory_share=0.9 start=1us "
                 + source("4.3 of 4.8 TB/s, streaming", "assumed"))
    for leaf, samples in shown:
        library = "cuBLAS" if leaf == "matmul" else "cuDNN 9.19"
        for sample in samples:
            extents = " ".join(f"{name}={extent}" for name, extent in zip(
                ("batch", "rows", "columns", "depth"), sample["shape"]) if extent != 1)
            causal = " causal" if sample["causal"] else ""
            by = " by library" if leaf == "matmul" else ""  # our own GEMMs were profiled
            lines.append(f"sample {leaf} bf16{causal}{by} {extents} flops={sample['flops']} "
                         f"bytes={size(sample['bytes'])} time={time(sample['us'])} "
                         + source(f"{library}, {NOTE}"))
    return lines


MOST_ROWS = 256  # of GEMMs by libraries that profiles provide


def line_of(words, profile):
    """The profile's line, with its origin."""
    if " by " in words.split(" from ")[0]:
        return words
    return words.replace(profile, f"{profile} by own", 1)


def profiled_collectives(paths):
    for path in paths:
        for line in path.read_text(encoding="utf-8").splitlines():
            found = re.match(r"  (collective \w+ at \w+)", line)
            if found:
                yield line_of(line.strip(), found.group(1))


def profiled_products(paths):
    """GEMMs with the shapes of layers, without cubes, which are not representative."""
    for path in paths:
        for line in path.read_text(encoding="utf-8").splitlines():
            found = re.match(r"  (sample matmul bf16)", line)
            if not found:
                continue
            rows, columns, depth = (int((re.search(name + r"=(\d+)", line) or [0, 1])[1])
                                    for name in ("rows", "columns", "depth"))
            if " by library" in line:
                is_taken = rows <= MOST_ROWS
            else:
                is_taken = path == paths[-1]
            if is_taken and (columns, depth) != (rows, rows):
                yield line_of(line.strip(), found.group(1))


def once(lines):
    """Of lines that differ only in time and origin, keeps the last."""
    return list({line.split(" time=")[0]: line for line in lines}.values())


def main():
    folder = pathlib.Path(sys.argv[1])
    profiles = [pathlib.Path(name) for name in sys.argv[2:]]
    ceilings = read(folder / "h200x8_ceilings.jsonl")
    peers = read(folder / "h200x8_peers.jsonl")
    one = {key: value for row in ceilings for key, value in row.items()}
    copies, (latency, note) = own_copies(profiles[0])
    port = max(row["GBs"] for row in ceilings if "ce_uni_bytes" in row)
    lines = ['about "one host of 8 NVIDIA H200, NVLink 4 through NVSwitch"',
             "processor h200 sms=132 memory=134gib bandwidth=4800gbs cache=50mib "
             "kernel_start=1.7us "
             f"kernel_issue={time(one['launch_throughput_us'])} event={time(one['graph_node_us'])} "
             "execution_start=0.5us "
             + source(f"data sheet; issue and event measured, {NOTE}; execution_start on "
                      f"{FEW_NOTE}; start fitted to plans of 2 x H200", "published"),
             f"level nvlink switch size=8 bandwidth={port:g}gbs "
             f"latency={latency} "
             + source(f"copy engine of one pair, {NOTE}; latency: {note.strip(chr(34))}")]
    lines += copies + list(collectives(peers))
    lines += once(profiled_collectives(profiles)) + rates(peers)
    lines += once(profiled_products(profiles))
    print("machine h200x8 {\n  " + "\n  ".join(lines) + "\n}")


if __name__ == "__main__":
    main()
