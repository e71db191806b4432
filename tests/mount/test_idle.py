#!/usr/bin/env python3
"""What a mount costs while nobody reads it."""
import os
import time
import unittest

import mounting

setUpModule = mounting.require_fuse


def private_kib(pid):
    """Memory that the process shares with no other."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        return sum(int(line.split()[1]) for line in file if line.startswith("Private_"))


def switches(pid):
    """How often each thread of the process began to run."""
    counts = {}
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/status", encoding="ascii") as file:
            counts[thread] = [int(line.split()[1]) for line in file if line.startswith("voluntary_ctxt_switches")]
    return counts


class TestIdle(mounting.MountTestCase):
    def setUp(self):
        super().setUp()
        self.mount_in_background(mounting.sample(), self.mountpoint)
        os.listdir(self.mountpoint)
        self.pids = self.processes_of(self.mountpoint)

    @unittest.skipIf(mounting.is_sanitized(), "sanitizers take memory")
    def test_memory(self):
        """Of both processes together, with a small model."""
        self.assertLess(sum(map(private_kib, self.pids)), 2048)

    def test_no_wake_ups(self):
        def settled():
            before = [switches(pid) for pid in self.pids]
            time.sleep(1)
            return before == [switches(pid) for pid in self.pids]

        # What the mount itself caused may take a moment on a busy machine.
        mounting.wait_until(settled, "the processes of an idle mount keep waking up")


if __name__ == "__main__":
    unittest.main()
