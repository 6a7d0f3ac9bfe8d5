"""bench/peers.py: its measurements, its handling of workers that hang or exit, and its tables."""
import contextlib
import importlib.util
import io
import json
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
RECORDED = pathlib.Path(__file__).resolve().parent / "bench"
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "bench"))

import peers  # noqa: E402
import peers_parameters  # noqa: E402
import tables  # noqa: E402

# Replaces the worker: Harpe takes 80 us and every other way 100 us, except for the (case, peer)
# pairs in `do`. There rank 1 exits, or all ranks hang. They also hang before they begin at the
# starts in `do["hang at start"]`, and exit with 9 at the end if `do` has "end". Checks its
# environment.
STAND_IN = """
import json, os, pathlib, sys, time
folder, first = pathlib.Path(sys.argv[1]), int(sys.argv[2])
rank = int(os.environ["RANK"])
at = folder / "at"
assert os.environ["NCCL_NVLS_ENABLE"] == "0"
assert os.environ["TORCH_SYMM_MEM_DISABLE_MULTICAST"] == "1"
assert os.environ["WORLD_SIZE"] == "2" and os.environ["LOCAL_RANK"] == str(rank)
assert sys.argv[3:] == ["9", "10", "cuda"]
do = {do!r}
starts = folder / f"starts{{rank}}"
starts.write_text(starts.read_text() + "." if starts.exists() else ".")
if len(starts.read_text()) in do.get("hang at start", []):
    time.sleep(60)
def begin(*position):
    if rank == 0:
        (folder / "at.new").write_text(json.dumps(position))
        (folder / "at.new").replace(at)
def wait_for(*position):
    while not at.exists() or json.loads(at.read_text()) != list(position):
        time.sleep(0.01)  # the ranks of the worker are in step too
for place, job in list(enumerate(json.loads((folder / "jobs.json").read_text())))[first:]:
    lines = []
    peers = job.pop("peers")
    for peer in peers:
        begin(place, peer)
        what = do.get((job["case"], peer))
        if what == "end" and rank == 1:
            wait_for(place, peer)
            print("RuntimeError: no such thing")
            sys.exit(9)
        if what is not None:
            time.sleep(60)
        times = dict(time_us=80.0, plan="push") if peer == "harpe" else dict(
            time_us=100.0, over_harpe=1.25, over_harpe_least=1.2, over_harpe_most=1.3)
        lines.append(dict(schema=1, kind="peer", peer=peer, ranks=2, right=True, graph=True,
                          turns_with=peers, **job, **times))
    if rank == 0:
        with open(folder / "lines.jsonl", "a") as file:
            file.write("".join(json.dumps(line) + "\\n" for line in lines))
    begin(place + 1, None)
if "end" in do:
    wait_for(place + 1, None)
    sys.exit(9)
"""


