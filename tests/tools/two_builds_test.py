"""bench/two_builds: its interval, its verdicts, the commands for both builds, and its report.

two_builds_test.py [HARPE]: with the binary also the five families on CPU ranks.
"""
import contextlib
import io
import json
import math
import os
import pathlib
import shlex
import sys
import tempfile
import unittest

import scripts

HARPE = sys.argv[1] if len(sys.argv) > 1 else None
two_builds = scripts.load("two_builds")

# Replaces a binary: it lowers to a plan with two outputs. Run number i takes the i-th of `times`,
# in microseconds, in rotation. `fails` names the command that fails, and its message.
STAND_IN = """#!{python} -IS
import json, pathlib, sys, time
words, folder, name = sys.argv[1:], pathlib.Path({folder!r}), {name!r}
with open(folder / "asked", "a") as asked:
    asked.write(json.dumps([name, *words]) + "\\n")
verb, text = {fails!r} or ("", "")
if words[0] == verb:
    sys.stderr.write("a warning\\n" + text + "\\n")
    sys.exit(1)
if words[0] == "lower":
    pathlib.Path(words[-1]).write_text("  buffer q : bf16[4] in\\n  buffer o : bf16[4] out\\n"
                                       "  buffer lse : f32[4] out\\n" + {plan!r})
    sys.exit(0)
turns = folder / (name + "_turns")
number = len(turns.read_text()) if turns.exists() else 0
turns.write_text("x" * (number + 1))
time.sleep({sleep})
seed = words[words.index("--seed") + 1]
for at, word in enumerate(words):
    if word == "--output":
        output, path = words[at + 1].split("=", 1)
        other = [output, int(seed)] == {other!r}
        pathlib.Path(path).write_text("other" if other else output + seed)
times = {times!r}
time_us = times[number % len(times)]
document = {{"time_us": [1e6] * 3 + [time_us] * (int(words[words.index("--iters") + 1]) - 3)}}
if verb != "times":
    pathlib.Path(words[words.index("--json") + 1]).write_text(json.dumps(document))
"""
# Runs the binary with a different seed than requested.
OTHER_SEED = """#!{python}
import os, sys
words = sys.argv[1:]
if "--seed" in words:
    words[words.index("--seed") + 1] = "77"
os.execv({harpe!r}, [{harpe!r}, *words])
"""
CASE = "ag_gemm m=8 --schedule push"


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write_program(self, name, text):
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
        return str(path)

    def compare(self, *words):
        """(exit status, standard output, the JSON document)."""
        out, error = io.StringIO(), io.StringIO()
        passed = words.index("--") if "--" in words else len(words)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
            status = two_builds.main([
                *words[:passed], "--out", str(self.folder / "o"), "--json",
                str(self.folder / "j.json"), *words[passed:]])
        self.error = error.getvalue()
        return status, out.getvalue(), json.loads((self.folder / "j.json").read_text())


class Interval(unittest.TestCase):
    def test_it_is_of_order_statistics(self):
        for count, low, high in ((6, 1, 6), (8, 1, 8), (9, 2, 8), (20, 6, 15), (100, 40, 61)):
            values = list(range(count, 0, -1))
            self.assertEqual(two_builds.find_interval(values), (low, high))

    def test_it_holds_the_median_as_often_as_it_says_and_no_narrower_one_does(self):
        def probability(count, rank):
            return 1 - 2 * sum(math.comb(count, heads) for heads in range(rank)) / 2**count
        for count in range(6, 60):
            rank, _ = two_builds.find_interval(range(1, count + 1))
            self.assertGreaterEqual(probability(count, rank), 0.95)
            self.assertLess(probability(count, rank + 1), 0.95)

    def test_fewer_than_six_values_have_none(self):
        for count in range(6):
            self.assertIsNone(two_builds.find_interval([1.0] * count))


