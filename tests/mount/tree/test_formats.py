#!/usr/bin/env python3
"""The values of tensors in other formats: f16, bf16, *.npy and model.safetensors."""

import json
import mmap
import os
import random
import re
import struct

import element_files
import mounting
from gguf_file import ARRAY, F32, INT32, Array, GgufFile
from gguf_reader import TYPES
from mounting import read_file

try:
    import numpy
except ImportError:
    numpy = None
try:
    import safetensors.numpy
except ImportError:
    safetensors = None

EX_USAGE = 64


def setUpModule():
    mounting.require_fuse()
    if numpy is None:
        mounting.skip_loudly("these tests need NumPy: apt-get install python3-numpy")


def as_floats(data, dtype):
    """Numbers of a dtype of safetensors as float64."""
    numbers = numpy.frombuffer(data, element_files.DTYPES[dtype])
    return element_files.floats_of(numbers, dtype).astype("<f8")


class FormatsTestCase(mounting.MountTestCase):
    def tensors(self):
        with open(os.path.join(self.mountpoint, "tensors.json"), encoding="utf-8") as file:
            return json.load(file)

    def check_tensor(self, info, values):
        """Check all files of a tensor against its values as float32."""
        folder = os.path.join(self.mountpoint, info["path"])
        for name, dtype in ("f16", "F16"), ("bf16", "BF16"):
            element_files.check_numbers(read_file(folder, name), values, dtype)
        self.check_slices(os.path.join(folder, "bf16"))
        for name, dtype in ("f32.npy", "F32"), ("f16.npy", "F16"):
            path = os.path.join(folder, name)
            for mode in None, "r":
                array = numpy.load(path, mmap_mode=mode)
                self.assertEqual((info["shape"], element_files.DTYPES[dtype]),
                                 (list(array.shape), array.dtype.str))
                element_files.check_numbers(array.tobytes(), values, dtype)
            self.check_slices(path)

    def check_slices(self, path):
        """Slices that start and end within a number, by pread(2) and in a mapping."""
        source = random.Random(path)
        whole = read_file(path)
        with open(path, "rb") as file, \
                mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            for _ in range(8):
                start = source.randrange(len(whole))
                length = source.choice([1, 2, 3, 63, 4097, len(whole)])
                self.assertEqual(whole[start:start + length],
                                 os.pread(file.fileno(), length, start))
                self.assertEqual(whole[start:start + length], mapped[start:start + length])

    def check_safetensors(self, forced=None):
        """Check model.safetensors against the f32 of each tensor."""
        found = element_files.parse_safetensors(read_file(self.mountpoint, "model.safetensors"))
        infos = {info.get("gguf_name", info["name"]): info for info in self.tensors()}
        self.assertEqual(set(infos), set(found))
        for name, (dtype, shape, data) in found.items():
            info = infos[name]
            self.assertEqual((element_files.dtype_of(info["type"], forced), info["shape"]), (dtype, shape))
            values = numpy.fromfile(os.path.join(self.mountpoint, info["path"], "f32"), "<f4")
            if dtype[0] != "I" and dtype != "F64":
                element_files.check_numbers(data, values, dtype)
            else:
                numbers = numpy.frombuffer(data, element_files.DTYPES[dtype])
                numpy.testing.assert_array_equal(numbers.astype("<f4"), values)
        return found


