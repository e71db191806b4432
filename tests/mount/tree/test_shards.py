#!/usr/bin/env python3
"""Shards: a split model is one tree, whichever shard is named."""

import json
import os
import shutil

import mounting
import tree_check
from gguf_file import F32, INT32, STRING, UINT16, GgufFile

MARKS = ("smoke",)

COUNT = 3

# sysexits.h
EX_OK, EX_DATAERR, EX_NOINPUT = 0, 65, 66


def setUpModule():
    mounting.require_fuse()


def shard_name(number):
    return f"model-{number:05d}-of-{COUNT:05d}.gguf"


class ShardsTestCase(mounting.MountTestCase):
    def setUp(self):
        super().setUp()
        self.paths = []
        for i in range(COUNT):
            built = GgufFile()
            if i == 0:
                built.key(b"general.name", STRING, b"split")
            built.key(b"split.no", UINT16, i).key(b"split.count", UINT16, COUNT)
            built.key(b"split.tensors.count", INT32, COUNT)
            built.tensor(f"t{i}".encode(), [4096], F32, self.data_of(i))
            path = built.write(self.path(shard_name(i + 1)))
            self.paths.append(path)
            os.utime(path, ns=(10**18, 10**18 + (i == 1) * 10**9))

    @staticmethod
    def data_of(index):
        return bytes([index, 0, 0x80, 0x3f]) * 4096

    def read(self, name):
        return tree_check.read_file(os.path.join(self.mountpoint, name))

    def read_fails(self, name):
        with self.assertRaises(OSError) as caught:
            self.read(name)
        return os.strerror(caught.exception.errno)

    def info(self, name):
        return json.loads(self.read(f"tensors/{name}/info"))


