#!/usr/bin/env python3
"""-o partial: a model that is still being downloaded."""

import errno
import json
import mmap
import os
import struct

import mounting
from gguf_file import F16, F32, STRING, GgufFile

MARKS = ("smoke",)

PAGE = 4096
N_BYTES = 40 * PAGE  # of each tensor, as F16
NAMES = ["t0", "t1", "t2"]

# sysexits.h
EX_OK, EX_DATAERR = 0, 65


def setUpModule():
    mounting.require_fuse()


def data_of(index):
    """F16 numbers from 1 to 2, so that nothing is zero by itself."""
    return struct.pack(f"<{N_BYTES // 2}H", *((0x3c00 + (7 * i + index) % 0x400)
                                              for i in range(N_BYTES // 2)))


def as_f32(data):
    n = len(data) // 2
    return struct.pack(f"<{n}f", *struct.unpack(f"<{n}e", data))


class PartialTestCase(mounting.MountTestCase):
    def setUp(self):
        super().setUp()
        built = GgufFile(alignment=PAGE).key(b"general.name", STRING, b"unfinished")
        self.tensors = {name: data_of(i) for i, name in enumerate(NAMES)}
        for name, data in self.tensors.items():
            built.tensor(name.encode(), [N_BYTES // 2], F16, data)
        self.data = built.to_bytes()
        self.first = len(self.data) - 3 * N_BYTES  # where t0 starts

    def start(self, n_bytes, *options):
        """Mounts a file of which only the first bytes exist."""
        self.model = self.write("model.gguf", self.data[:n_bytes])
        return self.mount(self.model, "-o", "partial", *options)

    def fill(self, start, end):
        """Write the bytes from `start` to `end`, as a download does; the times change, too."""
        with open(self.model, "r+b") as file:
            file.seek(start)
            file.write(self.data[start:end])

    def read(self, name, offset=0, length=-1):
        with open(os.path.join(self.mountpoint, name), "rb") as file:
            file.seek(offset)
            return file.read(length)

    def assert_whole(self, *names):
        for name in names:
            self.assertEqual(self.tensors[name], self.read(f"tensors/{name}/raw"))
            self.assertEqual(as_f32(self.tensors[name]), self.read(f"tensors/{name}/f32"))

    def assert_missing(self, name, offset=0, length=-1):
        for _ in range(2):  # an error is not kept
            with self.assertRaises(OSError) as caught:
                self.read(name, offset, length)
            self.assertEqual(errno.EIO, caught.exception.errno)

    def assert_metadata(self):
        self.assertEqual(b'"unfinished"\n', self.read("metadata/general.name.json"))
        self.assertIn(b'"t2"', self.read("tensors/t2/info"))


class TestGrowing(PartialTestCase):
    """A download that makes the file longer."""

    def test_grows(self):
        self.start(self.first + N_BYTES + 8 * PAGE + 100)
        self.assert_metadata()
        self.assert_whole("t0")
        self.assert_missing("tensors/t1/raw")
        self.assert_missing("tensors/t1/f32")
        self.assertEqual(N_BYTES, os.stat(os.path.join(self.mountpoint, "tensors/t1/raw")).st_size)
        # All complete pages can be read, although the kernel's requests reach beyond them.
        self.assertEqual(self.tensors["t1"][:8 * PAGE], self.read("tensors/t1/raw", 0, 8 * PAGE))
        self.assertEqual(as_f32(self.tensors["t1"][:8 * PAGE]),
                         self.read("tensors/t1/f32", 0, 16 * PAGE))
        self.assert_missing("tensors/t1/raw", 8 * PAGE, 1)
        self.assert_missing("tensors/t2/raw", 0, 1)
        self.assert_missing("tensors/t2/f32", N_BYTES, 4)

        self.fill(self.first + N_BYTES, self.first + 2 * N_BYTES)
        self.assert_whole("t0", "t1")
        self.assert_missing("tensors/t2/raw")
        self.fill(self.first + 2 * N_BYTES, len(self.data))
        self.assert_whole(*NAMES)
        self.assert_metadata()

    def test_model_gguf(self):
        """model.gguf has its full size from the start; reading missing data is an error."""
        for options in ((), ("-o", "set=general.name=str:unfinished")):
            with self.subTest(options):
                self.start(self.first + N_BYTES + PAGE, *options)
                self.assertEqual(len(self.data), os.stat(
                    os.path.join(self.mountpoint, "model.gguf")).st_size)
                self.assert_missing("model.gguf")
                self.fill(self.first + N_BYTES + PAGE, len(self.data))
                self.assertEqual(self.data, self.read("model.gguf"))
            mounting.unmount(self.mountpoint)

    def test_model_gguf_of_unknown_type(self):
        """The final size of the tensor is unknown."""
        built = GgufFile().tensor(b"known", [8], F16, bytes(16))
        built.tensor(b"unknown", [8], 77, bytes(64))
        data = built.to_bytes()
        model = self.write("model.gguf", data[:-32])
        self.mount(model, "-o", "partial")
        self.assertNotIn("model.gguf", os.listdir(self.mountpoint))

    def test_with_open_files(self):
        self.start(self.first + N_BYTES)
        descriptor = os.open(os.path.join(self.mountpoint, "tensors/t1/f32"), os.O_RDONLY)
        self.addCleanup(os.close, descriptor)
        mapping = mmap.mmap(descriptor, 2 * N_BYTES, prot=mmap.PROT_READ)
        self.addCleanup(mapping.close)
        with self.assertRaises(OSError):
            os.pread(descriptor, 10, 0)
        self.fill(self.first + N_BYTES, len(self.data))
        self.assertEqual(as_f32(self.tensors["t1"]), os.pread(descriptor, 2 * N_BYTES, 0))
        self.assertEqual(as_f32(self.tensors["t1"]), mapping[:])

    def test_direct_io(self):
        self.start(self.first + N_BYTES + 10, "-o", "direct_io")
        self.assert_whole("t0")
        self.assert_missing("tensors/t1/raw")
        with open(os.path.join(self.mountpoint, "tensors/t1/raw"), "rb", buffering=0) as file:
            self.assertEqual(self.tensors["t1"][:10], file.read(10))
        self.fill(self.first, len(self.data))
        self.assert_whole(*NAMES)

    def test_renamed_when_it_is_done(self):
        self.start(self.first)
        self.fill(self.first, len(self.data))
        os.rename(self.model, self.path("done.gguf"))
        self.assert_whole(*NAMES)

    def test_becomes_shorter(self):
        """A download that starts again."""
        self.start(len(self.data))
        self.assert_whole("t2")
        os.truncate(self.model, self.first + N_BYTES)
        self.assert_whole("t0")
        self.assert_missing("tensors/t2/raw")
        self.fill(self.first, len(self.data))
        self.assert_whole(*NAMES)

    def test_figures_of_data_that_arrive(self):
        """Data that were zeros first, and the statistics of both."""
        data = bytearray(self.data)
        data[self.first:self.first + N_BYTES] = bytes(N_BYTES)
        self.model = self.write("model.gguf", data)
        self.mount(self.model, "-o", "partial")
        self.assertEqual(0, json.loads(self.read("tensors/t0/stats.json"))["max"])
        self.fill(self.first, self.first + N_BYTES)
        found = json.loads(self.read("tensors/t0/stats.json"))
        self.assertEqual((1, 0), (found["min"], found["zeros"]))

    def test_a_whole_file(self):
        self.start(len(self.data))
        self.assert_whole(*NAMES)


class TestReserved(PartialTestCase):
    """A download that reserves the space: missing data is a hole."""

    def setUp(self):
        super().setUp()
        with open(self.path("holes"), "wb") as file:
            file.truncate(1 << 20)
            if os.lseek(file.fileno(), 0, os.SEEK_HOLE) != 0:
                mounting.skip_loudly("this file system does not report holes")

    def check(self, reserve):
        self.model = self.write("model.gguf", self.data[:self.first + N_BYTES])
        with open(self.model, "r+b") as file:
            reserve(file.fileno())
        self.mount(self.model, "-o", "partial")
        self.assert_metadata()
        self.assert_whole("t0")
        self.assert_missing("tensors/t1/raw")
        self.assert_missing("tensors/t2/f32")
        self.fill(self.first + 2 * N_BYTES, len(self.data))
        self.assert_whole("t0", "t2")
        self.assert_missing("tensors/t1/f32")
        self.fill(self.first + N_BYTES, self.first + 2 * N_BYTES)
        self.assert_whole(*NAMES)

    def test_sparse(self):
        self.check(lambda file: os.truncate(file, len(self.data)))

    def test_allocated(self):
        """Not every file system distinguishes reserved space from zeros that were written."""
        with open(self.path("probe"), "wb") as file:
            os.posix_fallocate(file.fileno(), 0, 1 << 20)
            if os.lseek(file.fileno(), 0, os.SEEK_HOLE) != 0:
                self.skipTest("this file system does not report reserved space as holes")
        self.check(lambda file: os.posix_fallocate(file, 0, len(self.data)))


class TestCommand(PartialTestCase):
    def test_refused_without_it(self):
        model = self.write("model.gguf", self.data[:-1])
        for arguments in [["--check", model], [model, self.mountpoint]]:
            result = self.run_ggufs(*arguments)
            self.assert_status(EX_DATAERR, result)
            self.assertIn('tensor "t2"', result.out + result.err)
            self.assertIn("(unfinished download?)", result.out + result.err)
            self.assertIn("-o partial mounts what is there", result.out + result.err)

    def test_the_header_must_be_there(self):
        model = self.write("model.gguf", self.data[:60])
        result = self.run_ggufs("-o", "partial", model, self.mountpoint)
        self.assert_status(EX_DATAERR, result)
        self.assertIn("unfinished download?", result.err)

    def test_check(self):
        model = self.write("model.gguf", self.data[:self.first + N_BYTES + 1])
        result = self.run_ggufs("--check", "--data", "-o", "partial", model)
        self.assert_status(EX_OK, result)
        self.assertEqual([
            f"{model}: note: 2 of 3 tensors are not complete yet [incomplete-data]",
            f"{model}: note: byte {self.first + N_BYTES}: tensor \"t1\": not complete yet, "
            "so not read [incomplete-data]",
            f"{model}: note: byte {self.first + 2 * N_BYTES}: tensor \"t2\": not complete yet, "
            "so not read [incomplete-data]",
            f"{model}: OK: GGUF v3, little-endian, 2 keys, 3 tensors, data read",
        ], [line for line in result.out.splitlines() if ": help: incomplete-data: " not in line])

    def test_check_finds_what_is_broken(self):
        built = GgufFile().tensor(b"good", [8], F32, bytes(range(32)))
        built.tensor(b"bad", [8], F32, struct.pack("<8f", *[float("nan")] * 8))
        built.tensor(b"missing", [8], F32, bytes(32))
        model = self.write("model.gguf", built.to_bytes()[:-1])
        result = self.run_ggufs("--check", "--data", "-o", "partial", model)
        self.assert_status(EX_DATAERR, result)
        self.assertIn('tensor "bad": 8 of 8 values are NaN or infinite as float32, from value 0 (row 0) to 7', result.out)
