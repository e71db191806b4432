#!/usr/bin/env python3
"""Mounts under `ulimit -v`, from too little address space to enough. Either ggufs prints an error and
mounts nothing, or each read gives the right bytes or an error."""

import errno
import os
import resource
import stat
import struct
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor

import mounting
import tree_check

EX_OK, EX_DATAERR, EX_OSERR = 0, 65, 71

N_READERS = 8
# The least hardly holds a program, the most has room for the stacks and heaps of many threads.
FIRST_BYTES, LAST_BYTES, STEP = 4 << 20, 512 << 20, 1.25
PLENTY_BYTES = 8 << 30


def sizes():
    size = FIRST_BYTES
    while size < LAST_BYTES:
        yield size
        size = int(size * STEP)
    yield PLENTY_BYTES


def limit_to(size):
    """For preexec_fn."""
    return lambda: resource.setrlimit(resource.RLIMIT_AS, (size, size))


def can_load(size):
    """Return False if the limit is so low that the dynamic loader fails."""
    return subprocess.run([mounting.BINARY, "--version"], capture_output=True,
                          preexec_fn=limit_to(size)).returncode == EX_OK


class TestAddressSpace(mounting.MountTestCase):
    def setUp(self):
        super().setUp()
        mounting.require_fuse()
        if mounting.is_sanitized():
            self.skipTest("sanitizers take terabytes of addresses")
        self.model = mounting.sample()
        self.mount(self.model)
        self.contents = {}
        for path, status in tree_check.listing(os.fsencode(self.mountpoint)).items():
            path = os.path.join(os.fsencode(self.mountpoint), path)
            # Links lead to directories.
            self.contents[path] = tree_check.read_file(path) if stat.S_ISREG(status.st_mode) else None
        mounting.unmount(self.mountpoint)

    def read(self, path):
        """Returns 0 or the number of the error."""
        try:
            if self.contents[path] is None:
                os.listdir(path)
            else:
                os.lstat(path)
                self.assertEqual(self.contents[path], tree_check.read_file(path), path)
        except OSError as error:
            return error.errno
        return 0

    def walk(self):
        """Many threads list and read all files at once, as ls -lR and cat do. Returns the errors."""
        subprocess.run(["ls", "-lR", self.mountpoint], capture_output=True)
        with ThreadPoolExecutor(N_READERS) as threads:
            return set(threads.map(self.read, self.contents)) - {0}

    def assert_clean(self, size, status, errors, said):
        """Check the exit status `status` and the errors of the walk, `errors`."""
        allowed = {errno.EIO, errno.ENOMEM}
        if status != EX_OK:
            self.assertNotEqual("", said.strip(), "it ended without a word")
            if can_load(size):
                self.assertEqual(EX_OSERR, status, said)
            # The server may have ended during the walk.
            allowed |= {errno.ENOTCONN, errno.ECONNABORTED, errno.ENOENT}
        self.assertLessEqual(errors, allowed, said)

    def try_in_foreground(self, size):
        """Returns True if ggufs served until it was unmounted, and the errors of the walk."""
        with tempfile.TemporaryFile() as output:
            process = subprocess.Popen([mounting.BINARY, "-f", self.model, self.mountpoint],
                                       stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                                       preexec_fn=limit_to(size))
            errors = set()
            try:
                mounting.wait_until(lambda: process.poll() is not None or
                                    mounting.mount_entry(self.mountpoint), "no mount")
                if mounting.mount_entry(self.mountpoint):
                    errors = self.walk()
            finally:
                mounting.unmount(self.mountpoint)
                status = process.wait(mounting.DEADLINE)
            output.seek(0)
            said = output.read().decode(errors="replace")
        self.assert_clean(size, status, errors, said)
        return status == EX_OK, errors

    def test_mount_and_walk(self):
        results = []
        for size in sizes():
            with self.subTest(kib=size >> 10):
                results.append(self.try_in_foreground(size))
        self.assertFalse(results[0][0], "the least is enough")
        self.assertEqual((True, set()), results[-1], "the most is not enough")

    def test_in_the_background(self):
        """The exit status is reliable: after a failure there is no tree."""
        for size in sizes():
            with self.subTest(kib=size >> 10):
                result = self.run_ggufs(self.model, self.mountpoint, preexec_fn=limit_to(size))
                is_mounted = bool(mounting.mount_entry(self.mountpoint))
                mounting.unmount(self.mountpoint)
                self.assert_clean(size, result.status, set(), result.out + result.err)
                if result.status != EX_OK:
                    self.assertFalse(is_mounted, result)
        self.assert_status(EX_OK, result)

N_ENTRIES = 262144  # the limit of keys, and of tensors
MOST_KIB = 400 << 10


class TestEntries(mounting.MountTestCase):
    def write_model(self, n_keys, n_tensors):
        """A file with names of together nearly 32 MiB, the limit, in layers, and without tensor data."""
        def text(name):
            return struct.pack("<Q", len(name)) + name
        entries = [b"GGUF", struct.pack("<IQQ", 3, n_tensors, n_keys)]
        entries += [text(b"k%062d" % i) + struct.pack("<IB", 0, 1) for i in range(n_keys)]
        entries += [text(b"blk.%d.%055d" % (i % 100, i)) + struct.pack("<IQIQ", 1, 0, 0, 0)
                    for i in range(n_tensors)]
        return self.write("model.gguf", b"".join(entries) + bytes(32))

    def test_the_most_keys_and_tensors(self):
        """SECURITY.md says how much memory they take."""
        command = [mounting.BINARY, "--info", self.write_model(N_ENTRIES, N_ENTRIES)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        with process:
            out = process.stdout.read()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(EX_OK, process.returncode)
        self.assertIn(b"262144", out.replace(b",", b""))
        if not mounting.is_sanitized():
            self.assertLess(usage.ru_maxrss, MOST_KIB)

    def test_one_more(self):
        for words, counts in ((b"262145 keys", (N_ENTRIES + 1, 0)),
                              (b"262145 tensors", (0, N_ENTRIES + 1))):
            with self.subTest(words=words):
                result = subprocess.run([mounting.BINARY, "--info", self.write_model(*counts)],
                                        capture_output=True)
                self.assertEqual(EX_DATAERR, result.returncode)
                self.assertIn(words + b", the limit is 262144", result.stderr)