class Verdicts(Folder):
    def build(self, name, times=(100,), other=None, fails=None, plan="", sleep=0):
        return self.write_program(name, STAND_IN.format(
            python=sys.executable, folder=str(self.folder), name=name, times=times, other=other,
            fails=fails, plan=plan, sleep=sleep))

    def asked(self, verb):
        lines = map(json.loads, (self.folder / "asked").read_text().splitlines())
        return [words for words in lines if words[1] == verb]

    def test_a_slower_build_gives_status_1(self):
        status, out, document = self.compare(self.build("a", [100, 200]),
                                             self.build("b", [105, 207]), CASE)
        case = document["cases"][0]
        self.assertEqual((status, case["verdict"], case["rounds"]), (1, "slower", 20))
        self.assertEqual(case["interval"], [1.035, 1.05])
        self.assertRegex(out, rf"{CASE} +150.0 +156.0 +1.042 +1.035–1.050 +20 +slower +same bits")
        self.assertTrue(out.endswith("\n1 slower; same bits in 1 of 1 cases\n"), out)

    def test_a_faster_build_and_an_equal_one_give_status_0(self):
        for times, verdict in (([97], "faster"), ([101], "same"), ([102], "same"), ([98], "same")):
            status, out, document = self.compare(self.build("a"), self.build("b", times), CASE,
                                                 "--rounds", "6")
            self.assertEqual((status, document["cases"][0]["verdict"]), (0, verdict))
            self.assertNotIn("not shown", out)

    def test_a_wide_interval_is_not_passed_off_as_no_difference(self):
        status, out, document = self.compare(self.build("a"), self.build("b", [90, 110]), CASE,
                                             "--rounds", "6")
        self.assertEqual((status, document["cases"][0]["verdict"]), (0, "same"))
        self.assertIn(f"not shown to be within 0.98 to 1.02, which needs more rounds: {CASE}", out)

    def test_too_few_rounds_have_no_verdict(self):
        status, _, document = self.compare(self.build("a"), self.build("b", [200]), CASE,
                                           "--rounds", "5")
        self.assertEqual((status, document["cases"][0]["verdict"]), (0, "too few rounds"))

    def test_builds_take_turns_over_one_plan_of_a(self):
        _, _, document = self.compare(
            self.build("a"), self.build("b", [101, 102]), CASE, "--rounds", "4", "--seeds", "2",
            "--ranks", "3", "--iters", "2", "--backend", "cpu", "--", "--wait", "9")
        self.assertEqual(document["cases"][0]["a_us"], [100] * 4)  # without the warm-up
        self.assertEqual(document["cases"][0]["b_us"], [101, 102] * 2)
        self.assertEqual([words[0] for words in self.asked("lower")], ["a"])
        self.assertEqual(self.asked("lower")[0][2:-1], [*CASE.split(), "--mesh", "ranks=3", "-o"])
        runs = self.asked("run")
        self.assertEqual([words[0] for words in runs], list("abbaabba"))
        self.assertEqual({words[2] for words in runs}, {self.asked("lower")[0][-1]})
        self.assertEqual([words[words.index("--seed") + 1] for words in runs], list("00110011"))
        self.assertEqual(["--output" in words for words in runs], [True] * 4 + [False] * 4)
        for words in runs:
            self.assertIn("--backend cpu --iters 5 ", shlex.join(words))
            self.assertIn("--wait 9", shlex.join(words))

    def test_a_case_may_have_a_mesh_of_its_own(self):
        self.compare(self.build("a"), self.build("b"), "gemm m=8 --mesh x=2,y=2", "--rounds", "1")
        self.assertNotIn("ranks=2", self.asked("lower")[0])

    def test_each_build_may_lower_its_own_plan(self):
        _, out, document = self.compare(self.build("a"), self.build("b", plan="other"), CASE,
                                        "--own-plans", "--rounds", "1")
        plans = {words[0]: words[-1] for words in self.asked("lower")}
        self.assertEqual({words[0]: words[2] for words in self.asked("run")}, plans)
        self.assertEqual([pathlib.Path(plans[name]).name for name in "ab"], ["A.plan", "B.plan"])
        self.assertFalse(document["cases"][0]["same_plan"])
        self.assertIn(f"other plans: {CASE}: the builds lower different plans", out)

    def test_a_plan_file_is_executed_as_it_is(self):
        plan = self.folder / "my.plan"
        plan.write_text("  buffer c : bf16[4] out\n")
        self.compare(self.build("a"), self.build("b"), str(plan), "--rounds", "1")
        self.assertEqual(self.asked("lower"), [])
        self.assertEqual([words[2] for words in self.asked("run")], [str(plan)] * 2)

    def test_other_bits_are_reported_and_kept(self):
        words = (self.build("a"), self.build("b", other=["lse", 1]), CASE, "--rounds", "6")
        status, out, document = self.compare(*words)
        self.assertEqual((status, document["cases"][0]["other_bits"]), (0, ["lse (seed 1)"]))
        self.assertIn("same  ", out)
        self.assertIn("other bits: lse (seed 1)", out)
        self.assertIn("1 same; same bits in 0 of 1 cases", out)
        kept = {path.name: path.read_text() for path in (self.folder / "o").rglob("*.npy")}
        self.assertEqual(kept, {"A_lse.seed1.npy": "lse1", "B_lse.seed1.npy": "other"})
        self.assertEqual(self.compare(*words, "--same-bits")[0], 1)

    def test_a_plan_that_b_refuses_has_status_3_and_the_next_case_goes_on(self):
        slow = self.build("b", [200], fails=("run", "error[V207]: `c` is of another type"))
        status, out, document = self.compare(self.build("a"), slow, CASE, "moe")
        self.assertEqual((status, len(document["cases"])), (3, 2))
        self.assertRegex(
            out, f"failed: {CASE}: B ended with exit status 1 after `{slow} run .*A.plan --backend "
                 r".*`: error\[V207\]: `c` is of another type; with --own-plans each build lowers "
                 "its own plan\n")
        self.assertIn("2 failed; same bits in 0 of 2 cases", out)

    def test_a_binary_that_fails_otherwise_is_named_with_its_command(self):
        for fails, sentence in (
                (("lower", "no space"),
                 "A ended with exit status 1 after `{a} lower .*`: no space\n"),
                (("times", ""), "A left no times or outputs after `{a} run .*`\n")):
            a = self.build("a", fails=fails)
            status, out, _ = self.compare(a, self.build("b"), CASE)
            self.assertEqual(status, 3)
            self.assertRegex(out, sentence.format(a=a))
        a = self.write_program("a", "no program")
        self.assertRegex(self.compare(a, self.build("b"), CASE)[1],
                         f"A failed, Exec format error: `{a} lower .*`\n")

    def test_the_budget_is_shared_and_every_case_has_a_round(self):
        status, _, document = self.compare(self.build("a", sleep=0.1), self.build("b"), CASE, "moe",
                                           "--budget", "0.3")
        self.assertEqual(status, 0)
        for case in document["cases"]:
            self.assertLess(case["rounds"], 20)
            self.assertGreaterEqual(case["rounds"], 1)
        self.assertIn(f"{CASE}: its time is over after ", self.error)
        _, _, document = self.compare(self.build("a"), self.build("b"), CASE, "moe",
                                      "--budget", "0")
        self.assertEqual([case["rounds"] for case in document["cases"]], [1, 1])

    def test_words_are_checked(self):
        a = self.build("a")
        for words, sentence in (
                ([a], "the following arguments are required: B"),
                ([a, str(self.folder / "none")], f"`{self.folder}/none` is not a program"),
                ([a, a, "gemm_xy"], "no family `gemm_xy`; there are ag_gemm, gemm_rs, attention, "
                                    "decode, moe, and any other case is the words of "
                                    "`harpe lower` in quotes"),
                ([a, a, "none.plan"], "there is no plan file `none.plan`"),
                ([a, a, "--rounds", "0"],
                 "--ranks, --rounds, --iters and --seeds take counts from 1 on")):
            error = io.StringIO()
            with self.assertRaises(SystemExit) as left, contextlib.redirect_stderr(error):
                two_builds.main(words)
            self.assertEqual(left.exception.code, 2)
            self.assertTrue(error.getvalue().endswith(f"error: {sentence}\n"), error.getvalue())


