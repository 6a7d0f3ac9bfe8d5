#!/usr/bin/env python3
"""Checks what `cmake --install` provides: installs the library into an empty folder, examines its
exports and files, and builds and runs the examples there.

usage: install_test.py SOURCE BUILD WORK FLAGS, the build's own for the compiler
"""
import pathlib
import re
import shutil
import subprocess
import sys

SOURCE, BUILD, WORK = (pathlib.Path(argument) for argument in sys.argv[1:4])
PREFIX = WORK / "prefix"


def call(*command):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True,
                          text=True).stdout


def find_one(pattern):
    found = [path for path in PREFIX.rglob(pattern) if not path.is_symlink()]
    assert len(found) == 1, f"{pattern}: {found}"
    return found[0]


def check_headers():
    headers = {path.name for path in (SOURCE / "include/harpe").iterdir()}
    assert {path.name for path in (PREFIX / "include/harpe").iterdir()} == headers
    for name in headers:
        text = (PREFIX / "include/harpe" / name).read_text(encoding="utf-8")
        for included in re.findall(r'#include "([^"]+)"', text):
            assert included.removeprefix("harpe/") in headers, f"{name} includes {included}"


def check_exports(library):
    names = [line.split(maxsplit=2)[2] for line in
             call("nm", "-DC", "--defined-only", library).splitlines()]
    foreign = [name for name in names if not name.startswith("harpe::v1::")]
    assert not foreign, f"exported besides harpe::v1: {foreign[:8]}"
    assert any(name.startswith("harpe::v1::plan(") for name in names), names
    dynamic = call("readelf", "-d", library)
    assert "(SONAME)" in dynamic and "RPATH" not in dynamic and "RUNPATH" not in dynamic, dynamic


def check_no_build_paths():
    for path in PREFIX.rglob("*"):
        if not path.is_file():
            continue
        held = path.read_bytes()
        for folder in {SOURCE, BUILD}:
            at = held.find(str(folder).encode() + b"/")
            assert at < 0, f"{path.name} holds {held[at:at + 120]!r}"


def run_examples():
    call("cmake", "-S", SOURCE / "examples/cpp", "-B", WORK / "example", "-G", "Ninja",
         f"-DCMAKE_PREFIX_PATH={PREFIX}",
         f"-DCMAKE_CXX_FLAGS={sys.argv[4]} -Wall -Wextra -Wpedantic -Werror")
    call("cmake", "--build", WORK / "example")
    said = call(WORK / "example/gemm")
    assert re.search(r"largest error [0-9.]+e-0[5-9], ", said), said
    ranks = call(WORK / "example/ring_attention").splitlines()
    assert len(ranks) == 4, ranks
    for rank, line in enumerate(sorted(ranks)):
        assert re.fullmatch(rf"rank {rank}: largest error [0-9.]+e-0[6-9], 0 bytes copied",
                            line), line


def main():
    shutil.rmtree(WORK, ignore_errors=True)
    call("cmake", "--install", BUILD, "--prefix", PREFIX, "--component", "library")
    check_headers()
    check_exports(find_one("libharpe.so*"))
    check_no_build_paths()
    run_examples()


if __name__ == "__main__":
    main()