class TestTree(ShardsTestCase):
    def test_any_is_named(self):
        for i, path in enumerate(self.paths):
            with self.subTest(path=path):
                mountpoint = self.mount(path, mountpoint=self.new_mountpoint(f"mnt{i}"))
                self.mountpoint = mountpoint
                self.assertEqual(os.fsencode(path), mounting.mount_entry(mountpoint)[1])
                self.assertEqual(["t0", "t1", "t2"],
                                 sorted(os.listdir(os.path.join(mountpoint, "tensors"))))
                self.assertEqual(b'"split"\n', self.read("metadata/general.name.json"))
                for j in range(COUNT):
                    self.assertEqual(self.data_of(j), self.read(f"tensors/t{j}/raw"))
                    self.assertEqual(self.data_of(j), self.read(f"tensors/t{j}/f32"))
                    info = self.info(f"t{j}")
                    self.assertEqual(os.path.basename(self.paths[j]), info["file"])
                    self.assertEqual(f"tensors/t{j}", info["path"])
                    with open(self.paths[j], "rb") as file:
                        file.seek(info["offset"])
                        self.assertEqual(self.data_of(j), file.read(info["n_bytes"]))

    def test_sizes_and_times(self):
        self.mount(self.paths[2])
        status = os.statvfs(self.mountpoint)
        blocks = sum(-(-os.path.getsize(path) // status.f_frsize) for path in self.paths)
        self.assertEqual(blocks, status.f_blocks)
        self.assertEqual(10**18 + 10**9, os.stat(self.mountpoint).st_mtime_ns)

    def test_in_the_background(self):
        """The daemon closes inherited descriptors, but not its shards."""
        for i, options in enumerate([[], ["-o", "direct_io"]]):
            self.mountpoint = self.new_mountpoint(f"mnt{i}")
            with open(os.devnull, "rb") as inherited:
                self.mount_in_background(*options, self.paths[1], self.mountpoint,
                                         pass_fds=[inherited.fileno()])
            for j in range(COUNT):
                self.assertEqual(self.data_of(j), self.read(f"tensors/t{j}/raw"))
            mounting.unmount(self.mountpoint)

    def test_a_file_changes(self):
        self.expect_log("00002-of-00003.gguf: it is shorter than when it was mounted",
                        "00003-of-00003.gguf: its header or size has changed since it was mounted")
        self.mount(self.paths[0], "-o", "direct_io")
        os.truncate(self.paths[1], os.path.getsize(self.paths[1]) - 4096)
        os.utime(self.paths[0])
        with open(self.paths[2], "r+b") as file:
            file.seek(24 + 8)
            file.write(b"S")  # the start of its first key's name
        self.assertEqual("Input/output error", self.read_fails("tensors/t1/raw"))
        self.assertEqual("Stale file handle", self.read_fails("tensors/t2/raw"))
        self.assertEqual(self.data_of(0), self.read("tensors/t0/raw"))

    def test_partial(self):
        with open(self.paths[1], "rb") as file:
            data = file.read()
        os.truncate(self.paths[1], len(data) - 4096)
        self.mount(self.paths[0], "-o", "partial")
        self.assertEqual("Input/output error", self.read_fails("tensors/t1/f32"))
        self.assertEqual(self.data_of(2), self.read("tensors/t2/f32"))
        with open(self.paths[1], "r+b") as file:
            file.write(data)
        self.assertEqual(self.data_of(1), self.read("tensors/t1/f32"))


class TestCommand(ShardsTestCase):
    def refused(self, status, *lines):
        for arguments in [["--check", self.paths[0]], [self.paths[0], self.mountpoint]]:
            result = self.run_ggufs(*arguments)
            self.assert_status(status, result)
            said = (result.out or result.err).replace("ggufs: ", "").splitlines()
            self.assertEqual(list(lines), [line for line in said if ": help: " not in line][:len(lines)])

    def test_check(self):
        for path in self.paths:
            result = self.run_ggufs("--check", "--data", path)
            self.assert_status(EX_OK, result)
            self.assertEqual(f"{path}: OK: GGUF v3, little-endian, 4 keys, 3 tensors, data read\n",
                             result.out)

    def test_check_names_the_file(self):
        with open(self.paths[2], "r+b") as file:
            file.seek(-4096 * 4, os.SEEK_END)
            file.write(b"\0\0\xc0\x7f")
        result = self.run_ggufs("--check", "--data", self.paths[0])
        self.assert_status(EX_DATAERR, result)
        offset = os.path.getsize(self.paths[2]) - 4096 * 4
        self.assertEqual(f'{self.paths[2]}: byte {offset}: tensor "t2": value 0 (row 0) is NaN or '
                         'infinite as float32 [not-finite]', result.out.splitlines()[0])
        self.assertIn(f'{self.paths[2]}: help: not-finite: ', result.out)

    def test_missing(self):
        os.remove(self.paths[1])
        self.refused(EX_NOINPUT, f"{self.paths[1]}: is missing: the model has 3 shards, and this is "
                     "number 2 [shard-missing]")

    def test_cut(self):
        os.truncate(self.paths[2], os.path.getsize(self.paths[2]) - 1)
        result = self.run_ggufs("--check", self.paths[0])
        self.assert_status(EX_DATAERR, result)
        first, remedy, note = result.out.splitlines()
        self.assertIn(f'{self.paths[2]}: byte ', first)
        self.assertIn(f'{self.paths[2]}: help: truncated-data: ', remedy)
        self.assertIn(f'{self.paths[2]}: note: the file should have', note)
        self.assertIn("in 1 of 1 tensors", note)

    def test_doubled(self):
        shutil.copy(self.paths[2], self.paths[1])
        result = self.run_ggufs(self.paths[0], self.mountpoint)
        self.assert_status(EX_DATAERR, result)
        self.assertIn(f"ggufs: {self.paths[1]}: byte ", result.err)
        self.assertIn("its name says that it is shard 2 of 3, its keys split.no and split.count say "
                      "shard 3 of 3", result.err)

    def test_renamed(self):
        path = self.path("two.gguf")
        os.rename(self.paths[1], path)
        result = self.run_ggufs(path, self.mountpoint)
        self.assert_status(EX_DATAERR, result)
        self.assertIn(f"ggufs: {path}: is shard 2 of 3", result.err)
        self.assertIn("-00002-of-00003.gguf", result.err)

    def test_not_readable(self):
        if os.geteuid() == 0:
            self.skipTest("root reads everything")
        os.chmod(self.paths[1], 0)
        self.refused(77, f"{self.paths[1]}: Permission denied [cannot-open]")


class TestFixture(mounting.MountTestCase):
    """stories260K, split by llama.cpp, gives the same tree as the whole file."""

    def contents(self, model):
        self.mount(model)
        found = {}
        for folder, _, names in os.walk(self.mountpoint):
            for name in names:
                path = os.path.join(folder, name)
                found[os.path.relpath(path, self.mountpoint)] = tree_check.read_file(path)
        mounting.unmount(self.mountpoint)
        return found

    def test_same_tree(self):
        whole = self.contents(mounting.fixture("gguf/stories260K.gguf"))
        more = {f"metadata/split.{name}.json" for name in ["no", "count", "tensors.count"]}
        for number in range(1, COUNT + 1):
            found = self.contents(mounting.fixture(f"split/stories260K-{number:05d}-of-00003.gguf"))
            self.assertEqual(set(whole) | more, set(found))
            for path, data in whole.items():
                if path.endswith(("/raw", "/f32", "f16", ".npy")) or path.startswith("metadata/"):
                    self.assertEqual(data, found[path], path)
