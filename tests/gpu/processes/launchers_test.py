#!/usr/bin/env python3
"""A plan under torchrun, and under any launcher that sets the same variables.

launchers_test.py HARPE [--ranks N] [--cache FOLDER]: all ranks succeed and only the first prints
results. All ranks refuse differing plans. A killed rank ends the others.
"""
import os
import pathlib
import shutil
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "processes"))
import crew  # noqa: E402

OPTIONS = crew.parse(__doc__)
RANKS = crew.ranks_on_gpus(OPTIONS)
WAIT = 4.0  # seconds


LONG = 200_000  # executions, at far more than 50 us each


def words(schedule, *more):
    cache = [f"--cache={OPTIONS.cache}"] if OPTIONS.cache else []
    size = 4096 if LONG in more else 512
    return [OPTIONS.harpe, "run", "gemm_rs", f"m={size}", f"n={size}", f"k={size}", "--mesh",
            f"tp={RANKS}", "--schedule", schedule, "--backend", "cuda", "--wait",
            int(1000 * WAIT), *cache, *more]


def by_hand(*more, schedules=None, ranks=RANKS):
    port = crew.free_port()
    return [crew.Run(*words(schedule, *more),
                     environment=crew.torchrun_environment(rank, ranks, port))
            for rank, schedule in enumerate(schedules or ["push"] * RANKS)]


def what_torchrun_sets_is_enough():
    ends = [run.end() for run in by_hand("--check", "--iters", 20)]
    ends[0].expect(0, r"^  check c +error .*, bound ")
    for end in ends[1:]:
        end.expect(0)
        crew.check(not end.text, "another rank speaks too:", end.text)


def other_plans_are_refused_by_all():
    schedules = ["push"] * (RANKS - 1) + ["bulk"]
    ends = [run.end() for run in by_hand(schedules=schedules)]
    ends[0].expect(1, rf"error\[N015\]: rank {RANKS - 1} runs another plan than rank 0")
    for end in ends[1:]:
        end.expect(1)


def who_is_killed_ends_the_others():
    for victim in (0, RANKS - 1):
        runs = by_hand("--iters", LONG)
        time.sleep(8)
        crew.check(all(run.process.poll() is None for run in runs), "it was over before")
        runs[victim].process.send_signal(signal.SIGKILL)
        killed = time.monotonic()
        ends = [run.end() for run in runs]
        took = time.monotonic() - killed
        print(f"  rank {victim} killed, all ended {took:.2f} s later", flush=True)
        crew.check(took < WAIT + crew.TO_REPORT, f"the others took {took:.1f} s")
        for rank, end in enumerate(ends):
            if rank != victim:
                end.expect(3)
        tells = next(rank for rank in range(RANKS) if rank != victim)
        ends[tells].expect(3, rf"^rank {victim} answers no more: ")
    for end in [run.end() for run in by_hand("--check")]:
        end.expect(0)


def torchrun_itself():
    torchrun = shutil.which("torchrun")
    if torchrun is None:
        print("  not here: there is no torchrun", flush=True)
        return
    start = [torchrun, "--standalone", "--nproc-per-node", RANKS, "--no-python"]
    crew.run(*start, *words("push", "--check", "--iters", 20)).expect(0, r"^  check c +error ")
    run = crew.Run(*start, *words("push", "--iters", LONG))
    children = run.wait_for_children(RANKS)
    time.sleep(8)
    os.kill(children[RANKS - 1], signal.SIGKILL)
    killed = time.monotonic()
    end = run.end()
    crew.check(end.status != 0, end.text)
    crew.expect_all_gone(children.values())
    # torchrun ends the other ranks itself when it detects an exit, after a delay of its own.
    print(f"  torchrun ended {time.monotonic() - killed:.1f} s after one was killed", flush=True)


if __name__ == "__main__":
    crew.run(*words("push")).expect(0)  # compiles kernels
    crew.main(what_torchrun_sets_is_enough, other_plans_are_refused_by_all,
              who_is_killed_ends_the_others, torchrun_itself)
