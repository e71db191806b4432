#!/usr/bin/env python3
"""Options for serving: direct_io, threads."""

import errno
import mmap
import os
from concurrent.futures import ThreadPoolExecutor

import mounting
from gguf_file import F32, GgufFile

N_BYTES = 24 << 20


def setUpModule():
    mounting.require_fuse()


class LoadingTestCase(mounting.MountTestCase):
    def setUp(self):
        super().setUp()
        self.data = bytes(range(251)) * (N_BYTES // 251 + 1)
        self.data = self.data[:N_BYTES]
        built = GgufFile().tensor(b"t", [N_BYTES // 4], F32, self.data)
        self.model = self.write("model.gguf", built.to_bytes())

    def read(self, name):
        with open(os.path.join(self.mountpoint, name), "rb") as file:
            return file.read()

    def assert_reads(self):
        self.assertEqual(self.data, self.read("tensors/t/f32"))
        self.assertEqual(self.data, self.read("tensors/t/raw"))


class TestDirectIo(LoadingTestCase):
    def test_direct_io(self):
        self.mount(self.model, "-o", "direct_io")
        self.assert_reads()
        path = os.path.join(self.mountpoint, "tensors/t/f32")
        with open(path, "rb") as file:
            for offset in (0, 1, 4095, N_BYTES - 7):
                self.assertEqual(self.data[offset:offset + 5000],
                                 os.pread(file.fileno(), 5000, offset))
            with mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ) as mapped:
                self.assertEqual(self.data[12345:23456], mapped[12345:23456])

    def test_nothing_is_kept(self):
        """The kernel caches nothing: a repeated read reaches the daemon."""
        self.expect_log("model.gguf: it is shorter than when it was mounted")
        self.mount(self.model, "-o", "direct_io")
        self.assert_reads()
        os.truncate(self.model, 4096)
        with self.assertRaises(OSError) as caught:
            self.read("tensors/t/f32")
        self.assertEqual(errno.EIO, caught.exception.errno)


class TestThreads(LoadingTestCase):
    def test_threads(self):
        """As many threads stay as the option says, however many readers there were."""
        for option, limit in (("threads=1", 1), ("threads=3", 3), ("max_threads=2", 2)):
            with self.subTest(option):
                mountpoint = self.new_mountpoint(option)
                self.mount(self.model, "-o", option, "-o", "direct_io", mountpoint=mountpoint)
                path = os.path.join(mountpoint, "tensors/t/f32")

                def read_whole(_, path=path):
                    with open(path, "rb") as file:
                        return file.read()
                with ThreadPoolExecutor(16) as readers:
                    for data in readers.map(read_whole, range(16)):
                        self.assertTrue(data == self.data)
                _, server = self.processes_of(mountpoint)
                # One more takes requests, and the main thread waits for them.
                mounting.wait_until(
                    lambda: len(os.listdir(f"/proc/{server}/task")) <= limit + 2, "threads stay")

    def test_no_number(self):
        result = self.run_ggufs("-o", "threads=many", self.model, self.mountpoint)
        self.assert_status(64, result)
        self.assertIn("threads=many", result.err)