@unittest.skipUnless(HARPE, "needs the binary")
class OnCpuRanks(Folder):
    WORDS = ("--backend", "cpu", "--rounds", "3", "--iters", "2")

    def test_a_build_beside_itself_gives_the_same_bits(self):
        status, out, document = self.compare(HARPE, HARPE, *self.WORDS)
        self.assertEqual(status, 0, out + self.error)
        cases = document["cases"]
        self.assertEqual([case["case"].split()[0] for case in cases],
                         ["ag_gemm", "gemm_rs", "attention", "decode", "moe"])
        self.assertEqual([case["seeds"] for case in cases], [[0, 1, 2]] * 5)
        self.assertEqual(out.count("same bits\n"), 5)
        self.assertIn("same bits in 5 of 5 cases", out)
        self.assertEqual(sorted((self.folder / "o").rglob("*.npy")), [])

    def test_a_build_that_computes_something_else_gives_other_bits(self):
        other = self.write_program("other", OTHER_SEED.format(
            python=sys.executable, harpe=os.path.abspath(HARPE)))
        status, out, _ = self.compare(HARPE, other, "attention", "--same-bits", *self.WORDS)
        self.assertEqual(status, 1)
        self.assertIn("other bits: o (seed 0), lse (seed 0), o (seed 1)", out)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
