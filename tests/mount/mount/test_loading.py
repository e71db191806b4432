#!/usr/bin/env python3
"""Options for loading and serving: prefetch, direct_io, threads."""

import errno
import mmap
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor

import mounting
from gguf_file import F32, GgufFile

N_BYTES = 24 << 20  # more than two of the chunks in which prefetch reads


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

    def drop_cache(self):
        descriptor = os.open(self.model, os.O_RDONLY)
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)

    def cached_share(self):
        """Return the share of the model's pages that is in memory."""
        done = subprocess.run(["fincore", "--bytes", "--noheadings", "--output", "RES", self.model],
                              capture_output=True, text=True)
        if done.returncode != 0:
            self.skipTest("no fincore here")
        return int(done.stdout) / os.path.getsize(self.model)

    def assert_reads(self):
        self.assertEqual(self.data, self.read("tensors/t/f32"))
        self.assertEqual(self.data, self.read("tensors/t/raw"))


class TestPrefetch(LoadingTestCase):
    def test_prefetch(self):
        self.drop_cache()
        if self.cached_share() > 0.5:
            self.skipTest("this file system keeps its pages in memory")
        self.mount(self.model, "-o", "prefetch")
        mounting.wait_until(lambda: self.cached_share() > 0.99, "the model is not brought in")
        self.assert_reads()

    def test_ends_while_it_works(self):
        for _ in range(10):
            self.drop_cache()
            self.mount_in_background("-o", "prefetch", self.model, self.mountpoint)
            mounting.unmount(self.mountpoint)

    def test_too_large(self):
        with open("/proc/meminfo", encoding="ascii") as file:
            total = int(file.readline().split()[1]) << 10
        built = GgufFile().tensor(b"t", [1024], F32, bytes(4096)).to_bytes()
        model = self.write("large.gguf", built)
        try:
            os.truncate(model, 2 * total)
        except OSError as error:
            self.skipTest(f"no sparse file of {2 * total} bytes: {error}")
        result = self.run_ggufs(*mounting.MOUNT_OPTIONS, "-o", "prefetch", model, self.mountpoint)
        self.addCleanup(mounting.unmount, self.mountpoint)
        self.assert_status(0, result)
        self.assertRegex(result.err, r"\Aggufs: .*large.gguf: not read into memory: it has "
                                     r"[\d.]+ MB, and only [\d.]+ MB are available\n\Z")
        self.assertEqual(bytes(4096), self.read("tensors/t/f32"))

    def test_truncated_while_it_works(self):
        """Missing data does not end the daemon."""
        self.mount_in_background("-o", "prefetch", self.model, self.mountpoint)
        os.truncate(self.model, 4096)
        with self.assertRaises(OSError):
            self.read("tensors/t/raw")
        self.assertIn(b"F32", self.read("tensors/t/info"))


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
        """At most as many threads serve as the option allows, however many readers there are."""
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
                self.assertLessEqual(len(os.listdir(f"/proc/{server}/task")), limit + 2)

    def test_no_number(self):
        result = self.run_ggufs("-o", "threads=many", self.model, self.mountpoint)
        self.assert_status(64, result)
        self.assertIn("threads=many", result.err)
