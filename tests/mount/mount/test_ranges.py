#!/usr/bin/env python3
"""A model on a file system that fetches by ranges, as hf-mount does: which bytes ggufs reads of it."""

import os
import struct
import subprocess
import unittest

import mounting
from gguf_file import F32, STRING, GgufFile

FAULTY = os.path.join(mounting.ROOT, "build", "faulty")
PAGE = 4096
N_TENSORS = 64
ELEMENTS = 1 << 18  # 1 MiB in F32


class TestRanges(mounting.MountTestCase):
    """`faulty` counts the bytes that it is asked for, and the kernel reads nothing ahead."""

    def setUp(self):
        super().setUp()
        if not os.path.exists(FAULTY):
            raise AssertionError(f"{FAULTY} is missing: run make build/faulty")
        mounting.require_fuse()
        model = GgufFile().key(b"general.architecture", STRING, b"llama").key(b"long", STRING, b"x" * (64 * PAGE))
        for i in range(N_TENSORS):
            model.tensor(f"tensor.{i}".encode(), [ELEMENTS], F32, struct.pack("<I", i) * ELEMENTS)
        self.data = model.to_bytes()
        self.header_bytes = len(self.data) - N_TENSORS * ELEMENTS * 4
        source = self.new_mountpoint("source")
        server = subprocess.Popen([FAULTY, self.write("model.gguf", self.data), source])
        self.addCleanup(server.wait)
        self.addCleanup(mounting.unmount, source)
        self.control = os.path.join(source, "control")
        self.model = os.path.join(source, "model")
        mounting.wait_until(lambda: os.path.exists(self.model), "no file system")

    def count(self):
        return os.stat(self.control).st_size

    def expect_read(self, n_bytes, action, slack=2 * PAGE):
        """Check that an action reads n_bytes of the source, in whole pages at both ends."""
        before = self.count()
        result = action()
        self.assertLessEqual(n_bytes, self.count() - before)
        self.assertLessEqual(self.count() - before, n_bytes + slack)
        return result

    def test_the_header_once_then_what_is_asked_for(self):
        # The header is copied in steps that double, so at most twice its size is read.
        mountpoint = self.expect_read(self.header_bytes, lambda: self.mount(self.model), self.header_bytes)
        tensor = os.path.join(mountpoint, "tensors", "tensor.7")
        self.expect_read(0, lambda: mounting.read_file(mountpoint, "metadata.json"), 0)
        self.expect_read(0, lambda: mounting.read_file(mountpoint, "tensors.tsv"), 0)
        self.expect_read(0, lambda: [os.lstat(os.path.join(tensor, name)) for name in os.listdir(tensor)], 0)
        with open(os.path.join(tensor, "f32"), "rb", buffering=0) as file:
            part = self.expect_read(PAGE, lambda: os.pread(file.fileno(), PAGE, 100 * PAGE), 64 * PAGE)
        self.assertEqual(struct.pack("<I", 7) * (PAGE // 4), part)
        whole = self.expect_read(ELEMENTS * 4, lambda: mounting.read_file(mountpoint, "tensors", "tensor.9", "f32"))
        self.assertEqual(struct.pack("<I", 9) * ELEMENTS, whole)
        total = self.count()
        self.assertLess(total, self.header_bytes + 2 * 4 * ELEMENTS)  # of 64 MiB
        # The bytes of a tensor that was read are in the cache of the kernel.
        self.expect_read(0, lambda: mounting.read_file(mountpoint, "tensors", "tensor.9", "raw"), 0)

    def test_commands_read_the_header_alone(self):
        for words in (["--info"], ["--list"], ["--check"]):
            with self.subTest(words=words):
                open(self.control, "w", encoding="ascii").write("0 0")  # drops the cache
                self.expect_read(self.header_bytes, lambda: self.run_ggufs(*words, self.model), self.header_bytes)


if __name__ == "__main__":
    unittest.main()