class Peers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_peers(self, *words):
        """(exit status, standard output, lines)."""
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            status = peers.main([*words, "--gpus", "2", "--out",
                                 str(self.folder / "peers.jsonl")])
        text = (self.folder / "peers.jsonl").read_text(encoding="utf-8")
        return status, out.getvalue(), [json.loads(line) for line in text.splitlines()]

    def measure(self, *words, like=RECORDED, do=None):
        """The same, with the stand-in."""
        worker = self.folder / "worker.py"
        worker.write_text(STAND_IN.format(do=do or {}), encoding="utf-8")
        return self.run_peers(*words, "--worker", str(worker), "--like", str(like))

    def list_cases(self, **cases):
        """A file that only names cases of suites."""
        for suite, names in cases.items():
            (self.folder / f"{suite}.json").write_text(json.dumps({
                "command": "bench", "suite": suite,
                "cases": [{"case": name, "parameters": ["x=1"]} for name in names]}))
        return self.folder

    def test_all_ways_of_a_case_with_harpe_take_turns(self):
        status, out, lines = self.measure("ag_gemm", "gemm_rs", "--cases", "512")
        self.assertEqual(status, 0)
        ways = ["harpe", "nccl", "torch_async_tp"]
        self.assertEqual([(line["suite"], line["case"], line["peer"]) for line in lines],
                         [(suite, case, way) for suite, case in (
                             ("ag_gemm", "llama70b_qkv 512x10240x8192"),
                             ("gemm_rs", "llama70b_o 512x8192x8192"),
                             ("gemm_rs", "llama70b_ffn2 512x8192x28672")) for way in ways])
        self.assertEqual([line["turns_with"] for line in lines], [ways] * 9)
        self.assertEqual(lines[0]["parameters"], ["m=512", "n=10240", "k=8192"])
        self.assertIn("flashinfer: kernels of one GPU", out)
        self.assertRegex(out, r"ag_gemm llama70b_qkv 512x10240x8192 +2 +nccl +100 +80 push +"
                              r"1\.25 \(1\.20 to 1\.30\)\n")

    def test_other_suites_measure_one_way_after_another(self):
        _, _, lines = self.measure("attention", "--ways", "nccl,torch_ulysses,yunchang_usp",
                                   like=self.list_cases(attention=["a", "b"]))
        self.assertEqual([(line["case"], line["turns_with"]) for line in lines],
                         [("a", ["torch_ulysses"]), ("a", ["yunchang_usp"]),
                          ("b", ["torch_ulysses"]), ("b", ["yunchang_usp"])])

    def test_sizes_are_cases(self):
        _, out, lines = self.measure("ag_gemm", "gemm_ar", "--size", "512x10240x8192", "--size",
                                     "1x2x3", "--ways", "harpe,nccl")
        self.assertEqual([(line["suite"], line["case"], line["parameters"])
                          for line in lines[::2]],
                         [(suite, case, parameters) for suite in ("ag_gemm", "gemm_ar")
                          for case, parameters in (
                              ("512x10240x8192", ["m=512", "n=10240", "k=8192"]),
                              ("1x2x3", ["m=1", "n=2", "k=3"]))])
        self.assertIn("gemm_ar 1x2x3", out)

    def test_a_way_that_hangs_or_ends_is_told_and_the_others_of_its_case_go_on(self):
        hangs, ends = ("llama70b_o 512x8192x8192", "nccl"), ("llama70b_o 2048x8192x8192", "harpe")
        status, out, lines = self.measure("gemm_rs", "--cases", "llama70b_o", "--patience", "3",
                                          do={hangs: "hang", ends: "end"})
        self.assertEqual(status, 0)
        reasons = {(line["case"], line["peer"]): line["reason"] for line in lines
                   if "time_us" not in line}
        self.assertEqual(reasons, {
            hangs: "it did nothing for 3 s",
            ends: "a process ended with 9: RuntimeError: no such thing"})
        self.assertEqual(len({(line["case"], line["peer"]) for line in lines}), 9)
        self.assertEqual([line["turns_with"] for line in lines if "time_us" in line],
                         [["harpe", "torch_async_tp"]] * 2 + [["nccl", "torch_async_tp"]] * 2
                         + [["harpe", "nccl", "torch_async_tp"]] * 3)
        self.assertIn("nccl, gemm_rs llama70b_o 512x8192x8192: it did nothing for 3 s", out)

    def test_workers_that_do_not_begin_again_are_told_of_the_next_way(self):
        _, _, lines = self.measure("gemm_rs", "--cases", "llama70b_o 512x", "--patience", "3",
                                   do={("llama70b_o 512x8192x8192", "nccl"): "end",
                                       "hang at start": [2]})
        self.assertEqual([(line["peer"], line.get("reason", "")[:14]) for line in lines],
                         [("nccl", "a process ende"), ("harpe", "it did nothing"),
                          ("torch_async_tp", "")])

    def test_workers_that_fail_after_the_last_way_lose_nothing(self):
        status, _, lines = self.measure("gemm_rs", "--cases", "llama70b_o 512x", do={"end": True})
        self.assertEqual(status, 0)
        self.assertEqual(["time_us" in line for line in lines], [True] * 3)

    def test_the_time_is_kept(self):
        hangs = ("llama70b_o 2048x8192x8192", "nccl")
        _, _, lines = self.measure("gemm_rs", "--cases", "llama70b_o", "--budget", "4",
                                   do={hangs: "hang"})
        self.assertEqual(["time_us" in line for line in lines], [True] * 3 + [False] * 6)
        self.assertEqual({line["reason"] for line in lines[3:]}, {"the time was over"})

    def test_workers_that_cannot_begin_are_told_once(self):
        status, out, lines = self.measure("gemm_rs", "--ways", "nccl", "--python", "/bin/false")
        self.assertEqual(status, 1)
        self.assertEqual({line["reason"] for line in lines}, {"a process ended with 1"})
        self.assertIn("nccl, 7 cases: a process ended with 1", out)

    @unittest.skipUnless(importlib.util.find_spec("torch"), "this Python has no torch")
    def test_the_worker_measures_on_cpu_ranks(self):
        status, out, lines = self.run_peers("ag_gemm", "gemm_rs", "gemm_ar", "--size", "64x96x128",
                                            "--device", "cpu", "--rounds", "3", "--iters", "2")
        self.assertEqual(status, 0)
        found = {(line["suite"], line["peer"]): line for line in lines}
        has_harpe = importlib.util.find_spec("harpe") is not None
        for suite in peers.SIZED:
            nccl, harpe = found[suite, "nccl"], found[suite, "harpe"]
            self.assertTrue(nccl["right"])
            self.assertEqual((nccl["rounds"], nccl["copies"], nccl["graph"]), (3, 16, False))
            self.assertEqual("time_us" in harpe, has_harpe)
            self.assertEqual(nccl["over_harpe"] is not None, has_harpe)
            if has_harpe:
                self.assertTrue(harpe["right"])
                self.assertIn(harpe["plan"], out)
        self.assertIn("CPU", found["ag_gemm", "torch_async_tp"]["reason"])

    def test_words_are_checked(self):
        for words in ([], ["ag_gemm", "--merge", "x"], ["moe"], ["ag_gemm", "--ways", "nccl,x"],
                      ["ag_gemm", "--size", "4x4"], ["decode", "--size", "4x4x4"]):
            with self.assertRaises(SystemExit) as left, contextlib.redirect_stderr(io.StringIO()):
                peers.main(words)
            self.assertEqual(left.exception.code, 2)

    def test_a_binary_that_is_not_there_is_told_with_a_way_out(self):
        with self.assertRaises(SystemExit) as left:
            peers.main(["decode", "--harpe", str(self.folder / "none")])
        self.assertIn("name the binary by `--harpe`", left.exception.code)

    def test_every_way_has_a_suite(self):
        self.assertLessEqual({suite for suites in peers.WAYS.values() for suite in suites},
                             set(peers.SUITES))


