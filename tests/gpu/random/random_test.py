#!/usr/bin/env python3
"""Random shapes of every operator on the GPUs of this machine, against NumPy in f64.

random_test.py HARPE [--serve FILE] [--count N] [--seed S] [--only I] [--json FILE]: draws
operators, sizes, masks, types, ranks and schedules until N of them have run, several in parallel.
It compares every output with `reference.py`. Each run must agree or be refused with a registered
diagnostic; it must not fail, be killed, hang or end with 70. `--only I` runs case I alone.
`--backend cpu` runs all cases on CPU ranks. FILE is the program of serve.cpp, which runs many cases
in one process: a new process takes seconds to initialise a GPU, and longer if several start
together. `--without-gpu FOLDER` takes a driver and a run-time compiler that do nothing from FOLDER
(tests/support/fake_libcuda.cpp): cases are prepared and enqueued, but no number is compared.
"""
import argparse
import collections
import concurrent.futures
import dataclasses
import functools
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np

import reference
import servers
import shapes

SKIPPED = 77
REFUSAL = re.compile(r"^error\[([A-Z]\d+)\]", re.M)
# A schedule may not support a shape (S, F), and a GPU may lack a kernel for it. Unproved plans (V),
# ranks that do not meet (N) and exhausted memory (G) count as failures.
MAY_REFUSE = re.compile(r"[SF]\d+|G072|G075")


