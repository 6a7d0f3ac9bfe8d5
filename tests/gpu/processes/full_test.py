#!/usr/bin/env python3
"""A GPU that is full, or becomes full while a plan is prepared.

full_test.py HARPE [--ranks N] [--cache FOLDER]: another process holds a GPU's memory. If the plan
does not fit, all ranks refuse it with status 1 and report how much is missing where; no memory
stays allocated. If it fits, its results are right.
"""
import ctypes
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "processes"))
import crew  # noqa: E402

MEBIBYTE = 1 << 20
# What the driver keeps after its first work: code, stacks and the like.
DRIVERS_OWN = 64 * MEBIBYTE
# Every rank gathers all of A: 1 GiB.
LARGE = ["ag_gemm", "m=16384", "n=2048", "k=32768", "--schedule", "bulk"]
REFUSED = r"error\[(G073|G008|G005|N017)\]: "


class Gpu:
    """One GPU, through the driver. It lives in a separate process, which frees its memory on
    exit."""

    def __init__(self, ordinal):
        self.driver = ctypes.CDLL("libcuda.so.1")
        context = ctypes.c_void_p()
        device = ctypes.c_int()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), ordinal)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)

    def call(self, name, *words):
        status = getattr(self.driver, name)(*words)
        if status != 0:
            raise OSError(f"{name}: {status}")

    def free(self):
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value

    def fill(self, left):
        """Allocates all but `left` bytes, in pieces."""
        for piece in (1024, 64, 2):
            while self.free() - left >= piece * MEBIBYTE:
                address = ctypes.c_uint64()
                status = self.driver.cuMemAlloc_v2(ctypes.byref(address),
                                                   ctypes.c_size_t(piece * MEBIBYTE))
                if status != 0:
                    break


def hold():
    """The process of a Holder: fills a GPU, prints what is left, and holds it until a line
    arrives."""
    gpu = Gpu(int(sys.argv[2]))
    gpu.fill(int(sys.argv[3]))
    print(gpu.free(), flush=True)
    sys.stdin.readline()


class Holder:
    """`with`: another process holds all of a GPU's memory except `left` bytes."""

    def __init__(self, gpu, left):
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--hold", str(gpu), str(left)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True)
        self.free = int(self.process.stdout.readline())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.communicate("\n")


def free_on(gpu):
    """The free bytes that another process sees."""
    with Holder(gpu, 1 << 60) as looker:
        return looker.free


def words(*more):
    cache = [f"--cache={OPTIONS.cache}"] if OPTIONS.cache else []
    return [OPTIONS.harpe, "run", *more, "--mesh", f"tp={RANKS}", "--backend", "cuda", *cache]


def small(*more):
    return words("gemm_rs", "m=256", "n=256", "k=256", "--schedule", "push", "--check", *more)


def memory_of_large():
    with tempfile.TemporaryDirectory() as folder:
        result = pathlib.Path(folder) / "plan.json"
        crew.run(OPTIONS.harpe, "lower", *LARGE, "--mesh", f"tp={RANKS}", "-o",
                 pathlib.Path(folder) / "large.plan", "--json", result).expect(0)
        return json.loads(result.read_text(encoding="utf-8"))["memory_bytes"]


def a_full_gpu_is_refused_with_what_is_missing():
    needed = memory_of_large()
    for gpu in (0, RANKS - 1):
        before = free_on(gpu)
        with Holder(gpu, needed * 3 // 4) as holder:
            for launch in ([], ["--launch", RANKS]):
                start = holder.free
                end = crew.run(*words(*LARGE, *launch))
                of_first = launch and gpu != 0
                text = rf"this plan needs (\d+) MiB on GPU {gpu}, and (\d+) MiB are free there"
                prefix = rf"error\[N017\]: rank {gpu} cannot run its part of the plan: " \
                    if of_first else r"error\[G073\]: "
                end.expect(1, prefix + text)
                wanted, free = map(int, re.search(text, end.text).groups())
                crew.check(free < wanted <= needed // MEBIBYTE + 64, end.text)
                crew.check(free * MEBIBYTE <= start, end.text)
        crew.check(free_on(gpu) >= before - DRIVERS_OWN, "memory stays behind")
        crew.run(*small()).expect(0)


def memory_that_ends_anywhere_is_refused_or_enough():
    """The free memory ranges from less than a context to enough for the plan."""
    seen = set()
    before = free_on(RANKS - 1)
    for left in (16, 64, 128, 256, 384, 448, 512, 576, 640, 768, 1024, 1536, 4096):
        with Holder(RANKS - 1, left * MEBIBYTE) as holder:
            for launch in ([], ["--launch", RANKS]):
                start = time.monotonic()
                end = crew.run(*small(*launch))
                said = end.text.strip().splitlines()[0] if end.status != 0 else "right"
                print(f"  {holder.free // MEBIBYTE} MiB left{' in processes' if launch else ''}: "
                      f"{end.status}, {said[:120]}", flush=True)
                crew.check(end.status in (0, 1), end.text)
                if end.status == 1:
                    end.expect(1, REFUSED)
                crew.check(time.monotonic() - start < 60, "it took long:", end.text)
                seen.add(end.status)
    crew.check(seen == {0, 1}, f"not both of refused and right: {seen}")
    crew.check(free_on(RANKS - 1) >= before - DRIVERS_OWN, "memory stays behind")
    crew.run(*small("--launch", RANKS)).expect(0)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--hold"]:
        sys.exit(hold())
    OPTIONS = crew.parse(__doc__)
    RANKS = crew.ranks_on_gpus(OPTIONS)
    crew.run(*small()).expect(0)  # compiles kernels
    crew.main(a_full_gpu_is_refused_with_what_is_missing,
              memory_that_ends_anywhere_is_refused_or_enough)
