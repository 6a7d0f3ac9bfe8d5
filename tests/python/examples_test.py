"""The package's examples, the notebooks, and the code blocks of docs/python.md all run."""
import ast
import json
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

    def test_own_schedule(self):
        text = run("-m", "harpe.examples.own_schedule")
        times = dict(re.findall(r"^(\w+) +([\d.]+) µs", text, re.M))
        self.assertLess(float(times["rings"]), float(times["ring"]))
        self.assertIn("error[S422]", text)
        self.assertIn("run on 8 CPU ranks", text)


def show_last(cell):
    """The cell, changed to print its last expression as a notebook shows it."""
    *_, last = tree = ast.parse(cell).body
    if not isinstance(last, ast.Expr):
        return cell
    shown = ast.unparse(ast.fix_missing_locations(
        ast.Module([*tree[:-1], ast.Assign([ast.Name("_")], last.value)], [])))
    return shown + "\nprint(getattr(_, '_repr_html_', _.__repr__)())\n"


class Notebooks(unittest.TestCase):
    def test_run(self):
        notebooks = list((ROOT / "examples").glob("*.ipynb"))
        self.assertTrue(notebooks)
        for path in notebooks:
            with self.subTest(path.name):
                notebook = json.loads(path.read_text(encoding="utf-8"))
                self.assertEqual(notebook["nbformat"], 4)
                cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
                # Notebooks are stored without outputs.
                for cell in cells:
                    self.assertEqual((cell["outputs"], cell["execution_count"]), ([], None))
                sources = ["".join(cell["source"]) for cell in cells]
                text = run("-c", "\n\n".join(map(show_last, sources)))
                self.assertIn("<iframe", text)
                self.assertIn("<td>", text)


class Page(unittest.TestCase):
    def test_blocks_run(self):
        text = PAGE.read_text(encoding="utf-8")
        blocks = re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)
        self.assertTrue(blocks)
        run("-c", "".join(blocks))


if __name__ == "__main__":
    unittest.main()
