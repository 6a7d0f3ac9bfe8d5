"""Examples of PyTorch do what their texts say."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import ops_ranks  # noqa: F401, first: it ends the file if torch is missing


BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"


def run(name, ranks, *options):
    return start(ranks, "-m", f"harpe.examples.{name}", *options)


def start(ranks, *program):
    with tempfile.TemporaryDirectory() as folder:
        return subprocess.run(
            [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node",
             str(ranks), *program, "--device", "cpu"],
            env={**os.environ, "XDG_CACHE_HOME": folder, "OMP_NUM_THREADS": "1"}, cwd=folder,
            check=True, stdout=subprocess.PIPE, text=True).stdout


class Examples(unittest.TestCase):
    def test_block(self):
        for ranks in 2, 4:
            text = run("block", ranks)
            losses = re.search(r"^loss ([\d.]+) on \d ranks, ([\d.]+) on one$", text, re.M)
            self.assertEqual(losses[1], losses[2])
            self.assertEqual(len(re.findall(r"^gradient of ", text, re.M)), 10)
            self.assertIn("ag_linears of [2, 64, 64]", text)
            self.assertNotIn("by PyTorch", text)

    def test_long_context(self):
        for ranks in 2, 4:
            text = run("long_context", ranks, "--steps", "3")
            self.assertEqual(len(re.findall(r"^step \d: loss ", text, re.M)), 3)
            self.assertIn("once more: the same bits", text)

    def test_generate(self):
        for ranks in 2, 4:
            text = run("generate", ranks)
            self.assertIn("the same first 32 of 32 tokens; once more: the same", text)

    def test_what_else_there_is_computes_the_same(self):
        for name, what in (("block", "block of tiny, 64 tokens"),
                           ("decode", "decoder layer of tiny, 8 sequences of 64 positions")):
            with tempfile.TemporaryDirectory() as folder:
                out = pathlib.Path(folder) / "ways.json"
                text = start(2, str(BENCH / f"pytorch_{name}.py"), "--rounds", "2", "--iters", "1",
                             "--json", str(out))
                self.assertIn(what, text)
                ways = json.loads(out.read_text())["ways"]
            self.assertEqual(list(ways), ["harpe", "nccl"])
            self.assertEqual(ways["harpe"]["over_harpe"], 1)
            self.assertGreater(ways["nccl"]["ms"], 0)


if __name__ == "__main__":
    unittest.main()
