"""bench/peers.py: its measurements, its handling of workers that hang or exit, and its tables."""
import contextlib
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

# Replaces the worker: every peer takes 100 us, except for the (case, peer) pairs in `do`. There
# rank 1 exits, or all ranks hang. Workers whose first job is `do`'s "never begins" do nothing.
# Checks its environment.
STAND_IN = """
import json, os, pathlib, sys, time
folder, first = pathlib.Path(sys.argv[1]), int(sys.argv[2])
rank = int(os.environ["RANK"])
at = folder / "at"
assert os.environ["NCCL_NVLS_ENABLE"] == "0"
assert os.environ["TORCH_SYMM_MEM_DISABLE_MULTICAST"] == "1"
assert os.environ["WORLD_SIZE"] == "2" and os.environ["LOCAL_RANK"] == str(rank)
do = {do!r}
if do.get("never begins") == first:
    time.sleep(60)
for place, job in list(enumerate(json.loads((folder / "jobs.json").read_text())))[first:]:
    if rank == 0:
        at.write_text(str(place))
    what = do.get((job["case"], job["peer"]))
    if what == "end" and rank == 1:
        while not at.exists() or at.read_text() != str(place):
            time.sleep(0.01)  # else the crew has not begun
        print("RuntimeError: no such thing")
        sys.exit(9)
    if what is not None:
        time.sleep(60)
    if rank == 0:
        line = dict(schema=1, kind="peer", ranks=2, time_us=100.0, right=True, graph=True, **job)
        with open(folder / "lines.jsonl", "a") as lines:
            lines.write(json.dumps(line) + "\\n")
"""

# Replaces the binary: Harpe takes 80 us, then 40, and then fails; `auto` takes 100, then 50; in a
# graph 50, then 25.
HARPE = """#!/usr/bin/env python3
import json, pathlib, sys
assert sys.argv[1:3] == ["bench", "ag_gemm"] and "--rounds=3" in sys.argv
assert "m=512" in sys.argv and "--ranks=2" in sys.argv
turns = pathlib.Path(__file__).with_suffix(".turns")
turns.write_text(turns.read_text() + "." if turns.exists() else ".")
turn = len(turns.read_text())
if turn > 2:
    sys.exit("error: no more")
print(json.dumps({"cases": [{"schedule": "push", "ours_us": 160 / 2 ** turn, "baseline": "NCCL",
                             "baseline_us": 90,
                             "entries": [{"name": "push", "time_us": 160 / 2 ** turn,
                                          "in_graph_us": 100 / 2 ** turn},
                                         {"name": "auto", "time_us": 200 / 2 ** turn}]}]}))
"""


