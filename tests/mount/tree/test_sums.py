#!/usr/bin/env python3
"""SHA256SUMS against sha256sum and hashlib."""

import errno
import glob
import hashlib
import os
import random
import signal
import struct
import subprocess

import mounting
import tree_check
from gguf_file import F16, F32, I8, STRING, UINT16, GgufFile

setUpModule = mounting.require_fuse

NAME = "SHA256SUMS"


def fixtures(*patterns):
    return [path for pattern in patterns
            for path in sorted(glob.glob(os.path.join(mounting.FIXTURES, pattern)))]


class SumsTestCase(mounting.MountTestCase):
    def at(self, name):
        return os.path.join(self.mountpoint, name)

    def expected(self):
        """The whole text, from the files as they are read in the mount."""
        lines = []
        paths = sorted(glob.glob(glob.escape(self.mountpoint) + "/tensors/*/raw") +
                       glob.glob(glob.escape(self.mountpoint) + "/model.gguf"))
        for path in paths:
            if os.path.islink(os.path.dirname(path)):
                continue
            name = os.fsencode(os.path.relpath(path, self.mountpoint))
            digits = hashlib.sha256(tree_check.read_file(path)).hexdigest().encode()
            mark = b"\\" if b"\\" in name else b""
            lines.append(mark + digits + b"  " + name.replace(b"\\", b"\\\\") + b"\n")
        return lines

    def check_with_sha256sum(self):
        done = subprocess.run(["sha256sum", "--strict", "-c", NAME], cwd=self.mountpoint,
                              capture_output=True)
        self.assertEqual((0, b""), (done.returncode, done.stderr), done.stdout)
        return done.stdout.count(b": OK\n")

    def check_mounted(self):
        size = os.stat(self.at(NAME)).st_size
        expected = self.expected()
        found = tree_check.read_file(self.at(NAME))
        self.assertEqual((size, size), (len(found), os.stat(self.at(NAME)).st_size))
        self.assertEqual(sorted(expected), sorted(found.splitlines(keepends=True)))
        self.assertEqual(len(expected), self.check_with_sha256sum())
        return found


class TestModels(SumsTestCase):
    def check_models(self, paths):
        if not paths:
            mounting.skip_loudly(f"no fixtures in {mounting.FIXTURES}")
        for path in paths:
            with self.subTest(path=path):
                self.mount(path)
                self.check_mounted()
                mounting.unmount(self.mountpoint)

    def test_sample(self):
        """model.gguf is the model file itself, so that its line is the sum of the download."""
        self.mount(mounting.sample())
        found = self.check_mounted()
        digits = hashlib.sha256(tree_check.read_file(mounting.sample())).hexdigest()
        self.assertEqual(f"{digits}  model.gguf".encode(), found.splitlines()[-1])

    def test_gguf(self):
        self.check_models(fixtures("gguf/*.gguf"))

    def test_shards(self):
        self.check_models(fixtures("split/*-00002-of-*.gguf"))

    def test_old_formats(self):
        self.check_models(fixtures("legacy/for-tests-ggml-tiny.bin", "legacy/llama-ggjt1-q4_2.bin",
                                   "legacy/llama-ggml-q4_0.bin", "rwkv/tiny-*5v1*.bin"))

    def test_big_endian(self):
        values = struct.pack(">300f", *range(300))
        built = GgufFile(3, True).tensor(b"a", [300], F32, values).tensor(b"b", [300], F32, values)
        self.mount(built.write(self.path("model.gguf")))
        self.check_mounted()

    def test_edits(self):
        """The sum of model.gguf is that of the edited file."""
        self.mount(mounting.sample(), "-o", "set=general.name=str:other")
        self.check_mounted()

    def test_names(self):
        built = GgufFile()
        for name in (b"\\", b"back\\slash\\", b"\\n", b"new\nline", b"return\r", b"a/b", b" ", b"*x",
                     b"-c", b"\xff", "é".encode(), b"x" * 300, b"unknown"):
            built.tensor(name, [3], 99 if name == b"unknown" else I8, name[:3].ljust(3))
        self.mount(built.write(self.path("model.gguf")))
        self.assertEqual(13, len(self.check_mounted().splitlines()))

    def test_no_tensors(self):
        self.mount(GgufFile().key(b"general.name", STRING, b"x").write(self.path("model.gguf")))
        self.assertEqual(1, len(self.check_mounted().splitlines()))

    def test_many_tensors(self):
        """More lines than the kernel requests at once."""
        built = GgufFile()
        for i in range(20000):
            built.tensor(b"tensor-%d" % i, [1], F32, struct.pack("<f", i))
        self.mount(built.write(self.path("model.gguf")), "-o", "max_read=4096")
        found = tree_check.read_file(self.at(NAME)).splitlines()
        self.assertEqual(20001, len(found))
        for i in (0, 1, 777, 19999):
            digits = hashlib.sha256(struct.pack("<f", i)).hexdigest()
            self.assertEqual(f"{digits}  tensors/tensor-{i}/raw".encode(), found[i])

    def test_any_offset(self):
        self.mount(mounting.sample())
        descriptor = os.open(self.at(NAME), os.O_RDONLY)
        self.addCleanup(os.close, descriptor)
        source = random.Random(1)
        slices = [(source.randrange(5000), source.randrange(1, 300)) for _ in range(300)]
        parts = [os.pread(descriptor, length, offset) for offset, length in slices]
        whole = os.pread(descriptor, 1 << 20, 0)
        for (offset, length), part in zip(slices, parts):
            self.assertEqual(whole[offset:offset + length], part)

    def test_without_a_mount(self):
        """--cat and --extract make it; without a PATTERN, --extract does not."""
        self.mount(mounting.sample())
        expected = tree_check.read_file(self.at(NAME)).decode()
        self.assertEqual(expected, self.run_ggufs("--cat", NAME, mounting.sample()).out)
        for patterns, is_there in (([], False), ([NAME, "tensors/*/raw"], True)):
            target = self.path(f"tree-{is_there}")
            self.assert_status(0, self.run_ggufs("--extract", target, mounting.sample(), *patterns))
            self.assertEqual(is_there, os.path.exists(os.path.join(target, NAME)))
        done = subprocess.run(["sha256sum", "-c", "--quiet", "--ignore-missing", NAME],
                              cwd=target, capture_output=True)
        self.assertEqual((0, b"", b""), (done.returncode, done.stdout, done.stderr))


