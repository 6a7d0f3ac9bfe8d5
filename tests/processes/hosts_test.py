#!/usr/bin/env python3
"""CPU ranks in processes of one and of several hosts: right results, and lost ranks are named.

hosts_test.py HARPE [--trials N] [--seed N]. Needs no GPU. With `--hosts`, processes of this machine
act as several hosts: they share no memory and send by libfabric over TCP.
"""
import json
import os
import pathlib
import random
import signal
import socket
import tempfile
import time

import crew

OPTIONS = crew.parse(__doc__)
RANDOM = random.Random(OPTIONS.seed)
WAIT = 1.0  # seconds
ATTENTION = ["attention", "batch=1", "seq=256", "heads=4", "kv_heads=2", "head_dim=16",
             "causal=true", "dtype=f32"]
PRODUCT = ["gemm_rs", "m=128", "n=96", "k=128"]
EXPERTS = ["moe", "tokens=64", "hidden=32", "experts=16", "topk=2", "inter=16", "dtype=f32"]
LONG = [*ATTENTION, "--mesh", "cp=4", "--schedule", "ring", "--launch", 4, "--hosts", 4,
        "--wait", int(1000 * WAIT)]


def run_json(*words):
    with tempfile.TemporaryDirectory() as folder:
        result = pathlib.Path(folder) / "result.json"
        crew.run(OPTIONS.harpe, "run", *words, "--check", "--json", result).expect(0)
        return json.loads(result.read_text(encoding="utf-8"))


def schedules_are_right_and_send_what_was_planned():
    for subject, mesh, schedule, processes, hosts in (
            (ATTENTION, "cp=4", "ring", 4, 4), (ATTENTION, "cp=8", "ring", 8, 8),
            (ATTENTION, "node=2,gpu=4", "double_ring", 8, 2),
            (ATTENTION, "node=4,gpu=2", "double_ring", 4, 4),
            (PRODUCT, "node=2,gpu=4", "hierarchical", 8, 2),
            (PRODUCT, "node=4,gpu=2", "hierarchical", 4, 4),
            (EXPERTS, "node=2,gpu=4", "hierarchical", 8, 2),
            (EXPERTS, "node=4,gpu=2", "hierarchical", 4, 4)):
        found = run_json(*subject, "--mesh", mesh, "--schedule", schedule, "--launch", processes,
                         "--hosts", hosts, "--iters", 3)
        network = found["network"]
        crew.check(found["check"]["passed"] and network["hosts"] == hosts, found)
        if subject is not EXPERTS:  # the routing decides how much
            crew.check(network["bytes"] == network["planned_bytes"] > 0, network)
        crew.check(0 < network["bytes"] <= network["planned_bytes"] + 4096, network)
        print(f"  {subject[0]} {schedule} on {mesh}: {network['bytes']} bytes", flush=True)


def a_batch_ends_where_its_lane_waits():
    """Rows are sent, then results: signals of the results must not delay those of the rows."""
    subject = [*EXPERTS, "--mesh", "node=2"]
    shown = crew.run(OPTIONS.harpe, "show", *subject, "--schedule", "push").expect(0).text
    script = shown[:shown.index("commir ")]
    script = script.replace("via=sm", "via=proxy")
    for fence in ("dest", "batch", "epoch"):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "push.sched"
            text = script.replace("kind=counter", f"kind=flag, fence={fence}")
            file.write_text(text, encoding="utf-8")
            found = run_json(*subject, "--schedule", file, "--launch", 2, "--hosts", 2)
        crew.check(found["check"]["passed"] and found["network"]["bytes"] > 0, found)


def a_double_ring_sends_less_between_hosts():
    """On 2 hosts of 8 ranks: 1/15 of the flat ring's bytes at the busiest rank and 16/30 in all."""
    subject = [*ATTENTION[:5], "head_dim=8", "dtype=f32", "--launch", 2, "--hosts", 2]
    flat = run_json(*subject, "--mesh", "cp=16", "--schedule", "ring")["network"]
    double = run_json(*subject, "--mesh", "node=2,gpu=8", "--schedule", "double_ring")["network"]
    for name, share in (("planned_bytes_of_busiest_rank", 1 / 15), ("planned_bytes", 16 / 30),
                        ("bytes", 16 / 30)):
        crew.check(abs(double[name] / flat[name] - share) < 1e-9, name, flat, double)


def expect_lost(end, victim):
    end.expect(3, rf"^rank {victim} answers no more: ")
    crew.check(crew.WAITED.search(end.text), "nobody says what it waited for:", end.text)