@dataclasses.dataclass
class Outcome:
    case: shapes.Case
    index: int
    kind: str  # agrees, ready, refused, wrong, failed
    code: str = ""  # of the refusal
    text: str = ""  # why it failed
    worst: float = 0.0  # worst error of an element over its bound
    overall: float = 0.0  # error of all elements together over its bound
    seconds: float = 0.0
    command: str = ""


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("harpe")
    parser.add_argument("--serve", metavar="FILE")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--only", type=int)
    parser.add_argument("--json")
    parser.add_argument("--cache", help="of kernels, as of `harpe run`")
    parser.add_argument("--backend", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--without-gpu", metavar="FOLDER")
    parser.add_argument("--jobs", type=int, default=min(4, os.cpu_count() or 1))
    parser.add_argument("--budget", type=float, default=540, help="seconds; none begins after that")
    return parser.parse_args()


class Harpe:
    """The binary under test, with a folder for its temporary files."""

    def __init__(self, options, folder):
        self.binary = str(pathlib.Path(options.harpe).resolve())
        self.options = options
        self.folder = pathlib.Path(folder)
        self.environment = dict(os.environ)
        if options.without_gpu:
            fakes = str(pathlib.Path(options.without_gpu).resolve())
            self.environment["LD_LIBRARY_PATH"] = os.pathsep.join(
                filter(None, (fakes, os.environ.get("LD_LIBRARY_PATH"))))
        self.codes = set(re.findall(r"^## ([A-Z]\d+)$", self.ask("explain", "--all"), re.M))
        self.lock = threading.Lock()
        self.known = {}
        self.gpus = self.count_gpus()
        serve = str(pathlib.Path(options.serve or ".").resolve())
        kept = 0 if options.backend == "cpu" else self.gpus
        self.servers = servers.Servers(options.jobs, [serve, str(kept)], self.folder,
                                       self.environment) if options.serve else None

    def run(self, words, case, folder):
        """Runs in a resident process; a case of several processes runs separately."""
        if self.servers and "--launch" not in case.options:
            return self.servers.run(words)
        return servers.run_alone([self.binary, *words], folder, self.environment)

    def ask(self, *words):
        return subprocess.run([self.binary, *words], capture_output=True, text=True, check=True,
                              env=self.environment).stdout

    def count_gpus(self):
        if self.options.backend == "cpu":
            return 2
        gpus = json.loads(self.ask("doctor", "--json", "-"))["gpus"]
        return sum(gpu["problem"] is None for gpu in gpus)

    def schedules_of(self, case):
        """The names of the schedules that apply to an operator of usual sizes on the mesh."""
        causal = ["causal=true"] if case.sizes.get("causal") else []
        key = (case.operator, case.mesh, bool(causal))
        with self.lock:
            if key not in self.known:
                found = json.loads(self.ask("schedules", case.operator, *causal,
                                            "--mesh", case.mesh, "--json", "-"))
                self.known[key] = [one["name"] for one in found["schedules"] if one["applies"]]
            return self.known[key]

    def words(self, case, inputs, outputs):
        words = case.words()
        if self.options.backend == "cpu":
            words = [word for word in words if word != "--share-gpus"]
        else:
            words += ["--backend", "cuda", "--collectives", "pull", "--wait", "60000"]
        cache = self.options.cache or self.folder / "cache"
        words += ["--cache", str(cache)]
        if self.options.without_gpu:
            fake = pathlib.Path(self.options.without_gpu).resolve() / "libnvrtc.so.13"
            words += ["--nvrtc", str(fake)]
        words += [word for pair in inputs.items() for word in ("--input", "=".join(pair))]
        return words + [word for pair in outputs.items() for word in ("--output", "=".join(pair))]


def judge(harpe, status, text):
    """Classifies an exit status other than 0: (kind, code, text)."""
    found = REFUSAL.search(text)
    code = found.group(1) if found else ""
    if status == 1 and code in harpe.codes and MAY_REFUSE.fullmatch(code):
        return "refused", code, text
    ended = "hangs" if status is None else f"exit status {status}"
    return "failed", code, f"{ended}: {text.strip()[-600:]}"


def measure(outputs, files):
    """The worst output: (error of an element, of all together, both in units of their bounds,
    text)."""
    worst = (0.0, 0.0, "")
    for name, (expected, unit) in outputs.items():
        found = np.load(files[name]).astype(np.float64)
        element, overall = reference.compare(found, expected, unit)
        if max(element, overall) >= max(worst[:2]):
            worst = (element, overall, f"{name}: an element is off by {element:.3g} of what it may "
                                       f"be, all together by {overall:.3g}")
    return worst


def attempt(harpe, case, index):
    """Runs the case and compares its outputs."""
    outcome = Outcome(case, index, "agrees")
    rng = np.random.default_rng([harpe.options.seed, index])
    meaning = reference.OPERATORS[case.operator](case, rng)
    with tempfile.TemporaryDirectory(dir=harpe.folder) as folder:
        inputs, outputs = {}, {}
        for name, tensor in meaning.inputs.items():
            inputs[name] = f"{folder}/{name}.npy"
            np.save(inputs[name], tensor)
        expected = {} if harpe.options.without_gpu else meaning.outputs()
        outputs = {name: f"{folder}/{name}.out.npy" for name in expected}
        words = harpe.words(case, inputs, outputs)
        start = time.monotonic()
        status, text = harpe.run(words, case, folder)
        outcome.seconds = time.monotonic() - start
        outcome.command = shlex.join(["harpe", *harpe.words(case, {}, {})])
        if status != 0:
            outcome.kind, outcome.code, outcome.text = judge(harpe, status, text)
        elif harpe.options.without_gpu:
            outcome.kind = "ready"
        else:
            outcome.worst, outcome.overall, outcome.text = measure(expected, outputs)
            # Negated, so that NaN counts as wrong.
            if not (outcome.worst <= 1 and outcome.overall <= 1):
                outcome.kind = "wrong"
    return outcome


def run_all(harpe):
    """Runs cases in parallel until enough have run; further cases replace refused ones."""
    options = harpe.options
    draw = functools.partial(shapes.draw, options.seed, gpus=harpe.gpus,
                             schedules_of=harpe.schedules_of)
    if options.only is not None:
        return [attempt(harpe, draw(options.only), options.only)]
    start, outcomes, index = time.monotonic(), [], 0
    with concurrent.futures.ThreadPoolExecutor(2 * options.jobs) as pool:
        under_way = set()
        while True:
            ran = sum(one.kind != "refused" for one in outcomes)
            late = time.monotonic() - start > options.budget
            while not late and len(under_way) < min(2 * options.jobs, options.count - ran):
                under_way.add(pool.submit(attempt, harpe, draw(index), index))
                index += 1
            if not under_way:
                return outcomes
            done, under_way = concurrent.futures.wait(
                under_way, return_when=concurrent.futures.FIRST_COMPLETED)
            for future in done:
                outcomes.append(future.result())
                report(outcomes[-1])


def report(outcome):
    if outcome.kind in ("wrong", "failed"):
        print(f"{outcome.kind} (--only {outcome.index}): {outcome.command}\n  {outcome.text}",
              flush=True)


def summarise(outcomes, options):
    kinds = collections.Counter(one.kind for one in outcomes)
    print(f"seed {options.seed}: " + ", ".join(f"{n} {kind}" for kind, n in sorted(kinds.items())))
    refused = collections.defaultdict(list)
    for one in outcomes:
        if one.kind == "refused":
            refused[one.code].append(one)
    for code, those in sorted(refused.items()):
        print(f"  refused with {code}: {len(those)}, as {those[0].command}")
    by_operator = collections.defaultdict(list)
    for one in outcomes:
        if one.kind != "refused":
            by_operator[one.case.operator, one.case.dtype].append(one)
    for (operator, dtype), those in sorted(by_operator.items()):
        errors = "" if options.without_gpu else (
            f", worst element {max(one.worst for one in those):.2f} of its bound, all together "
            f"{max(one.overall for one in those):.2f}")
        print(f"  {operator} {dtype}: {len(those)}{errors}")
    if options.json:
        rows = [dataclasses.asdict(one) for one in sorted(outcomes, key=lambda one: one.index)]
        pathlib.Path(options.json).write_text(
            json.dumps({"seed": options.seed, "kinds": kinds, "cases": rows}, default=float))
    passed = kinds["agrees"] + kinds["ready"]
    failed = kinds["wrong"] + kinds["failed"]
    print(f"{passed} passed, {failed} failed")
    wanted = 1 if options.only is not None else options.count
    return 0 if failed == 0 and (passed == wanted or kinds["refused"] and wanted == 1) else 1


def main():
    options = parse()
    with tempfile.TemporaryDirectory(prefix="harpe-random-") as folder:
        harpe = Harpe(options, folder)
        if harpe.gpus == 0:
            print("skipped: no GPU is usable here")
            return SKIPPED
        print(f"{harpe.gpus} GPUs, {options.jobs} at a time, seed {options.seed}", flush=True)
        try:
            return summarise(run_all(harpe), options)
        finally:
            if harpe.servers:
                harpe.servers.stop()


if __name__ == "__main__":
    sys.exit(main())
