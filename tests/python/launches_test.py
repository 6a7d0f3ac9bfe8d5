"""Launches that say least about their arrays, and programs that none executes."""
import unittest

import numpy as np
from group_test import run_ranks

import harpe


class Launches(unittest.TestCase):
    def test_takes_addresses_of_dense_arrays(self):
        plan = harpe.plan("gemm", mesh="x=1", m=8, n=8, k=8, dtype="f32", cache=None)
        inputs = harpe.draw_inputs(plan, 4)
        wanted = harpe.run(plan, inputs)["c"]

        def body(group):
            exe = harpe.compile(plan, group=group)
            given = [*inputs.values(), np.zeros_like(wanted)]
            self.assertEqual([*exe.tensors], [*inputs, "c"])
            addresses = [each.ctypes.data for each in given]
            exe.launch_at(addresses, 0)
            self.assertEqual(given[-1].tobytes(), wanted.tobytes())
            self.assertEqual(exe.launches, 1)
            with self.assertRaisesRegex(ValueError, "an address for each tensor"):
                exe.launch_at(addresses[:-1], 0)
            with self.assertRaisesRegex(harpe.Refused, "I311"):
                exe.launch_at([*addresses[:-1], 0], 0)
            with self.assertRaises((TypeError, RuntimeError)):
                exe.launch_at([*addresses[:-1], "c"], 0)

        run_ranks(1, body)


if __name__ == "__main__":
    unittest.main()
