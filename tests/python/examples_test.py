"""The examples of the package, and the code blocks of docs/python.md, run."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/python.md"


def run(*words, **options):
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "XDG_CACHE_HOME": folder}
        return subprocess.run([sys.executable, *words], cwd=folder, env=environment, check=True,
                              stdout=subprocess.PIPE, text=True, **options).stdout


class Examples(unittest.TestCase):
    def test_plan_only(self):
        text = run("-m", "harpe.examples.plan_only", "--tokens", "2048")
        self.assertIn("predicted by a simulation", text)
        rows = re.findall(r"^.{22} +([\d.]+) .*(?:ag_gemm|gemm_rs): ", text, re.M)
        self.assertEqual(len(rows), 4, text)
        total = float(re.search(r"predicted ([\d.]+) ms", text).group(1))
        self.assertAlmostEqual(total, 80 * sum(map(float, rows)) / 1000, delta=0.1)

    def test_own_operator(self):
        text = run("-m", "harpe.examples.own_operator")
        self.assertIn("largest error", text)


class Page(unittest.TestCase):
    def test_blocks_run(self):
        text = PAGE.read_text(encoding="utf-8")
        blocks = re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)
        self.assertTrue(blocks)
        run("-c", "".join(blocks))


if __name__ == "__main__":
    unittest.main()
