"""The wheel: built as pip builds it, inspected, and used without the rest of the tree.

    wheel_test.py           for the Python that runs this
    wheel_test.py --abi3    for 3.12 and newer, with an installed one that has its headers

Packages come from virtual environments of tools/python_environment, so nothing is fetched twice.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = 77
# Excludes the package of the tree.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

GROUP = """
import threading
import harpe, numpy

plan = harpe.plan("ag_gemm", mesh="tp=2", schedule="ring", dtype="f32", cache=None, m=16, n=8, k=8)
whole = harpe.draw_inputs(plan)
parts = [None, None]

def work(exchange):
    group = harpe.Group(exchange=exchange)
    ag_gemm = harpe.compile(plan, group=group)
    own = {name: plan.shard(name, array, group.rank) for name, array in whole.items()}
    parts[group.rank] = ag_gemm(**own)["c"]

threads = [threading.Thread(target=work, args=(each,)) for each in harpe.local_exchanges(2)]
for each in threads:
    each.start()
for each in threads:
    each.join()
print("equal:", numpy.array_equal(plan.unshard("c", parts), harpe.run(plan, whole)["c"]))
"""

# With a GPU, a driver and a compiler it makes a group; otherwise the error names what is missing.
GPU = """
import harpe
loaded = open("/proc/self/maps").read()
print("loaded:", [name for name in ("libcuda", "libnvrtc", "libcublas") if name in loaded])
try:
    print("code:", harpe.Group(exchange=harpe.local_exchanges(1)[0], gpu=0))
except harpe.Error as error:
    print("code:", error.code)
"""


def run(*words, cache=None, **options):
    environment = {**ENVIRONMENT, "XDG_CACHE_HOME": cache} if cache else ENVIRONMENT
    return subprocess.run([str(word) for word in words], check=True, text=True, env=environment,
                          stdout=subprocess.PIPE, **options).stdout


def find_newer_python():
    """A Python with headers and support for nanobind's limited API; or None."""
    ask = "import os, sysconfig; print(os.path.exists(sysconfig.get_path('include') + '/Python.h'))"
    for version in range(12, 20):
        python = shutil.which(f"python3.{version}")
        if python is None:
            continue
        answer = subprocess.run([python, "-c", ask], text=True, check=False,
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        if answer.stdout.strip() == "True":
            return python
    return None


def find_abi3_environment():
    """The interpreter of an environment for the limited-API wheel; skips without one."""
    python = find_newer_python()
    if python is None:
        print("skipped: no Python 3.12 or newer with its headers")
        sys.exit(SKIPPED)
    folder = ROOT / "build/environment-abi3"
    made = subprocess.run([ROOT / "tools/python_environment", folder,
                           ROOT / "packaging/python.txt", python], check=False)
    if made.returncode:
        print("skipped: its environment cannot be made")
        sys.exit(SKIPPED)
    return folder / "bin/python"


class Wheel(unittest.TestCase):
    python = pathlib.Path(sys.executable)
    ending = f"cp{sys.version_info.major}{sys.version_info.minor}-linux_x86_64.whl"

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        place = pathlib.Path(cls.folder.name)
        run(cls.python, "-m", "pip", "wheel", "--quiet", "--no-build-isolation", "--no-deps",
            "--wheel-dir", place, ROOT)
        [cls.wheel] = place.glob("*.whl")
        run(cls.python, "-m", "venv", "--without-pip", place / "fresh")
        cls.fresh = place / "fresh/bin/python"
        run(cls.python, "-m", "pip", "--python", cls.fresh, "install", "--quiet", "--no-deps",
            "--no-index", cls.wheel)
        purelib = "import sysconfig; print(sysconfig.get_path('purelib'))"
        packages = pathlib.Path(run(cls.fresh, "-c", purelib).strip())
        (packages / "numpy.pth").write_text(run(cls.python, "-c", purelib))

    def use(self, *words):
        """Runs the fresh Python in an empty folder."""
        with tempfile.TemporaryDirectory() as folder:
            return run(self.fresh, *words, cwd=folder, cache=folder)

    def test_holds_what_the_guide_states(self):
        self.assertTrue(self.wheel.name.endswith(self.ending), self.wheel.name)
        checked = subprocess.run([ROOT / "tools/check_wheel.py", self.wheel], check=False,
                                 text=True, stdout=subprocess.PIPE)
        print(checked.stdout, end="")
        self.assertEqual(checked.returncode, 0, checked.stdout)

    def test_plans(self):
        self.assertIn("predicted by a simulation", self.use("-m", "harpe.examples.plan_only"))

    def test_ranks_are_threads(self):
        self.assertEqual(self.use("-c", GROUP), "equal: True\n")

    def test_has_the_back_end_of_gpus_and_opens_no_library_before_it_is_used(self):
        loaded, code = self.use("-c", GPU).splitlines()
        self.assertEqual(loaded, "loaded: []")
        self.assertRegex(code, "^code: (G00[2-7]$|<harpe.Group)")


if __name__ == "__main__":
    if "--abi3" in sys.argv:
        sys.argv.remove("--abi3")
        Wheel.python = find_abi3_environment()
        Wheel.ending = "cp312-abi3-linux_x86_64.whl"
    unittest.main()
