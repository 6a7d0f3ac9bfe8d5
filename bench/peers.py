#!/usr/bin/env python3
"""peers.py SUITE ...: times Harpe and what PyTorch users run today on the cases of `harpe bench`.

There is one process per GPU, and NCCL and PyTorch do not use multicast. In suites with the way
`harpe`, which calls the package's operators, all ways of a case take turns in these processes, so
that clocks are the same for all. In other suites one way is measured after another. Every result is
compared with a reference; times are medians, of replayed graphs if an implementation can be
captured. Small weights have several copies, so that every execution reads them from memory. Nothing
is downloaded: implementations whose packages are missing are listed with the reason. Each JSON line
goes to --out.

The table shows each way's time beside Harpe's, and the median speed-up of Harpe with the least and
the most of all rounds. `--merge` makes one table of such lines and of the output of `harpe bench
--json`: a speed-up without a range compares times of different runs.
"""
import argparse
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import tables  # noqa: E402

SCHEMA = 1
SUITES = ["ag_gemm", "gemm_rs", "gemm_ar", "attention", "attention_bwd", "decode"]
SIZED = ["ag_gemm", "gemm_rs", "gemm_ar"]  # suites whose cases are m, n and k
# Implementations, with the suites that they support; peers_torch.py contains them.
WAYS = {
    "harpe": ["ag_gemm", "gemm_rs", "gemm_ar", "decode"],
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


def gemm_size(text):
    """`512x10240x8192` as a case."""
    sizes = text.split("x")
    if len(sizes) != 3 or not all(size.isdecimal() for size in sizes):
        raise argparse.ArgumentTypeError(f"`{text}` is not MxNxK")
    return {"case": text, "parameters": [f"{name}={size}" for name, size in zip("mnk", sizes)]}


def cases_of(options, suite):
    """[{case, parameters}] as --size or --like has them, or as harpe lists them."""
    if options.size:
        found = options.size
    elif options.like:
        documents = tables.read_documents(options.like, "bench")
        found = [case for document in documents if document["suite"] == suite
                 for case in document["cases"]]
    else:
        words = [options.harpe, "bench", suite, "--backend=cuda", f"--ranks={options.gpus}",
                 "--list", "--json", "-"]
        try:
            done = subprocess.run(words, capture_output=True, text=True, check=False)
        except OSError as error:
            sys.exit(f"cannot run `{options.harpe}` ({error.strerror}): name the binary by "
                     "`--harpe`, or cases by `--size` or `--like`")
        if done.returncode != 0:
            sys.exit(f"{' '.join(words)}: {done.stderr.strip()}")
        found = json.loads(done.stdout)["cases"]
    return [{"case": case["case"], "parameters": case["parameters"]} for case in found
            if options.cases in case["case"]]


def jobs_of(options):
    """[{suite, case, parameters, peers}]: the ways of a job take turns. Ordered case by case, so
    that an interrupted run has whole cases."""
    chosen = options.ways.split(",") if options.ways else list(WAYS)
    jobs = []
    for suite in options.suites:
        ways = [way for way in chosen if suite in WAYS[way]]
        groups = [ways] if suite in WAYS["harpe"] else [[way] for way in ways]
        jobs += [{"suite": suite, **case, "peers": [*group]}
                 for case in cases_of(options, suite) for group in groups if group]
    return jobs


class Workers:
    """The worker processes of one attempt, which end together."""

    def __init__(self, options, folder, first):
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            port = one.getsockname()[1]
        words = [options.python, str(options.worker), str(folder), str(first),
                 str(options.rounds), str(options.iters), options.device]
        self.log = open(folder / "log.txt", "w", encoding="utf-8")  # pylint: disable=R1732
        self.processes = [
            subprocess.Popen(words, stdout=self.log, stderr=subprocess.STDOUT,
                             env={**os.environ, **ENVIRONMENT, "RANK": str(rank),
                                  "LOCAL_RANK": str(rank), "WORLD_SIZE": str(options.gpus),
                                  "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)})
            for rank in range(options.gpus)]

    def ended(self):
        """The first nonzero exit status; 0 once all have succeeded; None while some run."""
        statuses = [process.poll() for process in self.processes]
        bad = next((status for status in statuses if status), None)
        return bad if bad is not None or None in statuses else 0

    def kill(self):
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()
        self.log.close()


def watch(workers, folder, patience, end):
    """Waits for the workers. Returns why they failed, or None; workers without progress count as
    hung."""
    at = folder / "at"
    seen, since = None, time.monotonic()
    while True:
        status = workers.ended()
        if status is not None:
            return None if status == 0 else f"a process ended with {status}"
        now = at.stat().st_mtime_ns if at.exists() else None
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


def attempt(options, folder, first, end):
    """Runs the jobs from `first` on. Returns why the workers failed, or None."""
    workers = Workers(options, folder, first)
    try:
        reason = watch(workers, folder, options.patience, end)
    finally:
        workers.kill()
    return reason and f"{reason}: {last_words(folder)}".removesuffix(": ")


def drop_failed(jobs, place, peer):
    """Removes the way with which workers failed from its job. Returns it as a job of its own, in a
    list, and the job with which workers start again."""
    job = jobs[place]
    peer = peer or job["peers"][0]
    job["peers"].remove(peer)
    return [{**job, "peers": [peer]}], place if job["peers"] else place + 1


def failed_lines(jobs, reason, ranks):
    return "".join(json.dumps({
        "schema": SCHEMA, "kind": "peer", "suite": job["suite"], "case": job["case"],
        "parameters": job["parameters"], "peer": peer, "ranks": ranks, "reason": reason}) + "\n"
        for job in jobs for peer in job["peers"])


def measure(options, jobs):
    """Runs all jobs, and returns their lines, which are added to --out. A way that ends or hangs
    the workers is recorded with the reason; then they start again with its job, without it."""
    end = time.monotonic() + options.budget
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        at, lines = folder / "at", folder / "lines.jsonl"
        lines.touch()
        first = 0
        while first < len(jobs):
            (folder / "jobs.json").write_text(json.dumps(jobs), encoding="utf-8")
            reason = attempt(options, folder, first, end)
            if reason is None:
                break
            has_begun = at.exists()
            place, peer = json.loads(at.read_text(encoding="utf-8")) if has_begun else (0, None)
            if has_begun and place < len(jobs) and time.monotonic() <= end:
                lost, first = drop_failed(jobs, place, peer)
            else:  # no later job can run
                say(reason)
                lost, first = jobs[place:], len(jobs)
            with open(lines, "a", encoding="utf-8") as file:
                file.write(failed_lines(lost, reason, options.gpus))
            at.write_text(json.dumps([first, None]), encoding="utf-8")
        text = lines.read_text(encoding="utf-8")
    with open(options.out, "a", encoding="utf-8") as file:
        file.write(text)
    return [json.loads(line) for line in text.splitlines()]


# Tables.

def read_rows(paths):
    """Rows of `harpe bench`; files that only list cases have none."""
    return tables.merge([row for document in tables.read_documents(paths, "bench")
                         if "ranks" in document for row in tables.rows_of(document)])


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


def case_of(line):
    return line["suite"], line["ranks"], line["case"]


def compare(rows, peers):
    """One line per case and way: its time, Harpe's, and their ratio. Rows of `harpe bench` stand
    for cases in which Harpe did not take turns with the way."""
    benched = {(row.family, row.ranks, row.case): row for row in rows}
    timed = {key: [] for key in (*benched, *map(case_of, peers))}
    for line in peers:
        if "time_us" in line:
            timed[case_of(line)].append(line)
    table = [["case", "GPUs", "way", "its time", "Harpe", "speed-up of Harpe"]]
    for key, lines in timed.items():
        row = benched.get(key)
        bench = f"{tables.print_us(row.ours)} {row.schedule}".strip() if row else "-"
        harpe = next((print_peer(line) for line in lines if line["peer"] == "harpe"), bench)
        first = [f"{key[0]} {key[2]}", str(key[1])]
        if row:
            table.append([*first, row.baseline or "NCCL + library", tables.print_us(row.theirs),
                          bench, tables.print_ratio(row.ratio)])
        table += [[*first, line["peer"], print_peer(line),
                   harpe if line.get("over_harpe") else bench, print_speed_up(line, row)]
                  for line in lines]
    return table


def print_peer(line):
    text = f"{tables.print_us(line['time_us'])} {line.get('plan', '')}".strip()
    text += "" if line.get("graph") else " eager"
    return text if is_right(line) else text + " WRONG"


def print_speed_up(line, row):
    """With its range over the rounds, if Harpe took turns with the way."""
    if line["peer"] == "harpe" or not is_right(line):
        return "-"
    if line.get("over_harpe"):
        return (f"{line['over_harpe']:.2f} ({line['over_harpe_least']:.2f} to "
                f"{line['over_harpe_most']:.2f})")
    return tables.print_ratio(line["time_us"] / row.ours if row and row.ours else None)


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
    print(draw(compare(rows, peers)) + print_reasons(peers), end="", flush=True)


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
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"),
                        help="cpu: CPU ranks in place of GPUs, as a test of this script")
    parser.add_argument("--harpe", default="build/release/harpe", help="the binary, for its cases")
    parser.add_argument("--like", nargs="+", metavar="PATH",
                        help="cases from what `harpe bench` wrote, in place of the binary")
    parser.add_argument("--size", action="append", type=gemm_size, metavar="MxNxK",
                        help=f"a case of {', '.join(SIZED)}, in place of the binary's; repeatable")
    parser.add_argument("--cases", default="", metavar="TEXT", help="only those with this in them")
    parser.add_argument("--ways", metavar="NAME,...", help=", ".join(WAYS))
    parser.add_argument("--rounds", type=int, default=9, help="turns of each way")
    parser.add_argument("--iters", type=int, default=10, help="executions of a turn, back to back")
    parser.add_argument("--budget", type=float, default=540, metavar="SECONDS")
    parser.add_argument("--patience", type=float, default=120, metavar="SECONDS",
                        help="a way that does nothing for so long is left out")
    parser.add_argument("--python", default=sys.executable,
                        help="the interpreter that has torch, and harpe for that way")
    parser.add_argument("--worker", type=pathlib.Path, default=WORKER, help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    if bool(options.suites) == bool(options.merge):
        parser.error("name suites to measure, or what to `--merge`")
    if options.size and not set(options.suites) <= set(SIZED):
        parser.error(f"`--size` is for {', '.join(SIZED)}")
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
        show(read_rows(rest), read_peers(lines), options.markdown)
        return 0
    options.out.parent.mkdir(parents=True, exist_ok=True)
    jobs = jobs_of(options)
    say(f"{sum(len(job['peers']) for job in jobs)} measurements on {options.gpus} ranks")
    peers = measure(options, jobs)
    show(read_rows(options.like or []), peers, options.markdown)
    for name, reason in WITHOUT_WAY.items():
        print(f"  {name}: {reason}")
    wrong = [line for line in peers if "time_us" in line and not is_right(line)]
    return 1 if wrong or not any("time_us" in line for line in peers) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
