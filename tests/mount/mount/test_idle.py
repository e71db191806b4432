#!/usr/bin/env python3
"""What a mount costs while nobody reads it."""
import os
import unittest

import mounting

setUpModule = mounting.require_fuse


def private_kib(pid):
    """Memory that the process shares with no other."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        return sum(int(line.split()[1]) for line in file if line.startswith("Private_"))


# Numbers of system calls: {call: the argument that is a timeout, or None}
CALLS = {"x86_64": {0: None, 7: 2, 202: 3, 271: 2}, "aarch64": {63: None, 73: 2, 98: 3}}  # read, poll, futex, ppoll


def waits_for_ever(pid, thread):
    """Return True if a thread sleeps in a read, or in another call without a timeout."""
    with open(f"/proc/{pid}/task/{thread}/syscall", encoding="ascii") as file:
        fields = file.read().split()
    if fields[0] in ("running", "-1"):
        return False
    calls, number = CALLS[os.uname().machine], int(fields[0])
    if number not in calls:
        return False
    timeout = calls[number]
    return timeout is None or int(fields[1 + timeout], 16) in (0, 0xffffffff, 0xffffffffffffffff)


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

    @unittest.skipIf(os.uname().machine not in CALLS, "numbers of system calls are unknown")
    def test_no_wake_ups(self):
        """What the mount itself caused may take a moment; then no thread has a reason to wake up."""
        mounting.wait_until(lambda: all(waits_for_ever(pid, thread) for pid in self.pids
                                        for thread in os.listdir(f"/proc/{pid}/task")),
                            "the processes of an idle mount keep waking up")
