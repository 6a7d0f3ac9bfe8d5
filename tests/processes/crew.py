"""Starts and disturbs runs of harpe in several processes, for the scripts in this folder.

Every script takes HARPE and can be called by hand: SCRIPT HARPE [--ranks N] [--seed N] [--cache
FOLDER]. A script that cannot run on this machine prints the reason and exits with 77.
"""
import argparse
import dataclasses
import json
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import sys
import time

SKIPPED = 77
TO_REPORT = 2.0  # seconds, beyond the limit of waits
# The limit of a process that should end by itself, far longer than any run here takes.
FOREVER = 300
LAUNCHERS = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "HARPE_ADDRESS",
             "TORCHELASTIC_USE_AGENT_STORE")
# A line of a report that names a waiting rank and its signal.
WAITED = re.compile(r"^rank \d+ (waited|gave up after) .* on .* for \d+, saw \d+: task \d+ \(.*\); "
                    r"its producer is task \d+ of rank \d+ ", re.M)


def parse(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("harpe")
    parser.add_argument("--ranks", type=int, help="default: one per GPU, at most 8")
    parser.add_argument("--trials", type=int, default=6)
    parser.add_argument("--seed", type=int, default=random.randrange(1000000))
    parser.add_argument("--cache", help="of kernels, as of `harpe run`")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    return options


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


def examine(harpe):
    done = subprocess.run([harpe, "doctor", "--json", "-"], capture_output=True, text=True,
                          check=True)
    return json.loads(done.stdout)


def count_gpus(harpe):
    return sum(gpu["problem"] is None for gpu in examine(harpe)["gpus"])


def has_nccl(harpe):
    return any(library["name"] == "NCCL" and library["problem"] is None
               for library in examine(harpe)["libraries"])


def ranks_on_gpus(options):
    """The number of ranks, each on its own GPU; exits if there are too few GPUs."""
    there = count_gpus(options.harpe)
    if there < 2 or (options.ranks or 0) > there:
        skip(f"this needs {options.ranks or 2} GPUs, and {there} are there")
    return options.ranks or min(there, 8)


def check(condition, *said):
    """Like an assertion, but prints `said`."""
    if condition:
        return
    raise AssertionError("\n".join(str(each) for each in said))


@dataclasses.dataclass
class End:
    status: int
    text: str  # standard output and error
    seconds: float  # since the start

    def expect(self, status, *patterns):
        check(self.status == status, f"exit status {self.status}, not {status}:", self.text)
        for pattern in patterns:
            check(re.search(pattern, self.text, re.M), f"`{pattern}` is not in:", self.text)
        return self


def state_of(process):
    """(state, parent) from the system; None if the process no longer exists."""
    try:
        text = pathlib.Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    except OSError:
        return None
    state, parent = text.rsplit(")", 1)[1].split()[:2]
    return state, int(parent)


def children_of(process):
    """The child processes of a launch, by rank."""
    found = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or (state_of(entry) or ("", 0))[1] != process:
            continue
        try:
            environment = pathlib.Path(f"/proc/{entry}/environ").read_bytes().split(b"\0")
        except OSError:
            continue  # it has exited meanwhile
        ranks = [variable[5:] for variable in environment if variable.startswith(b"RANK=")]
        found.update({int(rank): int(entry) for rank in ranks})
    return found


def is_alive(process):
    """True while the process runs; false for a zombie."""
    state = state_of(process)
    return state is not None and state[0] != "Z"


class Run:
    """A running harpe that leads its own session, so that `end` can kill all of it."""

    def __init__(self, *words, environment=None):
        self.words = [str(word) for word in words]
        self.start = time.monotonic()
        variables = {name: value for name, value in os.environ.items() if name not in LAUNCHERS}
        self.process = subprocess.Popen(self.words, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True,
                                        env={**variables, **(environment or {})},
                                        start_new_session=True)

    def wait_for_children(self, ranks):
        while True:
            found = children_of(self.process.pid)
            if len(found) == ranks:
                return found
            check(self.process.poll() is None and time.monotonic() - self.start < FOREVER,
                  "the processes do not start:", " ".join(self.words))

    def end(self):
        try:
            text, _ = self.process.communicate(timeout=FOREVER)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            text, _ = self.process.communicate()
            check(False, f"it did not end: {' '.join(self.words)}", text)
        return End(self.process.returncode, text, time.monotonic() - self.start)


def expect_all_gone(processes):
    """Expects that the processes of a launch end with it."""
    end = time.monotonic() + 1
    while any(map(is_alive, processes)):
        check(time.monotonic() < end, "processes are left:", *filter(is_alive, processes))
        time.sleep(0.01)


def run(*words, environment=None):
    return Run(*words, environment=environment).end()


def free_port():
    """A free port below the range from which the system assigns unnamed ports to other tests."""
    for port in random.sample(range(15_000, 32_000), 100):
        with socket.socket() as one:
            try:
                one.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
    raise RuntimeError("a hundred ports from 15,000 to 32,000 are taken")


def torchrun_environment(rank, ranks, port):
    """The variables that torchrun sets."""
    return {"RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_RANK": str(rank),
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}


def main(*tests):
    """Runs the tests in order and prints the name and time of each."""
    for test in tests:
        start = time.monotonic()
        print(test.__name__.replace("_", " "), flush=True)
        test()
        print(f"  passed in {time.monotonic() - start:.1f} s", flush=True)
