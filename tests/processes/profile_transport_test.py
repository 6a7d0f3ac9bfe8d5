#!/usr/bin/env python3
"""`harpe profile --transport` between processes of this machine. Needs no GPU.

profile_transport_test.py HARPE. Other commands accept the machine file that it writes.
"""
import json
import os
import signal
import tempfile

import crew

OPTIONS = crew.parse(__doc__)
PROFILE = [OPTIONS.harpe, "profile", "--transport", "--quick", "--interface", "lo"]
FENCES = {"put", "dest", "nic", "batch", "epoch", "imm"}


def a_launch_writes_a_machine_that_others_take():
    with tempfile.TemporaryDirectory() as folder:
        machine = os.path.join(folder, "wire.machine")
        figures_file = os.path.join(folder, "figures.json")
        end = crew.run(*PROFILE, "--launch", 2, "--nodes", 4, "-o", machine, "--json", figures_file)
        if "error[N001]" in end.text or "error[N002]" in end.text:
            crew.skip(end.text)
        end.expect(0)
        with open(figures_file, encoding="utf-8") as file:
            found = json.load(file)
        figures = found["figures"]
        for name in ("post_us", "flag_us", "one_way_us", "drain_us"):
            crew.check(figures[name] > 0, name, figures)
        crew.check({one["fence"] for one in figures["policies"]} == FENCES, figures["policies"])
        ran = {one["policy"]: one for one in figures["policies"] if "refused" not in one}
        crew.check(found["policy"] in ran, found["policy"])
        crew.check(ran["put"]["drains"] >= 90, "a drain for each put", ran["put"])
        fabric = crew.run(OPTIONS.harpe, "fabric", "--machine", machine, "--model", "none",
                          "--nodes", 2)
        fabric.expect(0, r"epoch")
        crew.run(OPTIONS.harpe, "simulate", "gemm_rs", "m=4096", "--mesh", "node=4,gpu=8",
                 "--schedule", "hierarchical", "--machine", machine).expect(0, r"fabric")


def two_processes_meet_by_hand():
    place = f"127.0.0.1:{crew.free_port()}"
    both = [crew.Run(*PROFILE, "--provider", "shared", "--meet", place, "--rank", rank)
            for rank in range(2)]
    first, second = [one.end() for one in both]
    first.expect(0, r"^shared, 2 processes: ", r"^choose `fence \w+`: 96 puts of 4.0 KiB")
    second.expect(0)
    crew.check(not second.text, "rank 1 speaks too:", second.text)


def who_does_not_know_the_secret_is_refused():
    place = f"127.0.0.1:{crew.free_port()}"
    first, second = [crew.Run(*PROFILE, "--provider", "shared", "--meet", place, "--rank", rank,
                              environment={"HARPE_SECRET": secret})
                     for rank, secret in enumerate(("sesame", "other"))]
    second.end().expect(1, r"error\[N011\]: rank 1 at .* refuses rank 0: it does not have")
    first.process.send_signal(signal.SIGKILL)  # rank 0 still waits for a valid peer
    first.end()


def who_is_alone_is_told():
    crew.run(*PROFILE).expect(2, r"error\[U110\]: `profile --transport` needs another process")
    crew.run(*PROFILE, "--meet", "127.0.0.1:1", "--rank", 2).expect(2, r"error\[U109\]: `--rank`")
    crew.run(*PROFILE, "--launch", 2, "--provider", "pigeon").expect(1, r"error\[N002\]")


if __name__ == "__main__":
    crew.main(a_launch_writes_a_machine_that_others_take, two_processes_meet_by_hand,
              who_does_not_know_the_secret_is_refused, who_is_alone_is_told)
