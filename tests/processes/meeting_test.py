#!/usr/bin/env python3
"""Processes that fail to meet: all of them end and report why. Needs no GPU.

meeting_test.py HARPE. Even with GPUs no run uses one, because ranks compare plans first.
"""
import signal
import time

import crew

OPTIONS = crew.parse(__doc__)
RANKS = 3
SUBJECT = ["gemm_rs", "m=96", "n=96", "k=96", "--mesh", f"tp={RANKS}", "--backend", "cuda"]
# CPU ranks that run long enough for the test to find their processes.
LONG = [*SUBJECT[:-2], "--schedule", "bulk", "--launch", RANKS, "--iters", 1_000_000]
WAIT = 1.0  # seconds
SIGNALS = {"SIGKILL": signal.SIGKILL, "SIGSEGV": signal.SIGSEGV}


def start_by_hand(schedules, ranks=RANKS):
    """Starts one process per schedule, as a launcher would."""
    port = crew.free_port()
    return [crew.Run(OPTIONS.harpe, "run", *SUBJECT, "--schedule", schedule,
                     environment=crew.torchrun_environment(rank, ranks, port))
            for rank, schedule in enumerate(schedules)]


def other_plans_are_refused_by_all():
    for other in range(1, RANKS):
        schedules = ["ring" if rank == other else "bulk" for rank in range(RANKS)]
        ends = [run.end() for run in start_by_hand(schedules)]
        for rank, end in enumerate(ends):
            crew.check(end.seconds < 30, f"rank {rank} took {end.seconds:.1f} s")
            if rank == 0:
                end.expect(1, rf"error\[N015\]: rank {other} runs another plan than rank 0")
            else:
                end.expect(1)
                crew.check(not end.text, f"rank {rank} speaks too:", end.text)


def other_numbers_of_ranks_are_refused_by_all():
    for end in [run.end() for run in start_by_hand(["bulk"] * RANKS, RANKS + 1)]:
        crew.check(end.status == 1, end.text)


def start_one(rank, port, secret=None):
    """Starts one process of CPU ranks, as by hand."""
    environment = crew.torchrun_environment(rank, RANKS, port)
    if secret:
        environment["HARPE_SECRET"] = secret
    return crew.Run(OPTIONS.harpe, "run", *SUBJECT[:-2], "--schedule", "bulk",
                    environment=environment)


def a_rank_that_comes_twice_ends_all_at_once():
    """Rank 2 was started as a second rank 1: the run ends at once, without a minute's wait for rank
    2."""
    port = crew.free_port()
    runs = [start_one(rank, port) for rank in (0, 1, 1)]
    ends = [run.end() for run in runs]
    ends[0].expect(1, r"error\[N014\]: rank 0 at `.*` refuses rank 1 from 127\.0\.0\.1:\d+: that "
                      r"rank is here already")
    for end in ends:
        crew.check(end.seconds < 30 and end.status != 0, end.seconds, end.text)


def another_secret_is_told_of_at_once_and_ends_nothing():
    """A process without the secret may be a stranger: it is refused, and the others still meet."""
    port = crew.free_port()
    first = start_one(0, port, "ours")
    stranger = start_one(1, port, "theirs").end()
    stranger.expect(1, r"error\[N011\]: rank 1 at `.*` refuses rank 0: it does not have the secret")
    crew.check(stranger.seconds < 30, f"the stranger took {stranger.seconds:.1f} s")
    warning = first.process.stdout.readline()
    crew.check("warning[N011]: rank 0 at " in warning, warning)
    crew.check("refuses rank 1 from 127.0.0.1:" in warning, warning)
    crew.check(first.process.poll() is None, "rank 0 ended with a stranger")
    for run in [start_one(rank, port, "ours") for rank in (1, 2)]:
        run.end().expect(0)
    first.end().expect(0)


def who_is_killed_before_all_have_come_ends_the_others():
    """Rank 1 joins, waits for rank 2 and is killed: rank 0 then stops waiting for rank 2."""
    first, second = start_by_hand(["bulk", "bulk"])
    time.sleep(1.0)
    crew.check(first.process.poll() is None and second.process.poll() is None, "nobody waits")
    second.process.kill()
    killed = time.monotonic()
    first.end().expect(3, r"error\[N010\]: rank 0 cannot reach .*: rank 1 is gone")
    took = time.monotonic() - killed
    crew.check(took < crew.TO_REPORT, f"rank 0 took {took:.1f} s")
    second.end()


def a_launch_ends_with_who_never_came():
    """One process is stopped as soon as it exists, and then killed."""
    for victim in range(RANKS):
        for name, number in SIGNALS.items():
            launch = crew.Run(OPTIONS.harpe, "run", *LONG, "--wait", int(1000 * WAIT))
            children = launch.wait_for_children(RANKS)
            for process in children.values():
                crew.os.kill(process, signal.SIGSTOP)
            time.sleep(0.1)
            for rank, process in children.items():
                if rank != victim:
                    crew.os.kill(process, signal.SIGCONT)
            crew.os.kill(children[victim], number)
            if number != signal.SIGKILL:  # SIGKILL also ends stopped processes
                crew.os.kill(children[victim], signal.SIGCONT)
            killed = time.monotonic()
            end = launch.end()
            took = time.monotonic() - killed
            end.expect(3, rf"fault: the process of rank {victim} ended first: killed by signal "
                          rf"{int(number)} ")
            crew.check(took < WAIT + crew.TO_REPORT, f"{name} of rank {victim}: {took:.1f} s")
            crew.expect_all_gone(children.values())


def processes_end_with_who_launched_them():
    launch = crew.Run(OPTIONS.harpe, "run", *LONG)
    children = launch.wait_for_children(RANKS)
    crew.os.kill(children[0], signal.SIGSTOP)  # so the others wait for it
    launch.process.kill()
    launch.end()
    crew.expect_all_gone(children.values())


if __name__ == "__main__":
    crew.main(other_plans_are_refused_by_all, other_numbers_of_ranks_are_refused_by_all,
              a_rank_that_comes_twice_ends_all_at_once,
              another_secret_is_told_of_at_once_and_ends_nothing,
              who_is_killed_before_all_have_come_ends_the_others,
              a_launch_ends_with_who_never_came, processes_end_with_who_launched_them)
