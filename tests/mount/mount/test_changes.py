#!/usr/bin/env python3
"""Model files that are written to while they are mounted: if only times or tensor data changed, ggufs
serves the new contents and nothing stale from a cache."""

import errno
import mmap
import os

import mounting
from gguf_file import F32, STRING, Q8_0, GgufFile

MARKS = ("sanitize", "smoke")

STALE = r"model.gguf: its header or size has changed since it was mounted; mount it again"
N_VALUES = 64 << 10
T, Q = "tensors/t/raw", "tensors/q/f32"


def setUpModule():
    mounting.require_fuse()


class TestChanges(mounting.MountTestCase):
    OPTIONS = []

    def setUp(self):
        super().setUp()
        self.data = self.build(b"a name", b"1234")
        self.model = self.write("model.gguf", self.data)
        os.utime(self.model, (10**9, 10**9))
        self.mount(self.model, *self.OPTIONS)
        self.before = {name: self.read(name) for name in (T, Q, "model.gguf")}
        self.assertEqual(b"1234" * N_VALUES, self.before[T])

    @staticmethod
    def build(name, value):
        built = GgufFile().key(b"general.name", STRING, name)
        built.tensor(b"t", [N_VALUES], F32, value * N_VALUES)
        return built.tensor(b"q", [N_VALUES], Q8_0, b"\0\x3c" + value * 8 +
                            (b"\0\x3c" + value * 8) * (N_VALUES // 32 - 1)).to_bytes()

    def at(self, name):
        return os.path.join(self.mountpoint, name)

    def read(self, name):
        with open(self.at(name), "rb") as file:
            return file.read()

    def rewrite(self, data):
        """Rewrites the file in place, as copying over it does."""
        with open(self.model, "r+b") as file:
            file.write(data)
        os.utime(self.model, (2 * 10**9, 2 * 10**9))

    def assert_new_time(self):
        """Wait for the new time: a separate thread notifies the kernel, which takes a moment."""
        mounting.wait_until(lambda: os.stat(self.at(T)).st_mtime == 2 * 10**9, "the old time")
        for name in ("", "tensors", "tensors/q/f32", "metadata.json"):
            mounting.wait_until(lambda name=name: os.stat(self.at(name)).st_mtime == 2 * 10**9,
                                f"the old time of {name}")

    def test_touch(self):
        self.assertEqual(10**9, os.stat(self.at(T)).st_mtime)
        os.utime(self.model, (2 * 10**9, 2 * 10**9))
        for name, data in self.before.items():
            self.assertEqual(data, self.read(name), name)
        self.assert_new_time()
        self.assertEqual(b'"a name"\n', self.read("metadata/general.name.json"))

    def test_other_data(self):
        after = self.build(b"a name", b"5678")
        self.rewrite(after)
        self.assertEqual(b"5678" * N_VALUES, self.read(T))
        self.assertEqual(after, self.read("model.gguf"))
        self.assertNotEqual(self.before[Q], self.read(Q))
        self.assert_new_time()
        # Back to the first time.
        self.rewrite(self.data)
        for name, data in self.before.items():
            self.assertEqual(data, self.read(name), name)

    def test_data_with_the_time_of_before(self):
        """New data with the old time, as rsync --times and cp -p leave it."""
        status = os.stat(self.model)
        with open(self.model, "r+b") as file:
            file.write(self.build(b"a name", b"5678"))
        os.utime(self.model, ns=(status.st_atime_ns, status.st_mtime_ns))
        self.assertEqual(b"5678" * N_VALUES, self.read(T))

    def test_open_files_and_mappings(self):
        with open(self.at(T), "rb", buffering=0) as file, \
                mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapping:
            self.assertEqual(b"1234", mapping[:4])
            self.rewrite(self.build(b"a name", b"5678"))
            self.read(Q)  # opening any file detects the change
            mounting.wait_until(lambda: mapping[-4:] == b"5678", "the old bytes in a mapping")
            self.assertEqual(b"5678" * 4, os.pread(file.fileno(), 16, 0))

    def test_another_header(self):
        self.expect_log(STALE)
        self.rewrite(self.build(b"b name", b"5678"))
        for name in (T, Q, "model.gguf", "metadata.json", "metadata/general.name.json"):
            for _ in range(2):
                with self.assertRaises(OSError) as caught:
                    self.read(name)
                self.assertEqual(errno.ESTALE, caught.exception.errno, name)
        # The file has its mounted contents again.
        self.rewrite(self.data)
        os.utime(self.model, (3 * 10**9, 3 * 10**9))
        for name, data in self.before.items():
            self.assertEqual(data, self.read(name), name)

    def test_another_size(self):
        self.expect_log(STALE)
        with open(self.model, "ab") as file:
            file.write(b"more")
        with self.assertRaises(OSError) as caught:
            self.read(T)
        self.assertEqual(errno.ESTALE, caught.exception.errno)


class TestChangesOfOneThread(TestChanges):
    OPTIONS = ["-s"]


class TestChangesWithoutCache(TestChanges):
    OPTIONS = ["-o", "direct_io"]

    def test_open_files_and_mappings(self):
        """direct_io has no shared mappings."""
