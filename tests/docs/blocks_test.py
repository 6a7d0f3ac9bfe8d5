"""The code blocks of README.md run: blocks_test.py HARPE

  ```sh          runs unchanged; all blocks share one new folder and have `harpe` in the PATH
  ```sh gpu      needs GPUs: here none is visible, so each command runs or reports what is
                 missing (G0xx), but never refuses the request itself
  ```sh install  commands of `x`, which `./x help` must list
  ```sh pytorch  installs PyTorch; tests/python/ops_modules_test.py runs its example

Any other kind of block is an error in the page. A picture that a block writes must equal the
picture on the page.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "README.md"
LINES = 155
BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.M | re.S)
PICTURE = re.compile(r"!\[[^\]]*\]\(([^)]+)\)")
KINDS = {"sh", "sh gpu", "sh install", "sh pytorch"}
harpe = None


def blocks(kind):
    return [text for info, text in BLOCK.findall(PAGE.read_text(encoding="utf-8")) if info == kind]


class Readme(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        (self.folder / "home").mkdir()
        (self.folder / "bin").mkdir()
        (self.folder / "bin/harpe").symlink_to(harpe)
        (self.folder / "page").mkdir()

    def shell(self, text):
        path = f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
        environment = {"PATH": path, "HOME": str(self.folder / "home"), "CUDA_VISIBLE_DEVICES": ""}
        return subprocess.run(["sh", "-eu", "-c", text], cwd=self.folder / "page", env=environment,
                              capture_output=True, text=True, check=False)

    def test_it_is_short_and_has_only_blocks_that_are_tested(self):
        text = PAGE.read_text(encoding="utf-8")
        self.assertLessEqual(len(text.splitlines()), LINES)
        self.assertEqual({info for info, _ in BLOCK.findall(text)}, KINDS)

    def test_blocks_run_and_make_the_pictures(self):
        for text in blocks("sh"):
            done = self.shell(text)
            self.assertEqual(done.returncode, 0, f"{text}\n{done.stdout}{done.stderr}")
        pictures = [ROOT / name for name in PICTURE.findall(PAGE.read_text(encoding="utf-8"))]
        self.assertTrue(pictures)
        for picture in pictures:
            made = self.folder / "page" / picture.name
            self.assertTrue(made.is_file(), f"no block writes {picture.name}")
            self.assertEqual(made.read_bytes(), picture.read_bytes(), picture.name)

    def test_commands_for_gpus_lack_nothing_but_gpus(self):
        for command in "".join(blocks("sh gpu")).splitlines():
            done = self.shell(command)
            missing = re.match(r"error\[G0\d\d\]", done.stderr)
            self.assertTrue(done.returncode == 0 or missing, f"{command}\n{done.stderr}")

    def test_x_knows_the_commands_for_installing(self):
        known = subprocess.run([ROOT / "x", "help"], capture_output=True, text=True,
                               check=True).stdout
        used = re.findall(r"\./x \w+(?: --\w+)?", "".join(blocks("sh install")))
        self.assertTrue(used)
        for command in used:
            self.assertIn(command, known)


if __name__ == "__main__":
    harpe = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
