#!/usr/bin/env python3
"""ggufs-run maps the model file itself if it is the one of the mount, and else the tree."""

import errno
import fcntl
import glob
import os
import shutil
import struct
import subprocess

import mounting
import runner_case

setUpModule = mounting.require_fuse

# ggufs(5)
GET_SOURCE_LOCATION = 0x90304701
LOCATION = "=QQQQqq4096s"

FOREVER = ["--ignore-eos", "-c", "50000"]


class TestLocation(mounting.MountTestCase):
    """What the mount says about the place of its files."""

    def setUp(self):
        super().setUp()
        self.model = self.path("model.gguf")
        shutil.copyfile(mounting.sample(), self.model)

    def locate(self, name, mountpoint=None):
        with open(os.path.join(mountpoint or self.mountpoint, name), "rb") as file:
            values = bytearray(struct.calcsize(LOCATION))
            fcntl.ioctl(file, GET_SOURCE_LOCATION, values)
            return struct.unpack(LOCATION, values)

    def assert_not_located(self, name, code=errno.ENOTTY):
        with self.assertRaises(OSError) as raised:
            self.locate(name)
        self.assertEqual(code, raised.exception.errno)

    def test_parts_of_the_file(self):
        self.mount(self.model)
        status = os.stat(self.model)
        with open(self.model, "rb") as file:
            data = file.read()
        for name in ("tensors/output.weight/raw", "tensors/output_norm.weight/f32", "model.gguf"):
            offset, device, inode, size, seconds, nanoseconds, path = self.locate(name)
            self.assertEqual((status.st_dev, status.st_ino, status.st_size), (device, inode, size))
            self.assertEqual(status.st_mtime_ns, seconds * 10**9 + nanoseconds)
            self.assertEqual(os.fsencode(self.model), path.rstrip(b"\0"))
            with open(os.path.join(self.mountpoint, name), "rb") as file:
                content = file.read()
            self.assertEqual(data[offset:offset + len(content)], content)

    def test_other_files(self):
        self.mount(self.model)
        for name in ("metadata.json", "tensors/output.weight/info", "tensors/output.weight/f32"):
            self.assert_not_located(name)
        folder = os.open(os.path.join(self.mountpoint, "tensors"), os.O_RDONLY)
        self.addCleanup(os.close, folder)
        with self.assertRaises(OSError) as raised:
            fcntl.ioctl(folder, GET_SOURCE_LOCATION, bytearray(struct.calcsize(LOCATION)))
        self.assertEqual(errno.ENOTTY, raised.exception.errno)

    def test_a_growing_file(self):
        self.mount(self.model, "-o", "partial")
        self.assert_not_located("tensors/output.weight/raw")

    def test_a_changed_file(self):
        self.mount(self.model)
        raw = open(os.path.join(self.mountpoint, "tensors/output.weight/raw"), "rb")
        self.addCleanup(raw.close)
        os.utime(self.model, ns=(1, 1))
        self.assertEqual((0, 1), self.locate("tensors/output.weight/raw")[4:6])
        self.expect_log("changed")
        with open(self.model, "r+b") as file:
            file.seek(8)
            file.write(b"\xff")
        with self.assertRaises(OSError) as raised:
            fcntl.ioctl(raw, GET_SOURCE_LOCATION, bytearray(struct.calcsize(LOCATION)))
        self.assertEqual(errno.ESTALE, raised.exception.errno)


