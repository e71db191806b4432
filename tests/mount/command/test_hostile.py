#!/usr/bin/env python3
"""Hostile files (tests/hostile): which are refused and with which message, and which
can be mounted."""

import os
import re
import resource
import subprocess
from typing import NamedTuple

import mounting
import tree_check

MARKS = ("sanitize",)

MAKE_HOSTILE = os.path.join(mounting.ROOT, "build", "make-hostile")

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
