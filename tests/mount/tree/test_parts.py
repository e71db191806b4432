#!/usr/bin/env python3
"""
Old llama models in parts, compared with the same model in one file.

The splitting below follows llama.cpp of March 2023, llama_model_load(), read the other way round.
"""

import glob
import json
import os
import random
import struct

import numpy

import mounting

MARKS = ("sanitize",)

setUpModule = mounting.require_fuse

EX_OK, EX_DATAERR, EX_NOINPUT = 0, 65, 66

F32, F16, Q4_0, Q4_1 = 0, 1, 2, 3
# Elements and bytes of a block, by id and by whether its scales are float16 (ggjt 3).
BLOCKS = {False: {F32: (1, 4), F16: (1, 2), Q4_0: (32, 20), Q4_1: (32, 24), 4: (16, 10), 6: (32, 22),
                  7: (32, 24), 8: (32, 36)},
          True: {F32: (1, 4), F16: (1, 2), Q4_0: (32, 18), Q4_1: (32, 20), 6: (32, 22), 7: (32, 24),
                 8: (32, 34)}}
WIDTH, HEADS, LAYERS, FORWARD, VOCABULARY = 256, 8, 2, 512, 64


def row_bytes(magic, version, type_id, n_columns):
    elements, n_bytes = BLOCKS[magic == b"tjgg" and version == 3][type_id]
    assert n_columns % elements == 0
    return n_columns // elements * n_bytes


