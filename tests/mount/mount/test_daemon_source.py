#!/usr/bin/env python3
"""Writing to a mount, and model files that change while they are mounted."""

import errno
import os

import mounting
from gguf_file import F32, STRING, GgufFile
from test_daemon import DaemonTestCase

MARKS = ("sanitize", "smoke")

setUpModule = mounting.require_fuse

# sysexits.h
EX_OK, EX_USAGE, EX_UNAVAILABLE, EX_OSERR, EX_CANTCREAT = 0, 64, 69, 71, 73

PAGE = os.sysconf("SC_PAGESIZE")


class TestWriting(DaemonTestCase):
    def attempts(self):
        def at(name):
            return os.path.join(self.mountpoint, name)
        raw = at("tensors/t/raw")
        for flags in (os.O_WRONLY, os.O_RDWR, os.O_RDWR | os.O_TRUNC, os.O_WRONLY | os.O_APPEND,
                      os.O_RDONLY | os.O_TRUNC):
            yield f"open {flags:#o}", os.open, (raw, flags)
        yield "create", os.open, (at("new"), os.O_CREAT | os.O_WRONLY)
        yield "create in tensors", os.open, (at("tensors/new"), os.O_CREAT | os.O_EXCL | os.O_RDWR)
        yield "unlink", os.unlink, (raw,)
        yield "mkdir", os.mkdir, (at("new"),)
        yield "rmdir", os.rmdir, (at("tensors"),)
        yield "chmod", os.chmod, (raw, 0o644)
        yield "chown", os.chown, (raw, os.getuid(), os.getgid())
        yield "rename", os.rename, (raw, at("tensors/t/new"))
        yield "truncate", os.truncate, (raw, 0)
        yield "utime", os.utime, (raw,)
        yield "symlink", os.symlink, ("x", at("new"))
        yield "link", os.link, (raw, at("new"))
        yield "mkfifo", os.mkfifo, (at("new"),)
        yield "setxattr", os.setxattr, (raw, "user.x", b"1")

    def assert_refused(self):
        for name, function, arguments in self.attempts():
            with self.subTest(name):
                with self.assertRaises(OSError) as caught:
                    function(*arguments)
                self.assertEqual("EROFS", errno.errorcode[caught.exception.errno])
        self.assert_serves()

    def test_refused(self):
        self.mount(self.model)
        self.assert_refused()

    def test_access(self):
        self.mount(self.model)
        path = os.path.join(self.mountpoint, "tensors/t/raw")
        self.assertTrue(os.access(path, os.R_OK))
        self.assertFalse(os.access(path, os.W_OK))
        self.assertFalse(os.access(path, os.X_OK))

    def test_asked_for_writing(self):
        """-o rw opens nothing."""
        self.expect_log("warning: option -o rw: .* read-only")
        self.mount(self.model, "-o", "rw")
        descriptor = None
        with self.assertRaises(OSError) as caught:
            descriptor = os.open(os.path.join(self.mountpoint, "tensors/t/raw"), os.O_RDWR)
        self.assertIsNone(descriptor)
        self.assertIn(caught.exception.errno, (errno.EROFS, errno.EACCES))
        self.assert_serves()


# Lines of the log, up to the name of the file whose reader detected the change.
SHORTER = r"\Aggufs: /.*/pages\.gguf: it is shorter than when it was mounted; .* \(noticed at "
CHANGED = r"\Aggufs: /.*/pages\.gguf: its header or size has changed since it was mounted; .* \(noticed at "