class Parameters(unittest.TestCase):
    def test_every_kind_is_read(self):
        self.assertEqual(peers_parameters.values_of(["m=512", "causal=true", "packed=false",
                                                     "skew=0.5", "dtype=f16"]),
                         {"m": 512, "causal": True, "packed": False, "skew": 0.5, "dtype": "f16"})

    def test_what_is_not_said_is_as_harpe_has_it(self):
        sizes = peers_parameters.sizes_of(["heads=8"], "heads", "kv_heads", "causal")
        self.assertEqual(sizes, {"heads": 8, "kv_heads": 8, "causal": False, "dtype": "bf16"})

    def test_what_a_way_would_pass_over_is_refused(self):
        for words, reason in ((["m=1", "window=8"], "this way knows no `window`"),
                              (["m=1", "head_dim=64", "v_head_dim=128"],
                               "this way knows no `head_dim`"),
                              (["m=1", "causal=true"], "this way knows no `causal`"),
                              (["window=0"], "`m` is not said"),
                              (["m=1", "dtype=7"], "there is no type `7`"),
                              (["m=1", "dtype=f8"],
                               "parameter `dtype=f8` is neither a number, a type nor a bool"),
                              (["m"], "parameter `m` is neither a number, a type nor a bool")):
            with self.assertRaises(ValueError) as refused:
                peers_parameters.sizes_of(words, "m")
            self.assertEqual(str(refused.exception), reason)
        self.assertEqual(peers_parameters.sizes_of(["m=1", "window=0", "packed=false"], "m")["m"],
                         1)
        self.assertEqual(peers_parameters.sizes_of(["m=1", "kv_seq=4", "seq=4"], "m", "seq")["m"],
                         1)

    def test_a_wider_type_is_rounded_less(self):
        bounds = [peers_parameters.rounding_of(dtype, 8192) for dtype in ("bf16", "f16", "f32",
                                                                         "f64")]
        self.assertEqual(bounds, sorted(bounds, reverse=True))

    def test_the_parameters_of_every_case_are_known(self):
        known = {"ag_gemm": ("m", "n", "k"), "gemm_rs": ("m", "n", "k")}
        for path in RECORDED.glob("*.json"):
            document = json.loads(path.read_text(encoding="utf-8"))
            for case in document["cases"] if document.get("suite") in known else []:
                peers_parameters.sizes_of([*case["parameters"], "dtype=bf16"],
                                          *known[document["suite"]])


