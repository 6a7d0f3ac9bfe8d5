"""Examples of PyTorch, as their texts say."""
import os
import re
import subprocess
import sys
import tempfile
import unittest

import ops_ranks  # noqa: F401, first: it ends the file where there is no torch


def run(name, ranks, *options):
    with tempfile.TemporaryDirectory() as folder:
        return subprocess.run(
            [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node",
             str(ranks), "-m", f"harpe.examples.{name}", "--device", "cpu", *options],
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


if __name__ == "__main__":
    unittest.main()
