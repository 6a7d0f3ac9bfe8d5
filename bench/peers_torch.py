"""One process of peers.py, one per rank: peers_torch.py FOLDER FIRST ROUNDS ITERATIONS DEVICE.

Works through the jobs of FOLDER/jobs.json from job FIRST on. All ways of a job are prepared and
checked. Then they take turns, in reverse order every other round, so that clocks are the same for
all. Rank 0 writes the current job and way to `at`, and the lines of a job to lines.jsonl once all
are complete. If all ranks refuse an implementation, its line has the reason. If only some do, the
other ranks wait, and peers.py ends all of them.
"""
import contextlib
import dataclasses
import functools
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
from peers_common import Here, Work, start_clock  # noqa: E402

HOLD_CYCLES = 4_000_000  # about 2 ms, in which the host enqueues ahead
WAYS = {**peers_products.WAYS, **peers_attention.WAYS}


@dataclasses.dataclass
class Contender:
    """A checked way. `run` executes it once with each copy of the weights."""
    work: Work  # keeps the tensors of a graph
    run: Callable[[], Any]
    facts: dict  # for its line
    turns: list = dataclasses.field(default_factory=list)  # microseconds of an execution

    def describe(self, name, harpe):
        """The fields of its line. `harpe`: the contender of this name, or None."""
        ordered = sorted(self.turns)
        median = statistics.median(ordered)
        quarter = len(ordered) // 4
        return {"time_us": median, "least_us": ordered[0],
                "spread": (ordered[-1 - quarter] - ordered[quarter]) / median,
                "rounds": len(ordered), **self.facts,
                **({} if name == "harpe" else self.compare(harpe))}

    def compare(self, harpe):
        """The ratios of its turns to Harpe's of the same round."""
        if harpe is None or not harpe.facts["right"]:
            return {"over_harpe": None}
        ratios = [own / its for own, its in zip(self.turns, harpe.turns)]
        return {"over_harpe": statistics.median(ratios), "over_harpe_least": min(ratios),
                "over_harpe_most": max(ratios)}


def agreed(here, is_fine):
    """Whether it is true on all ranks."""
    flag = torch.tensor([1.0 if is_fine else 0.0], device=here.device)
    dist.all_reduce(flag, op=dist.ReduceOp.MIN)
    return flag.item() > 0


def find_largest(here, values):
    """Of each value the largest on all ranks. A NaN counts as 1e9."""
    largest = torch.tensor(values, device=here.device, dtype=torch.float64).nan_to_num(1e9, 1e9)
    dist.all_reduce(largest, op=dist.ReduceOp.MAX)
    return largest.tolist()


def attempt(here, make):
    """(What `make` returns, ""), or (None, the reason) if it raises on a rank."""
    made, reason = None, ""
    try:
        made = make()
    except Exception as error:  # missing packages, unsupported shapes
        reason = f"{type(error).__name__}: {error}".split("\n")[0][:300]
    if agreed(here, not reason):
        return made, ""
    return None, reason or "another rank refuses it"


def capture(here, run: Callable[[], Any]):
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


def prepare(here, job, peer, contexts):
    """(A checked way, ""), or (None, the reason why it cannot run), on all ranks alike."""
    work, reason = attempt(here, lambda: WAYS[peer](here, job["suite"], job["parameters"]))
    if reason:
        return None, reason

    def check():
        contexts.enter_context(work.context())
        return float(work.difference(work.run())), work.facts()
    found, reason = attempt(here, check)
    if reason:
        return None, reason
    difference, = find_largest(here, found[:1])

    def run_copies():
        for _ in range(work.copies):
            work.run()
    can_capture = work.capturable and here.device.type == "cuda"
    run, is_graph = capture(here, run_copies) if can_capture else (run_copies, False)
    facts = {"graph": is_graph, "right": difference <= work.bound, "difference": difference,
             "bound": work.bound, "copies": work.copies, **found[1]}
    return Contender(work, run, facts), ""


def time_turn(here, way, iterations):
    """Microseconds of an execution on this rank. The first run is not timed: it follows kernels of
    another way, and one rank may begin it before the others."""
    dist.barrier()
    if here.device.type == "cuda":
        torch.cuda._sleep(HOLD_CYCLES)  # pylint: disable=W0212
    way.run()
    stop = start_clock(here.device)
    runs = -(-iterations // way.work.copies)
    for _ in range(runs):
        way.run()
    return stop() / (runs * way.work.copies)


def measure(here, job, rounds, iterations, begin):
    """The results of a job's ways, by name: times, or the reason why there is none. Calls
    `begin(peer)` before each step."""
    ways, reasons = {}, {}
    with contextlib.ExitStack() as contexts:
        for peer in job["peers"]:
            begin(peer)
            way, reason = prepare(here, job, peer, contexts)
            if way:
                ways[peer] = way
            else:
                reasons[peer] = reason
        for turn in range(rounds):
            for peer in reversed(ways) if turn % 2 else ways:
                begin(peer)
                ways[peer].turns.append(time_turn(here, ways[peer], iterations))
        for way in ways.values():
            way.turns = find_largest(here, way.turns)
    return {peer: ways[peer].describe(peer, ways.get("harpe")) if peer in ways
            else {"reason": reasons[peer]} for peer in job["peers"]}


def join_ranks(device):
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if device == "cpu":
        dist.init_process_group("gloo")
        return Here(rank, ranks, torch.device("cpu"))
    own = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(own)
    dist.init_process_group("nccl", device_id=own)
    return Here(rank, ranks, own)


def describe(here):
    """Versions and the GPU, for every line."""
    versions = {"torch": torch.__version__}
    if "harpe" in sys.modules:
        versions["harpe"] = sys.modules["harpe"].__version__
    if here.device.type == "cpu":
        return {"versions": versions, "gpu": "none"}
    versions |= {"cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version(),
                 "nccl": ".".join(map(str, torch.cuda.nccl.version()))}
    return {"versions": versions, "gpu": torch.cuda.get_device_name(here.device)}


def main(folder, first, rounds, iterations, device):
    here = join_ranks(device)

    def begin(place, peer):
        if here.rank == 0:
            (folder / "at.new").write_text(json.dumps([place, peer]), encoding="utf-8")
            (folder / "at.new").replace(folder / "at")
    jobs = json.loads((folder / "jobs.json").read_text(encoding="utf-8"))
    for place, job in list(enumerate(jobs))[first:]:
        results = measure(here, job, rounds, iterations, functools.partial(begin, place))
        torch.cuda.empty_cache()
        if here.rank == 0:
            case = {name: job[name] for name in ("suite", "case", "parameters")}
            lines = [{"schema": 1, "kind": "peer", **case, "peer": peer, "ranks": here.ranks,
                      **result, **describe(here)} for peer, result in results.items()]
            with open(folder / "lines.jsonl", "a", encoding="utf-8") as file:
                file.write("".join(json.dumps(line) + "\n" for line in lines))
        begin(place + 1, None)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), *map(int, sys.argv[2:5]), sys.argv[5])
