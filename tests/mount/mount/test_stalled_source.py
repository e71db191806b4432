#!/usr/bin/env python3
"""The model lies on a file system that stalls, comes back or vanishes, as one of the network may."""

import hashlib
import os
import resource
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import mounting
import test_faults
from test_faults import read_direct

MARKS = ("sanitize",)

setUpModule = test_faults.setUpModule

EX_OSERR = 71

# Reads a file, cached or not, and writes the hash of its bytes or the name of the error.
READER = """
import errno, hashlib, os, sys
try:
    file = os.open(sys.argv[1], os.O_RDONLY | (os.O_DIRECT if sys.argv[2] == "direct" else 0))
    print("open", flush=True)
    data = b""
    while part := os.read(file, 1 << 17):
        data += part
    print(hashlib.sha256(data).hexdigest())
except OSError as error:
    print(errno.errorcode[error.errno])
"""


class StalledTestCase(test_faults.FaultySourceTestCase):
    @staticmethod
    def waits_in_fuse(pid):
        """Return True if a process waits for the answer to a read, or for a page."""
        with open(f"/proc/{pid}/wchan", encoding="ascii") as file:
            waits_in = file.read()
        return "request_wait" in waits_in or "fuse_direct" in waits_in or "folio" in waits_in

    def control(self, text):
        with open(os.path.join(self.source, "control"), "w", encoding="ascii") as control:
            control.write(text)

    def hold(self, *names):
        """Let reads of tensors wait, from the first of them to the last."""
        self.control(f"hold {self.tensors[names[0]].offset} "
                     f"{self.tensors[names[-1]].offset + test_faults.TENSOR_BYTES}")

    def start_reader(self, name, how):
        reader = subprocess.Popen([sys.executable, "-c", READER, self.at(name), how],
                                  stdout=subprocess.PIPE, text=True)
        self.addCleanup(reader.communicate)
        self.addCleanup(reader.kill)
        return reader

    def start_stalled(self, name, how, n_readers=1):
        """Start readers that have opened a file and get nothing."""
        readers = [self.start_reader(name, how) for _ in range(n_readers)]
        for reader in readers:
            self.assertEqual("open\n", reader.stdout.readline())
        for reader in readers:
            mounting.wait_until(lambda reader=reader: self.waits_in_fuse(reader.pid), "no read")
        return readers

    def assert_others_right(self):
        """All but t0 can be listed, opened and read, cached or not."""
        def read(name):
            with open(self.at(name), "rb") as file:
                return file.read()
        self.assertEqual(sorted(self.whole), sorted(self.names()))
        with ThreadPoolExecutor(4) as threads:
            for name in ("tensors/t1/raw", "tensors/t2/f32", "metadata.json", "tensors/t0/info"):
                for function in (read, lambda name: read_direct(self.at(name))):
                    self.assertEqual(self.whole[name], threads.submit(function, name).result(
                        mounting.DEADLINE))