class TestMapping(runner_case.RunnerTestCase):
    def setUp(self):
        super().setUp()
        self.original = self.model
        self.model = self.path("model.gguf")
        shutil.copyfile(self.original, self.model)

    def begin(self, model):
        """Start a run that does not end, and wait until it generates."""
        process = self.start(*FOREVER, model, "a", model=model)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        process.stdout.read(2)
        return process

    def mapped(self, model):
        """Returns the paths of the weights that a run maps."""
        process = self.begin(model)
        with open(f"/proc/{process.pid}/maps", encoding="utf-8") as file:
            paths = {line.split(maxsplit=5)[5].strip() for line in file if len(line.split()) > 5}
        process.terminate()
        process.communicate(timeout=mounting.DEADLINE)
        return {path for path in paths if path.endswith((".gguf", "/raw"))}

    def assert_tree_is_mapped(self, model):
        paths = self.mapped(model)
        self.assertIn("raw", {os.path.basename(path) for path in paths})
        self.assertNotIn(self.model, paths)

    def test_the_model_file(self):
        self.mount(self.model)
        self.assertEqual({self.model}, self.mapped(self.model))
        self.assertEqual({self.model}, self.mapped(self.mountpoint))

    def test_shards(self):
        self.mount(self.model, "-o", "split=4")
        folder = self.path("shards")
        mounting.copy_tree(os.path.join(self.mountpoint, "split"), folder)
        shards = sorted(glob.glob(os.path.join(folder, "*.gguf")))
        self.assertGreater(len(shards), 1)
        paths = self.mapped(shards[0])
        self.assertLessEqual(paths, set(shards))
        self.assertGreater(len(paths), 1)
        self.assertEqual(self.generate(model=self.original), self.generate(model=shards[-1]))

    def test_a_copy_of_the_tree(self):
        self.mount(self.model)
        copy = self.path("copy")
        mounting.copy_tree(self.mountpoint, copy)
        self.assert_tree_is_mapped(copy)
        raw = os.path.join(copy, "tensors/output.weight/raw")
        os.chmod(raw, 0o644)
        with open(raw, "r+b") as file:
            file.write(bytes(os.path.getsize(raw)))
        self.assertNotEqual(self.generate(model=self.model), self.generate(model=copy))

    def test_another_file_of_that_name(self):
        """The mount keeps the file that was mounted."""
        text = self.generate(model=self.model)
        self.mount(self.model)
        os.rename(self.model, self.path("moved.gguf"))
        self.assert_tree_is_mapped(self.mountpoint)
        self.assertEqual(text, self.generate(model=self.mountpoint))
        with open(self.original, "rb") as file:
            data = file.read()
        half = len(data) // 2
        self.write("model.gguf", data[:half] + bytes(len(data) - half))
        shutil.copystat(self.original, self.model)
        self.assert_tree_is_mapped(self.mountpoint)
        self.assertEqual(text, self.generate(model=self.mountpoint))
        os.unlink(self.model)
        os.mkfifo(self.model)
        self.assertEqual(text, self.generate(model=self.mountpoint))

    def test_a_growing_file(self):
        self.mount(self.model, "-o", "partial")
        self.assert_tree_is_mapped(self.mountpoint)

    def test_changes_meanwhile(self):
        self.mount(self.model)
        process = self.begin(self.mountpoint)
        os.utime(self.model)
        process.stdout.read(20)
        self.assertIsNone(process.poll(), "only the times have changed")
        self.expect_log("changed")
        with open(self.model, "r+b") as file:
            file.seek(8)
            file.write(b"\xff")
        _, err = process.communicate(timeout=mounting.DEADLINE)
        self.assertEqual(runner_case.EX_IOERR, process.returncode, err)
        self.assertIn(b"model.gguf: the file was changed meanwhile", err)

    def test_a_later_shard_changes_meanwhile(self):
        folder = self.path("shards")
        result = self.run_ggufs("-o", "split=4", "--extract", folder, self.model, "split/*")
        self.assert_status(0, result)
        self.mount(sorted(glob.glob(os.path.join(folder, "split/*.gguf")))[0])
        shards = sorted(self.mapped(self.mountpoint))
        self.assertGreater(len(shards), 1)
        process = self.begin(self.mountpoint)
        self.expect_log("changed")
        os.chmod(shards[-1], 0o644)
        with open(shards[-1], "r+b") as file:
            file.seek(8)
            file.write(b"\xff")
        _, err = process.communicate(timeout=mounting.DEADLINE)
        self.assertEqual(runner_case.EX_IOERR, process.returncode, err)
        self.assertIn(b"the file was changed meanwhile", err)

    def mount_liar(self, tree, victim, owner):
        """Mount a copied tree with a server that says its bytes are in `victim` (liar.c)."""
        program = os.path.join(mounting.ROOT, "build", "liar")
        self.assertTrue(os.path.exists(program), f"{program} is missing: run make build/liar")
        server = subprocess.Popen([program, tree, victim, str(owner), self.mountpoint])
        self.addCleanup(server.wait)
        self.addCleanup(mounting.unmount, self.mountpoint)
        mounting.wait_until(lambda: mounting.mount_entry(self.mountpoint) or
                            server.poll() is not None, "no hostile mount")

    def test_a_hostile_server(self):
        """Only mounts of the caller or root are believed, and only with the bytes of the tree."""
        copy = self.path("copy")
        self.assert_status(0, self.run_ggufs("--extract", copy, self.model, "*"))
        text = self.generate(model=self.model)
        other = self.write("other.gguf", bytes(os.path.getsize(self.model)))
        me = os.geteuid()
        cases = [("our server", self.model, me, {self.model}), ("another file", other, me, None)]
        if me == 0:
            cases.append(("another user's server", self.model, 1234, None))
        for name, victim, owner, expected in cases:
            with self.subTest(name):
                self.mount_liar(copy, victim, owner)
                paths = self.mapped(self.mountpoint)
                if expected:
                    self.assertEqual(expected, paths)
                else:
                    self.assertEqual({"raw"}, {os.path.basename(path) for path in paths})
                self.assertEqual(text, self.generate(model=self.mountpoint))
                mounting.unmount(self.mountpoint)

    def test_a_copy_with_links(self):
        """A copied tree may have links inside it, but none out of it."""
        copy = self.path("copy")
        self.assert_status(0, self.run_ggufs("--extract", copy, self.model, "*"))
        tensor, moved = os.path.join(copy, "tensors/output.weight"), os.path.join(copy, "moved")
        os.rename(tensor, moved)
        os.symlink("../moved", tensor)
        self.assertEqual(self.generate(model=self.model), self.generate(model=copy))
        for name in ("moved/raw", "tensors.json", "metadata.json"):
            path = os.path.join(copy, name)
            outside = self.path(os.path.basename(name))
            os.rename(path, outside)
            for target in (outside, os.path.relpath(outside, os.path.dirname(path))):
                os.symlink(target, path)
                err = self.refused(os.EX_DATAERR, copy, "a", model=copy)
                self.assertIn("a symbolic link leads out of the tree", err)
                os.unlink(path)
            os.rename(outside, path)
        self.generate(model=copy)

    def test_a_file_that_shrinks(self):
        process = self.begin(self.model)
        os.truncate(self.model, os.path.getsize(self.model) - 1)
        _, err = process.communicate(timeout=mounting.DEADLINE)
        self.assertEqual(runner_case.EX_IOERR, process.returncode, err)
        self.assertIn(b"changed", err)
