#!/usr/bin/env python3
"""Options for loading and serving: prefetch, mlock, direct_io, threads."""

import errno
import mmap
import os
import resource
import subprocess
import unittest
from concurrent.futures import ThreadPoolExecutor

import mounting
from gguf_file import F32, GgufFile

N_BYTES = 24 << 20  # more than two of the chunks in which prefetch reads


def setUpModule():
    mounting.require_fuse()


class LoadingTestCase(mounting.MountTestCase):
    def setUp(self):
        super().setUp()
        self.data = bytes(range(251)) * (N_BYTES // 251 + 1)
        self.data = self.data[:N_BYTES]
        built = GgufFile().tensor(b"t", [N_BYTES // 4], F32, self.data)
        self.model = self.write("model.gguf", built.to_bytes())

    def server_status(self, key):
        _, server = self.processes_of(self.mountpoint)
        with open(f"/proc/{server}/status", encoding="ascii") as file:
            return dict(line.split(":", 1) for line in file)[key].split()

    def read(self, name):
        with open(os.path.join(self.mountpoint, name), "rb") as file:
            return file.read()

    def drop_cache(self):
        descriptor = os.open(self.model, os.O_RDONLY)
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)

    def cached_share(self):
        """Return the share of the model's pages that is in memory."""
        done = subprocess.run(["fincore", "--bytes", "--noheadings", "--output", "RES", self.model],
                              capture_output=True, text=True)
        if done.returncode != 0:
            self.skipTest("no fincore here")
        return int(done.stdout) / os.path.getsize(self.model)

    def assert_reads(self):
        self.assertEqual(self.data, self.read("tensors/t/f32"))
        self.assertEqual(self.data, self.read("tensors/t/raw"))


class TestPrefetch(LoadingTestCase):
    def test_prefetch(self):
        self.drop_cache()
        if self.cached_share() > 0.5:
            self.skipTest("this file system keeps its pages in memory")
        self.mount(self.model, "-o", "prefetch")
        mounting.wait_until(lambda: self.cached_share() > 0.99, "the model is not brought in")
        self.assert_reads()

    def test_progress(self):
        """On a terminal the command returns when the whole model is in memory."""
        terminal, command_side = self.open_terminal()
        process = subprocess.Popen([mounting.BINARY, *mounting.MOUNT_OPTIONS, "-o", "prefetch",
                                    self.model, self.mountpoint], stdin=command_side,
                                   stdout=command_side, stderr=command_side)
        os.close(command_side)
        said = b""
        try:
            while True:
                said += os.read(terminal, 4096)
        except OSError as error:  # the end of a terminal
            self.assertEqual(errno.EIO, error.errno)
        os.close(terminal)
        self.addCleanup(mounting.unmount, self.mountpoint)
        self.assertEqual(0, process.wait())
        self.assertNotIn(b"ggufs:", said)
        self.assertGreater(self.cached_share(), 0.99)
        self.assert_reads()

    def test_ends_while_it_works(self):
        for _ in range(10):
            self.drop_cache()
            self.mount_in_background("-o", "prefetch", self.model, self.mountpoint)
            mounting.unmount(self.mountpoint)

    def test_too_large(self):
        with open("/proc/meminfo", encoding="ascii") as file:
            total = int(file.readline().split()[1]) << 10
        built = GgufFile().tensor(b"t", [1024], F32, bytes(4096)).to_bytes()
        model = self.write("large.gguf", built)
        try:
            os.truncate(model, 2 * total)
        except OSError as error:
            self.skipTest(f"no sparse file of {2 * total} bytes: {error}")
        result = self.run_ggufs(*mounting.MOUNT_OPTIONS, "-o", "prefetch", model, self.mountpoint)
        self.addCleanup(mounting.unmount, self.mountpoint)
        self.assert_status(0, result)
        self.assertRegex(result.err, r"\Aggufs: .*large.gguf: not read into memory: it has "
                                     r"[\d.]+ MB, and only [\d.]+ MB are available\n\Z")
        self.assertEqual(bytes(4096), self.read("tensors/t/f32"))

    def own_memory_group(self):
        """Make a control group. Returns its folder and the name of its memory limit's file."""
        if os.path.exists("/sys/fs/cgroup/cgroup.controllers"):
            root, limit = "/sys/fs/cgroup", "memory.max"
        else:
            root, limit = "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
        group = os.path.join(root, f"ggufs-test-{os.getpid()}")
        try:
            os.mkdir(group)
        except OSError as error:
            self.skipTest(f"no control group can be made: {error}")
        self.addCleanup(self.remove_group, group)
        if not os.path.exists(os.path.join(group, limit)):
            self.skipTest("no control groups for memory here")
        return group, limit

    @staticmethod
    def remove_group(group):
        def try_once():
            try:
                os.rmdir(group)
            except OSError as error:
                return error.errno != errno.EBUSY  # its last process is about to end
            return True
        mounting.wait_until(try_once, f"{group} stays busy")

    def test_control_group(self):
        """The limit of the process's own control group counts, although the root group has none."""
        group, limit = self.own_memory_group()
        model = self.write("larger.gguf", GgufFile().tensor(b"t", [1024], F32,
                                                            bytes(4096)).to_bytes())
        os.truncate(model, 128 << 20)
        with open(os.path.join(group, limit), "w", encoding="ascii") as file:
            file.write(str(64 << 20))
        inside = os.path.join(group, "inside")  # limited by the one above
        os.mkdir(inside)
        self.addCleanup(self.remove_group, inside)
        self.addCleanup(mounting.unmount, self.mountpoint)
        script = 'echo $$ >"$1/cgroup.procs" && shift && exec "$@"'
        done = subprocess.run(["sh", "-c", script, "sh", inside, mounting.BINARY,
                               *mounting.MOUNT_OPTIONS, "-o", "prefetch", model, self.mountpoint],
                              capture_output=True, text=True)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertIn("not read into memory: it has 134.2 MB, and only 67.1 MB are available",
                      done.stderr)

    def test_truncated_while_it_works(self):
        """Missing data does not end the daemon."""
        self.mount_in_background("-o", "prefetch", self.model, self.mountpoint)
        os.truncate(self.model, 4096)
        with self.assertRaises(OSError):
            self.read("tensors/t/raw")
        self.assertIn(b"F32", self.read("tensors/t/info"))


class TestMlock(LoadingTestCase):
    def locked_bytes(self):
        return int(self.server_status("VmLck")[0]) << 10

    def test_mlock(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
        if os.geteuid() != 0 and soft != resource.RLIM_INFINITY and soft < 2 * N_BYTES:
            self.skipTest("this user may not lock as much memory")
        self.mount(self.model, "-o", "mlock")
        mounting.wait_until(lambda: self.locked_bytes() >= N_BYTES, "nothing is locked")
        mounting.wait_until(lambda: int(self.server_status("VmRSS")[0]) << 10 >= N_BYTES,
                            "the model is not brought in")
        self.assert_reads()
        self.assertGreaterEqual(int(self.server_status("VmRSS")[0]) << 10, N_BYTES)

    def test_refused(self):
        """ggufs reports why it cannot lock the model, and serves it."""
        limit = f"ulimit -l 64; exec {mounting.BINARY} \"$@\""
        without_right = ["setpriv", "--bounding-set=-ipc_lock", "--inh-caps=-ipc_lock"]
        if os.geteuid() != 0:
            without_right = []
        done = subprocess.run([*without_right, "sh", "-c", limit, "sh", *mounting.MOUNT_OPTIONS,
                               "-o", "mlock", self.model, self.mountpoint],
                              capture_output=True, text=True)
        if done.returncode == 127:
            self.skipTest("no setpriv here")
        self.addCleanup(mounting.unmount, self.mountpoint)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertRegex(done.stderr, r"\Aggufs: .*model.gguf: not locked in memory: it has "
                                      rf"{os.path.getsize(self.model) / 1e6:.1f} MB, and the limit of "
                                      r"this user is 0.1 MB \(ulimit -l\)\n\Z")
        self.assertEqual(0, self.locked_bytes())
        self.assert_reads()


class TestDirectIo(LoadingTestCase):
    def test_direct_io(self):
        self.mount(self.model, "-o", "direct_io")
        self.assert_reads()
        path = os.path.join(self.mountpoint, "tensors/t/f32")
        with open(path, "rb") as file:
            for offset in (0, 1, 4095, N_BYTES - 7):
                self.assertEqual(self.data[offset:offset + 5000],
                                 os.pread(file.fileno(), 5000, offset))
            with mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ) as mapped:
                self.assertEqual(self.data[12345:23456], mapped[12345:23456])

    def test_nothing_is_kept(self):
        """The kernel caches nothing: a repeated read reaches the daemon."""
        self.expect_log("model.gguf: it is shorter than when it was mounted")
        self.mount(self.model, "-o", "direct_io")
        self.assert_reads()
        os.truncate(self.model, 4096)
        with self.assertRaises(OSError) as caught:
            self.read("tensors/t/f32")
        self.assertEqual(errno.EIO, caught.exception.errno)


class TestThreads(LoadingTestCase):
    def test_threads(self):
        """At most as many threads serve as the option allows, however many readers there are."""
        for option, limit in (("threads=1", 1), ("threads=3", 3), ("max_threads=2", 2)):
            with self.subTest(option):
                mountpoint = self.new_mountpoint(option)
                self.mount(self.model, "-o", option, "-o", "direct_io", mountpoint=mountpoint)
                path = os.path.join(mountpoint, "tensors/t/f32")

                def read_whole(_, path=path):
                    with open(path, "rb") as file:
                        return file.read()
                with ThreadPoolExecutor(16) as readers:
                    for data in readers.map(read_whole, range(16)):
                        self.assertTrue(data == self.data)
                _, server = self.processes_of(mountpoint)
                # One more takes requests, and the main thread waits for them.
                self.assertLessEqual(len(os.listdir(f"/proc/{server}/task")), limit + 2)

    def test_no_number(self):
        result = self.run_ggufs("-o", "threads=many", self.model, self.mountpoint)
        self.assert_status(64, result)
        self.assertIn("threads=many", result.err)


if __name__ == "__main__":
    unittest.main()