class TestStalled(StalledTestCase):
    def test_only_its_own_files(self):
        """More readers than threads wait for one tensor, and all others go on."""
        for options in ([], ["-o", "threads=2"], ["-o", "direct_io"]):
            with self.subTest(options=options):
                self.mount_model(self.model, *options)
                self.hold(b"t0")
                readers = [reader for name in ("tensors/t0/raw", "tensors/t0/f32")
                           for reader in self.start_stalled(name, "direct", 12)]
                for _ in range(2):
                    self.assert_others_right()
                self.assertEqual({None}, {reader.poll() for reader in readers})
                self.heal()
                self.assert_all_right(readers, "tensors/t0/raw")
                mounting.unmount(self.mountpoint)

    def assert_all_right(self, readers, name):
        expected = hashlib.sha256(self.whole[name]).hexdigest()
        for reader in readers:
            self.assertEqual(expected, reader.stdout.read().strip())
            self.assertEqual(0, reader.wait(mounting.DEADLINE))

    def test_cached_readers(self):
        self.mount_model(self.model)
        self.hold(b"t0")
        readers = self.start_stalled("tensors/t0/raw", "cached", 12)
        self.assert_others_right()
        self.heal()
        self.assert_all_right(readers, "tensors/t0/raw")

    def test_killed_readers(self):
        """Not with O_DIRECT on a mount without direct_io: the kernel then waits for the answer."""
        for options in ([], ["-o", "direct_io"]):
            self.mount_model(self.model, *options)
            self.hold(b"t0")
            for number in (signal.SIGTERM, signal.SIGKILL):
                with self.subTest(options=options, signal=number):
                    readers = self.start_stalled("tensors/t0/raw", "cached", 12)
                    self.end_readers(readers, number)
                    self.assert_others_right()
            self.heal()
            self.assert_right()
            mounting.unmount(self.mountpoint)

    def test_unmounted_meanwhile(self):
        for options, n_readers, lazily in (([], 1, []), (["-o", "direct_io,threads=1"], 12, []),
                                           (["-o", "direct_io"], 12, ["-z"])):
            with self.subTest(options=options, lazily=lazily):
                self.mount_model(self.model, *options)
                daemon = self.processes_of(self.mountpoint)
                self.hold(b"t0")
                readers = self.start_stalled("tensors/t0/raw", "cached", n_readers)
                if not lazily:
                    self.end_readers(readers)
                subprocess.run(["fusermount3", "-u", *lazily, self.mountpoint], check=True)
                self.assertIsNone(mounting.mount_entry(self.mountpoint))
                self.end_readers(readers)
                for pid in daemon:  # while the source still waits
                    mounting.wait_until(lambda pid=pid: not mounting.is_running(pid),
                                        "the daemon stays")
                self.heal()

    def end_readers(self, readers, number=signal.SIGKILL):
        for reader in readers:
            reader.send_signal(number)
        for reader in readers:
            self.assertEqual(-number, reader.wait(mounting.DEADLINE))

    def test_server_is_down(self):
        """The source does not even give the file's attributes, which opening a file asks for."""
        self.mount_model(self.model)
        opened = os.open(self.at("metadata.json"), os.O_RDONLY)
        self.addCleanup(os.close, opened)
        self.control("stall")
        readers = [self.start_reader(name, "direct") for _ in range(12)
                   for name in ("tensors/t0/raw", "metadata.json")]
        for reader in readers:
            mounting.wait_until(lambda reader=reader: self.waits_in_fuse(reader.pid), "no open")
        self.assertEqual(sorted(self.whole), sorted(self.names()))
        self.assertEqual(self.whole["metadata.json"], os.pread(opened, 1 << 20, 0))
        self.end_readers(readers[:12])
        self.heal()
        for reader in readers[12:]:
            self.assertEqual(0, reader.wait(mounting.DEADLINE))
        self.assert_right()


class TestLoading(StalledTestCase):
    def test_server_ends_before_it_answers(self):
        """The file system is mounted already, but nobody learns that the tree can be read."""
        if mounting.is_sanitized():
            self.skipTest("the leak sanitizer opens files when the server ends")
        self.control("hold")
        process = subprocess.Popen([mounting.BINARY, "-f", *mounting.MOUNT_OPTIONS, self.model, self.mountpoint])
        self.addCleanup(process.wait)
        self.addCleanup(mounting.kill_all, self.mountpoint)
        _, server = self.processes_of(self.mountpoint)
        mounting.wait_until(lambda: self.waits_in_fuse(server), "the model is not read")
        resource.prlimit(server, resource.RLIMIT_NOFILE, (0, 0))  # it cannot receive /dev/fuse
        self.heal()
        self.assertEqual(EX_OSERR, process.wait(mounting.DEADLINE))
        self.assertIsNone(mounting.mount_entry(self.mountpoint))


class TestVanished(StalledTestCase):
    def test_vanishes_and_comes_back(self):
        self.expect_log(test_faults.UNREADABLE)
        self.mount_model(self.model)
        self.hold(b"t0")
        readers = self.start_stalled("tensors/t0/raw", "direct", 12)
        self.control("vanish")
        for reader in readers:
            self.assertEqual("EIO", reader.stdout.read().strip())
        self.assert_lost("tensors/t0/raw", "tensors/t1/f32")
        self.assert_right("metadata.json", "tensors/t1/info")
        self.assertEqual(sorted(self.whole), sorted(self.names()))
        self.heal()
        self.assert_right()
