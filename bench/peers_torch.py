"""One process of peers.py, one per GPU: peers_torch.py FOLDER FIRST ROUNDS ITERATIONS.

Works through FOLDER/jobs.json from job FIRST on. Rank 0 writes the current job to `at` and one line
per job to lines.jsonl. If all ranks refuse an implementation, the line has the reason. If only some
do, the other ranks wait, and peers.py ends all of them.
"""
import dataclasses
import json
import os
import pathlib
import statistics
import sys
from typing import Any, Callable

# Must be set before CUDA is initialised.
os.environ["NCCL_NVLS_ENABLE"] = "0"
os.environ["TORCH_SYMM_MEM_DISABLE_MULTICAST"] = "1"

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import peers_attention  # noqa: E402
import peers_products  # noqa: E402
from peers_common import Here, Work  # noqa: E402

HOLD_CYCLES = 4_000_000  # about 2 ms, in which the host enqueues ahead


@dataclasses.dataclass
class Times:
    """Microseconds of an execution, per turn, on the slowest rank."""
    turns: list
    graph: bool

    def line(self):
        ordered = sorted(self.turns)
        median = statistics.median(ordered)
        quarter = len(ordered) // 4
        return {"time_us": median, "least_us": ordered[0], "graph": self.graph,
                "spread": (ordered[-1 - quarter] - ordered[quarter]) / median,
                "rounds": len(ordered)}


def agreed(here, is_fine):
    """Whether it is true on all ranks."""
    flag = torch.tensor([1.0 if is_fine else 0.0], device=here.device)
    dist.all_reduce(flag, op=dist.ReduceOp.MIN)
    return flag.item() > 0


def captured(here, run: Callable[[], Any]):
    """A replayed graph of it, if all ranks can capture it; otherwise itself."""
    graph = torch.cuda.CUDAGraph()
    try:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                run()
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            run()
        is_fine = True
    except Exception as error:  # packages raise various errors when capturing
        print(f"not captured: {error!r}", flush=True)
        is_fine = False
    torch.cuda.synchronize()
    return (graph.replay, True) if agreed(here, is_fine) else (run, False)


def measure(here, work: Work, rounds, iterations):
    run, is_graph = captured(here, work.run) if work.capturable else (work.run, False)
    for _ in range(3):
        run()
    turns = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        dist.barrier()
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(HOLD_CYCLES)  # pylint: disable=W0212
        dist.barrier()
        torch.cuda._sleep(HOLD_CYCLES)  # pylint: disable=W0212
        start.record()
        for _ in range(iterations):
            run()
        end.record()
        end.synchronize()
        turns.append(start.elapsed_time(end) * 1e3 / iterations)
    longest = torch.tensor(turns, device=here.device)
    dist.all_reduce(longest, op=dist.ReduceOp.MAX)
    return Times(longest.tolist(), is_graph)


def check(here, work: Work):
    """{difference, bound, right} of one execution, over all ranks."""
    difference = torch.tensor([float(work.difference(work.run()))], device=here.device)
    difference = torch.nan_to_num(difference, nan=1e9, posinf=1e9)
    dist.all_reduce(difference, op=dist.ReduceOp.MAX)
    value = difference.item()
    return {"difference": value, "bound": work.bound, "right": value <= work.bound}


WAYS = {**peers_products.WAYS, **peers_attention.WAYS}


def line_of(here, job, rounds, iterations):
    """The result of a job: times, or why it has none."""
    reason, work = "", None
    try:
        work = WAYS[job["peer"]](here, job["suite"], job["parameters"])
    except Exception as error:  # missing packages, unsupported shapes
        reason = f"{type(error).__name__}: {error}".split("\n")[0][:300]
    if not agreed(here, work is not None):
        return {"reason": reason or "another rank refuses it"}
    try:
        with work.context():
            found = check(here, work)
            return {**found, **measure(here, work, rounds, iterations).line()}
    except Exception as error:
        return {"reason": f"{type(error).__name__}: {error}".split("\n")[0][:300]}


def main(folder, first, rounds, iterations):
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    here = Here(rank, ranks, device)
    versions = {"torch": torch.__version__, "cuda": torch.version.cuda,
                "nccl": ".".join(map(str, torch.cuda.nccl.version())),
                "cudnn": torch.backends.cudnn.version()}
    jobs = json.loads((folder / "jobs.json").read_text(encoding="utf-8"))
    for place, job in list(enumerate(jobs))[first:]:
        if rank == 0:
            (folder / "at").write_text(str(place), encoding="utf-8")
        line = line_of(here, job, rounds, iterations)
        torch.cuda.empty_cache()
        if rank == 0:
            whole = {"schema": 1, "kind": "peer", **job, "ranks": ranks, **line,
                     "versions": versions, "gpu": torch.cuda.get_device_name(device)}
            with open(folder / "lines.jsonl", "a", encoding="utf-8") as lines:
                lines.write(json.dumps(whole) + "\n")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), *map(int, sys.argv[2:5]))
