#!/usr/bin/env python3
"""The kernel reads model.gguf from the model file itself: -o passthrough."""
import mmap
import os
import platform
import shutil
import tempfile
import unittest

import mounting

setUpModule = mounting.require_fuse


def kernel():
    return tuple(int(part) for part in platform.release().split("-")[0].split(".")[:2])


def file_system(path):
    """The type of the file system that has the path."""
    real = os.path.realpath(path)
    best = ("", "")
    with open("/proc/self/mounts", encoding="utf-8") as file:
        for line in file:
            _, place, kind = line.split()[:3]
            if (real + "/").startswith(place.rstrip("/") + "/"):
                best = max(best, (place, kind), key=lambda pair: len(pair[0]))
    return best[1]


def can_pass_through():
    return (os.geteuid() == 0 and kernel() >= (6, 9) and file_system(tempfile.gettempdir()) in ("ext4", "xfs", "btrfs", "tmpfs")
            and open("/proc/self/uid_map", encoding="ascii").read().split() == ["0", "0", "4294967295"])


class PassthroughTestCase(mounting.MountTestCase):
    def model(self):
        path = self.path("model.gguf")
        shutil.copy(mounting.sample(), path)
        return path

    def reads_served(self, action):
        """How many times the server got a request, or read anything else, during the action."""
        _, server = self.processes_of(self.mountpoint)

        def count():
            with open(f"/proc/{server}/io", encoding="ascii") as file:
                return next(int(line.split()[1]) for line in file if line.startswith("syscr"))

        before = count()
        action()
        return count() - before


@unittest.skipUnless(can_pass_through(), "needs root, Linux 6.9 and a file system that is not stacked")
class TestPassthrough(PassthroughTestCase):
    def check_contents(self, model, flags=0):
        with open(model, "rb") as file:
            expected = file.read()
        path = os.path.join(self.mountpoint, "model.gguf")
        descriptor = os.open(path, os.O_RDONLY | flags)
        try:
            for offset, length in ((0, 1), (3, 4097), (4096, 65536), (len(expected) - 5, 100), (len(expected), 10)):
                self.assertEqual(expected[offset:offset + length], os.pread(descriptor, length, offset))
            with mmap.mmap(descriptor, 0, prot=mmap.PROT_READ) as mapping:
                self.assertEqual(expected, mapping[:])
        finally:
            os.close(descriptor)
        with open(path, "rb") as file:
            self.assertEqual(expected, file.read())

    def test_reads_do_not_reach_the_server(self):
        model = self.model()
        self.mount(model, "-o", "passthrough")
        path = os.path.join(self.mountpoint, "model.gguf")

        def read_all():
            with open(path, "rb", buffering=0) as file:
                while file.read(4096):
                    pass

        self.assertLess(self.reads_served(read_all), 10)
        self.check_contents(model)
        self.check_contents(model)  # opened again

    def test_direct_reads_of_any_alignment(self):
        model = self.model()
        self.mount(model, "-o", "passthrough")
        self.check_contents(model, os.O_DIRECT)
        self.check_contents(model)

    def test_other_files_are_served(self):
        model = self.model()
        self.mount(model, "-o", "passthrough")
        with open(os.path.join(self.mountpoint, "tensors.json"), "rb") as file:
            self.assertEqual(b"[", file.read(1))
        raw = os.path.join(self.mountpoint, "tensors/blk.0.attn_q.weight/raw")

        def read_all():
            with open(raw, "rb") as file:
                file.read()

        self.assertGreater(self.reads_served(read_all), 0)

    def test_edited_models_are_served(self):
        model = self.model()
        self.mount(model, "--set", "general.name=str:other", "-o", "passthrough")
        with open(os.path.join(self.mountpoint, "model.gguf"), "rb") as file:
            edited = file.read()
        self.assertIn(b"other", edited)
        with open(model, "rb") as file:
            self.assertNotEqual(file.read(), edited)

    def test_an_overwritten_model(self):
        """A model with another header cannot be opened any more."""
        model = self.model()
        self.mount(model, "-o", "passthrough")
        with open(model, "r+b") as file:
            file.write(b"GGML")
        os.utime(model, (1, 1))
        self.expect_log("model.gguf")
        with self.assertRaises(OSError):
            open(os.path.join(self.mountpoint, "model.gguf"), "rb").close()


class TestObstacles(PassthroughTestCase):
    def test_direct_io(self):
        result = self.run_ggufs(self.model(), self.mountpoint, "-o", "passthrough,direct_io")
        self.assert_status(64, result)
        self.assertIn("exclude each other", result.err)

    @unittest.skipUnless(can_pass_through(), "needs root, Linux 6.9 and a file system that is not stacked")
    def test_a_model_in_another_mount(self):
        """FUSE itself is stacked once a mount passes reads through."""
        self.mount(self.model(), "-o", "passthrough")
        inner = self.new_mountpoint("inner")
        result = self.run_ggufs(*mounting.MOUNT_OPTIONS, os.path.join(self.mountpoint, "model.gguf"), inner, "-o",
                                "passthrough")
        self.assert_status(0, result)
        self.assertEqual(f"ggufs: {inner}: -o passthrough has no effect: "
                         "the model lies on a file system that is stacked on another one\n", result.err)
        with open(os.path.join(inner, "model.gguf"), "rb") as a, open(mounting.sample(), "rb") as b:
            self.assertEqual(b.read(), a.read())


if __name__ == "__main__":
    unittest.main()
