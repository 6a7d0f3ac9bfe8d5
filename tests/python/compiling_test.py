"""Ranks on a GPU whose driver does nothing: which compiler they use, and what it compiles."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

# Prints, per rank, its progress reports and then its executable.
COMPILING = """
import json, sys, threading
import harpe

sizes = dict(m=512, n=512, k=512)
plan = harpe.plan("ag_gemm", mesh="tp=2", schedule="ring", machine="", cache=None, **sizes)
reports = [[], []]

def work(exchange):
    reported = reports[exchange.rank]
    group = harpe.Group(exchange=exchange, gpu=0, progress=lambda *report: reported.append(report))
    reported.append(repr(harpe.compile(plan, group=group)))

threads = [threading.Thread(target=work, args=(each,)) for each in harpe.local_exchanges(2)]
for each in threads:
    each.start()
for each in threads:
    each.join()
json.dump(reports, sys.stdout)
"""


@unittest.skipUnless("HARPE_FAKE_CUDA" in os.environ, "built without the back end of GPUs")
class Compiling(unittest.TestCase):
    def test_kernels_are_compiled_once_by_the_compiler_beside_the_packages(self):
        with tempfile.TemporaryDirectory() as folder:
            fakes, place = pathlib.Path(os.environ["HARPE_FAKE_CUDA"]), pathlib.Path(folder)
            libraries = place / "packages/nvidia/cu13/lib"
            libraries.mkdir(parents=True)
            (place / "driver").mkdir()
            shutil.copy(fakes / "libcuda.so.1", place / "driver")
            shutil.copy(fakes / "libnvrtc.so.13", libraries)
            path = f"{place / 'packages'}:{os.environ['PYTHONPATH']}"
            environment = {**os.environ, "LD_LIBRARY_PATH": str(place / "driver"),
                           "PYTHONPATH": path, "XDG_CACHE_HOME": str(place / "cache")}

            def compile_all():
                done = subprocess.run([sys.executable, "-c", COMPILING], env=environment,
                                      check=True, stdout=subprocess.PIPE)
                return json.loads(done.stdout)

            compiled = set()  # by the first rank to need it, or by both
            for rank, (*reports, executable) in enumerate(compile_all()):
                self.assertIn(f"rank {rank} of 2", executable)
                compiled.update(stage for stage, before, of in reports)
                for done, (stage, before, of) in enumerate(reports):
                    self.assertRegex(stage, r"^compiling \w+$")
                    self.assertEqual((before, of), (done, 0))
            kept = list((place / "cache/harpe/kernels").glob("*.kernel"))
            self.assertGreater(len(kept), 2)
            self.assertEqual(len(kept), len(compiled))
            for reports in compile_all():
                self.assertEqual(len(reports), 1, "all kernels are in the cache")


if __name__ == "__main__":
    unittest.main()
