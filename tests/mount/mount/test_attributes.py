#!/usr/bin/env python3
"""Extended attributes: the state of the mount alone, at its root. Links and blocks of files."""

import ctypes
import errno
import os

import mounting
from gguf_file import F32, Q8_0, GgufFile

MARKS = ("smoke",)


def setUpModule():
    mounting.require_fuse()


class TestAttributes(mounting.MountTestCase):
    def setUp(self):
        super().setUp()
        self.model = (GgufFile()
                      .tensor(b"blk.0.t", [64, 3], Q8_0, bytes(34 * 6))
                      .tensor(b"odd\n\xff", [1], F32, bytes(4))
                      .tensor(b"unknown", [32], 999, bytes(32))
                      .write(self.path("model \xe9.gguf")))
        self.mount(self.model)

    def at(self, *names):
        return os.path.join(self.mountpoint, *names)

    def test_no_file_lists_any(self):
        for name in ".", "tensors", "tensors/blk.0.t/raw", "model.gguf", "layers/0", "layers/0/t":
            self.assertEqual([], os.listxattr(self.at(name), follow_symlinks=False), name)

    def test_links_and_blocks(self):
        """A directory has a link from each directory in it; du counts blocks of 512 bytes."""
        for folder, folders, names in os.walk(self.mountpoint):
            subfolders = [name for name in folders if not os.path.islink(os.path.join(folder, name))]
            self.assertEqual(2 + len(subfolders), os.stat(folder).st_nlink, folder)
            for name in names:
                status = os.stat(os.path.join(folder, name), follow_symlinks=False)
                self.assertEqual((1, -(-status.st_size // 512)), (status.st_nlink, status.st_blocks), name)

    def test_errors(self):
        folder = self.at("tensors", "blk.0.t")
        for path, name, expected in (
                (folder, "user.x", errno.ENODATA), (folder, "user.ggufs.type", errno.ENODATA),
                (self.at("tensors"), "user.ggufs.type", errno.ENODATA),
                # After this answer, ls -l does not ask the mount about any other file.
                (folder, "security.selinux", errno.EOPNOTSUPP),
                (folder, "system.posix_acl_access", errno.EOPNOTSUPP)):
            with self.assertRaises(OSError) as caught:
                os.getxattr(path, name)
            self.assertEqual(expected, caught.exception.errno, name)

    def test_sizes(self):
        """As getfattr does: ask for the size, then for as many bytes."""
        libc = ctypes.CDLL(None)
        root, name = os.fsencode(self.mountpoint), b"user.ggufs.status"
        size = libc.getxattr(root, name, None, 0)
        self.assertGreater(size, 100)
        self.assertEqual(-1, libc.getxattr(root, name, ctypes.create_string_buffer(3), 3))
        self.assertIn(b"version ", os.getxattr(self.mountpoint, name))
        self.assertEqual(0, libc.listxattr(root, None, 0))
