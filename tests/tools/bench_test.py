"""bench/families: its commands, how it evaluates the answers, and its tables.

bench_test.py [HARPE]: with the binary also a real family on CPU ranks.
"""
import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest

import scripts

RECORDED = pathlib.Path(__file__).resolve().parent / "bench"
HARPE = sys.argv[1] if len(sys.argv) > 1 else None

import tables  # noqa: E402

families = scripts.load("families")

# Replaces the binary: it reports `gpus` GPUs, the recorded times and taxes, and records its
# commands. `sleep` is the duration of a measurement.
STAND_IN = """#!{python}
import json, pathlib, sys, time
words = sys.argv[1:]
folder = pathlib.Path({folder!r})
with open(folder / "asked", "a") as asked:
    asked.write(json.dumps(words) + "\\n")
if words[0] == "doctor":
    print(json.dumps({{"gpus": [{{"problem": None}}] * {gpus} + [{{"problem": "full"}}]}}))
    sys.exit(0)
path = pathlib.Path(words[-1])
if words[0] == "bench":
    recorded = pathlib.Path({recorded!r}) / (words[1] + ".json")
    if not recorded.exists():
        sys.exit(3)
    path.write_text(recorded.read_text())
    print("a table")
    sys.stdout.flush()
    time.sleep({sleep})
    sys.exit({status})
name = [word for word in words if word.startswith("--schedule=")][0].split("=")[1]
parts = ("time", "roofline", "launch", "synchronization", "locality", "residual")
row = {{"schedule": name, "applies": True, **{{part + "_us": 10.0 for part in parts}}}}
path.write_text(json.dumps({{"command": "taxes", "target": words[1], "parameters": words[2:5],
                             "schedules": [row]}}))
"""