class TestSource(DaemonTestCase):
    """
    The model file changes under the mount: EIO for what is lost, while the rest is served; ESTALE
    once its header or its size is another. More: test_changes.py.
    """

    def setUp(self):
        super().setUp()
        built = GgufFile(alignment=PAGE).key(b"long", STRING, b"x" * (4 * PAGE))
        for i in range(3):
            built.tensor(b"t%d" % i, [1024, 4], F32, bytes([i]) * 16384)
        self.data = built.to_bytes()
        self.model = self.write("pages.gguf", self.data)
        self.mount(self.model)

    def assert_error(self, error, name):
        with self.assertRaises(OSError, msg=name) as caught:
            self.read(name)
        self.assertEqual(error, errno.errorcode[caught.exception.errno])

    def assert_lost(self, name):
        self.assert_error("EIO", name)

    def assert_tensor(self, number):
        for name in ("raw", "f32"):
            self.assertEqual(bytes([number]) * 16384, self.read(f"tensors/t{number}/{name}"))

    def test_truncated(self):
        self.expect_log(SHORTER + "tensors/t1/raw")
        os.truncate(self.model, len(self.data) - 2 * 16384)
        for _ in range(3):  # one fault must not harm the next
            for number in (1, 2):
                self.assert_lost(f"tensors/t{number}/raw")
                self.assert_lost(f"tensors/t{number}/f32")
        self.assert_tensor(0)
        self.assertEqual(b'"' + b"x" * (4 * PAGE) + b'"\n', self.read("metadata/long.json"))
        self.assertIn(b'"t2"', self.read("tensors/t2/info"))
        self.assertIn(b'"t2"', self.read("tensors.json"))

    def test_truncated_inside_a_tensor(self):
        self.expect_log(SHORTER + "tensors/t2/raw")
        os.truncate(self.model, len(self.data) - 8192)
        descriptor = os.open(os.path.join(self.mountpoint, "tensors/t2/raw"),
                             os.O_RDONLY | os.O_DIRECT)
        try:
            self.assertEqual(b"\2" * 8192, os.pread(descriptor, 8192, 0))
            with self.assertRaises(OSError):
                os.pread(descriptor, 8192, 8192)
        finally:
            os.close(descriptor)

    def test_truncated_inside_a_page(self):
        """In its last page, a mapping reads as zeros past the end of the file."""
        self.expect_log(SHORTER + "tensors/t2/raw")
        os.truncate(self.model, len(self.data) - 100)
        self.assert_lost("tensors/t2/raw")
        self.assert_tensor(1)

    def test_truncated_metadata(self):
        """They were copied when the file was opened."""
        self.expect_log(SHORTER + "model.gguf")
        os.truncate(self.model, PAGE)
        self.assertEqual(b'"' + b"x" * (4 * PAGE) + b'"\n', self.read("metadata/long.json"))
        self.assertIn(b"x" * (4 * PAGE), self.read("metadata.json"))
        self.assert_lost("model.gguf")
        self.assertIn(b'"t1"', self.read("tensors/t1/info"))
        self.assertEqual(16384, os.stat(os.path.join(self.mountpoint, "tensors/t1/raw")).st_size)

    def test_truncated_to_nothing_and_back(self):
        self.expect_log(SHORTER + "tensors/t0/raw")  # the first failure of the file
        os.truncate(self.model, 0)
        self.assert_lost("tensors/t0/raw")
        with open(self.model, "r+b") as file:
            file.write(self.data[:-1])
        self.assert_lost("tensors/t2/raw")
        with open(self.model, "r+b") as file:
            file.write(b"\xff" + self.data[1:])
        self.assert_error("ESTALE", "tensors/t1/raw")
        with open(self.model, "r+b") as file:
            file.write(self.data)
        self.assert_tensor(1)

    def test_overwritten(self):
        self.expect_log(CHANGED + "tensors/t0/raw")
        self.assert_tensor(1)
        with open(self.model, "r+b") as file:
            file.write(b"\xff" * len(self.data))
        for name in ("tensors/t0/raw", "tensors/t1/f32", "metadata/long.json", "tensors/t2/info"):
            self.assert_error("ESTALE", name)
        with open(self.model, "r+b") as file:
            file.write(self.data)
        for number in range(3):
            self.assert_tensor(number)

    def test_removed(self):
        os.unlink(self.model)
        for number in range(3):
            self.assert_tensor(number)

    def test_replaced(self):
        os.rename(self.write("other", b"\xff" * len(self.data)), self.model)
        for number in range(3):
            self.assert_tensor(number)
