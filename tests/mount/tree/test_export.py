#!/usr/bin/env python3
"""model.gguf with tensors in another type: -o export=TYPE, and types that llama.cpp lacks."""

import hashlib
import os
import subprocess

import numpy as np

import mounting
from gguf_file import F16, F32, I32, INT32, Q4_0, Q8_0, STRING, UINT32, GgufFile
from gguf_reader import Model
from mounting import read_file
from quantized import ENCODERS, to_bf16

MARKS = ("sanitize",)

try:
    from gguf import GGMLQuantizationType, quants
except ImportError:
    quants = None

setUpModule = mounting.require_fuse

EX_USAGE = 64
BF16 = 30
TYPE_IDS = {"f32": F32, "f16": F16, "q4_0": Q4_0, "q8_0": Q8_0, "bf16": BF16}
FILE_TYPES = {"f32": 0, "f16": 1, "q4_0": 2, "q8_0": 7, "bf16": 32}

# Shapes in ggml's order, and whether llama-quantize quantizes the tensor.
SHAPES = {
    "token_embd.weight": ([64, 100], True),
    "blk.0.attn_norm.weight": ([64], False),
    "blk.0.attn_q.weight": ([64, 160], True),
    "blk.0.attn_q.bias": ([64, 3], False),
    "blk.0.attn_q_norm.weight": ([64, 3], False),
    "blk.0.ffn_gate_inp.weight": ([64, 4], False),
    "blk.0.ffn_gate_exps.weight": ([64, 32, 4], True),
    "blk.0.ffn_down_exps.weight": ([96, 5, 3, 2], True),
    "blk.0.ssm_conv1d.weight": ([4, 64], False),
    "blk.0.time_mix_w1.weight": ([64, 8], False),
    "blk.0.narrow.weight": ([33, 70], True),
    "blk.0.column.weight": ([64, 1], False),
    "position_embd.weight": ([64, 10], False),
    "output.weight": ([64, 100], True),
}


