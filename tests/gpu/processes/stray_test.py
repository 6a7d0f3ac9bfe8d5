#!/usr/bin/env python3
"""A kernel of one rank writes to unmapped memory, after which its GPU serves the process no more.

stray_test.py HARPE [--ranks N] [--trials N] [--seed N] [--cache FOLDER]: all ranks end with status
3 within the limit of a wait plus 2 s. The report begins with the GPU that failed. The next run is
right.
"""
import json
import pathlib
import random
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "processes"))
import crew  # noqa: E402

OPTIONS = crew.parse(__doc__)
RANKS = crew.ranks_on_gpus(OPTIONS)
RANDOM = random.Random(OPTIONS.seed)
WAIT = 4.0  # seconds
SUBJECTS = [["gemm_rs", "m=1024", "n=1024", "k=1024", "--schedule", "push", "--mesh",
             f"tp={RANKS}"],
            ["attention", "seq=2048", "heads=8", "head_dim=128", "--schedule", "ring", "--mesh",
             f"cp={RANKS}"],
            ["ag_gemm", "m=1024", "n=1024", "k=1024", "--schedule", "bulk", "--mesh",
             f"tp={RANKS}"]]
FAILED = r"\d+ lost its GPU: cu\w+: CUDA_ERROR_(ILLEGAL_ADDRESS|LAUNCH_FAILED)"


def words(subject, *more):
    cache = [f"--cache={OPTIONS.cache}"] if OPTIONS.cache else []
    return [OPTIONS.harpe, "run", *subject, "--backend", "cuda", "--wait", int(1000 * WAIT),
            "--iters", 50, *cache, *more]


def usual_run(subject, *more):
    """(seconds of a run, tasks of the plan)."""
    with tempfile.TemporaryDirectory() as folder:
        result = pathlib.Path(folder) / "result.json"
        crew.run(*words(subject, *more)).expect(0)  # compiles kernels
        end = crew.run(*words(subject, *more, "--check", "--json", result)).expect(0)
        return end.seconds, json.loads(result.read_text(encoding="utf-8"))["tasks"]


def expect_failure(subject, *more):
    usual, tasks = usual_run(subject, *more)
    for _ in range(max(1, OPTIONS.trials // len(SUBJECTS))):
        task = RANDOM.randrange(tasks)
        end = crew.run(*words(subject, *more, "--inject", f"stray={task}"))
        print(f"  {subject[0]}, task {task} of {tasks}: ended after {end.seconds:.2f} s, usually "
              f"{usual:.2f}", flush=True)
        # The report's first line follows its title.
        end.expect(3, r"\Afault: .*\nrank " + FAILED)
        crew.check("answers no more" not in end.text, end.text)
        crew.check(end.seconds < usual + WAIT + crew.TO_REPORT, f"{end.seconds:.1f} s", end.text)
        crew.run(*words(subject, *more, "--check")).expect(0)


def ranks_of_one_process_end_with_a_gpu():
    for subject in SUBJECTS:
        expect_failure(subject)


def ranks_in_processes_end_with_a_gpu():
    for subject in SUBJECTS:
        expect_failure(subject, "--launch", RANKS)


if __name__ == "__main__":
    crew.main(ranks_of_one_process_end_with_a_gpu, ranks_in_processes_end_with_a_gpu)