class TestChanges(SumsTestCase):
    def test_changed_data(self):
        path = GgufFile().tensor(b"t", [4], F32, b"before" + bytes(10)).write(
            self.path("model.gguf"))
        self.mount(path)
        self.check_mounted()
        with open(path, "r+b") as file:
            file.seek(-32, os.SEEK_END)  # the data are padded to 32 bytes
            file.write(b"after.")
        mounting.wait_until(lambda: tree_check.read_file(self.at("tensors/t/raw"))[:6] == b"after.",
                            "the new data")
        self.check_mounted()

    def test_partial(self):
        """Reading the line of a tensor whose data are missing is an error, never a wrong sum."""
        built = GgufFile()
        for i in range(3):
            built.tensor(b"t%d" % i, [100000], F16, bytes([i + 1]) * 200000)
        data = built.to_bytes()
        path = self.write("model.gguf", data[:-150000])
        self.mount(path, "-o", "partial")
        with open(self.at(NAME), "rb", buffering=0) as file:
            lines = file.read(2 * 81).splitlines()
            self.assertEqual([hashlib.sha256(bytes([i + 1]) * 200000).hexdigest().encode() +
                              b"  tensors/t%d/raw" % i for i in range(2)], lines)
            for offset in (2 * 81, 3 * 81, 0):
                self.assert_unreadable(file, 4096, offset)
            with open(path, "ab") as rest:
                rest.write(data[-150000:])
            self.assertEqual(3 * 81 + 77, len(os.pread(file.fileno(), 4096, 0)))
        self.check_mounted()

    def assert_unreadable(self, file, length, offset):
        with self.assertRaises(OSError) as caught:
            os.pread(file.fileno(), length, offset)
        self.assertEqual(errno.EIO, caught.exception.errno)

    def test_a_file_that_was_cut(self):
        self.expect_log("shorter than when it was mounted")
        path = GgufFile().tensor(b"a", [1000], F32, bytes(4000)).tensor(
            b"b", [1000], F32, bytes(4000)).write(self.path("model.gguf"))
        self.mount(path)
        os.truncate(path, os.path.getsize(path) - 100)
        with open(self.at(NAME), "rb", buffering=0) as file:
            self.assertIn(b"  tensors/a/raw\n", os.pread(file.fileno(), 80, 0))
            self.assert_unreadable(file, 1, 80)
            self.assert_unreadable(file, 4096, 0)