def values_of(n, seed):
    """Numbers of many magnitudes, with blocks of zeros and equal magnitudes in a block."""
    source = np.random.default_rng(seed)
    values = source.normal(size=n) * np.exp2(source.integers(-20, 12, size=n // 32 + 1).repeat(32)[:n])
    values[:32] = 0
    values[32:64] = source.choice([-1.5, 1.5], size=len(values[32:64]))
    values[64:96] = np.arange(len(values[64:96])) / 2
    return values.astype(np.float32)


def as_bf16(values):
    return np.frombuffer(to_bf16(values), "<u2")


def bf16_model(big_endian=False, alignment=32):
    """A model, and the values of its tensors by name."""
    built = GgufFile(3, big_endian, alignment)
    built.key(b"general.architecture", STRING, b"llama")
    built.key(b"general.file_type", UINT32, 32)
    built.key(b"general.quantization_version", UINT32, 1)
    values = {}
    for seed, (name, (ne, _)) in enumerate(SHAPES.items()):
        bits = as_bf16(values_of(int(np.prod(ne)), seed))
        if "norm" in name:
            values[name] = (bits.astype(np.uint32) << 16).view(np.float32)
            built.tensor(name.encode(), ne, F32, values[name].astype(built.order + "f4").tobytes())
        else:
            values[name] = (bits.astype(np.uint32) << 16).view(np.float32)
            built.tensor(name.encode(), ne, BF16, bits.astype(built.order + "u2").tobytes())
    built.tensor(b"blk.0.ids.weight", [64, 2], I32, bytes(512))
    return built, values


class ExportTestCase(mounting.MountTestCase):
    def exported(self, path, *options):
        """model.gguf of the mount, written to a file; its Model."""
        self.mount(path, *options)
        data = read_file(self.mountpoint, "model.gguf")
        return Model(self.write("copy.gguf", data))

    def assert_tensors(self, model, values, name):
        """The tensors that llama-quantize quantizes have the type, others are as they were."""
        for tensor in model.tensors:
            text = tensor.name.decode()
            with self.subTest(tensor=text):
                if text not in values:
                    self.assertEqual(I32, tensor.type_id)
                    continue
                is_quantized = SHAPES[text][1]
                expected = ("f32" if "norm" in text else "bf16") if not is_quantized else \
                    "f16" if tensor.ne[0] % 32 and name.startswith("q") else name
                self.assertEqual(TYPE_IDS[expected], tensor.type_id)
                self.assertTrue(ENCODERS[expected](values[text]) == model.raw(tensor), expected)

    def assert_same_as_gguf_package(self, model, values):
        for tensor in model.tensors:
            if quants and tensor.type_id in (Q4_0, Q8_0):
                theirs = quants.quantize(values[tensor.name.decode()] + np.float32(0),
                                         GGMLQuantizationType(tensor.type_id))
                self.assertTrue(theirs.tobytes() == model.raw(tensor), tensor.name)


class TestExport(ExportTestCase):
    def test_every_type(self):
        for big_endian in (False, True):
            built, values = bf16_model(big_endian, 64 if big_endian else 32)
            path = built.write(self.path("model.gguf"))
            for name in ENCODERS:
                with self.subTest(name=name, big_endian=big_endian):
                    model = self.exported(path, "-o", "export=" + name)
                    self.assertEqual((3, False), (model.version, model.big_endian))
                    keys = dict(model.keys)
                    self.assertEqual((FILE_TYPES[name], 2),
                                     (keys[b"general.file_type"],
                                      keys[b"general.quantization_version"]))
                    self.assert_tensors(model, values, name)
                    self.assert_same_as_gguf_package(model, values)
                    mounting.unmount(self.mountpoint)

    def test_name_in_any_case(self):
        path = bf16_model()[0].write(self.path("model.gguf"))
        self.assertEqual(7, dict(self.exported(path, "-o", "export=Q8_0").keys)[b"general.file_type"])

    def test_other_files_are_the_same(self):
        path = bf16_model()[0].write(self.path("model.gguf"))
        self.mount(path)
        other = self.mount(path, "-o", "export=q4_0", mountpoint=self.new_mountpoint("other"))
        for name in ("metadata.json", "tensors.json", "tensors/output.weight/raw",
                     "tensors/output.weight/f32", "summary.txt", "model.safetensors"):
            self.assertTrue(read_file(self.mountpoint, name) == read_file(other, name), name)

    def test_slices(self):
        path = bf16_model()[0].write(self.path("model.gguf"))
        self.mount(path, "-o", "export=q8_0")
        self.check_random_slices(os.path.join(self.mountpoint, "model.gguf"), 500, 16)

    def test_sums(self):
        self.mount(bf16_model()[0].write(self.path("model.gguf")), "-o", "export=q4_0")
        line = read_file(self.mountpoint, "SHA256SUMS").splitlines()[-1]
        digits = hashlib.sha256(read_file(self.mountpoint, "model.gguf")).hexdigest()
        self.assertEqual(f"{digits}  model.gguf".encode(), line)

    def test_without_a_mount(self):
        path = bf16_model()[0].write(self.path("model.gguf"))
        self.mount(path, "-o", "export=q8_0")
        expected = read_file(self.mountpoint, "model.gguf")
        with open(self.path("cat.gguf"), "wb") as out:
            subprocess.run([mounting.BINARY, "-o", "export=q8_0", "--cat", "model.gguf", path],
                           check=True, stdout=out)
        self.assertTrue(expected == read_file(self.path("cat.gguf")))
        self.assert_status(0, self.run_ggufs("-o", "export=q8_0", "--extract", self.path("tree"), path,
                                             "model.gguf"))
        self.assertTrue(expected == read_file(self.path("tree"), "model.gguf"))
        listed = self.run_ggufs("-o", "export=q8_0", "--list", path, "model.gguf")
        self.assertIn(str(len(expected)), listed.out)
        self.assert_status(0, self.run_ggufs("--check", "--data", self.path("cat.gguf")))

    def test_split(self):
        built, values = bf16_model()
        self.mount(built.write(self.path("m.gguf")), "-o", "export=q8_0,split=20K")
        folder = os.path.join(self.mountpoint, "split")
        names = sorted(os.listdir(folder))
        self.assertGreater(len(names), 2)
        tensors = 0
        for i, name in enumerate(names):
            shard = Model(self.write(name, read_file(folder, name)))
            tensors += len(shard.tensors)
            self.assert_tensors(shard, values, "q8_0")
            keys = dict(shard.keys)
            self.assertEqual((i, len(names)), (keys[b"split.no"], keys[b"split.count"]))
            self.assertEqual(7 if i == 0 else None, keys.get(b"general.file_type"))
        self.assertEqual(len(SHAPES) + 1, tensors)

    def test_metadata(self):
        """Missing keys are added, those of another type are replaced, those of the user are kept."""
        def with_keys(*keys):
            built = GgufFile().tensor(b"a.weight", [32, 2], F32, bytes(256))
            for key in keys:
                built.key(*key)
            return built.write(self.path("model.gguf"))

        for keys, options, expected in (
                ([], "", (7, 2)),
                ([(b"general.file_type", INT32, -1)], "", (7, 2)),
                ([(b"general.file_type", UINT32, 1)], ",set=general.file_type=u32:99", (99, 2)),
                ([], ",set=general.quantization_version=u32:3", (7, 3)),
                ([(b"general.file_type", STRING, b"odd")], "", (b"odd", 2))):
            with self.subTest(keys=keys, options=options):
                model = self.exported(with_keys(*keys), "-o", "export=q8_0" + options)
                found = dict(model.keys)
                self.assertEqual(expected, (found[b"general.file_type"],
                                            found[b"general.quantization_version"]))
                self.assertEqual(len(model.keys), len(found))
                mounting.unmount(self.mountpoint)

    def test_quantized_again(self):
        """A model that is quantized already: the same type is copied, another is encoded again."""
        path = mounting.fixture("gguf/stories260K.gguf")
        self.mount(path)
        source = Model(path)
        for name in ("q4_0", "q8_0"):
            other = self.mount(path, "-o", "export=" + name, mountpoint=self.new_mountpoint(name))
            model = Model(self.write("copy.gguf", read_file(other, "model.gguf")))
            self.assertEqual([t.name for t in source.tensors], [t.name for t in model.tensors])
            n_encoded = 0
            for before, tensor in zip(source.tensors, model.tensors):
                if tensor.type_id == before.type_id:
                    self.assertTrue(source.raw(before) == model.raw(tensor))
                    continue
                values = np.frombuffer(read_file(self.mountpoint, "tensors", tensor.name.decode(),
                                                 "f32"), "<f4")
                encoder = next(n for n in ENCODERS if TYPE_IDS[n] == tensor.type_id)
                self.assertTrue(ENCODERS[encoder](values) == model.raw(tensor), tensor.name)
                n_encoded += encoder == name
            self.assertGreater(n_encoded, 10)

    def test_old_file(self):
        path = mounting.fixture("legacy/llama-ggml-q4_0.bin")
        self.mount(path)
        other = self.mount(path, "-o", "export=q8_0", mountpoint=self.new_mountpoint("other"))
        model = Model(self.write("copy.gguf", read_file(other, "model.gguf")))
        self.assertEqual(7, dict(model.keys)[b"general.file_type"])
        n_encoded = 0
        for tensor in model.tensors:
            if tensor.type_id == Q8_0:
                values = np.frombuffer(read_file(self.mountpoint, "tensors", tensor.name.decode(),
                                                 "f32"), "<f4")
                self.assertTrue(ENCODERS["q8_0"](values) == model.raw(tensor), tensor.name)
                n_encoded += 1
        self.assertGreater(n_encoded, 5)

    def test_refusals(self):
        path = bf16_model()[0].write(self.path("model.gguf"))
        for name in ("q5_0", "", "q8", "f64"):
            result = self.run_ggufs("-o", "export=" + name, path, self.mountpoint)
            self.assert_status(EX_USAGE, result)
            self.assertIn("needs one of: stored, f32, f16, bf16, q8_0, q4_0", result.err)
        self.assert_status(EX_USAGE, self.run_ggufs("-o", "export=f16", "--check", path))


class TestTypesOfIk(ExportTestCase):
    """The types of ik_llama.cpp that llama.cpp lacks."""

    def check_types(self, *options):
        path = mounting.fixture("ik/ik-types.gguf")
        model = self.exported(path, *options)
        source = Model(path)
        types = {}
        for before, tensor in zip(source.tensors, model.tensors):
            self.assertEqual((before.name, before.ne), (tensor.name, tensor.ne))
            values = np.frombuffer(read_file(self.mountpoint, "tensors", tensor.name.decode(), "f32"),
                                   "<f4")
            types[before.type_id] = tensor.type_id
            for name, encode in ENCODERS.items():
                if before.type_id >= 100 and TYPE_IDS[name] == tensor.type_id:
                    expected = np.frombuffer(encode(values), np.uint8)
                    found = np.frombuffer(model.raw(tensor), np.uint8)
                    is_same = np.array_equal(expected, found)
                    self.assertTrue(is_same or before.type_id in (202, 208, 230, 397, 399),
                                    (tensor.name, name))
        return types

    def test_default(self):
        types = self.check_types()
        # IQ2_K, IQ5_K, IQ1_KT; IQ6_K, Q6_0, Q8_KV; Q4_K_R4, Q4_0_R8.
        self.assertEqual([8, 8, 8, 1, 1, 1, 12, 2],
                         [types[i] for i in (137, 140, 158, 141, 133, 151, 212, 202)])
        self.assertLess(max(types.values()), 43)

    def test_f32(self):
        types = self.check_types("-o", "export=f32")
        self.assertEqual([0, 0, 0, 0, 12],
                         [types[i] for i in (137, 141, 133, 151, 212)])

    def test_stored(self):
        path = mounting.fixture("ik/ik-types.gguf")
        self.mount(path, "-o", "export=stored")
        self.assertTrue(read_file(path) == read_file(self.mountpoint, "model.gguf"))