class Peers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def measure(self, *words, do=None):
        """(exit status, standard output, lines)."""
        worker = self.folder / "worker.py"
        worker.write_text(STAND_IN.format(do=do or {}), encoding="utf-8")
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            status = peers.main([*words, "--gpus", "2", "--worker", str(worker), "--like",
                                 str(RECORDED), "--out", str(self.folder / "peers.jsonl")])
        text = (self.folder / "peers.jsonl").read_text(encoding="utf-8")
        return status, out.getvalue(), [json.loads(line) for line in text.splitlines()]

    def test_every_way_of_a_suite_is_measured_case_by_case(self):
        status, out, lines = self.measure("ag_gemm", "gemm_rs", "--cases", "512")
        self.assertEqual(status, 0)
        self.assertEqual([(line["suite"], line["case"], line["peer"]) for line in lines],
                         [("ag_gemm", "llama70b_qkv 512x10240x8192", "nccl"),
                          ("ag_gemm", "llama70b_qkv 512x10240x8192", "torch_async_tp"),
                          ("gemm_rs", "llama70b_o 512x8192x8192", "nccl"),
                          ("gemm_rs", "llama70b_o 512x8192x8192", "torch_async_tp"),
                          ("gemm_rs", "llama70b_ffn2 512x8192x28672", "nccl"),
                          ("gemm_rs", "llama70b_ffn2 512x8192x28672", "torch_async_tp")])
        self.assertEqual(lines[0]["parameters"], ["m=512", "n=10240", "k=8192"])
        self.assertIn("flashinfer: kernels of one GPU", out)

    def test_harpe_and_peers_take_turns_at_each_case(self):
        harpe = self.folder / "harpe"
        harpe.write_text(HARPE, encoding="utf-8")
        harpe.chmod(0o755)
        status, out, lines = self.measure("ag_gemm", "--cases", "qkv 512x", "--ways", "nccl",
                                          "--harpe", str(harpe), "--rounds", "9",
                                          "--interleave", "3")
        self.assertEqual(status, 0)
        self.assertEqual([line["kind"] for line in lines], ["harpe", "peer"] * 3)
        self.assertEqual([line.get("ours_us") for line in lines[::2]], [80, 40, None])
        self.assertEqual([line.get("auto_us") for line in lines[::2]], [100, 50, None])
        self.assertEqual([line.get("graph_us") for line in lines[::2]], [50, 25, None])
        self.assertIn("1.88 (1.25 to 2.50)  1.50 (1.00 to 2.00)  3.00 (2.00 to 4.00)  2", out)
        self.assertIn("error: no more", out)

    def test_a_way_that_hangs_or_ends_is_told_and_the_others_go_on(self):
        hangs, ends = ("llama70b_o 512x8192x8192", "nccl"), ("llama70b_o 2048x8192x8192",
                                                           "torch_async_tp")
        status, out, lines = self.measure("gemm_rs", "--cases", "llama70b_o", "--patience", "3",
                                          do={hangs: "hang", ends: "end"})
        self.assertEqual(status, 0)
        self.assertEqual(len(lines), 6)
        reasons = {(line["case"], line["peer"]): line["reason"] for line in lines
                   if "time_us" not in line}
        self.assertEqual(reasons, {
            hangs: "it did nothing for 3 s",
            ends: "a process ended with 9: RuntimeError: no such thing"})
        self.assertIn("nccl, gemm_rs llama70b_o 512x8192x8192: it did nothing for 3 s", out)

    def test_a_crew_that_does_not_begin_is_told_of_its_own_job(self):
        _, _, lines = self.measure("gemm_rs", "--cases", "llama70b_o", "--patience", "3",
                                   do={("llama70b_o 512x8192x8192", "nccl"): "end",
                                       "never begins": 1})
        self.assertEqual(len({(line["case"], line["peer"]) for line in lines}), 6)
        self.assertEqual([line.get("reason", "")[:14] for line in lines],
                         ["a process ende", "it did nothing"] + [""] * 4)

    def test_the_time_is_kept(self):
        hangs = ("llama70b_o 2048x8192x8192", "nccl")
        _, _, lines = self.measure("gemm_rs", "--cases", "llama70b_o", "--budget", "1.5",
                                   do={hangs: "hang"})
        self.assertEqual(["time_us" in line for line in lines], [True] * 2 + [False] * 4)
        self.assertEqual({line["reason"] for line in lines[2:]}, {"the time was over"})

    def test_workers_that_cannot_begin_are_told_once(self):
        status, out, lines = self.measure("gemm_rs", "--ways", "nccl", "--python", "/bin/false")
        self.assertEqual(status, 1)
        self.assertEqual({line["reason"] for line in lines}, {"a process ended with 1"})
        self.assertIn("nccl, 7 cases: a process ended with 1", out)

    def test_words_are_checked(self):
        for words in ([], ["ag_gemm", "--merge", "x"], ["moe"], ["ag_gemm", "--ways", "nccl,x"]):
            with self.assertRaises(SystemExit) as left, contextlib.redirect_stderr(io.StringIO()):
                peers.main(words)
            self.assertEqual(left.exception.code, 2)

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

    def merged(self, *lines):
        return peers.merge_lines(self.rows(), lines)

    def test_a_case_stands_beside_its_peers_with_the_ratio_of_the_fastest(self):
        head, cells = self.merged(line(self.CASE, "nccl", time_us=90.0, right=True, graph=True),
                                  line(self.CASE, "torch_async_tp", time_us=126.0, right=True,
                                       graph=False))
        self.assertEqual(head, ["case", "GPUs", "ours", "NCCL + library", "nccl",
                                "torch_async_tp", "fastest of them / ours"])
        self.assertEqual(cells, [f"gemm_rs {self.CASE}", "4", "63 push", "71", "90", "126 eager",
                                 "1.13"])

    def test_what_is_wrong_does_not_count(self):
        cells = self.merged(line(self.CASE, "nccl", time_us=10.0, right=False, graph=True))[1]
        self.assertEqual(cells[4:], ["10 WRONG", "1.13"])

    def test_peers_of_other_cases_and_ranks_have_lines_of_their_own(self):
        other = {**line(self.CASE, "nccl", time_us=50.0, right=True, graph=True), "ranks": 8}
        lines = self.merged(other)
        self.assertEqual([cells[1:] for cells in lines[1:]],
                         [["4", "63 push", "71", "-", "1.13"], ["8", "-", "-", "50", "-"]])

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
        self.assertIn(f"| gemm_rs {self.CASE} | 4 | 63 push | 71 | 90 | - | 1.13 |",
                      out.getvalue())
        self.assertIn("  ring_flash_attn, gemm_rs llama70b_o 512x8192x8192: No module named "
                      "'ring_flash_attn'\n", out.getvalue())


if __name__ == "__main__":
    unittest.main()
