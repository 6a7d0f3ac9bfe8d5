"""Errors when a rank is lost, late, or calls something else; and whether the group continues."""
import os
import time
import unittest

from ops_ranks import Pool  # first: it ends the file if torch is missing

import torch
import torch.distributed as dist

import harpe
import harpe.ops as hp

SIZES = (4, 3), (6, 3)


def make_group(timeout):
    group = dist.new_group(list(range(dist.get_world_size())))
    hp.init(group, timeout=timeout)
    return group


def call(name, group):
    ranks = group.size()
    x, w = torch.ones(4 * ranks, 3), torch.ones(6, 3)
    return getattr(hp, name)(x, w, group=group)


def call_unlike():
    """Rank 0 calls one new operator, the others a different one; then all call the same one."""
    group = make_group(20)
    try:
        call("linear_rs" if dist.get_rank() else "ag_linear", group)
    except harpe.Refused as refused:
        assert call("ag_linear", group).shape == (4 * group.size()**2, 6)
        return refused
    return None


def call_known_unlike():
    """The same with operators that already have plans; a reset makes the group usable again."""
    group = make_group(20)
    before = call("ag_linear", group), call("linear_rs", group)
    try:
        call("linear_rs" if dist.get_rank() else "ag_linear", group)
    except harpe.Error as error:
        try:
            call("ag_linear", group)
        except harpe.Error:  # until the reset
            pass
        else:
            raise AssertionError("the group goes on without a reset")
        dist.barrier()
        hp.reset(group)
        after = call("ag_linear", group), call("linear_rs", group)
        assert all(map(torch.equal, before, after))
        hp.check(group)
        return error
    return None


def wait_for_nobody():
    """Only rank 0 calls: it waits until its limit."""
    group = make_group(1)
    call("ag_linear", group)
    dist.barrier()
    start = time.monotonic()
    if dist.get_rank() == 0:
        try:
            call("ag_linear", group)
        except harpe.Fault as fault:
            return fault, time.monotonic() - start
    return None


def call_until_lost():
    """Rank 1 exits; the others get a fault that names it, long before the time limit."""
    group = make_group(200)
    call("ag_linear", group)
    if dist.get_rank() == 1:
        os._exit(7)
    start = time.monotonic()
    try:
        while True:
            call("ag_linear", group)
    except harpe.Fault as fault:
        return fault, time.monotonic() - start


class Faults(unittest.TestCase):
    RANKS = 2

    def setUp(self):
        self.pool = Pool(self.RANKS)
        self.addCleanup(self.pool.close)

    def test_different_operators(self):
        for refused in self.pool.call(call_unlike):
            self.assertEqual(refused.code, "N015")
            self.assertIn("rank 0 calls ag_linear of", str(refused))
            self.assertIn("rank 1 calls linear_rs of", str(refused))

    def test_different_operators_that_have_plans(self):
        for error in self.pool.call(call_known_unlike):
            text = "\n".join([str(error), *getattr(error, "__notes__", ())])
            self.assertIn("ag_linear", text)
            self.assertIn("linear_rs", text)

    def test_a_late_rank(self):
        (fault, seconds), *_ = self.pool.call(wait_for_nobody)
        self.assertIsInstance(fault, harpe.Fault)
        self.assertLess(seconds, 10)
        self.assertIn("ag_linear", "\n".join([str(fault), *fault.__notes__]))

    def test_a_lost_rank(self):
        kept = [rank for rank in range(self.RANKS) if rank != 1]
        self.pool.send(call_until_lost)
        for fault, seconds in self.pool.receive(kept):
            self.assertIn("rank 1", str(fault))
            self.assertLess(seconds, 30)


class FaultsOfFour(Faults):
    RANKS = 4
    test_a_late_rank = test_different_operators_that_have_plans = None  # two ranks suffice


if __name__ == "__main__":
    unittest.main()
