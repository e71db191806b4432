#!/usr/bin/env python3
"""Hostile files (tests/hostile): which are refused and with which message, which can be mounted, and
how ggufs behaves without enough memory."""

import errno
import os
import re
import resource
import stat
import subprocess
import tempfile
import unittest
from typing import NamedTuple

import mounting
import tree_check
from gguf_file import ARRAY, F32, I8, STRING, UINT32, Array, GgufFile

MAKE_HOSTILE = os.path.join(mounting.ROOT, "build", "make-hostile")
FAIL_MALLOC = os.path.join(mounting.ROOT, "build", "fail-malloc.so")

# sysexits.h
EX_OK, EX_DATAERR, EX_OSERR = 0, 65, 71

# More than checking the smallest files needs, less than any length that the files declare.
ADDRESS_SPACE_BYTES = 200 << 20
# All classes of tests/hostile/hostile.h that have files.
CLASSES = set(range(1, 28)) - {24}


class HostileFile(NamedTuple):
    """A line of expected.tsv; see tests/hostile/make_hostile.c."""
    path: str
    number_of_class: int
    status: int
    n_errors: int
    offset: str  # "-": the error has none
    words: list  # of the message, or paths of the tree, "!" before those that must not be there

    def message_in(self, lines):
        """The line of the first error."""
        found = [line for line in lines if f"{self.path}: " in line and not re.search(": (note|warning|help): ", line) and
                 (self.offset == "-" or f": byte {self.offset}: " in line) and
                 all(word in line for word in self.words)]
        return found[0] if found else None


def read_expected(folder):
    with open(os.path.join(folder, "expected.tsv"), encoding="utf-8",
              errors="surrogateescape") as file:
        for line in file:
            name, number, status, n_errors, offset, *words = line.rstrip("\n").split("\t")
            yield HostileFile(os.path.join(folder, name), int(number), int(status), int(n_errors), offset,
                      words)


def limit_memory(path):
    """Limit the address space to little more than the mapping of the file and the copy of its header."""
    size = os.path.getsize(path)
    limit = ADDRESS_SPACE_BYTES + size + min(size, 1 << 30)

    def limit_memory_now():
        if not mounting.is_sanitized():
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    return limit_memory_now


def setUpModule():
    mounting.require_binary()
    if not os.path.exists(MAKE_HOSTILE):
        raise AssertionError(f"{MAKE_HOSTILE} is missing: run make build/make-hostile")


class HostileTestCase(mounting.MountTestCase):
    def setUp(self):
        super().setUp()
        files = self.path("hostile")
        subprocess.run([MAKE_HOSTILE, files], check=True)
        self.all_files = list(read_expected(files))

    def assert_short(self, text):
        """Check that text from a file is printed in short lines of printable characters."""
        for line in text.splitlines():
            self.assertTrue(line.isprintable(), line)
            self.assertLess(len(line), 1200)


class TestRefused(HostileTestCase):
    def setUp(self):
        super().setUp()
        self.refused = [case for case in self.all_files if case.status != EX_OK]

    def test_every_class_is_there(self):
        self.assertEqual(CLASSES, {case.number_of_class for case in self.all_files})

    def test_check(self):
        for case in self.refused:
            with self.subTest(case=case):
                result = self.run_ggufs("--check", case.path, preexec_fn=limit_memory(case.path))
                self.assert_status(case.status, result)
                self.assertEqual("", result.err)
                self.assert_short(result.out)
                lines = result.out.splitlines()
                self.assertIsNotNone(case.message_in(lines), result)
                errors = [line for line in lines if not re.search(": (note|warning|help): ", line)]
                self.assertEqual(case.n_errors, len(errors), result)

    def test_check_with_data(self):
        for case in self.refused:
            with self.subTest(case=case):
                result = self.run_ggufs("--check", "--data", case.path, preexec_fn=limit_memory(case.path))
                self.assert_status(case.status, result)
                self.assertIsNotNone(case.message_in(result.out.splitlines()), result)

    def test_mount(self):
        for case in self.refused:
            with self.subTest(case=case):
                checked = self.run_ggufs("--check", case.path)
                result = self.run_ggufs(case.path, self.mountpoint, preexec_fn=limit_memory(case.path))
                was_mounted = mounting.mount_entry(self.mountpoint)
                mounting.unmount(self.mountpoint)
                self.assertIsNone(was_mounted, result)
                self.assert_status(case.status, result)
                self.assertEqual("", result.out)
                self.assert_short(result.err)
                lines = result.err.splitlines()
                first = case.message_in(checked.out.splitlines())
                self.assertEqual(f"ggufs: {first}", lines[0])
                self.assertEqual(case.n_errors > 1, " more error" in result.err, result)


class TestMounted(HostileTestCase):
    def setUp(self):
        super().setUp()
        self.mounted = [case for case in self.all_files if case.status == EX_OK]

    def test_check(self):
        for case in self.mounted:
            with self.subTest(case=case):
                result = self.run_ggufs("--check", case.path, preexec_fn=limit_memory(case.path))
                self.assert_status(EX_OK, result)
                self.assertEqual("", result.err)
                self.assertIn(f"{case.path}: OK: ", result.out)
                self.assert_short(result.out)

    def test_check_with_data(self):
        for case in self.mounted:
            with self.subTest(case=case):
                result = self.run_ggufs("--check", "--data", case.path)
                self.assertEqual("", result.err)
                self.assert_short(result.out)
                if "NaN" in case.path:
                    self.assert_status(EX_DATAERR, result)
                    self.assertIn("NaN or infinite", result.out)
                else:
                    self.assert_status(EX_OK, result)
                    self.assertIn(f"{case.path}: OK: ", result.out)

    def test_mount(self):
        mounting.require_fuse()
        for i, case in enumerate(self.mounted):
            with self.subTest(case=case):
                mountpoint = self.mount(case.path, mountpoint=self.new_mountpoint(f"mnt.{i}"))
                for word in case.words:
                    path = os.path.join(mountpoint, word.removeprefix("!"))
                    self.assertEqual(not word.startswith("!"), os.path.lexists(path), word)
                tree_check.check_tree(self, case.path, mountpoint)
                mounting.unmount(mountpoint)


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


if __name__ == "__main__":
    unittest.main()
