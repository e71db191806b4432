#!/usr/bin/env python3
"""ggufs without enough memory: the Nth allocation of a process fails, N = 1, 2, …, until all succeed."""

import errno
import os
import stat
import subprocess
import tempfile

import mounting
import tree_check
from gguf_file import ARRAY, F32, I8, STRING, UINT32, Array, GgufFile

FAIL_MALLOC = os.path.join(mounting.ROOT, "build", "fail-malloc.so")

# sysexits.h
EX_OK, EX_OSERR = 0, 71

setUpModule = mounting.require_binary


def memory_model():
    """Returns a small model with scalar and array keys, nested arrays, a long name and an empty tensor."""
    built = GgufFile().key(b"general.architecture", STRING, b"none").key(b"k", UINT32, 7)
    built.key(b"a/b", ARRAY, Array(STRING, [b"one", b"", b"\xff" * 40]))
    built.key(b"nested", ARRAY, Array(ARRAY, [Array(UINT32, [1, 2]), Array(STRING, [b"x"])]))
    built.tensor(b"n" * 300, [4], F32, bytes(range(16))).tensor(b"i8", [3, 2], I8, b"abcdef")
    return built.tensor(b"empty", [0], F32)


def steps():
    """Yields 1, 2, 3 and so on, then numbers in growing steps."""
    number = 1
    while True:
        yield number
        number += max(1, number // 40)


class TestMemory(mounting.MountTestCase):
    """The Nth allocation of a process fails, or every Nth one, for every N up to the last."""

    def setUp(self):
        super().setUp()
        if mounting.is_sanitized():
            self.skipTest("sanitizers have allocators of their own")
        if not os.path.exists(FAIL_MALLOC):
            raise AssertionError(f"{FAIL_MALLOC} is missing: run make build/fail-malloc.so")
        self.model = memory_model().write(self.path("model.gguf"))
        self.failures = self.path("failures")

    def environment(self, number, every):
        self.write("failures", bytes(8))
        return {**os.environ, "LD_PRELOAD": FAIL_MALLOC, "FAIL_MALLOC_AT": str(number),
                "FAIL_MALLOC_EVERY": "1" if every else "", "FAIL_MALLOC_LOG": self.failures}

    def has_failed(self):
        return tree_check.read_file(self.failures) != bytes(8)

    def assert_clean_end(self, status, said):
        """Check that the command succeeded, or failed with EX_OSERR and a message. After a signal the
        status would be negative."""
        if status == EX_OK:
            return
        self.assertEqual(EX_OSERR, status, said)
        self.assertNotEqual("", said.strip(), "it ended without a word")

    def over_all(self, run):
        """Calls run(number, every) until no allocation is left to fail."""
        for every in (False, True):
            for number in steps():
                with self.subTest(number=number, every=every):
                    run(number, every)
                if not self.has_failed():
                    break
            self.assertGreater(number, 10, "hardly an allocation was seen")

    def test_check(self):
        self.check(self.model)

    def test_check_shards(self):
        for i in range(3):
            built = GgufFile().key(b"split.no", UINT32, i).key(b"split.count", UINT32, 3)
            model = built.tensor(b"t%d" % i, [4], F32, bytes(range(16))).write(
                self.path(f"m-{i + 1:05d}-of-00003.gguf"))
        self.check(model)

    def check(self, model):
        # libseccomp itself crashes when memory is too short.
        words = ["-o", "nosandbox", "--check", model]
        good = self.run_ggufs(*words)
        self.assert_status(EX_OK, good)

        def run(number, every):
            result = self.run_ggufs(*words, env=self.environment(number, every))
            self.assert_clean_end(result.status, result.out + result.err)
            if result.status == EX_OK:
                self.assertEqual(good.out, result.out)
        self.over_all(run)

    def read_tree(self, paths):
        """Check all files that can be read. Returns the errors of the others."""
        errors = set()
        for path, expected in paths.items():
            try:
                if expected is None:
                    os.listdir(path)
                else:
                    os.lstat(path)
                    self.assertEqual(expected, tree_check.read_file(path), path)
            except OSError as error:
                errors.add(error.errno)
        return errors

    def contents(self, mountpoint):
        """A dict from paths to contents, None for folders and links to them."""
        found = tree_check.listing(os.fsencode(mountpoint))
        paths = {os.path.join(os.fsencode(mountpoint), path): status
                 for path, status in found.items()}
        return {path: tree_check.read_file(path) if stat.S_ISREG(status.st_mode) else None
                for path, status in paths.items()}

    def test_mount(self):
        mounting.require_fuse()
        self.mount(self.model, "-o", "nosandbox", "-s")
        contents = self.contents(self.mountpoint)
        mounting.unmount(self.mountpoint)

        def run(number, every):
            with tempfile.TemporaryFile() as output:
                process = subprocess.Popen(
                    [mounting.BINARY, "-f", "-s", "-o", "nosandbox", self.model, self.mountpoint],
                    stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                    env=self.environment(number, every))
                errors = set()
                try:
                    mounting.wait_until(lambda: process.poll() is not None or
                                        mounting.mount_entry(self.mountpoint), "no mount")
                    if mounting.mount_entry(self.mountpoint):
                        errors = self.read_tree(contents)
                finally:
                    mounting.unmount(self.mountpoint)
                    status = process.wait(mounting.DEADLINE)
                output.seek(0)
                said = output.read().decode(errors="replace")
            self.assert_clean_end(status, said)
            allowed = {errno.EIO, errno.ENOMEM}
            if "failed to allocate request" in said:  # the INIT request, so the kernel gives up
                allowed.add(errno.ECONNREFUSED)
            if status == EX_OSERR:  # the server has reported why and ended, and the mount is removed
                allowed |= {errno.ENOTCONN, errno.ECONNABORTED, errno.ENOENT}
            self.assertLessEqual(errors, allowed, said)
        self.over_all(run)
