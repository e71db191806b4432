#!/usr/bin/env python3
"""Every way of reading a slice of a file gives that slice of the whole file."""

import errno
import json
import mmap
import os
import random
import socket
import unittest
from concurrent.futures import ThreadPoolExecutor

import mounting
from gguf_file import ARRAY, F32, FLOAT32, STRING, Array, GgufFile
from gguf_reader import TYPES, Model
from plain_values import values_of

MARKS = ("sanitize",)

try:
    import numpy
except ImportError:
    numpy = None

setUpModule = mounting.require_fuse

# Lengths around the sizes of pages, text chunks, blocks and kernel requests.
EDGES = (1, 2, 3, 4, 7, 128, 255, 256, 1023, 1024, 4095, 4096, 4097, 32767, 32768, 65535, 65536,
         131072, 1 << 20)


def slices(size, count, seed):
    """Random (offset, length) of a file, with those around its start, its end and round numbers."""
    source = random.Random(seed)
    yield from ((0, size), (0, size + 1), (0, 1), (size, 1), (size + 1, 10), (size + 12345, 4096))
    yield from ((max(size - n, 0), m) for n in (1, 3, 4096, 5000) for m in (1, 2, n, n + 1, 100000))
    for _ in range(count):
        offset = source.randrange(size + 1)
        if source.random() < 0.5:
            edge = source.choice(EDGES)
            offset = max(offset // edge * edge + source.randint(-2, 2), 0)
        length = source.randrange(1, 1 << source.randrange(1, 21))
        if source.random() < 0.5:
            length = source.choice(EDGES)
        yield offset, length


def quantized_types_data(seed):
    """Random bytes are valid blocks of any type; their values are only compared with each other."""
    source = random.Random(seed)
    built = GgufFile()
    for type_id, (name, block_size, type_size) in TYPES.items():
        built.tensor(name.lower().encode(), [block_size * 7, 3], type_id,
                     source.randbytes(21 * type_size))
    return built


class ReadTestCase(mounting.MountTestCase):
    """A model of all types, with texts and tensors of several requests in length."""

    def setUp(self):
        super().setUp()
        source = random.Random(5)
        built = quantized_types_data(6)
        tokens = ["é€🗝\n\"".encode() * source.randrange(5) + b"%d\xff" % i for i in range(20000)]
        built.key(b"tokens", ARRAY, Array(STRING, tokens))
        built.key(b"scores", ARRAY, Array(FLOAT32, [i / 8 for i in range(50000)]))
        built.key(b"template", STRING, source.randbytes(200000))
        built.tensor(b"big", [256, 3000], 12, source.randbytes(3000 * 144))
        built.tensor(b"floats", [1000, 301], F32, source.randbytes(4 * 301000))
        self.model_path = built.write(self.path("model.gguf"))
        self.mount(self.model_path)
        self.model = Model(self.model_path)

    def files(self):
        """(path, whole contents, seed) of every kind of file."""
        names = ["metadata.json", "tensors.json", "model.gguf", "metadata/tokens.json",
                 "metadata/scores.json", "metadata/template.json", "tensors/big/info", "tensors/big/raw", "tensors/big/f32",
                 "tensors/floats/raw", "tensors/floats/f32"]
        names += [f"tensors/{name.lower()}/f32" for name, _, _ in TYPES.values()]
        for seed, name in enumerate(names):
            path = os.path.join(self.mountpoint, name)
            with open(path, "rb") as file:
                yield path, file.read(), seed

    def assert_slice(self, whole, offset, length, found, path):
        expected = whole[offset:offset + length]
        if found != expected:
            self.fail(f"{path}: {length} bytes at {offset} of {len(whole)}: "
                      f"{len(found)} bytes that differ from the whole file's {len(expected)}")


class TestSlices(ReadTestCase):
    def test_pread(self):
        for path, whole, seed in self.files():
            with open(path, "rb", buffering=0) as file:
                for offset, length in slices(len(whole), 60, seed):
                    found = os.pread(file.fileno(), length, offset)
                    self.assert_slice(whole, offset, length, found, path)

    def test_direct(self):
        """O_DIRECT: offsets and lengths reach the daemon unchanged."""
        with mmap.mmap(-1, 8 << 20) as buffer, memoryview(buffer) as view:
            for path, whole, seed in self.files():
                descriptor = os.open(path, os.O_RDONLY | os.O_DIRECT)
                try:
                    for offset, length in slices(len(whole), 60, seed):
                        length = min(length, len(view))
                        n = os.preadv(descriptor, [view[:length]], offset)
                        while 0 < n < length:  # a kernel request is shorter than the read
                            more = os.preadv(descriptor, [view[n:length]], offset + n)
                            if more == 0:
                                break
                            n += more
                        self.assert_slice(whole, offset, length, bytes(view[:n]), path)
                finally:
                    os.close(descriptor)

    def test_every_small_slice(self):
        """All offsets and lengths up to two blocks, of info and of a block type."""
        for name in ("tensors/big/info", "tensors/q4_0/f32", "tensors/q4_0/raw", "tensors/f64/f32"):
            path = os.path.join(self.mountpoint, name)
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECT)
            try:
                whole = os.pread(descriptor, 1 << 20, 0)
                self.assertEqual(os.fstat(descriptor).st_size, len(whole))
                for offset in range(130):
                    for length in (*range(1, 6), *range(7, 140, 11)):
                        found = os.pread(descriptor, length, offset)
                        self.assert_slice(whole, offset, length, found, path)
            finally:
                os.close(descriptor)

    def test_mmap(self):
        for path, whole, seed in self.files():
            with open(path, "rb") as file, \
                    mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
                self.assertEqual(len(whole), len(mapped))
                for offset, length in slices(len(whole), 30, seed):
                    self.assert_slice(whole, offset, length, mapped[offset:offset + length], path)

    def test_read_and_seek(self):
        for path, whole, seed in self.files():
            with open(path, "rb", buffering=0) as file:
                for offset, length in slices(len(whole), 20, seed):
                    file.seek(offset)
                    self.assert_slice(whole, offset, length, file.read(length), path)
                self.assertEqual(len(whole), file.seek(0, os.SEEK_END))

    def test_past_the_end(self):
        for path, whole, _ in self.files():
            with open(path, "rb", buffering=0) as file:
                for offset in (len(whole), len(whole) + 1, len(whole) + (1 << 20), 2**62):
                    self.assertEqual(b"", os.pread(file.fileno(), 4096, offset), path)
                self.assertEqual(whole[-3:], os.pread(file.fileno(), 4096, len(whole) - 3), path)

    def test_eight_threads(self):
        files = list(self.files())

        def read(number):
            source = random.Random(number)
            for _ in range(40):
                path, whole, _ = source.choice(files)
                flags = os.O_RDONLY | source.choice((0, os.O_DIRECT))
                descriptor = os.open(path, flags)
                try:
                    offset = source.randrange(len(whole))
                    length = source.randrange(1, 100000)
                    found = os.pread(descriptor, length, offset)
                    self.assert_slice(whole, offset, length, found, path)
                finally:
                    os.close(descriptor)
            return True
        with ThreadPoolExecutor(8) as threads:
            self.assertEqual([True] * 16, list(threads.map(read, range(16))))

    def test_eight_threads_on_a_new_mount(self):
        """On a new mount, all threads compute the texts and sizes at the same time."""
        whole = {path: data for path, data, _ in self.files()}
        other = self.mount(self.model_path, mountpoint=self.new_mountpoint("other"))

        def read(number):
            paths = sorted(whole)
            random.Random(number).shuffle(paths)
            for path in paths:
                name = os.path.relpath(path, self.mountpoint)
                with open(os.path.join(other, name), "rb") as file:
                    size = os.fstat(file.fileno()).st_size
                    if file.read() != whole[path] or size != len(whole[path]):
                        return name
            return None
        with ThreadPoolExecutor(8) as threads:
            self.assertEqual([None] * 8, list(threads.map(read, range(8))))

    def test_sendfile(self):
        for path, whole, _ in self.files():
            ours, theirs = socket.socketpair()
            with open(path, "rb") as file, ours, theirs:
                self.assertEqual(min(len(whole), 1000),
                                 os.sendfile(ours.fileno(), file.fileno(), 0, 1000))
                self.assert_slice(whole, 0, 1000, theirs.recv(1000, socket.MSG_WAITALL)
                                  if len(whole) >= 1000 else theirs.recv(1000), path)

    def test_copy_file_range(self):
        for path, whole, _ in self.files():
            target = self.path("copy")
            with open(path, "rb") as file, open(target, "wb") as copy:
                try:
                    while os.copy_file_range(file.fileno(), copy.fileno(), 1 << 20):
                        pass
                except OSError as error:
                    # Some kernels refuse to copy between file systems; programs then read and write.
                    self.assertIn(error.errno, (errno.EXDEV, errno.EINVAL, errno.EOPNOTSUPP,
                                                errno.ENOSYS))
                    return
            with open(target, "rb") as copy:
                self.assertEqual(whole, copy.read(), path)

    def test_offsets_in_the_model_file(self):
        """`file`, `offset` and `n_bytes` of info locate the bytes of raw in the model file."""
        for tensor in json.loads(self.read("tensors.json")):
            folder = os.path.dirname(os.fsdecode(mounting.mount_entry(self.mountpoint)[1]))
            with open(os.path.join(folder, tensor["file"]), "rb") as file:
                file.seek(tensor["offset"])
                self.assertEqual(self.read(f"{tensor['path']}/raw"),
                                 file.read(tensor["n_bytes"]))

    def read(self, name):
        with open(os.path.join(self.mountpoint, name), "rb") as file:
            return file.read()


