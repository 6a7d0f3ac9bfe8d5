#!/usr/bin/env python3
"""peers.py SUITE ...: times what Python users run today on the cases of `harpe bench SUITE`.

There is one process per GPU, and NCCL and PyTorch do not use multicast. Every result is compared
with a reference; times are medians, of replayed graphs if an implementation can be captured.
Nothing is downloaded: implementations whose packages are missing are listed with the reason. Each
JSON line goes to --out.

`--merge` makes one table of such lines and of the output of `harpe bench --json`.
`--interleave N` also runs `harpe bench`: for each case it alternates N times between Harpe and the
peers, so that clocks and temperature are the same for both; ratios are those of neighbouring turns.
"""
import argparse
import json
import os
import pathlib
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import tables  # noqa: E402

SCHEMA = 1
SUITES = ["ag_gemm", "gemm_rs", "gemm_ar", "attention", "attention_bwd", "decode"]
# Implementations, with the suites that they support; peers_torch.py contains them.
WAYS = {
    "nccl": ["ag_gemm", "gemm_rs", "gemm_ar", "decode"],
    "torch_async_tp": ["ag_gemm", "gemm_rs"],
    "torch_two_shot": ["gemm_ar"],
    "torch_one_shot": ["gemm_ar"],
    "torch_ulysses": ["attention"],
    "torch_cp_allgather": ["attention", "attention_bwd"],
    "torch_cp_alltoall": ["attention", "attention_bwd"],
    "ring_flash_attn": ["attention", "attention_bwd"],
    "yunchang_ulysses": ["attention"],
    "yunchang_usp": ["attention"],
}
# Known packages that are not measured here, even if they are installed.
WITHOUT_WAY = {"flashinfer": "kernels of one GPU; no way over several is written for it",
               "triton_dist": "it needs NVSHMEM's launcher; no way is written for it"}
ENVIRONMENT = {"NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1"}
WORKER = pathlib.Path(__file__).resolve().parent / "peers_torch.py"


def say(text):
    print(text, file=sys.stderr, flush=True)


