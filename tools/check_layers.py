#!/usr/bin/env python3
"""The module law (ARCHITECTURE.md): which module may include which, and what no file may hold.

CMakeLists.txt states the same law for linking; this script checks every #include.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SRC = ROOT / "src"

# module -> modules it may include, besides itself. `ir` and what stands on it may include one
# header of `machine` (docs/decisions/0001-mesh-below-ir.md).
MESH = "machine/mesh.h"
# The base of GPU kernels: each folder of exec/cuda/kernels may include this, the interface of all
# kernels, and of other kernels only what the list below states.
BELOW_KERNELS = ["exec/cuda/device", "exec/cuda/runtime", "exec/cuda/jit", "exec/cuda/signals",
                 "exec/cuda/library", "exec/actions", "plan", "offers", "ir", "leaves", "support"]
LAW = {
    "support": [],
    "machine": ["support"],
    "leaves": [],
    "ir": ["leaves", "support"],
    "offers": ["ir", "leaves"],
    "plan": ["ir", "leaves", "support"],
    "sync": ["plan", "ir", "support"],
    "launch": ["sync", "plan", "ir", "leaves", "support"],
    "verify": ["plan", "ir", "leaves", "support"],
    "ops": ["ir", "support"],
    "schedule": ["offers", "ir", "leaves", "machine", "support"],
    "lower": ["schedule", "plan", "offers", "ir", "leaves", "machine", "support"],
    "sim": ["plan", "offers", "ir", "leaves", "machine", "support"],
    "transport": ["machine", "support"],
    "exec": ["plan", "offers", "ir", "leaves", "support"],
    "exec/actions": ["exec", "plan", "ir", "leaves", "support"],
    "exec/processes": ["exec", "transport", "plan", "ir", "support"],
    "exec/group": ["exec", "transport", "plan", "ir", "support"],
    "exec/cpu": ["exec/actions", "exec/processes", "exec/group", "exec", "transport", "launch",
                 "sync", "plan", "offers", "ir", "support"],
    # Rooms of the CUDA back end. `device`: GPU code, and data that it shares with the host.
    "exec/cuda/device": [],
    "exec/cuda/runtime": ["exec/cuda/device", "transport", "support"],
    "exec/cuda/jit": ["exec/cuda/runtime", "support"],
    "exec/cuda/signals": ["exec/cuda/device", "exec/cuda/runtime", "exec/cuda/jit", "transport",
                          "support"],
    "exec/cuda/library": ["exec/cuda/device", "exec/cuda/runtime", "exec/cuda/jit", "support"],
    "exec/cuda/kernels": BELOW_KERNELS,
    "exec/cuda/kernels/plain": ["exec/cuda/kernels", *BELOW_KERNELS],
    "exec/cuda/kernels/copy_engine": ["exec/cuda/kernels", *BELOW_KERNELS],
    "exec/cuda/kernels/nccl": ["exec/cuda/kernels", *BELOW_KERNELS],
    "exec/cuda/kernels/gemm": ["exec/cuda/kernels/plain", "exec/cuda/kernels", *BELOW_KERNELS],
    "exec/cuda/kernels/attention": ["exec/cuda/kernels/plain", "exec/cuda/kernels",
                                    *BELOW_KERNELS],
    "exec/cuda/kernels/backward": ["exec/cuda/kernels/attention", "exec/cuda/kernels/plain",
                                   "exec/cuda/kernels", *BELOW_KERNELS],
    # The launch plan for H200s, in every build.
    "exec/cuda/target": ["exec/cuda/device", "exec/cuda/signals", "exec/cuda/kernels",
                         "exec/cuda/kernels/copy_engine", "exec/cuda/kernels/nccl",
                         "exec/cuda/library", "exec/actions", "exec", "launch", "sync", "plan",
                         "offers", "ir", "leaves", "support"],
    "exec/cuda/executor": ["exec/cuda/device", "exec/cuda/runtime", "exec/cuda/jit",
                           "exec/cuda/signals", "exec/cuda/library", "exec/cuda/kernels",
                           "exec/cuda/target", "exec/actions", "exec/processes", "exec",
                           "transport", "launch", "sync", "plan", "ir", "support"],
    "exec/cuda/group": ["exec/cuda/runtime", "exec/cuda/jit", "exec/cuda/kernels",
                        "exec/cuda/target", "exec/cuda/executor", "exec/actions",
                        "exec/group", "exec", "launch", "sync", "plan", "support"],
    "exec/cuda/profile": ["exec/cuda/runtime", "exec/cuda/signals", "exec/cuda/library",
                          "exec/cuda/kernels", "exec/cuda/kernels/plain",
                          "exec/cuda/kernels/gemm", "exec/cuda/kernels/attention",
                          "exec/actions", "ir", "leaves", "support"],
    "measure/baselines": ["exec/cuda/runtime", "exec/cuda/library", "exec/cuda/kernels",
                          "exec/cuda/kernels/plain", "exec/cuda/kernels/attention",
                          "exec/actions", "exec", "ir", "support"],
    "search": ["schedule", "lower", "sim", "plan", "ir", "leaves", "machine", "support"],
    "io": ["exec", "sim", "plan", "ir", "support"],
    "compile": ["io", "exec/cuda/target", "exec", "search", "launch", "lower", "verify", "ops",
                "schedule", "sim", "plan", "offers", "ir", "leaves", "machine", "support"],
    "run": ["compile", "io", "exec", "exec/processes", "exec/group", "exec/cpu",
            "exec/cuda/target", "transport", "launch", "plan", "sim", "ir", "leaves", "machine",
            "support"],
    "run/cuda": ["run", "compile", "exec", "exec/group", "exec/cuda/runtime", "exec/cuda/jit",
                 "exec/cuda/library", "exec/cuda/kernels", "exec/cuda/executor",
                 "exec/cuda/group", "exec/cuda/profile", "measure/baselines", "launch", "plan",
                 "ir", "support"],
    "report": ["run", "compile", "io", "exec", "search", "lower", "sim", "plan", "ir", "machine",
               "support"],
    "measure": ["run", "compile", "io", "exec", "search", "schedule", "lower", "sim", "plan",
                "ir", "leaves", "machine", "support"],
    "profile": ["measure", "run", "compile", "exec", "exec/cpu", "transport", "plan", "ir",
                "leaves", "machine", "support"],
    "library": ["run", "report", "compile", "io", "verify", "exec", "exec/group", "transport",
                "sim", "search", "schedule", "ops", "plan", "ir", "machine", "support"],
    "cli": ["profile", "measure", "report", "run", "compile", "io", "exec/processes", "verify",
            "sim", "support"],
}
EXTRA_HEADERS = {
    # ir/text.h prints and parses every item of a text.
    "ir": {MESH, "machine/topology.h", "machine/fence.h"},
    "plan": {MESH},
    "sync": {MESH},
    "launch": {MESH},
    "verify": {MESH},
    "exec": {MESH},
    "exec/actions": {MESH},
    "exec/group": {MESH},
    "exec/cpu": {MESH},
    "exec/processes": {MESH},
    "exec/cuda/target": {MESH},
    "exec/cuda/executor": {MESH},
    "exec/cuda/group": {MESH},
    # Plain data, independent of whether the back end is compiled; and the one file that depends on
    # it.
    "run": {"exec/cuda/jit/kernel_variant.h", "exec/cuda/jit/resources.h",
            "run/cuda/cuda_gpus.h"},
    "profile": {"exec/cuda/profile/figures.h"},
}
# CMake writes them into the build folder.
GENERATED = {"machine/texts.h", "ops/texts.h", "cli/examples.h", "report/assets.h",
             "exec/cuda/jit/device_texts.h"}
# The verifier has its own model of blocks, masks and slots, so that faults in ours are not hidden.
FORBIDDEN_HEADERS = {"verify": {"ir/blocks.h", "ir/mask.h", "plan/slots.h"}}

# Public headers may only include each other. Of the modules only this one may include them, and
# outside src/ the Python extension: folders of quoted includes, pattern of the others.
SEES_PUBLIC = "library"
OUTSIDE = {"include": (["include"], r"[a-z_]+"),
           "python": (["include", "python"], r"[a-z_]+|nanobind/.*")}

# Exceptions may be caught only at these boundaries: the process, the public calls, and threads that
# must pass one on.
MAY_CATCH = [r"src/cli/(main|run_command)\.cpp", r"src/library/boundary\.(h|cpp)",
             r"src/exec/cpu/runner\.cpp", r"src/support/threads\.(h|cpp)",
             r"python/extension/(records\.h|calls?\.cpp|rank\.cpp)", r"tests/support/.*"]
# A thread that the system refuses is reported in one way.
STARTS_THREAD = re.compile(
    r"\bstd::(async\b|thread\b(?!::)|jthread[({](?![)}])|vector<std::jthread>)")
MAY_START_THREADS = [r"src/support/threads\.(h|cpp)", r"src/exec/cpu/runner\.h", r"(?!src/).*"]
# Only the command line reads the environment and ends the process.
PROCESS_CALL = re.compile(
    r"\b(?:(?:secure_)?getenv|(?:un)?setenv|putenv|(?:_|quick_)?exit|_Exit)\s*\("
    r"|(?<!\w)(?:std)?::abort\s*\(")
MAY_CALL_PROCESS = [r"src/cli/.*", r"(?!src/).*"]
# Only the command line writes options as flags (support/option_words.h). Properties of style sheets
# and options of NVIDIA's run-time compiler look like flags.
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]*(?![a-z:-])")
MAY_NAME_FLAGS = [r"src/cli/.*", r"src/exec/cuda/jit/nvrtc\.cpp", r"(?!src/|include/).*"]
# Slow to compile or with global effects: no header of ours may include them.
CPP_ONLY = re.compile(r"^(fmt/|nlohmann/(?!json_fwd\.hpp)|CLI/|cblas|dnnl|oneapi/|iostream$|regex$"
                      r"|rapidcheck)")

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)
COMMENT_OR_STRING = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)


def module_of(path):
    """`exec/cpu/run.cpp` -> `exec/cpu`: the longest module in the law."""
    folders = path.split("/")[:-1]
    for length in range(len(folders), 0, -1):
        name = "/".join(folders[:length])
        if name in LAW:
            return name
    return None


def check_include(module, included):
    """The sentence of a finding, or None."""
    if included.startswith("harpe/"):
        return None if module == SEES_PUBLIC else "only `library` includes public headers"
    target = module_of(included)
    if target is None:
        return f"`{included}` is in no module of the law"
    if included in FORBIDDEN_HEADERS.get(module, ()):
        return f"`{module}` keeps its own model and may not include `{included}`"
    allowed = LAW[module]
    if target == module or "*" in allowed or target in allowed:
        return None
    if included in EXTRA_HEADERS.get(module, ()):
        return None
    return f"`{module}` may include {', '.join(allowed) or 'nothing'}, so not `{included}`"


# Every build makes the same launch plans for H200s, so this code is compiled without CUDA's
# headers.
DECIDES = re.compile(r"exec/cuda/(target/|kernels/(?!(.*/)?prepare)).*\.cpp")
NVIDIA = re.compile(r"(cuda|nvrtc|nccl|cublas|cudnn)[A-Za-z_]*\.h")


def find_nvidia_header(included, seen):
    """The CUDA header that a header of ours includes, directly or not, or None."""
    if NVIDIA.fullmatch(included):
        return included
    path = SRC / included
    if included in seen or not path.exists():
        return None
    seen.add(included)
    for match in INCLUDE.finditer(path.read_text(encoding="utf-8")):
        if (found := find_nvidia_header(match.group(2), seen)) is not None:
            return found
    return None


def check_file(path):
    name = path.relative_to(ROOT).as_posix()
    text = path.read_text(encoding="utf-8")
    code = COMMENT_OR_STRING.sub(lambda m: "\n" * m.group().count("\n"), text)
    findings = []

    def report(position, sentence, source):
        findings.append(f"{name}:{source.count(chr(10), 0, position) + 1}: {sentence}")

    in_src = name.startswith("src/")
    top = name.split("/")[0]
    outside = OUTSIDE.get(top)
    module = module_of(name[len("src/"):]) if in_src else None
    if in_src and module is None:
        return [f"{name}: its folder is in no module of the law"]
    if in_src and DECIDES.fullmatch(name[len("src/"):]) and (
            header := find_nvidia_header(name[len("src/"):], set())) is not None:
        findings.append(f"{name}:1: it decides what H200s launch and reaches <{header}>")
    first = True
    for match in INCLUDE.finditer(text):
        quoted, included = match.group(1) == '"', match.group(2)
        if path.suffix == ".h" and CPP_ONLY.match(included):
            report(match.start(), f"`{included}` belongs in a .cpp", text)
        if outside is not None and not (
                any((ROOT / root / included).exists() for root in outside[0]) if quoted
                else re.fullmatch(outside[1], included)):
            report(match.start(), f"`{top}/` includes no `{included}`", text)
        if in_src and quoted:
            if included not in GENERATED and not any(
                    (ROOT / root / included).exists() for root in ("src", "include")):
                report(match.start(), f"`{included}` does not exist under src/", text)
            elif (sentence := check_include(module, included)) is not None:
                report(match.start(), sentence, text)
        if in_src and first and path.suffix == ".cpp" and path.with_suffix(".h").exists():
            own = path.with_suffix(".h").relative_to(SRC).as_posix()
            if included != own:
                report(match.start(), f"its own header `{own}` comes first", text)
        first = False
    if path.suffix == ".h" and "#pragma once" not in text:
        findings.append(f"{name}:1: a header starts with `#pragma once`")
    if not any(re.fullmatch(pattern, name) for pattern in MAY_NAME_FLAGS):
        for words in COMMENT_OR_STRING.finditer(text):
            for flag in FLAG.finditer(words.group()):
                report(words.start() + flag.start(), f"`{flag.group()}` is a word of the command "
                       "line: name the option, as `{option:NAME}` does in diagnostics", text)
    for match in re.finditer(r"\bcatch\s*\(", code):
        if not any(re.fullmatch(pattern, name) for pattern in MAY_CATCH):
            report(match.start(), "`catch` is for the boundaries alone: return a Checked<T>", code)
    for match in STARTS_THREAD.finditer(code):
        if not any(re.fullmatch(pattern, name) for pattern in MAY_START_THREADS):
            report(match.start(), "threads are started by support/threads.h", code)
    for match in PROCESS_CALL.finditer(code):
        if not any(re.fullmatch(pattern, name) for pattern in MAY_CALL_PROCESS):
            report(match.start(), "the environment and the end of the process are src/cli's", code)
    for match in re.finditer(r"\busing\s+namespace\b", code):
        report(match.start(), "`using namespace`", code)
    return findings


def main():
    findings = []
    for folder in ("src", "include", "python", "tests", "bench"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".h", ".cpp", ".cuh", ".cu", ".def"):
                findings += check_file(path)
    print("\n".join(findings), end="\n" if findings else "")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