class TestGolden(mounting.MountTestCase):
    """f32 of every type equals, bit for bit, ggml's values of the same blocks."""

    def check_golden(self, name, n_types):
        path = mounting.fixture(f"golden/{name}")
        self.mount(path)
        model = Model(path)
        wrong = []
        for tensor in model.tensors:
            golden = mounting.fixture(f"golden/{tensor.type_name.lower()}.f32")
            with open(golden, "rb") as file:
                expected = file.read()
            folder = os.path.join(self.mountpoint, "tensors", os.fsdecode(tensor.name))
            with open(os.path.join(folder, "f32"), "rb") as file:
                if file.read() != expected:
                    wrong.append(tensor.type_name)
            plain = values_of(model.raw(tensor), tensor.type_name, model.big_endian)
            self.assertIn(plain, (None, expected), "the oracle's own values")
        self.assertEqual([], wrong, "types whose f32 is not ggml's")
        self.assertEqual(n_types, len({tensor.type_id for tensor in model.tensors}))

    def test_all_types(self):
        self.check_golden("all-types.gguf", 35)

    def test_big_endian(self):
        self.check_golden("big-endian.gguf", 26)


@unittest.skipUnless(numpy, "NumPy is not installed")
class TestNumPy(mounting.MountTestCase):
    def test_fromfile_and_memmap(self):
        built = GgufFile()
        shapes = ([7], [3, 5], [2, 3, 4], [2, 3, 4, 5])
        for ne in shapes:
            count = int(numpy.prod(ne))
            built.tensor(b"t%d" % len(ne), ne, F32, numpy.arange(count, dtype="<f4").tobytes())
        self.mount(built.write(self.path("model.gguf")))
        for ne in shapes:
            folder = os.path.join(self.mountpoint, "tensors", f"t{len(ne)}")
            with open(os.path.join(folder, "info"), encoding="utf-8") as file:
                shape = json.load(file)["shape"]
            self.assertEqual(ne[::-1], shape)
            expected = numpy.arange(numpy.prod(ne), dtype="<f4").reshape(shape)
            whole = numpy.fromfile(os.path.join(folder, "f32"), dtype="<f4").reshape(shape)
            mapped = numpy.memmap(os.path.join(folder, "f32"), dtype="<f4", mode="r",
                                  shape=tuple(shape))
            numpy.testing.assert_array_equal(expected, whole)
            numpy.testing.assert_array_equal(expected, mapped)
            numpy.testing.assert_array_equal(expected[-1], mapped[-1])
            del mapped