def cases_of(options, suite):
    """[{case, parameters}] as harpe lists them."""
    if options.like:
        documents = tables.read_documents(options.like, "bench")
        found = [case for document in documents if document["suite"] == suite
                 for case in document["cases"]]
    else:
        words = [options.harpe, "bench", suite, "--backend=cuda", f"--ranks={options.gpus}",
                 "--list", "--json", "-"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{' '.join(words)}: {done.stderr.strip()}")
        found = json.loads(done.stdout)["cases"]
    return [{"case": case["case"], "parameters": case["parameters"]} for case in found
            if options.cases in case["case"]]


def jobs_of(options):
    """Ordered case by case, so that an interrupted run has whole cases."""
    ways = options.ways.split(",") if options.ways else list(WAYS)
    return [{"suite": suite, **case, "peer": way}
            for suite in options.suites for case in cases_of(options, suite)
            for way in ways if suite in WAYS[way]]


def failed(job, reason, ranks):
    return {"schema": SCHEMA, "kind": "peer", **job, "ranks": ranks, "reason": reason}


class Crew:
    """The worker processes of one attempt, which end together."""

    def __init__(self, options, folder, first):
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            port = one.getsockname()[1]
        words = [options.python, str(options.worker), str(folder), str(first),
                 str(options.rounds), str(options.iters)]
        self.log = open(folder / "log.txt", "a", encoding="utf-8")  # pylint: disable=R1732
        self.workers = [
            subprocess.Popen(words, stdout=self.log, stderr=subprocess.STDOUT,
                             env={**os.environ, **ENVIRONMENT, "RANK": str(rank),
                                  "LOCAL_RANK": str(rank), "WORLD_SIZE": str(options.gpus),
                                  "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)})
            for rank in range(options.gpus)]

    def ended(self):
        """The first nonzero exit status; 0 once all have succeeded; None while some run."""
        statuses = [worker.poll() for worker in self.workers]
        bad = next((status for status in statuses if status), None)
        return bad if bad is not None or None in statuses else 0

    def kill(self):
        for worker in self.workers:
            worker.kill()
        for worker in self.workers:
            worker.wait()
        self.log.close()


def watch(crew, folder, patience, end):
    """Waits for the workers. Returns why they failed, or None; workers without progress count as
    hung."""
    done = folder / "at"
    seen, since = None, time.monotonic()
    while True:
        status = crew.ended()
        if status is not None:
            return None if status == 0 else f"a process ended with {status}"
        now = done.stat().st_mtime_ns if done.exists() else None
        if now != seen:
            seen, since = now, time.monotonic()
        if time.monotonic() - since > patience:
            return f"it did nothing for {patience:.0f} s"
        if time.monotonic() > end:
            return "the time was over"
        time.sleep(0.05)


def last_words(folder):
    lines = (folder / "log.txt").read_text(encoding="utf-8", errors="replace").split("\n")
    errors = [line.strip() for line in lines if "Error" in line]
    return errors[-1][:200] if errors else ""


def measure(options, jobs, out):
    """Runs all jobs. A job that ends its workers is recorded with the reason and skipped."""
    end = time.monotonic() + options.budget
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "jobs.json").write_text(json.dumps(jobs), encoding="utf-8")
        (folder / "lines.jsonl").touch()
        first = 0
        while first < len(jobs):
            if first > 0:  # a failure without progress is this job's, not its predecessor's
                (folder / "at").write_text(str(first), encoding="utf-8")
            crew = Crew(options, folder, first)
            try:
                reason = watch(crew, folder, options.patience, end)
            finally:
                crew.kill()
            if reason is None:
                break
            at = int((folder / "at").read_text() or first) if (folder / "at").exists() else first
            told = f"{reason}: {last_words(folder)}".removesuffix(": ")
            late = time.monotonic() > end
            if not (folder / "at").exists():  # no job has begun
                say(told)
                late = True
            with open(folder / "lines.jsonl", "a", encoding="utf-8") as lines:
                for job in jobs[at:] if late else jobs[at:at + 1]:
                    lines.write(json.dumps(failed(job, told, options.gpus)) + "\n")
            if late:
                break
            first = at + 1
        text = (folder / "lines.jsonl").read_text(encoding="utf-8")
    with open(out, "a", encoding="utf-8") as file:
        file.write(text)
    return [json.loads(line) for line in text.splitlines()]


def bench_once(options, suite, case):
    """The output of `harpe bench` for one case, in its share of the rounds."""
    rounds = max(1, options.rounds // options.interleave)
    words = [options.harpe, "bench", suite, *case["parameters"], "--backend=cuda",
             f"--ranks={options.gpus}", f"--rounds={rounds}", f"--iters={options.iters}",
             "--json", "-"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    line = {"schema": SCHEMA, "kind": "harpe", "suite": suite, "case": case["case"],
            "ranks": options.gpus}
    try:
        found = json.loads(done.stdout)["cases"][0]
        named = {entry["name"]: entry for entry in found["entries"]}
        return {**line, "auto_us": named.get("auto", {}).get("time_us"),
                "graph_us": named.get(found["schedule"], {}).get("in_graph_us"),
                **{name: found[name]
                   for name in ("schedule", "ours_us", "baseline", "baseline_us")}}
    except (ValueError, LookupError):
        return {**line, "reason": done.stderr.strip()[-200:] or f"it ended with {done.returncode}"}


def measure_in_turns(options):
    """Alternates between Harpe and the peers, `interleave` times per case; returns all lines in
    order."""
    lines = []
    shares = argparse.Namespace(**vars(options))
    shares.rounds = max(1, options.rounds // options.interleave)
    end = time.monotonic() + options.budget
    for suite in options.suites:
        for case in cases_of(options, suite):
            jobs = [job for job in jobs_of(options)
                    if (job["suite"], job["case"]) == (suite, case["case"])]
            for turn in range(options.interleave):
                if time.monotonic() > end:
                    say("the time was over")
                    return lines
                say(f"{suite} {case['case']}: turn {turn + 1} of {options.interleave}")
                ours = {**bench_once(options, suite, case), "turn": turn}
                with open(options.out, "a", encoding="utf-8") as file:
                    file.write(json.dumps(ours) + "\n")
                shares.budget = max(1.0, end - time.monotonic())
                peers = measure(shares, jobs, options.out)
                lines += [ours, *({**line, "turn": turn} for line in peers)]
    return lines


# Tables.

def turn_lines(lines):
    """One line per case and peer of interleaved turns: medians, and the peer's time over Harpe's,
    over that of `auto`'s choice, and over Harpe's in one graph in the same turn, with the least and
    the most. Peers are timed without events between executions, like Harpe in a graph."""
    table = [["case", "GPUs", "Harpe", "peer", "its time", "its time / Harpe's", "/ auto's",
              "/ in a graph", "turns"]]
    ours = {(line["suite"], line["ranks"], line["case"], line["turn"]): line
            for line in lines if line["kind"] == "harpe" and line.get("ours_us")}
    groups = {}
    for line in lines:
        key = (line["suite"], line["ranks"], line["case"])
        mine = ours.get((*key, line["turn"]))
        if line["kind"] == "peer" and is_right(line) and mine:
            groups.setdefault((*key, line["peer"]), []).append((mine, line["time_us"]))
    for (suite, ranks, case, peer), pairs in groups.items():
        table.append([f"{suite} {case}", str(ranks),
                      tables.print_us(statistics.median(mine["ours_us"] for mine, _ in pairs)),
                      peer, tables.print_us(statistics.median(theirs for _, theirs in pairs)),
                      print_ratios([theirs / mine["ours_us"] for mine, theirs in pairs]),
                      *(print_ratios([theirs / mine[time] for mine, theirs in pairs
                                      if mine.get(time)]) for time in ("auto_us", "graph_us")),
                      str(len(pairs))])
    return table


def print_ratios(ratios):
    if not ratios:
        return "-"
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def read_peers(paths):
    """Lines of peers in files. For each peer and case the last line counts; a line with a time
    counts before one without."""
    found = {}
    for path in paths:
        for text in pathlib.Path(path).read_text(encoding="utf-8").splitlines():
            line = json.loads(text) if text.strip() else {}
            if line.get("kind") != "peer":
                continue
            key = (line["suite"], line["ranks"], line["case"], line["peer"])
            if key not in found or "time_us" in line or "time_us" not in found[key]:
                found[key] = line
    return list(found.values())


def is_right(line):
    return "time_us" in line and line.get("right") is True


def merge_lines(rows, peers):
    """One line per case: Harpe's time, the library baseline of `harpe bench`, every peer, and the
    time of the fastest of these over Harpe's."""
    names = [name for name in WAYS if any(line["peer"] == name for line in peers)]
    names += sorted({line["peer"] for line in peers} - set(names))
    ours = {(row.family, row.ranks, row.case): row for row in rows}
    keys = list(dict.fromkeys([*ours, *((line["suite"], line["ranks"], line["case"])
                                        for line in peers)]))
    lines = [["case", "GPUs", "ours", "NCCL + library", *names, "fastest of them / ours"]]
    for key in keys:
        row = ours.get(key)
        times = {line["peer"]: line for line in peers
                 if (line["suite"], line["ranks"], line["case"]) == key}
        right = [line["time_us"] for line in times.values() if is_right(line)]
        theirs = [*right, *([row.theirs] if row and row.theirs else [])]
        ratio = min(theirs) / row.ours if theirs and row and row.ours else None
        cells = [print_peer(times.get(name)) for name in names]
        lines.append([f"{key[0]} {key[2]}", str(key[1]),
                      f"{tables.print_us(row.ours)} {row.schedule}".strip() if row else "-",
                      tables.print_us(row.theirs) if row else "-", *cells,
                      tables.print_ratio(ratio)])
    return lines


def print_peer(line):
    if line is None or "time_us" not in line:
        return "-"
    text = tables.print_us(line["time_us"]) + ("" if line.get("graph") else " eager")
    return text if is_right(line) else text + " WRONG"


def print_reasons(peers):
    """Why peers have no time: each reason once, with its cases."""
    reasons = {}
    for line in peers:
        if "time_us" not in line:
            reasons.setdefault((line["peer"], line["reason"]), []).append(
                f"{line['suite']} {line['case']}")
    text = ""
    for (peer, reason), cases in reasons.items():
        of = cases[0] if len(cases) == 1 else f"{len(cases)} cases"
        text += f"  {peer}, {of}: {reason}\n"
    return "\nwithout a time\n" + text if text else ""


def show(rows, peers, markdown):
    draw = tables.print_markdown if markdown else tables.print_table
    print(draw(merge_lines(rows, peers)) + print_reasons(peers), end="", flush=True)


def parse(words):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=", ".join(SUITES))
    parser.add_argument("--merge", nargs="+", metavar="PATH",
                        help="measure nothing: .jsonl of this script, .json or folders of bench")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/peers.jsonl"),
                        metavar="FILE", help="lines are added to it (default build/peers.jsonl)")
    parser.add_argument("--gpus", type=int, default=4)
    parser.add_argument("--harpe", default="build/release/harpe", help="for its cases")
    parser.add_argument("--like", nargs="+", metavar="PATH",
                        help="cases from what `harpe bench` wrote, in place of the binary")
    parser.add_argument("--cases", default="", metavar="TEXT", help="only those with this in them")
    parser.add_argument("--ways", metavar="NAME,...", help=", ".join(WAYS))
    parser.add_argument("--rounds", type=int, default=9, help="medians are of so many turns")
    parser.add_argument("--iters", type=int, default=10, help="executions of a turn, back to back")
    parser.add_argument("--interleave", type=int, metavar="N",
                        help="`harpe bench` and the peers in N turns of each case")
    parser.add_argument("--budget", type=float, default=540, metavar="SECONDS")
    parser.add_argument("--patience", type=float, default=120, metavar="SECONDS",
                        help="a way that does nothing for so long is left out")
    parser.add_argument("--python", default=sys.executable, help="the interpreter that has torch")
    parser.add_argument("--worker", type=pathlib.Path, default=WORKER, help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    if bool(options.suites) == bool(options.merge):
        parser.error("name suites to measure, or what to `--merge`")
    for given, known, what in ((options.suites, SUITES, "suite"),
                               ((options.ways or "").split(",") if options.ways else [],
                                list(WAYS), "way")):
        for name in given:
            if name not in known:
                parser.error(f"no {what} `{name}`; there are {', '.join(known)}")
    return options


def main(words):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends the workers too
    options = parse(words)
    if options.merge:
        lines = [path for path in options.merge if path.endswith(".jsonl")]
        rest = [path for path in options.merge if not path.endswith(".jsonl")]
        rows = [row for document in tables.read_documents(rest, "bench")
                for row in tables.rows_of(document)]
        show(tables.merge(rows), read_peers(lines), options.markdown)
        return 0
    options.out.parent.mkdir(parents=True, exist_ok=True)
    if options.interleave:
        lines = measure_in_turns(options)
        draw = tables.print_markdown if options.markdown else tables.print_table
        print(draw(turn_lines(lines)), end="")
        print(print_reasons([line for line in lines if line["kind"] == "peer"]), end="")
        for line in lines:
            if line["kind"] == "harpe" and "reason" in line:
                print(f"  harpe bench, {line['suite']} {line['case']}: {line['reason']}")
        wrong = [line for line in lines if "time_us" in line and not is_right(line)]
        return 1 if wrong or len(turn_lines(lines)) == 1 else 0
    jobs = jobs_of(options)
    say(f"{len(jobs)} measurements on {options.gpus} GPUs")
    peers = measure(options, jobs, options.out)
    rows = [row for document in tables.read_documents(options.like or [], "bench")
            for row in tables.rows_of(document)]
    show(tables.merge(rows), peers, options.markdown)
    for name, reason in WITHOUT_WAY.items():
        print(f"  {name}: {reason}")
    wrong = [line for line in peers if "time_us" in line and not is_right(line)]
    return 1 if wrong or not any("time_us" in line for line in peers) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