class Families(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_families(self, *words, gpus=4, sleep=0, status=0):
        """(exit status, standard output, standard error)."""
        harpe = self.folder / "harpe"
        harpe.write_text(STAND_IN.format(python=sys.executable, folder=str(self.folder), gpus=gpus,
                                         recorded=str(RECORDED), sleep=sleep, status=status))
        harpe.chmod(0o755)
        out, error = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
            ended = families.main([*words, "--harpe", str(harpe), "--out", str(self.folder / "o")])
        return ended, out.getvalue(), error.getvalue()

    def asked(self):
        return [json.loads(line) for line in (self.folder / "asked").read_text().splitlines()]

    def test_what_is_there_is_used_and_said(self):
        status, out, error = self.run_families("gemm_rs", gpus=4)
        self.assertEqual(status, 0)
        self.assertIn("8 GPUs are wanted and 4 are there: 4 ranks", error)
        doctor, bench, *taxes = self.asked()
        self.assertEqual(doctor[0], "doctor")
        self.assertEqual(bench[:4], ["bench", "gemm_rs", "--backend=cuda", "--ranks=4"])
        self.assertIn("--check", bench)
        self.assertEqual([words[5:7] for words in taxes], [["--mesh=tp=4", "--schedule=bulk"],
                                                           ["--mesh=tp=4", "--schedule=push"]])
        self.assertEqual(taxes[0][2:5], ["m=8192", "n=8192", "k=8192"])
        last = out.splitlines()[-1].split()
        self.assertEqual(last[:7], ["gemm_rs", "4", "7", "of", "7", "1.17", "0.98"])
        self.assertEqual((self.folder / "o" / "gemm_rs.txt").read_text(), "a table\n")
        self.assertTrue((self.folder / "o" / "gemm_rs_taxes_push.json").exists())

    def test_ranks_fall_back_from_eight_to_four_to_what_is_there(self):
        self.assertEqual([families.ranks_of(8, there) for there in (9, 8, 7, 4, 3, 2)],
                         [8, 8, 4, 4, 3, 2])
        self.assertEqual(families.ranks_of(2, 8), 2)

    def test_one_gpu_is_none_to_measure_on(self):
        status, out, error = self.run_families("gemm_rs", gpus=1)
        self.assertEqual((status, out), (1, ""))
        self.assertIn("there are 1 GPUs that harpe can use", error)
        self.assertEqual(len(self.asked()), 1)

    def test_a_status_is_passed_on(self):
        self.assertEqual(self.run_families("ag_gemm", "--no-taxes", status=3)[0], 3)

    def test_the_time_is_kept_and_what_was_done_counts(self):
        status, out, error = self.run_families("gemm_rs", "--budget", "1.5", sleep=30)
        self.assertIn("gemm_rs: was ended after its 1 s", error)
        self.assertIn("gemm_rs  4      7 of 7", out)
        self.assertEqual(status, 1)
        status, out, error = self.run_families("gemm_rs", "ag_gemm", "--budget", "0")
        self.assertIn("ag_gemm: not begun, the 0 s are over", error)
        self.assertEqual(status, 1)

    def test_the_earlier_result_of_a_family_is_not_taken_for_this_one(self):
        (self.folder / "o").mkdir()
        (self.folder / "o" / "gemm_ar.json").write_text((RECORDED / "gemm_rs.json").read_text())
        status, out, error = self.run_families("gemm_ar", "--no-taxes")
        self.assertEqual(status, 3)
        self.assertIn("gemm_ar: no result, exit status 3", error)
        self.assertNotIn("llama", out)

    def test_words_are_checked(self):
        for words in ([], ["gemm_rs", "--merge", "x"], ["gemm_xy"]):
            with self.assertRaises(SystemExit) as left, contextlib.redirect_stderr(io.StringIO()):
                families.main(words)
            self.assertEqual(left.exception.code, 2)

    @unittest.skipUnless(HARPE, "needs the binary")
    def test_a_family_on_cpu_ranks(self):
        out, error = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
            status = families.main(
                ["gemm_rs", "--backend", "cpu", "--ranks", "2", "--rounds", "1", "--iters", "1",
                 "--cases", "256", "--harpe", HARPE, "--out", str(self.folder)])
        self.assertEqual(status, 0, error.getvalue())
        self.assertIn("gemm_rs small 256x256x256", out.getvalue())
        self.assertIn("gemm_rs m=256 n=256 k=256", out.getvalue())
        self.assertRegex(out.getvalue().splitlines()[-1], r"^gemm_rs +2 +1 of 1 +\d")


class Tables(unittest.TestCase):
    def rows(self):
        return [row for document in tables.read_documents([RECORDED], "bench")
                for row in tables.rows_of(document)]

    def test_means_and_worst_cases(self):
        gathered, reduced = tables.summaries_of(self.rows())
        self.assertEqual((gathered.cases, gathered.timed, gathered.compared), (3, 2, 2))
        self.assertAlmostEqual(gathered.ratio, (87 / 86 * 3276 / 2891) ** 0.5)
        self.assertAlmostEqual(gathered.memory, 1200 / 1250)
        self.assertEqual(reduced.worst.case, "llama70b_ffn2 512x8192x28672")
        self.assertEqual(reduced.farthest.case, "llama70b_o 512x8192x8192")
        self.assertAlmostEqual(reduced.farthest.over_limit, 63 / 26)
        self.assertIsNone(reduced.memory)

    def test_markdown_is_what_the_documents_hold(self):
        rows = self.rows()
        cases = tables.print_markdown(tables.case_lines(rows, "`")).splitlines()
        self.assertEqual(cases[0],
                         "| case | ours | theirs | theirs / ours | limit | ours / limit |")
        self.assertEqual(cases[1], "|---|---|---|---|---|---|")
        self.assertEqual(cases[3], "| `ag_gemm` llama70b_ffn1 8192x57344x8192 | 2,891 push | 3,276 "
                                   "| 1.13 | 2,476 | 1.17 |")
        self.assertEqual(cases[4], "| `ag_gemm` square 4096x4096x4096 | "
                                   "the budget was spent before | - | - | - | - |")
        summary = tables.print_markdown(tables.readme_lines(tables.summaries_of(rows)))
        self.assertEqual(summary.splitlines()[-1],
                         "| `gemm_rs`, 7 | 4 | 1.17× faster (0.98–1.47) |")

    def test_later_tables_add_to_earlier_ones(self):
        old, skipped = tables.Row("a", 4, "x", ours=2.0), tables.Row("a", 4, "x", note="skipped")
        new, other = tables.Row("a", 4, "x", ours=1.0), tables.Row("a", 8, "x", ours=3.0)
        self.assertEqual(tables.merge([old, new, other]), [new, other])
        self.assertEqual(tables.merge([old, skipped]), [old])
        self.assertEqual(tables.merge([skipped, old]), [old])

    def test_merging_shows_what_files_hold(self):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            status = families.main(["--merge", str(RECORDED), str(RECORDED / "gemm_rs.json")])
        self.assertEqual(status, 0)
        self.assertEqual(out.getvalue().count("llama70b_o 2048x8192x8192"), 1)
        self.assertIn("ag_gemm  4      2 of 3", out.getvalue())

    def test_a_case_without_a_time_says_why(self):
        case = {"case": "x", "ours_us": None,
                "entries": [{"name": "push", "baseline": False, "code": "G073", "reason": "full"},
                            {"name": "nccl", "baseline": True, "time_us": 1.0}]}
        document = {"suite": "a", "ranks": 2, "cases": [case]}
        self.assertEqual(tables.rows_of(document)[0].note, "push: full")


class Taxes(unittest.TestCase):
    def test_before_is_in_bulk_and_after_is_the_fastest(self):
        def case(name, schedule, *entries):
            return {"case": name, "schedule": schedule,
                    "entries": [{"name": entry, "time_us": 1.0} for entry in entries]}
        cases = [case("one", "bulk", "bulk"), case("two", "push", "allgather", "push"),
                 case("three", "push", "push"), case("four", "push", "bulk", "push")]
        for wanted, (name, schedules) in {"four": ("four", ["bulk", "push"]),
                                          "three": ("two", ["allgather", "push"]),
                                          "one": ("one", ["bulk"])}.items():
            found, names = families.taxed_case({"cases": cases}, wanted)
            self.assertEqual((found["case"], names), (name, schedules))
        self.assertIsNone(families.taxed_case({"cases": cases[2:3]}, "three"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
