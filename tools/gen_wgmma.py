#!/usr/bin/env python3
"""Writes src/exec/cuda/device/wgmma_*.cuh: one wrapper per tile width, because inline assembly must
name every accumulator register. `--check` only compares."""
import pathlib
import sys
import textwrap

DEVICE = pathlib.Path(__file__).resolve().parent.parent / "src/exec/cuda/device"
# The widest tile of each file.
FILES = {"wgmma_instructions": 112, "wgmma_wide": 160, "wgmma_wider": 208, "wgmma_widest": 256}
WIDTHS = [8, 16, 32, 64, 96, 112, 128, 144, 160, 176, 192, 208, 224, 256]
WIDTHS_REGISTERS = [64, 128]  # A in registers: the second GEMM of attention

HEAD = """\
#pragma once

// Written by tools/gen_wgmma.py; do not edit.

#include "exec/cuda/device/types.h"

// D[64, N] += A[64, 16] B[16, N] for one warpgroup, bf16 or f16 in, f32 accumulate. With
// `accumulate` false D is overwritten. A in shared memory is K-major, or M-major (`transposed`); B
// is K-major, or N-major where `NMajor`.
namespace harpe::device {

// clang-format off
template <int N, Element In, bool NMajor>
struct Wgmma;
"""


HEAD_WIDE = """\
#pragma once

// Written by tools/gen_wgmma.py; do not edit.

#include "exec/cuda/device/wgmma_instructions.cuh"

// The tiles wider than {narrower} columns.
namespace harpe::device {{

// clang-format off
"""


def registers(first, count):
    text = ", ".join(f"%{i}" for i in range(first, first + count))
    return [f'"{line} "' for line in textwrap.wrap(text, 88)]


def operands(count):
    text = ", ".join(f'"+f"(d[{i}])' for i in range(count))
    return textwrap.wrap(text, 100, initial_indent=" " * 8, subsequent_indent=" " * 8)


def statement(n, kind, a_form):
    count = n // 2
    if a_form == "registers":
        a = ", {" + ", ".join(f"%{count + i}" for i in range(4)) + "}, "
        rest, inputs = count + 4, '"r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b)'
        tail = f'{a}%{rest}, p, 1, 1, %{rest + 2};'
    else:
        rest, inputs = count + 1, '"l"(a), "l"(b)'
        m_major = 1 if a_form == "transposed" else 0
        tail = f", %{count}, %{rest}, p, 1, 1, {m_major}, %{rest + 2};"
    lines = ['    asm volatile("{ .reg .pred p; setp.ne.b32 p, %%%d, 0;"' % (rest + 1)]
    lines.append(f'        "wgmma.mma_async.sync.aligned.m64n{n}k16.f32.{kind}.{kind} {{"')
    lines += ["        " + line for line in registers(0, count)]
    lines.append(f'        "}}{tail} }}"')
    lines.append("        :" + "\n".join(operands(count))[7:])
    lines.append(f'        : {inputs}, "r"(use), "n"(NMajor ? 1 : 0));')
    return lines


def function(n, kind, a_form):
    a = "const std::uint32_t (&a)[4]" if a_form == "registers" else "std::uint64_t a"
    name = "multiply_transposed" if a_form == "transposed" else "multiply"
    lines = [f"  HP_DEVICE static void {name}(float (&d)[{n // 2}], {a},",
             "                                 std::uint64_t b, bool accumulate) {"]
    lines.append("    const int use = accumulate ? 1 : 0;")
    lines += statement(n, kind, a_form)
    lines.append("  }")
    return lines


def text(head, widths):
    lines = [head]
    for n in widths:
        for element, kind in (("BF16", "bf16"), ("F16", "f16")):
            lines += ["template <bool NMajor>", f"struct Wgmma<{n}, Element::{element}, NMajor> {{"]
            lines += function(n, kind, "shared")
            if n in WIDTHS_REGISTERS:
                lines += function(n, kind, "registers")
            lines += function(n, kind, "transposed")
            lines += ["};", ""]
    lines += ["// clang-format on", "", "}  // namespace harpe::device", ""]
    return "\n".join(lines)


def main():
    narrower = 0
    for name, widest in FILES.items():
        head = HEAD_WIDE.format(narrower=narrower) if narrower else HEAD
        written = text(head, [n for n in WIDTHS if narrower < n <= widest])
        narrower = widest
        out = DEVICE / f"{name}.cuh"
        if "--check" not in sys.argv[1:]:
            out.write_text(written)
        elif out.read_text() != written:
            sys.exit(f"{out}: not what tools/gen_wgmma.py writes")


main()