def disturb(number, victim, after):
    launch = crew.Run(OPTIONS.harpe, "run", *LONG, "--iters", 100000)
    children = launch.wait_for_children(4)
    time.sleep(after)
    if launch.process.poll() is not None:
        crew.check(False, "it was over before:", launch.end().text)
    os.kill(children[victim], number)
    start = time.monotonic()
    others = [process for rank, process in children.items() if rank != victim]
    while any(map(crew.is_alive, others)):
        crew.check(time.monotonic() - start < crew.FOREVER, "they do not end")
        time.sleep(0.005)
    took = time.monotonic() - start
    end = launch.end()
    crew.check(took < WAIT + crew.TO_REPORT, f"{took:.2f} s", end.text)
    crew.expect_all_gone(children.values())
    return end, took


def who_is_killed_at_any_time_is_named():
    times = []
    for _ in range(OPTIONS.trials):
        victim = RANDOM.randrange(4)
        end, took = disturb(signal.SIGKILL, victim, RANDOM.uniform(0, 1.5))
        end.expect(3, rf"^fault: the process of rank {victim} ended first: killed by signal 9 ")
        times.append(took)
    print(f"  {OPTIONS.trials} killed; all others were gone {max(times):.2f} s later at most",
          flush=True)


def until_it_runs():
    """Twice the seconds of a run that ends at once, so that the long run has started."""
    return 2 * crew.run(OPTIONS.harpe, "run", *LONG, "--iters", 1).expect(0).seconds


def who_is_killed_while_it_runs_is_named_by_the_others():
    after = until_it_runs()
    for victim in range(4):
        expect_lost(disturb(signal.SIGKILL, victim, after)[0], victim)


def who_hangs_is_named():
    victim = RANDOM.randrange(1, 4)
    expect_lost(disturb(signal.SIGSTOP, victim, until_it_runs())[0], victim)


def start_by_hand(rank, ranks, port, secret="s", schedule="ring", words=()):
    environment = crew.torchrun_environment(rank, ranks, port)
    environment.update({"LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1", "HARPE_SECRET": secret})
    return crew.Run(OPTIONS.harpe, "run", *ATTENTION, "--mesh", f"cp={ranks}", "--schedule",
                    schedule, "--interface", "lo", *words, environment=environment)


def another_secret_is_refused_by_name():
    port = crew.free_port()
    runs = [start_by_hand(0, 2, port), start_by_hand(1, 2, port, secret="other")]
    runs[1].end().expect(1, r"error\[N011\]: rank 1 at .* refuses rank 0: it does not have")
    runs[0].process.send_signal(signal.SIGKILL)
    runs[0].end()


def another_plan_is_refused():
    port = crew.free_port()
    runs = [start_by_hand(0, 2, port), start_by_hand(1, 2, port, schedule="q_rotation")]
    runs[0].end().expect(1, r"error\[N015\]: rank 1 runs another plan than rank 0")
    runs[1].end().expect(1)


def listening_ports(processes):
    """The TCP ports on which the processes listen."""
    inodes = set()
    for process in processes:
        for entry in pathlib.Path(f"/proc/{process}/fd").iterdir():
            try:
                target = os.readlink(entry)
            except OSError:
                continue
            if target.startswith("socket:["):
                inodes.add(target[8:-1])
    ports = set()
    for line in pathlib.Path("/proc/net/tcp").read_text(encoding="utf-8").splitlines()[1:]:
        fields = line.split()
        if fields[3] == "0A" and fields[9] in inodes:
            ports.add(int(fields[1].split(":")[1], 16))
    return ports


def garbage_on_open_ports_changes_nothing():
    port = crew.free_port()
    words = ["--iters", 3000, "--check"]
    runs = [start_by_hand(rank, 2, port, words=words) for rank in range(2)]
    time.sleep(0.7)
    sent = 0
    while all(run.process.poll() is None for run in runs):
        for there in listening_ports([run.process.pid for run in runs]):
            with socket.socket() as one:
                one.settimeout(0.2)
                try:
                    one.connect(("127.0.0.1", there))
                    one.sendall(RANDOM.randbytes(RANDOM.choice([1, 64, 200, 4096])))
                    sent += 1
                except OSError:
                    pass
        time.sleep(0.02)
    for run in runs:
        run.end().expect(0)
    crew.check(sent > 0, "nothing was sent")
    print(f"  {sent} times", flush=True)


if __name__ == "__main__":
    crew.main(schedules_are_right_and_send_what_was_planned, a_batch_ends_where_its_lane_waits,
              a_double_ring_sends_less_between_hosts,
              who_is_killed_at_any_time_is_named,
              who_is_killed_while_it_runs_is_named_by_the_others, who_hangs_is_named,
              another_secret_is_refused_by_name, another_plan_is_refused,
              garbage_on_open_ports_changes_nothing)