class TestLargeModel(SumsTestCase):
    """The second tensor is sparse and takes minutes."""

    def setUp(self):
        super().setUp()
        n_elements = 1 << 36
        built = GgufFile().tensor(b"small", [2], F32, b"12345678")
        path = built.tensor(b"large", [n_elements], F32).write(self.path("model.gguf"))
        os.truncate(path, os.path.getsize(path) + 4 * n_elements)
        self.process = None
        self.mount(path)
        self.line = hashlib.sha256(b"12345678").hexdigest().encode() + b"  tensors/small/raw\n"

    def is_idle(self):
        """All threads of the server sleep, also when they are looked at again."""
        return all(state == b"S" for _ in range(5) for state in self.states())

    def states(self):
        for pid in mounting.processes_of(self.mountpoint):
            for thread in os.listdir(f"/proc/{pid}/task"):
                yield (mounting.stat_of(f"{pid}/task/{thread}") or [b"S"])[0]

    def test_the_size_costs_nothing(self):
        self.assertEqual(len(self.line) + 2 * 66 + len("tensors/large/raw\nmodel.gguf\n"),
                         os.stat(self.at(NAME)).st_size)
        self.assertIn(NAME.encode(), subprocess.check_output(["ls", "-l", self.mountpoint]))

    def test_a_line_needs_no_other_file(self):
        with open(self.at(NAME), "rb") as file:
            for length in (1, len(self.line) // 2, len(self.line)):
                self.assertEqual(self.line[:length], os.pread(file.fileno(), length, 0))
        self.assertTrue(mounting.wait_until(self.is_idle, "the server is busy"))

    def test_a_reader_can_be_killed(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            with self.subTest(number):
                with subprocess.Popen(["cat", self.at(NAME)], stdout=subprocess.PIPE) as process:
                    with self.assertRaises(subprocess.TimeoutExpired):
                        process.wait(0.5)
                    process.send_signal(number)
                    process.wait(mounting.DEADLINE)
                mounting.wait_until(self.is_idle, "the server goes on hashing")
                with open(self.at(NAME), "rb") as file:
                    self.assertEqual(self.line, os.pread(file.fileno(), len(self.line), 0))

    def test_two_readers(self):
        """One waits for the line that the other is hashing, and can be killed, too."""
        readers = [subprocess.Popen(["cat", self.at(NAME)], stdout=subprocess.PIPE)
                   for _ in range(2)]
        try:
            with self.assertRaises(subprocess.TimeoutExpired):
                readers[1].wait(0.5)
            for reader in readers:
                self.assertIsNone(reader.poll())
                reader.terminate()
                reader.wait(mounting.DEADLINE)
            mounting.wait_until(self.is_idle, "the server goes on hashing")
        finally:
            for reader in readers:
                reader.kill()
                reader.communicate()

    def test_other_requests_meanwhile(self):
        """What takes long does not occupy the threads that answer others and learn of kills."""
        mounting.unmount(self.mountpoint)
        for option in ("threads=1", None):
            self.mount(self.path("model.gguf"), *(["-o", option] if option else ["-s"]))
            for name in (NAME, "tensors/large/stats.json"):
                with self.subTest(option=option, name=name):
                    self.check_other_requests(name)
            mounting.unmount(self.mountpoint)

    def check_other_requests(self, name):
        slow = subprocess.Popen(["cat", self.at(name)], stdout=subprocess.DEVNULL)
        other = None
        try:
            with self.assertRaises(subprocess.TimeoutExpired):
                slow.wait(0.5)
            other = subprocess.Popen(["cat", self.at("tensors/small/raw")],
                                     stdout=subprocess.PIPE)
            self.assertEqual(b"12345678", other.communicate(timeout=mounting.DEADLINE)[0])
            self.assertIsNone(slow.poll())
            slow.terminate()
            slow.wait(mounting.DEADLINE)
            mounting.wait_until(self.is_idle, "the server goes on computing")
        except subprocess.TimeoutExpired:
            for pid in mounting.processes_of(self.mountpoint)[:1]:  # else nothing can be killed
                os.kill(pid, signal.SIGTERM)
            raise
        finally:
            for process in filter(None, (slow, other)):
                process.kill()
                process.wait(mounting.DEADLINE)
                if process.stdout:
                    process.stdout.close()

    def test_the_mount_ends_meanwhile(self):
        with subprocess.Popen(["cat", self.at(NAME)], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as process:
            with self.assertRaises(subprocess.TimeoutExpired):
                process.wait(0.5)
            for pid in mounting.processes_of(self.mountpoint)[:1]:
                os.kill(pid, signal.SIGTERM)
            process.wait(mounting.DEADLINE)
        mounting.wait_until(lambda: not mounting.mount_entry(self.mountpoint), "still mounted")

    def test_extracting_can_be_interrupted(self):
        with subprocess.Popen([mounting.BINARY, "--extract", self.path("tree"),
                               self.path("model.gguf"), NAME], stdout=subprocess.DEVNULL) as process:
            with self.assertRaises(subprocess.TimeoutExpired):
                process.wait(0.5)
            process.terminate()
            self.assertEqual(128 + signal.SIGTERM, process.wait(mounting.DEADLINE))
        self.assertEqual([], os.listdir(self.path("tree")))


class TestShards(SumsTestCase):
    def test_a_shard_that_changed(self):
        """The sums of a model are of all its shards."""
        for i in range(2):
            built = GgufFile().key(b"split.no", UINT16, i).key(b"split.count", UINT16, 2)
            built.tensor(b"t%d" % i, [4], F32, b"%d" % i + bytes(15)).write(
                self.path(f"m-{i + 1:05d}-of-00002.gguf"))
        self.mount(self.path("m-00001-of-00002.gguf"))
        self.assertEqual(3, len(self.check_mounted().splitlines()))
        with open(self.path("m-00002-of-00002.gguf"), "r+b") as file:
            file.seek(-32, os.SEEK_END)
            file.write(b"new")
        mounting.wait_until(lambda: tree_check.read_file(self.at("tensors/t1/raw"))[:3] == b"new",
                            "the new data")
        self.check_mounted()
