#!/usr/bin/env python3
"""System limits on threads, processes, open files and file sizes: the run ends at once, names the
limit, and leaves nothing behind. Needs no GPU.

limits_test.py HARPE
"""
import os
import pathlib
import resource
import subprocess
import tempfile
import time

import crew

OPTIONS = crew.parse(__doc__)
SOON = 30  # seconds; a run that waits for a time limit takes a minute
NOBODY = 54321  # a user without processes
SUBJECT = ["gemm_rs", "m=96", "n=96", "k=96", "--mesh", "tp=16", "--schedule", "bulk"]


def run_limited(words, prepare, environment=None):
    """(exit status, text, seconds; files left behind), run in a new folder."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        variables = {name: value for name, value in os.environ.items()
                     if name not in crew.LAUNCHERS}
        done = subprocess.run([OPTIONS.harpe, *map(str, words)], preexec_fn=prepare, cwd=folder,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=crew.FOREVER, check=False,
                              env={**variables, **(environment or {})})
        left = os.listdir(folder)
    return crew.End(done.returncode, done.stdout, time.monotonic() - start), left


def expect_refused(end, left, what):
    end.expect(3, rf"error\[X018\]: the system gives this process no more {what}: ")
    crew.check(end.seconds < SOON, f"it took {end.seconds:.1f} s")
    crew.check(not left, "it left something behind:", left)


def without_memory_for_stacks():
    """Each thread's stack would be 128 TiB."""
    resource.setrlimit(resource.RLIMIT_STACK, (1 << 47, resource.RLIM_INFINITY))


COMMANDS = {
    "run": ["run", *SUBJECT, "--cache", "off"],
    "check": ["run", "gemm", "m=64", "n=64", "k=64", "--mesh", "x=1", "--schedule", "bulk",
              "--check"],
    "bench": ["bench", "gemm_rs", "m=64", "n=64", "k=64", "--ranks", "2", "--rounds", "1"],
    "profile": ["profile", "--ranks", "4"],
}


def threads_without_memory_are_refused_by_every_command():
    for name, words in COMMANDS.items():
        end, left = run_limited(words, without_memory_for_stacks)
        crew.check(end.status == 3, name, end.status, end.text)
        expect_refused(end, left, "threads")


def threads_and_processes_above_a_limit_are_refused():
    """Like `ulimit -u`, which does not limit root; so the run has a user without other
    processes."""
    binary = pathlib.Path(OPTIONS.harpe).resolve()
    is_reachable = all(os.stat(each).st_mode & 0o001 for each in [binary, *binary.parents])
    if os.geteuid() != 0 or not is_reachable:
        print("  skipped: this needs root, and a binary that other users may run")
        return
    for most in (1, 2, 4):
        def prepare(most=most):
            resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        home = {"HOME": "/nonexistent"}
        end, left = run_limited(["profile", "--ranks", "6"], prepare, home)
        expect_refused(end, left, "threads")
        crew.check(f"`ulimit -u` is {most}" in end.text, end.text)
        launch = ["run", *SUBJECT, "--cache", "off", "--launch", 16]
        end, left = run_limited(launch, prepare, home)
        expect_refused(end, left, "processes")
        crew.check(f"`ulimit -u` is {most}" in end.text, end.text)


def help_needs_one_thread():
    """This includes loading: a library that starts threads would fail here."""
    for words in (["--help"], ["ops"], ["show", "gemm"]):
        end, _ = run_limited(words, without_memory_for_stacks)
        end.expect(0)


def files_above_a_limit_are_refused_at_once():
    """The launch has 16 ranks: rank 0 needs a socket for each, and two more files."""
    for files in (8, 12, 16):
        def prepare(files=files):
            resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
        end, left = run_limited(["run", *SUBJECT, "--launch", 16], prepare)
        expect_refused(end, left, "open files")
        crew.check(f"`ulimit -n` is {files}" in end.text, end.text)


def a_soft_limit_of_files_is_raised():
    def prepare():
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (12, hard))
    end, _ = run_limited(["run", *SUBJECT, "--launch", 16], prepare)
    end.expect(0)


def files_that_may_not_grow_are_told_and_removed():
    def prepare():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))
    gemm = ["gemm", "m=64", "n=64", "k=64", "--mesh", "x=4", "--schedule", "bulk"]
    for words in (["lower", *gemm, "-o", "x.plan"], ["run", *gemm, "--output", "c=c.npy"],
                  ["run", *gemm, "--trace", "t.json"], ["simulate", *gemm, "--report", "r.html"]):
        end, left = run_limited(words, prepare)
        end.expect(1, r"error\[I102\]: cannot write `.*`: File too large")
        crew.check(not left, "it left something behind:", left)


if __name__ == "__main__":
    crew.main(threads_without_memory_are_refused_by_every_command,
              threads_and_processes_above_a_limit_are_refused, help_needs_one_thread,
              files_above_a_limit_are_refused_at_once, a_soft_limit_of_files_is_raised,
              files_that_may_not_grow_are_told_and_removed)
