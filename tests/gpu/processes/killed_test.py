#!/usr/bin/env python3
"""One rank of several processes on GPUs is killed or stopped during replays.

killed_test.py HARPE [--ranks N] [--trials N] [--seed N] [--cache FOLDER]: every other rank ends
with status 3 within the limit of a wait plus 2 s. It reports the lost rank and what it waited for.
The next run is right.
"""
import json
import os
import pathlib
import random
import signal
import statistics
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "processes"))
import crew  # noqa: E402

OPTIONS = crew.parse(__doc__)
RANKS = crew.ranks_on_gpus(OPTIONS)
RANDOM = random.Random(OPTIONS.seed)
WAIT = 4.0  # seconds
REPLAYS = 6.0  # seconds that the replays take undisturbed
SUBJECTS = [["gemm_rs", "m=2048", "n=2048", "k=2048", "--schedule", "push", "--mesh", "tp="],
            ["attention", "seq=4096", "heads=16", "head_dim=128", "--schedule", "ring", "--mesh",
             "cp="],
            ["ag_gemm", "m=2048", "n=2048", "k=2048", "--schedule", "bulk", "--mesh", "tp="]]
if crew.has_nccl(OPTIONS.harpe):
    SUBJECTS.append([*SUBJECTS[-1][:-2], "--collectives", "nccl", *SUBJECTS[-1][-2:]])


def words(subject, iterations):
    cache = [f"--cache={OPTIONS.cache}"] if OPTIONS.cache else []
    return [OPTIONS.harpe, "run", *subject[:-1], f"{subject[-1]}{RANKS}", "--backend", "cuda",
            "--launch", RANKS, "--wait", int(1000 * WAIT), "--iters", iterations, *cache]


def measure(subject):
    """(executions in REPLAYS, seconds of a run besides its executions)."""
    with tempfile.TemporaryDirectory() as folder:
        result = pathlib.Path(folder) / "result.json"
        crew.run(*words(subject, 1)).expect(0)  # compiles kernels
        end = crew.run(*words(subject, 500), "--json", result).expect(0)
        times = json.loads(result.read_text(encoding="utf-8"))["time_us"]
    iterations = int(REPLAYS * 1e6 / statistics.median(times))
    return min(iterations, 200_000), end.seconds - sum(times) * 1e-6


def expect_report(end, victim, number):
    """The report names the lost rank, has a line per other rank, and names one task and signal."""
    end.expect(3, rf"^rank {victim} answers no more: ")
    if number == signal.SIGKILL:
        end.expect(3, rf"^fault: the process of rank {victim} ended first: killed by signal 9 ")
    for rank in range(RANKS):
        if rank != victim:
            end.expect(3, rf"^rank {rank} (waited|gave up after|stopped before) ")
    crew.check(crew.WAITED.search(end.text), "nobody says what it waited for:", end.text)


def wait_for_end(processes):
    """The seconds until all of them have exited."""
    start = time.monotonic()
    while any(map(crew.is_alive, processes)):
        crew.check(time.monotonic() - start < crew.FOREVER, "they do not end")
        time.sleep(0.01)
    return time.monotonic() - start


def disturb(subject, victim, number, after):
    """Sends the signal to the victim; returns the report after all other ranks have ended in
    time."""
    launch = crew.Run(*words(subject, PREPARED[subject[0]][0]))
    children = launch.wait_for_children(RANKS)
    time.sleep(after)
    crew.check(launch.process.poll() is None, "it was over before")
    os.kill(children[victim], number)
    took = wait_for_end([process for rank, process in children.items() if rank != victim])
    end = launch.end()
    name = signal.Signals(number).name
    print(f"  {subject[0]}: {name} of rank {victim} after {after:.2f} s, the others ended "
          f"{took:.2f} s later", flush=True)
    crew.check(took < WAIT + crew.TO_REPORT, f"{took:.2f} s", end.text)
    crew.expect_all_gone(children.values())
    return end


def expect_next_run_right():
    crew.run(OPTIONS.harpe, "run", "gemm_rs", "m=256", "n=256", "k=256", "--schedule", "push",
             "--mesh", f"tp={RANKS}", "--backend", "cuda", "--launch", RANKS, "--iters", 20,
             "--check", *([f"--cache={OPTIONS.cache}"] if OPTIONS.cache else [])).expect(0)


def a_rank_killed_during_replays_is_named():
    for trial in range(OPTIONS.trials):
        subject = SUBJECTS[trial % len(SUBJECTS)]
        victim = trial % RANKS
        beside = PREPARED[subject[0]][1]
        end = disturb(subject, victim, signal.SIGKILL,
                      beside + RANDOM.uniform(0.2, 0.6) * REPLAYS)
        expect_report(end, victim, signal.SIGKILL)
        expect_next_run_right()


def a_rank_that_hangs_is_named():
    """The process exists but does nothing, so the waits of the other ranks expire."""
    subject = SUBJECTS[0]
    victim = RANDOM.randrange(1, RANKS)
    end = disturb(subject, victim, signal.SIGSTOP, PREPARED[subject[0]][1] + 0.3 * REPLAYS)
    expect_report(end, victim, signal.SIGSTOP)
    expect_next_run_right()


def a_rank_killed_at_any_time_ends_all():
    for _ in range(OPTIONS.trials):
        subject = RANDOM.choice(SUBJECTS)
        victim = RANDOM.randrange(RANKS)
        after = RANDOM.uniform(0, PREPARED[subject[0]][1])
        end = disturb(subject, victim, signal.SIGKILL, after)
        end.expect(3, rf"^fault: the process of rank {victim} ended first: killed by signal 9 ")
    expect_next_run_right()


PREPARED = {}

if __name__ == "__main__":
    for each in SUBJECTS:
        PREPARED[each[0]] = measure(each)
        print(f"{each[0]}: {PREPARED[each[0]][0]} executions in {REPLAYS} s, "
              f"{PREPARED[each[0]][1]:.1f} s beside them", flush=True)
    crew.main(a_rank_killed_during_replays_is_named, a_rank_that_hangs_is_named,
              a_rank_killed_at_any_time_ends_all)
