#!/usr/bin/env python3
"""ggufs --status: mounts that serve, hang, have died, or are none."""

import ctypes
import json
import os
import resource
import signal
import subprocess
import unittest

import mounting
from gguf_file import F32, GgufFile

MARKS = ("smoke",)

setUpModule = mounting.require_fuse

EX_OK, EX_NOINPUT, EX_UNAVAILABLE, EX_IOERR = 0, 66, 69, 74


class TestStatus(mounting.MountTestCase):
    def setUp(self):
        super().setUp()
        built = GgufFile().tensor(b"t", [4], F32, b"0123456789abcdef")
        self.model = built.write(self.path("model.gguf"))

    def status(self, status, *mountpoints, **more):
        result = self.run_ggufs("--status", "--json", *mountpoints, **more)
        self.assert_status(status, result)
        return [json.loads(line) for line in result.out.splitlines()], result.err

    def read(self):
        with open(os.path.join(self.mountpoint, "tensors/t/raw"), "rb") as file:
            self.assertEqual(b"0123456789abcdef", file.read())

    def test_serving(self):
        self.mount_in_background(self.model, self.mountpoint)
        self.read()
        (mount,), err = self.status(EX_OK, self.mountpoint)
        self.assertEqual("", err)
        self.assertEqual((self.mountpoint, self.model, "serving"),
                         (mount["mountpoint"], mount["source"], mount["state"]))
        self.assertEqual(self.processes_of(self.mountpoint)[1], mount["pid"])
        self.assertEqual((16, 0, 0), (mount["read_bytes"], mount["read_failures"], mount["timeout_seconds"]))
        self.assertGreater(mount["requests"], 3)
        self.assertLess(mount["uptime_seconds"], mounting.DEADLINE)
        version = self.run_ggufs("-V").out.splitlines()[0]
        self.assertEqual(version, f"ggufs {mount['version']}")

    def test_all(self):
        other = self.new_mountpoint("other")
        for mountpoint in (self.mountpoint, other):
            self.mount_in_background(self.model, mountpoint)
        result = self.run_ggufs("--status")  # other tests may mount meanwhile
        for mountpoint in (self.mountpoint, other):
            line, = (line for line in result.out.splitlines() if f": {mountpoint}: " in line)
            self.assertRegex(line, rf"^serving: {mountpoint}: {self.model}, version [\d.]+, pid \d+, uptime_seconds ")

    def test_names_of_a_mount(self):
        self.mount_in_background(self.model, self.mountpoint)
        os.symlink("mnt", self.path("link"))
        for name in ("mnt", "./mnt/", "link", self.mountpoint):
            (mount,), _ = self.status(EX_OK, name, cwd=self.folder)
            self.assertEqual((self.mountpoint, "serving"), (mount["mountpoint"], mount["state"]), name)

    def test_failures(self):
        self.mount_in_background(self.model, self.mountpoint)
        os.truncate(self.model, 8)
        with self.assertRaises(OSError):
            self.read()
        (mount,), _ = self.status(EX_OK, self.mountpoint)
        self.assertGreaterEqual(mount["read_failures"], 1)

    def test_no_answer(self):
        """A daemon that does not answer is reported in time, and so are all others."""
        other = self.new_mountpoint("other")
        for mountpoint in (self.mountpoint, other):
            self.mount_in_background(self.model, mountpoint)
        _, server = self.processes_of(self.mountpoint)
        os.kill(server, signal.SIGSTOP)
        try:
            mounts, err = self.status(EX_UNAVAILABLE, self.mountpoint, other)
            piped = subprocess.run(["sh", "-c", '"$0" --status "$1" | tail -1', mounting.BINARY, self.mountpoint],
                                   capture_output=True, text=True, timeout=mounting.DEADLINE, check=False)
        finally:
            os.kill(server, signal.SIGCONT)
        self.assertEqual(["does not answer", "serving"], [mount["state"] for mount in mounts])
        self.assertIn(f"fusermount3 -uz {self.mountpoint}", err)
        self.assertNotIn(other, err)
        self.assertEqual(f"does not answer: {self.mountpoint}: {self.model}\n", piped.stdout)

    def test_answer_that_never_comes(self):
        """The child that asks cannot be killed while a server has its request, but nobody waits for it."""
        libc = ctypes.CDLL(None, use_errno=True)
        if os.geteuid() != 0:
            self.skipTest("only root can mount without a server")
        device = os.open("/dev/fuse", os.O_RDWR)
        options = f"fd={device},rootmode=40000,user_id=0,group_id=0".encode()
        self.assertEqual(0, libc.mount(b"silent", os.fsencode(self.mountpoint), b"fuse.ggufs", 0, options))
        try:
            os.read(device, 1 << 20)  # INIT, which is never answered
            (mount,), _ = self.status(EX_UNAVAILABLE, self.mountpoint)
        finally:
            os.close(device)
        self.assertEqual("does not answer", mount["state"])

    def test_dead(self):
        self.mount_in_background(self.model, self.mountpoint)
        self.kill_daemon(self.mountpoint)
        (mount,), err = self.status(EX_UNAVAILABLE, self.mountpoint)
        self.assertEqual("dead", mount["state"])
        self.assertIn(f"fusermount3 -u {self.mountpoint}", err)

    def test_none(self):
        mounts, err = self.status(EX_NOINPUT, self.mountpoint, self.path("missing"))
        self.assertEqual([], mounts)
        self.assertEqual(2, err.count("no mount of ggufs is here"))

    @unittest.skipIf(mounting.is_sanitized(), "sanitizers open files of their own")
    def test_few_open_files(self):
        """The limit of open files does not limit the number of mounts."""
        mountpoints = [self.new_mountpoint(f"mnt{i}") for i in range(6)]
        for mountpoint in mountpoints:
            self.mount_in_background(self.model, mountpoint)
        mounts, err = self.status(EX_OK, *mountpoints, preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_NOFILE, (6, 6)))
        self.assertEqual((["serving"] * 6, ""), ([mount["state"] for mount in mounts], err))

    def test_full_disk(self):
        self.mount_in_background(self.model, self.mountpoint)
        with open("/dev/full", "wb") as full:
            done = subprocess.run([mounting.BINARY, "--status", self.mountpoint], stdout=full,
                                  stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual((EX_IOERR, "ggufs: cannot write to standard output: No space left on device\n"),
                         (done.returncode, done.stderr))

    def test_strange_names(self):
        self.mountpoint = self.new_mountpoint("a\n\033[31m\udcff b")
        self.mount_in_background(self.model, self.mountpoint)
        (mount,), _ = self.status(EX_OK, self.mountpoint)
        self.assertEqual(self.mountpoint, mount["mountpoint"])
        result = self.run_ggufs("--status", self.mountpoint)
        self.assertEqual(1, len(result.out.splitlines()))
        self.assertNotIn("\033", result.out)

    def test_asking_is_no_use_of_the_tree(self):
        self.mount_in_background("-o", "timeout=2", self.model, self.mountpoint)

        def is_unmounted():
            self.run_ggufs("--status", "--json", self.mountpoint)
            return not mounting.mount_entry(self.mountpoint)
        mounting.wait_until(is_unmounted, "asking keeps the mount")
