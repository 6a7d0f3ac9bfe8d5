#!/usr/bin/env python3
"""Bulk collectives on GPUs, by NCCL and by pulls, in one process and in several.

collectives_test.py HARPE [--ranks N] [--cache FOLDER]: results are right, and sums have the same
bits with either engine. Reports name the engine. A missing member is named in time. The search for
NCCL includes HARPE_LIBRARIES.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "processes"))
import crew  # noqa: E402

OPTIONS = crew.parse(__doc__)
RANKS = crew.ranks_on_gpus(OPTIONS)
if not crew.has_nccl(OPTIONS.harpe):
    crew.skip("there is no NCCL")
WAIT = 3.0  # seconds
GATHER = ["ag_gemm", "m=1024", "n=1032", "k=520", "--schedule", "bulk"]
SUM = ["gemm_rs", "m=1024", "n=520", "k=1024", "--schedule", "bulk"]
SUBJECTS = {
    "all_gather": [GATHER,
                   ["attention", "batch=2", "seq=1024", "heads=24", "kv_heads=8", "head_dim=64",
                    "--schedule", "allgather"],
                   ["gemm_ar", "m=1024", "n=520", "k=1024", "--schedule", "bulk"]],
    "all_to_all": [["attention", "seq=1024", "heads=16", "kv_heads=8", "head_dim=64",
                    "--schedule", "ulysses"],
                   ["attention", "batch=2", "seq=1024", "heads=24", "kv_heads=8", "head_dim=128",
                    "--schedule", "ulysses"]],
    "reduce_scatter": [SUM],
}
# Blocks of unequal sizes are not a collective: copies move them under either engine.
ODD = [["ag_gemm", "m=515", "n=509", "k=511", "--schedule", "bulk"],
       ["gemm_rs", "m=515", "n=509", "k=511", "--schedule", "bulk"]]


def words(subject, engine, *more):
    cache = [f"--cache={OPTIONS.cache}"] if OPTIONS.cache else []
    return [OPTIONS.harpe, "run", *subject, "--mesh", f"tp={RANKS}", "--backend", "cuda",
            "--collectives", engine, "--wait", int(1000 * WAIT), *cache, *more]


def run(subject, engine, *more):
    with tempfile.TemporaryDirectory() as folder:
        result = pathlib.Path(folder) / "result.json"
        crew.run(*words(subject, engine, "--check", "--iters", 20, "--json", result,
                        *more)).expect(0)
        return json.loads(result.read_text(encoding="utf-8"))


def results_are_right_and_engines_named():
    for operation, subjects in SUBJECTS.items():
        for subject in subjects:
            for engine, name in (("nccl", "NCCL "), ("pull", "pull")):
                for more in ([], ["--launch", RANKS]):
                    uses = run(subject, engine, *more)["collectives"]
                    crew.check(all(use["engine"].startswith(name) for use in uses), uses)
                    crew.check(operation in [use["operation"] for use in uses], uses)


def two_identities_of_hosts_meet_over_sockets():
    """With two NCCL_HOSTIDs, NCCL treats each half of this host's ranks as a separate host."""
    if RANKS % 2:
        print("  skipped: an odd number of GPUs")
        return
    for subject in (GATHER, SUM, SUBJECTS["all_to_all"][0]):
        port = crew.free_port()
        runs = []
        for rank in range(RANKS):
            environment = crew.torchrun_environment(rank, RANKS, port)
            environment.update({"NCCL_HOSTID": f"host{2 * rank // RANKS}", "NCCL_NET": "Socket",
                                "NCCL_SOCKET_IFNAME": "lo", "NCCL_DEBUG": "INFO"})
            runs.append(crew.Run(*words(subject, "nccl", "--check", "--iters", 20),
                                 environment=environment))
        ends = [run.end() for run in runs]
        ends[0].expect(0, r"^  check . +error .*, bound ", r"via NET/Socket")


def uneven_blocks_are_copied():
    for subject in ODD:
        crew.check("collectives" not in run(subject, "nccl"), subject)


def sums_are_the_same_bits():
    with tempfile.TemporaryDirectory() as folder:
        found = []
        for engine in ("nccl", "pull"):
            file = pathlib.Path(folder) / f"{engine}.npy"
            crew.run(*words(SUM, engine, "--output", f"c={file}")).expect(0)
            found.append(file.read_bytes())
        crew.check(found[0] == found[1], "NCCL's sums are others")


def small_ones_are_pulled_and_why():
    uses = run(GATHER, "auto")["collectives"]
    crew.check([(use["engine"], use["reason"]) for use in uses] ==
               [("pull", "pulls are faster below 64 MiB")], uses)


def executions_follow_each_other():
    for subject in (GATHER, SUM):
        crew.run(*words(subject, "nccl", "--check", "--iters", 10_000)).expect(0)


def who_does_not_come_is_named():
    plan = subprocess.run([OPTIONS.harpe, "show", *GATHER, "--mesh", f"tp={RANKS}", "--stage",
                           "plan"], capture_output=True, text=True, check=True).stdout
    tasks = [int(task) for task in re.findall(r"^ *task (\d+) lane \d+ collective ", plan, re.M)]
    for more in ([], ["--launch", RANKS]):
        end = crew.run(*words(GATHER, "nccl", "--iters", 200, "--inject", f"lose={tasks[-1]}",
                              *more))
        end.expect(3, r"^fault: ", r"waited .* on arrivals at collective 0 on rank \d")
    crew.run(*words(GATHER, "nccl", "--check")).expect(0)


if __name__ == "__main__":
    crew.main(results_are_right_and_engines_named, two_identities_of_hosts_meet_over_sockets,
              uneven_blocks_are_copied, sums_are_the_same_bits, small_ones_are_pulled_and_why,
              executions_follow_each_other, who_does_not_come_is_named)