class OldFile:
    """A file of one of the old formats: what precedes the tensors, and (name, type, ne, data)."""

    def __init__(self, magic, version, start, tensors):
        self.magic, self.version, self.start, self.tensors = magic, version, start, tensors

    @classmethod
    def make(cls, magic, version, type_id, seed):
        rng = numpy.random.default_rng(seed)
        start = magic + (struct.pack("<I", version) if version else b"")
        start += struct.pack("<7I", VOCABULARY, WIDTH, 256, HEADS, LAYERS, WIDTH // HEADS, type_id)
        for i in range(VOCABULARY):
            start += struct.pack("<I", 3) + b"t%02d" % i + (struct.pack("<f", -i) if version else b"")
        matrices = [("tok_embeddings", WIDTH, VOCABULARY), ("output", WIDTH, VOCABULARY)]
        vectors = ["norm"]
        for i in range(LAYERS):
            vectors += [f"layers.{i}.attention_norm", f"layers.{i}.ffn_norm"]
            matrices += [(f"layers.{i}.attention.{w}", WIDTH, WIDTH) for w in ("wq", "wk", "wv", "wo")]
            matrices += [(f"layers.{i}.feed_forward.w1", WIDTH, FORWARD),
                         (f"layers.{i}.feed_forward.w2", FORWARD, WIDTH),
                         (f"layers.{i}.feed_forward.w3", WIDTH, FORWARD)]
        tensors = [(f"{name}.weight".encode(), F32, (WIDTH,),
                    rng.normal(size=WIDTH).astype("<f4").tobytes()) for name in vectors]
        for name, columns, rows in matrices:
            values = rng.normal(size=(rows, columns)).astype("<f4")
            if type_id == F16:
                data = values.astype("<f2").tobytes()
            elif type_id == F32:
                data = values.tobytes()
            else:  # the scale of a block is one of its own floats, its numbers are random
                n_bytes = row_bytes(magic, version, type_id, 32)
                blocks = rng.integers(0, 256, (rows * columns // 32, n_bytes), dtype=numpy.uint8)
                half = magic == b"tjgg" and version == 3
                scales = values.reshape(-1, 32)[:, :2 if type_id == Q4_1 else 1]
                scales = numpy.ascontiguousarray(scales.astype("<f2" if half else "<f4"))
                scales = scales.view(numpy.uint8).reshape(len(blocks), -1)
                blocks[:, :scales.shape[1]] = scales
                data = blocks.tobytes()
            tensors.append((f"{name}.weight".encode(), type_id, (columns, rows), data))
        return cls(magic, version, start, tensors)

    @classmethod
    def read(cls, path):
        with open(path, "rb") as file:
            data = file.read()
        magic, at = data[:4], 4
        version = 0 if magic == b"lmgg" else struct.unpack_from("<I", data, 4)[0]
        at += 4 if version else 0
        n_vocab, = struct.unpack_from("<I", data, at)
        at += 28
        for _ in range(n_vocab):
            at += 4 + struct.unpack_from("<I", data, at)[0] + (4 if version else 0)
        found = cls(magic, version, data[:at], [])
        while at < len(data):
            n_dims, length, type_id = struct.unpack_from("<3I", data, at)
            ne = struct.unpack_from(f"<{n_dims}I", data, at + 12)
            at += 12 + 4 * n_dims
            name = data[at:at + length]
            at += length
            at += -at % found.alignment()
            size = row_bytes(magic, version, type_id, ne[0]) * (ne[1] if n_dims > 1 else 1)
            found.tensors.append((name, type_id, ne, data[at:at + size]))
            at += size
        return found

    def alignment(self):
        return 32 if self.magic == b"tjgg" else 1

    def bytes(self):
        out = bytearray(self.start)
        for name, type_id, ne, data in self.tensors:
            out += struct.pack(f"<3I{len(ne)}I", len(ne), len(name), type_id, *ne) + name
            out += bytes(-len(out) % self.alignment()) + data
        return bytes(out)

    def part(self, index, count):
        tensors = []
        for name, type_id, ne, data in self.tensors:
            if len(ne) == 2:
                columns, rows = ne
                length = row_bytes(self.magic, self.version, type_id, columns)
                if any(word in name for word in (b"tok_embeddings", b"attention.wo", b"feed_forward.w2")):
                    ne = (columns // count, rows)
                    piece = row_bytes(self.magic, self.version, type_id, ne[0])
                    data = b"".join(data[r * length + index * piece:][:piece] for r in range(rows))
                else:
                    ne = (columns, rows // count)
                    data = data[index * ne[1] * length:][:ne[1] * length]
            tensors.append((name, type_id, ne, data))
        return OldFile(self.magic, self.version, self.start, tensors)


class PartsTestCase(mounting.MountTestCase):
    def write_parts(self, name, model, count):
        """Write a model in parts. Returns their paths."""
        return [self.write(name + (f".{i}" if i else ""), model.part(i, count).bytes())
                for i in range(count)]

    def extract(self, model):
        """Extract the whole tree. Returns the contents of all files, by path."""
        folder = self.new_mountpoint(f"tree-{os.path.basename(model)}-{random.random()}")
        result = self.run_ggufs("--extract", model, folder, "*")
        self.assert_status(EX_OK, result)
        found = {}
        for top, _, names in os.walk(folder):
            for name in names:
                path = os.path.join(top, name)
                if not os.path.islink(path):
                    with open(path, "rb") as file:
                        found[os.path.relpath(path, folder)] = file.read()
        return found

    def compare(self, whole, parts, count):
        """The trees are the same, but for the place of the data and the format in the summary."""
        expected, found = self.extract(whole), self.extract(parts)
        self.assertEqual(set(expected), set(found))
        self.assertLess({"model.gguf", "model.safetensors", "hf/model.safetensors"}, set(found))
        n_pieces = 0
        for path, data in expected.items():
            name = os.path.basename(path)
            if name == "info":
                info, other = json.loads(data), json.loads(found[path])
                n_pieces += other.pop("parts", 1) == count
                other.pop("piece_bytes", None)
                for key in ("file", "offset"):
                    del info[key], other[key]
                self.assertEqual(info, other)
            elif name == "summary.txt":
                self.assertIn(f" in {count} parts,".encode(), found[path])
            elif path != "tensors.json":
                self.assertTrue(data == found[path], path)
        infos = [json.loads(data) for path, data in expected.items() if path.endswith("/info")]
        self.assertEqual(sum(len(info["shape"]) == 2 for info in infos), n_pieces)


class TestParts(PartsTestCase):
    def test_same_tree(self):
        kinds = [(b"lmgg", 0, F16, 4), (b"fmgg", 1, Q4_0, 8), (b"fmgg", 1, F32, 2),
                 (b"tjgg", 1, Q4_1, 2), (b"tjgg", 3, Q4_0, 4)]
        for i, (magic, version, type_id, count) in enumerate(kinds):
            with self.subTest(magic=magic, version=version, type=type_id, count=count):
                model = OldFile.make(magic, version, type_id, i)
                whole = self.write(f"whole{i}.bin", model.bytes())
                paths = self.write_parts(f"model{i}.bin", model, count)
                self.compare(whole, random.choice(paths), count)

    def test_fixtures(self):
        """stories260K in the old formats; its rows of 64 make two parts of a block each."""
        for path in glob.glob(os.path.join(mounting.FIXTURES, "legacy", "llama-*.bin")):
            with self.subTest(path=path):
                paths = self.write_parts(os.path.basename(path), OldFile.read(path), 2)
                self.compare(path, paths[1], 2)

    def test_slices(self):
        """Any slice of a file in a mount, of values and bytes, through rows made of pieces."""
        model = OldFile.make(b"fmgg", 1, Q4_0, 7)
        whole = self.write("whole.bin", model.bytes())
        paths = self.write_parts("model.bin", model, 4)
        first = self.mount(whole, mountpoint=self.new_mountpoint("whole"))
        second = self.mount(paths[2], mountpoint=self.new_mountpoint("parts"))
        numbers = random.Random(1)
        for name in ("raw", "f32", "f16", "f32.npy"):
            for tensor in ("tok_embeddings", "layers.1.attention.wo", "layers.0.feed_forward.w2",
                           "layers.0.feed_forward.w1", "norm"):
                path = os.path.join("tensors", f"{tensor}.weight", name)
                with open(os.path.join(first, path), "rb", 0) as a, \
                        open(os.path.join(second, path), "rb", 0) as b:
                    size = os.fstat(a.fileno()).st_size
                    self.assertEqual(size, os.fstat(b.fileno()).st_size)
                    for _ in range(50):
                        offset, length = numbers.randrange(size), numbers.randrange(9000)
                        self.assertEqual(os.pread(a.fileno(), length, offset),
                                         os.pread(b.fileno(), length, offset), path)

    def test_places(self):
        """`info` says where the pieces lie in the parts."""
        paths = self.write_parts("model.bin", OldFile.make(b"lmgg", 0, F16, 3), 4)
        files = []
        for path in paths:
            with open(path, "rb") as file:
                files.append(file.read())
        self.mount(paths[1])
        with open(os.path.join(self.mountpoint, "tensors.json"), "rb") as file:
            infos = json.load(file)
        self.assertEqual(3 + 9 * LAYERS, len(infos))
        for info in infos:
            self.assertEqual("model.bin", info["file"])
            n, piece = info.get("parts", 1), info.get("piece_bytes", info["n_bytes"])
            self.assertEqual(len(info["shape"]) == 2, n == 4)
            data = b"".join(files[part][info["offset"] + i * piece:][:piece]
                            for i in range(info["n_bytes"] // piece // n) for part in range(n))
            with open(os.path.join(self.mountpoint, info["path"], "raw"), "rb") as file:
                self.assertTrue(data == file.read(), info["name"])

    def test_in_the_background(self):
        """The daemon keeps the parts open, with and without its cache."""
        model = OldFile.make(b"lmgg", 0, F16, 4)
        paths = self.write_parts("model.bin", model, 2)
        for i, options in enumerate([[], ["-o", "direct_io"]]):
            mountpoint = self.new_mountpoint(f"mnt{i}")
            self.mount_in_background(*options, paths[1], mountpoint)
            with open(os.path.join(mountpoint, "tensors", "output.weight", "raw"), "rb") as file:
                self.assertTrue(file.read() in model.bytes())
            self.assertEqual(os.fsencode(paths[1]), mounting.mount_entry(mountpoint)[1])
            mounting.unmount(mountpoint)


class TestCommand(PartsTestCase):
    def setUp(self):
        super().setUp()
        self.model = OldFile.make(b"fmgg", 1, F32, 5)
        self.paths = self.write_parts("model.bin", self.model, 2)

    def check(self, status, *said, model=None, options=()):
        result = self.run_ggufs("--check", *options, model or self.paths[0])
        self.assert_status(status, result)
        for text in said:
            self.assertIn(text, result.out + result.err)

    def test_commands(self):
        self.check(EX_OK, "OK: ggmf v1 llama in 2 parts", options=["--data"])
        self.check(EX_OK, "OK: ggmf v1 llama in 2 parts", model=self.paths[1])
        result = self.run_ggufs("--check", *self.paths)
        self.assertEqual(1, result.out.count("OK"), result)
        listed = self.run_ggufs("--list", self.paths[1]).out.splitlines()
        self.assertIn("model.gguf", " ".join(listed))
        done = self.run_ggufs("--cat", self.paths[1], "summary.txt")
        self.assertIn("ggmf v1 llama in 2 parts", done.out)

    def test_all_are_named(self):
        self.mount_in_background(*self.paths, self.mountpoint)
        mounting.unmount(self.mountpoint)

    def test_missing(self):
        os.unlink(self.paths[0])
        self.check(EX_NOINPUT, "model.bin: is missing: the model has 2 parts, and this is number 1",
                   model=self.paths[1])

    def test_cut(self):
        os.truncate(self.paths[1], os.path.getsize(self.paths[1]) - 1)
        self.check(EX_DATAERR, "model.bin.1", "unfinished download?")

    def test_of_another_model(self):
        other = OldFile.make(b"fmgg", 1, F16, 5)
        self.write("model.bin.1", other.part(1, 2).bytes())
        self.check(EX_DATAERR, "model.bin.1: byte 32: its hyperparameters or vocabulary are not those of")

    def test_not_a_number(self):
        """--check --data names the part, and the byte in it."""
        data = bytearray(self.model.part(1, 2).bytes())
        name = b"feed_forward.w2.weight"
        at = data.index(name) + len(name) + 3 * FORWARD // 2 * 4 + 8
        data[at:at + 4] = struct.pack("<f", float("nan"))
        path = self.write("model.bin.1", bytes(data))
        self.check(EX_DATAERR, f"{path}: byte {at}: tensor", "(row 3) is NaN",
                   options=["--data"])

    def test_other_names(self):
        path = self.write("model.old", self.model.part(0, 2).bytes())
        self.check(EX_DATAERR, "is one of 2 parts of a model, so its name must end in .bin",
                   model=path)

    def test_a_part_changes(self):
        self.expect_log("model.bin: its header or size has changed since it was mounted")
        self.mount(self.paths[0], "-o", "direct_io")
        path = os.path.join(self.mountpoint, "tensors", "output.weight", "raw")
        with open(path, "rb") as file:
            expected = file.read()
        with open(self.paths[1], "r+b") as file:
            file.seek(40)
            file.write(b"x")  # in the vocabulary
        with self.assertRaises(OSError) as caught, open(path, "rb", 0) as file:
            file.read()
        self.assertEqual("Stale file handle", os.strerror(caught.exception.errno))
        self.assertTrue(expected)