class TestGolden(FormatsTestCase):
    """Every type of ggml, against the values that ggml itself decodes."""

    def check_golden(self, name):
        self.mount(mounting.fixture(f"golden/{name}"))
        for info in self.tensors():
            with self.subTest(type=info["type"]):
                golden = mounting.fixture(f"golden/{info['name'].lower()}.f32")
                self.check_tensor(info, numpy.fromfile(golden, "<f4"))
        self.check_safetensors()

    def test_all_types(self):
        self.check_golden("all-types.gguf")

    def test_big_endian(self):
        self.check_golden("big-endian.gguf")

    def test_dtypes(self):
        for forced in "f32", "f16", "bf16":
            with self.subTest(dtype=forced):
                self.mountpoint = self.mount(mounting.fixture("golden/all-types.gguf"), "-o", f"dtype={forced}",
                           mountpoint=self.new_mountpoint(forced))
                self.check_safetensors(forced.upper())

    def test_old_formats(self):
        paths = mounting.fixtures("legacy", "rwkv", "ik")
        folder = os.path.join(mounting.FIXTURES, "legacy")
        if os.path.isdir(folder):
            paths += [os.path.join(folder, name) for name in os.listdir(folder)
                      if name.endswith(".bin")]
        if not paths:
            mounting.skip_loudly(f"no fixtures in {mounting.FIXTURES}")
        for number, path in enumerate(sorted(paths)):
            with self.subTest(path=path):
                self.mountpoint = self.mount(path, mountpoint=self.new_mountpoint(str(number)))
                if all(info["type"] and os.path.exists(os.path.join(self.mountpoint, info["path"], "f32"))
                       for info in self.tensors()):
                    self.check_safetensors()
                else:
                    self.assertFalse(os.path.exists(os.path.join(self.mountpoint, "model.safetensors")))


class TestIk(FormatsTestCase):
    """Every type that only ik_llama.cpp has, against the values that it computes with."""

    def test_ik_types(self):
        with open(mounting.fixture("ik/types.json"), encoding="utf-8") as file:
            types = {row["name"]: row for row in json.load(file)["types"]}
        self.mount(mounting.fixture("ik/ik-types.gguf"))
        for info in self.tensors():
            with self.subTest(type=info["type"]):
                row = types.pop(info["name"])
                self.assertEqual(
                    (row["name"].upper(), row["id"], row["tensor_bytes"], row["row_header_bytes"],
                     row["interleave"], 32 if row["name"] == "i2_s" else 0),
                    (info["type"], info["ggml_type"], info["n_bytes"],
                     info.get("row_header_bytes", 0), info.get("interleave_rows", 1),
                     info.get("tail_bytes", 0)))
                path = os.path.join(self.mountpoint, info["path"], "f32")
                values = numpy.fromfile(path, "<f4")
                # As numbers: in a few interleaved types a zero may have another sign.
                numpy.testing.assert_array_equal(
                    numpy.fromfile(mounting.fixture(f"ik/{row['name']}.f32"), "<f4"), values)
                self.check_slices(path)
                self.check_tensor(info, values)
        self.assertEqual({}, types, "types without a tensor")

    def test_manual(self):
        """ggufs(5) lists the types as `info` describes them."""
        with open(os.path.join(mounting.ROOT, "ggufs.5"), encoding="utf-8") as file:
            rows = [line.split(" Ta ") for line in re.findall(r"^\.It (\d+ Ta .*)", file.read(), re.M)]
        rows = [row for row in rows if len(row) == 6]
        self.assertEqual(sorted(int(row[0]) for row in rows), [int(row[0]) for row in rows])
        listed = {int(row[0]): row[1:4] + row[5:] for row in reversed(rows)}  # the first of each id
        for name in "golden/all-types.gguf", "ik/ik-types.gguf":
            self.mountpoint = self.mount(mounting.fixture(name), mountpoint=self.new_mountpoint(name[:2]))
            for info in self.tensors():
                layout = [f"row header {info.get('row_header_bytes')}"] * ("row_header_bytes" in info)
                layout += [f"{info.get('interleave_rows')} rows together"] * ("interleave_rows" in info)
                layout += [f"tail {info.get('tail_bytes')}"] * ("tail_bytes" in info)
                self.assertEqual(
                    [info["type"], str(info["block_size"]), str(info["type_size"]),
                     ", ".join(layout) or "blocks"], listed.pop(info["ggml_type"]))
        self.assertEqual({"IQ4_NL_4_8", "IQ4_NL_8_8", "PQ2_0", "PTQ1_0"},
                         {row[0] for row in listed.values()})