def line(case, peer, **more):
    return {"schema": 1, "kind": "peer", "suite": "gemm_rs", "case": case, "parameters": [],
            "ranks": 4, "peer": peer, **more}


class Tables(unittest.TestCase):
    CASE = "llama70b_o 512x8192x8192"

    def rows(self):
        return [row for document in tables.read_documents([RECORDED / "gemm_rs.json"], "bench")
                for row in tables.rows_of(document)][:1]

    def compared(self, *lines):
        """The table without its head, and without the column of cases."""
        head, *rest = peers.compare(self.rows(), lines)
        self.assertEqual(head, ["case", "GPUs", "way", "its time", "Harpe", "speed-up of Harpe"])
        return [cells[1:] for cells in rest]

    BENCH = ["4", "nccl + cublasLt", "71", "63 push", "1.13"]

    def test_ways_without_turns_stand_beside_harpe_bench(self):
        self.assertEqual(self.compared(
            line(self.CASE, "nccl", time_us=90.0, right=True, graph=True),
            line(self.CASE, "torch_async_tp", time_us=126.0, right=True, graph=False)),
            [self.BENCH, ["4", "nccl", "90", "63 push", "1.43"],
             ["4", "torch_async_tp", "126 eager", "63 push", "2.00"]])

    def test_ways_that_took_turns_have_the_range_of_their_ratios(self):
        self.assertEqual(self.compared(
            line(self.CASE, "harpe", time_us=60.0, right=True, graph=True, plan="pull"),
            line(self.CASE, "nccl", time_us=90.0, right=True, graph=True, over_harpe=1.5,
                 over_harpe_least=1.4, over_harpe_most=1.625)),
            [self.BENCH, ["4", "harpe", "60 pull", "63 push", "-"],
             ["4", "nccl", "90", "60 pull", "1.50 (1.40 to 1.62)"]])

    def test_what_is_wrong_does_not_count(self):
        self.assertEqual(self.compared(
            line(self.CASE, "nccl", time_us=10.0, right=False, graph=True))[1],
            ["4", "nccl", "10 WRONG", "63 push", "-"])

    def test_peers_of_other_cases_and_ranks_have_lines_of_their_own(self):
        other = {**line(self.CASE, "nccl", time_us=50.0, right=True, graph=True), "ranks": 8}
        self.assertEqual(self.compared(other), [self.BENCH, ["8", "nccl", "50", "-", "-"]])

    def test_files_are_merged_and_the_last_time_counts(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "peers.jsonl"
            path.write_text("\n".join(json.dumps(each) for each in (
                line(self.CASE, "nccl", time_us=80.0, right=True, graph=True),
                line(self.CASE, "nccl", time_us=90.0, right=True, graph=True),
                line(self.CASE, "nccl", reason="the time was over"),
                line(self.CASE, "ring_flash_attn", reason="No module named 'ring_flash_attn'"))),
                encoding="utf-8")
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                peers.main(["--merge", str(path), str(RECORDED / "gemm_rs.json"), "--markdown"])
        self.assertIn(f"| gemm_rs {self.CASE} | 4 | nccl | 90 | 63 push | 1.43 |", out.getvalue())
        self.assertIn("  ring_flash_attn, gemm_rs llama70b_o 512x8192x8192: No module named "
                      "'ring_flash_attn'\n", out.getvalue())


if __name__ == "__main__":
    unittest.main()
