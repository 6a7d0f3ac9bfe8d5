"""Arrays in memory that other ranks can access; the ranks are threads."""
import unittest

import numpy as np
from group_test import cut, make_plan, run_ranks

import harpe


class Heap(unittest.TestCase):
    def test_arrays_in_the_heap_are_used_where_they_are(self):
        plan = make_plan()
        inputs = harpe.draw_inputs(plan)
        wanted = harpe.run(plan, inputs)["c"].tobytes()
        more = harpe.draw_inputs(plan, seed=5)
        others = harpe.run(plan, more)["c"].tobytes()

        def body(group):
            exe = harpe.compile(plan, group=group)
            heap = {name: group.empty(each.shape, each.dtype) for name, each in exe.tensors.items()}
            for round in range(3):
                for given, expected in (inputs, wanted), (more, others):
                    for name, own in cut(plan, given, group.rank).items():
                        heap[name][...] = own
                    heap["c"][...] = np.nan
                    exe(a=heap["a"], b=heap["b"], out={"c": heap["c"]})
                    self.assertEqual(heap["c"].tobytes(), expected)
                # Only one rank's array is in the heap, and at another place.
                place = group.empty((8, 6), "f32") if group.rank == round % 2 else None
                found = exe(cut(plan, inputs, group.rank),
                            out=None if place is None else {"c": place})["c"]
                self.assertEqual(found.tobytes(), wanted)
                if round == 0:
                    copied = exe.copied_bytes
                    self.assertEqual(copied, 0 if group.rank == 0 else found.nbytes)
            held = group.status.tensor_bytes
            self.assertGreaterEqual(held, sum(each.nbytes for each in heap.values()))
            with self.assertRaisesRegex(harpe.Refused, f"{held} of its 16384 bytes are taken"):
                group.empty((1 << 20,), np.float32)
            kept = heap.pop("a")[2:]
            heap = place = found = None
            self.assertEqual(group.status.tensor_bytes, 256)
            del kept
            self.assertEqual(group.status.tensor_bytes, 0)
            return group.empty((16384,), np.uint8)  # outlives its group

        for rank, found in enumerate(run_ranks(2, body, tensor_bytes=16384)):
            found[...] = rank
            self.assertEqual(found.sum(), 16384 * rank)


if __name__ == "__main__":
    unittest.main()