class TestBuilt(FormatsTestCase):
    def mount_built(self, built, *options):
        self.mount(built.write(self.path("model.gguf")), *options)

    def test_rounding(self):
        """Ties, subnormal numbers, overflow, infinities and NaN."""
        source = random.Random(3)
        bits = [0, 1, 0x80000000, 0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001, 0xffffffff]
        bits += [base + delta for base in (0x3f800000, 0x38800000, 0x33800000, 0x33000000, 0x477fe000,
                                           0x477ff000, 0x7f7f8000, 0x7f7fffff, 0x3f808000, 0x3f818000,
                                           0x3f801000, 0x3f803000)
                 for delta in (-1, 0, 1)]
        bits += [source.getrandbits(32) for _ in range(5000)]
        self.mount_built(GgufFile().tensor(b"t", [len(bits)], F32, struct.pack(f"<{len(bits)}I", *bits)))
        info, = self.tensors()
        self.check_tensor(info, numpy.array(bits, "<u4").view("<f4"))
        self.check_safetensors()

    def test_shapes(self):
        built = GgufFile()
        shapes = [[], [0], [1], [7], [3, 5], [2, 3, 4], [1, 2, 1, 3, 1, 2, 1, 2], [0, 4]]
        for number, ne in enumerate(shapes):
            count = int(numpy.prod(ne))
            built.tensor(b"%d" % number, ne, F32, numpy.arange(count, dtype="<f4").tobytes())
        built.key(b"comfy.gguf.orig_shape.5", ARRAY, Array(INT32, [6, 4]))
        self.mount_built(built)
        for info, ne in zip(self.tensors(), shapes):
            with self.subTest(ne=ne):
                shape = [6, 4] if ne == [2, 3, 4] else ne[::-1]
                for name in "f32.npy", "f16.npy":
                    array = numpy.load(os.path.join(self.mountpoint, info["path"], name))
                    self.assertEqual(shape, list(array.shape))
                    numpy.testing.assert_array_equal(numpy.arange(array.size), array.ravel())
        self.check_safetensors()

    def test_strange_names(self):
        """Names are escaped in JSON; those that are not UTF-8 are not possible."""
        names = ['"', "\\", "\n\t\x01", "é€🗝", "a/b", "\x7f", "x" * 300]
        built = GgufFile()
        for name in names:
            built.tensor(name.encode(), [2], F32, bytes(8))
        self.mount_built(built)
        self.assertEqual(names, list(self.check_safetensors()))

    def test_models_that_cannot_be_safetensors(self):
        for name, type_id, n_bytes in ((b"\xff", F32, 128), (b"__metadata__", F32, 128),
                                       (b"unknown", 99, 64), (b"removed", 4, 64)):
            with self.subTest(name=name):
                built = GgufFile().tensor(b"good", [32], F32, bytes(128))
                path = built.tensor(name, [32], type_id, bytes(n_bytes)).write(self.path("model.gguf"))
                result = self.run_ggufs("--list", path)
                self.assertEqual(0, result.status)
                self.assertIn("model.gguf", result.out)
                self.assertNotIn("model.safetensors", result.out)

    def test_wrong_dtype(self):
        path = GgufFile().write(self.path("model.gguf"))
        for value in "f64", "f32 ", "":
            result = self.run_ggufs("-o", f"dtype={value}", "--list", path)
            self.assert_status(EX_USAGE, result)
            self.assertIn("dtype", result.err)

    def test_the_package_reads_it(self):
        if safetensors is None:
            mounting.skip_loudly("no package safetensors")
        source = random.Random(7)
        built = GgufFile()
        for name, type_id in (b"i8", 24), (b"f32", 0), (b"q8_0", 8), (b"f64", 28), (b"f16", 1):
            _, block_size, type_size = TYPES[type_id]
            built.tensor(name, [block_size * 3, 5], type_id,
                         bytes(source.randrange(0x40) for _ in range(15 * type_size)))
        self.mount_built(built, "-o", "dtype=f32")
        loaded = safetensors.numpy.load_file(os.path.join(self.mountpoint, "model.safetensors"))
        for info in self.tensors():
            values = numpy.load(os.path.join(self.mountpoint, info["path"], "f32.npy"))
            numpy.testing.assert_array_equal(values, loaded[info["name"]])
