#!/usr/bin/env python3
"""Extended attributes of tensors."""

import ctypes
import errno
import json
import os

import mounting
from gguf_file import F32, Q8_0, GgufFile

MARKS = ("smoke",)


def setUpModule():
    mounting.require_fuse()


def attributes_of(path):
    return {name: os.getxattr(path, name, follow_symlinks=False).decode()
            for name in os.listxattr(path, follow_symlinks=False)}


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

    def tensors(self):
        with open(self.at("tensors.json"), encoding="utf-8", errors="surrogateescape") as file:
            return json.load(file)

    def test_folders_and_files_of_tensors(self):
        infos = self.tensors()
        self.assertEqual(3, len(infos))
        for info in infos:
            folder = self.at(info["path"])
            expected = {"user.ggufs.type": info["type"] or str(info["ggml_type"]),
                        "user.ggufs.shape": json.dumps(info["shape"], separators=(",", ":")),
                        "user.ggufs.file": os.path.basename(self.model),
                        "user.ggufs.offset": str(info["offset"])}
            for name in [folder, *(os.path.join(folder, name) for name in os.listdir(folder))]:
                self.assertEqual(expected, attributes_of(name), name)

    def test_all_else_has_none(self):
        for name in ".", "tensors", "metadata.json", "model.gguf", "layers/0", "layers/0/t":
            self.assertEqual({}, attributes_of(self.at(name)), name)

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
                (folder, "user.x", errno.ENODATA), (folder, "user.ggufs", errno.ENODATA),
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
        path = os.fsencode(self.at("tensors", "blk.0.t", "raw"))
        self.assertEqual(4, libc.getxattr(path, b"user.ggufs.type", None, 0))
        self.assertEqual(-1, libc.getxattr(path, b"user.ggufs.type", ctypes.create_string_buffer(3), 3))
        exact = ctypes.create_string_buffer(4)
        self.assertEqual(4, libc.getxattr(path, b"user.ggufs.type", exact, 4))
        self.assertEqual(b"Q8_0", exact.raw)
        self.assertGreater(libc.listxattr(path, None, 0), 4)
        self.assertEqual(-1, libc.listxattr(path, ctypes.create_string_buffer(3), 3))
