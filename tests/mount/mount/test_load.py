#!/usr/bin/env python3
"""Many readers at once, each byte compared with a copy. `make soak` is the long version."""

import contextlib
import os
import random
import resource
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor

import mounting
from gguf_file import F32, STRING, GgufFile

MARKS = ("sanitize",)

READERS = os.path.join(mounting.ROOT, "build", "readers")
N_READERS = 64
ANONYMOUS_BYTES = 64 << 20


def setUpModule():
    mounting.require_fuse()
    if not os.path.exists(READERS):
        raise AssertionError(f"{READERS} is missing: run make build/readers")


class LoadTestCase(mounting.MountTestCase):
    def mount(self, *arguments, **more):
        """Mount, and record the peak of the server's anonymous memory in a thread."""
        super().mount(*arguments, **more)
        self.anonymous_bytes = 0
        _, server = self.processes_of(self.mountpoint)
        is_over = threading.Event()
        watcher = threading.Thread(target=self.watch, args=(server, is_over))
        self.addCleanup(watcher.join)
        self.addCleanup(is_over.set)
        watcher.start()

    def watch(self, server, is_over):
        while not is_over.wait(0.005):
            self.measure(server)

    def measure(self, server):
        with contextlib.suppress(OSError), \
                open(f"/proc/{server}/status", encoding="ascii") as file:
            status = dict(line.split(":", 1) for line in file)
            if "RssAnon" in status:
                self.anonymous_bytes = max(self.anonymous_bytes,
                                           int(status["RssAnon"].split()[0]) << 10)

    def assert_small(self, header_bytes=0):
        """
        Check the peak of the server's anonymous memory, which includes a copy of the header.
        Mapped pages of the model are page cache and do not count.
        """
        if mounting.is_sanitized():
            return
        self.measure(self.processes_of(self.mountpoint)[1])
        self.assertGreater(self.anonymous_bytes, 0)
        self.assertLess(self.anonymous_bytes, ANONYMOUS_BYTES + header_bytes)


class TestReaders(LoadTestCase):
    def setUp(self):
        super().setUp()
        self.mount(mounting.sample())
        self.copy = self.path("copy")
        mounting.copy_tree(self.mountpoint, self.copy)

    def compare(self, *options, n_readers=N_READERS, n_reads):
        """Run readers at random offsets until all have ended."""
        done = subprocess.run([READERS, *options, self.mountpoint, self.copy, str(n_readers),
                               str(n_reads)], capture_output=True, text=True)
        self.assertEqual((0, ""), (done.returncode, done.stderr), done.stdout)
        self.assertIn("the same", done.stdout)

    def test_readers(self):
        for seed in range(3):
            self.compare("-s", str(seed), n_reads=50)
        self.assert_small()

    def test_mapped_readers(self):
        """Page faults in many files at once; the kernel reads ahead for them."""
        for seed in range(3):
            self.compare("-m", "-s", str(seed), n_reads=50)
        self.assert_small()

    def test_thousands_of_opens(self):
        """2,048 files stay open while 20,480 others are opened and closed."""
        _, limit = resource.getrlimit(resource.RLIMIT_NOFILE)
        if limit != resource.RLIM_INFINITY and limit < 2300:
            self.skipTest(f"a process may have {limit} open files only")
        self.compare("-k", "32", n_reads=320)
        self.assert_small()

    def test_one_reader_afterwards(self):
        """After many readers, nothing is left open."""
        _, server = self.processes_of(self.mountpoint)
        n_descriptors = len(os.listdir(f"/proc/{server}/fd"))
        self.compare("-k", "4", n_reads=20)
        self.compare(n_readers=1, n_reads=200)
        self.assertEqual(n_descriptors, len(os.listdir(f"/proc/{server}/fd")))


class TestManyTensors(LoadTestCase):
    """The image of a file with many segments takes memory once, however often the file is
    opened."""

    def test_memory(self):
        built = GgufFile()
        for i in range(20000):
            built.tensor(b"tensor %d" % i, [1], F32, bytes(4))
        self.mount(built.write(self.path("many.gguf")))
        for name in ("tensors.json", "metadata.json", "model.gguf"):
            path = os.path.join(self.mountpoint, name)
            files = [open(path, "rb") for _ in range(200)]
            for file in files:
                file.close()
        self.assert_small()


class TestLargeModel(LoadTestCase):
    """Tensors and metadata are each larger than the memory the server may use."""

    N_BYTES = 3 * ANONYMOUS_BYTES
    PIECE_BYTES = 2 << 20

    def test_memory(self):
        path = self.path("large.gguf")
        built = GgufFile(alignment=65536).tensor(b"t", [self.N_BYTES // 4], F32)
        for i in range(64):
            built.key(b"long %d" % i, STRING, b"x" * (2 << 20))
        piece = b"large512" * (self.PIECE_BYTES // 8)
        header = built.to_bytes()
        with open(path, "wb", buffering=0) as file:
            file.write(header)
            for _ in range(self.N_BYTES // self.PIECE_BYTES):
                file.write(piece)
        self.mount(path)

        def read(seed):
            source = random.Random(seed)
            name = os.path.join(self.mountpoint, "tensors/t", ("raw", "f32")[seed % 2])
            descriptor = os.open(name, os.O_RDONLY | os.O_DIRECT)
            try:
                return all(os.pread(descriptor, 4096, 8 * source.randrange(self.N_BYTES // 8 - 512))
                           == piece[:4096] for _ in range(500))
            finally:
                os.close(descriptor)
        with ThreadPoolExecutor(8) as threads:
            self.assertEqual([True] * 16, list(threads.map(read, range(16))))
        with open(os.path.join(self.mountpoint, "metadata.json"), "rb") as file:
            size = sum(map(len, iter(lambda: file.read(1 << 20), b"")))
        self.assertGreater(size, 128 << 20)
        # The kernel reads ahead, so the image of the text stays while its last pages arrive.
        self.assert_small(len(header) + size)
