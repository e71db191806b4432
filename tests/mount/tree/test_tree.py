#!/usr/bin/env python3
"""Whole trees against the oracle: all fixtures, the sample, and models built here."""

import json
import math
import os
import random
import struct

import mounting
import tree_check
from gguf_file import (ARRAY, BOOL, F32, FLOAT32, FLOAT64, INT8, INT16, INT32, INT64, Q8_0, STRING,
                       UINT8, UINT16, UINT32, UINT64, Array, Bits, GgufFile)

MARKS = ("sanitize",)

setUpModule = mounting.require_fuse


class TreeTestCase(mounting.MountTestCase):
    def check_model(self, path, *options, with_programs=False):
        mountpoint = self.mount(path, *options)
        model, found = tree_check.check_tree(self, path, mountpoint)
        if with_programs:
            tree_check.check_programs(self, mountpoint, model, found, self.path("copy"))

    def check_built(self, built, *options, **more):
        self.check_model(built.write(self.path("model.gguf")), *options, **more)


def test_of_fixture(path):
    return lambda self: self.check_model(path)


class TestFixtures(TreeTestCase):
    """Tests of fixtures are added below."""

    @mounting.mark("smoke")
    def test_sample(self):
        self.check_model(mounting.sample(), with_programs=True)


for fixture_path in [*mounting.fixtures("gguf"), *mounting.some_fixtures("golden", "archs", "quants", "tokenizers")]:
    words = os.path.splitext(os.path.relpath(fixture_path, mounting.FIXTURES))[0]
    words = "".join(c if c.isalnum() else "_" for c in words)
    setattr(TestFixtures, f"test_{words}", test_of_fixture(fixture_path))


# Names that are difficult as file names.
STRANGE_NAMES = [
    b"", b".", b"..", b"...", b"/", b"//", b"a/b", b"../../etc/passwd", b"%", b"%2F", b"%252F",
    b"a%b",
    b"%2E", b"%~0123456789abcdef", b"new\nline", b"tab\t", b"\x01\x1f\x7f", b"nul\0inside", b"\0",
    b" ", b"-rf", b"a b", b"~", b"*", b"'", b'"', b"\\", b"back\\slash", b"a:b", b"info", b"raw",
    b"f32", b"f16", b"bf16", b"f32.npy", b"f16.npy",
    "ключ".encode(), "鍵".encode(), "🗝".encode(), "e\u0301".encode(), "\u00e9".encode(),
    "\u2028\u200b".encode(), "\u0085".encode(), b"\xff", b"\xff\xfe", b"\xc3", b"ok\x80ok",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80", b"\xc0\x80", b"\xf8\x88\x80\x80\x80", b"A", b"a",
    *(b"x" * n for n in (236, 237, 238, 249, 250, 251, 254, 255, 256, 300, 10000, 65535)),
    *(b"x" * n + "é€🗝".encode() * 20 for n in range(226, 240)),
    *(b"x" * n + b"/%\n" * 20 for n in range(226, 240)),
    b"/" * 83, b"/" * 84, b"/" * 85, b"/" * 86, b"/" * 300, b"\xff" * 300, b"%" * 10000,
    *(b"y" * 300 + tail for tail in (b"", b"1", b"2", b"/", b"\0", b"\xff")),
    *(b"z" * 255 + tail for tail in (b"a", b"b", "é".encode())),
]


class TestNames(TreeTestCase):
    def test_names_of_keys(self):
        built = GgufFile()
        for i, name in enumerate(STRANGE_NAMES):
            built.key(name, UINT32, i)
        self.check_built(built)

    def test_names_of_tensors(self):
        built = GgufFile()
        for i, name in enumerate(STRANGE_NAMES):
            built.tensor(name, [2], F32, struct.pack("<2f", i, -i))
        self.check_built(built, with_programs=True)

    def test_name_of_the_model(self):
        for name in ("a b", "comma,s", "back\\slash", "new\nline", "-f", '"quoted"', "ü", "\udcff",
                     "%s%n"):
            with self.subTest(name=name):
                path = GgufFile().tensor(b"t", [1], F32, b"1234").write(self.path(f"{name}.gguf"))
                mountpoint = self.new_mountpoint(f"{name}.mnt")
                self.mount(path, mountpoint=mountpoint)
                tree_check.check_tree(self, path, mountpoint)


INTEGERS = {UINT8: (0, 2**8 - 1), INT8: (-2**7, 2**7 - 1), UINT16: (0, 2**16 - 1),
            INT16: (-2**15, 2**15 - 1), UINT32: (0, 2**32 - 1), INT32: (-2**31, 2**31 - 1),
            UINT64: (0, 2**53 - 1, 2**53, 2**53 + 1, 2**63, 2**64 - 1),
            INT64: (-2**63, -2**53 - 1, -2**53, -1, 0, 2**53 + 1, 2**63 - 1)}

FLOAT32_BITS = [
    0x00000000, 0x80000000,  # zeros
    0x00000001, 0x80000001, 0x00000002, 0x000fffff, 0x007fffff,  # denormals
    0x00800000, 0x00800001,
    0x7f7fffff, 0xff7fffff, 0x7f7ffffe, 0x7f800000, 0xff800000,  # the largest and the infinities
    0x7fc00000, 0xffc00000, 0x7f800001, 0x7fffffff,  # NaNs
    0x3f800000, 0x3f800001, 0x3f7fffff, 0x3dcccccd, 0x3e99999a, 0x358637bd, 0x322bcc77, 0x3727c5ac,
    0x4b7fffff, 0x4b800000, 0x4b800001, 0x5a0e1bca, 0x5f000000, 0x5effffff, 0x6258d727, 0x64b5e621,
    0x7e967699, 0x0da24260, 0x15ae43fe, 0x2edbe6ff,
]

FLOAT64_BITS = [
    0, 1 << 63, 1, 2, 0x000fffffffffffff, 0x0010000000000000, 0x0010000000000001,
    0x7fefffffffffffff,
    0xffefffffffffffff, 0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000,
    0x7ff0000000000001,
    0x3fb999999999999a, 0x3ff0000000000001, 0x3fefffffffffffff, 0x4340000000000000,
    0x4340000000000001,
    0x433fffffffffffff, 0x44b52d02c7e14af6, 0x44b52d02c7e14af7, 0x3ee4f8b588e368f1,
    0x7e37e43c8800759c,
]


def numbers_file(**options):
    """All value types at their limits, alone and in arrays, and arrays in arrays."""
    built = GgufFile(**options)
    for value_type, values in INTEGERS.items():
        built.key(b"array.%d" % value_type, ARRAY, Array(value_type, list(values)))
        for i, value in enumerate(values):
            built.key(b"scalar.%d.%d" % (value_type, i), value_type, value)
    for value_type, all_bits in ((FLOAT32, FLOAT32_BITS), (FLOAT64, FLOAT64_BITS)):
        built.key(b"array.%d" % value_type, ARRAY, Array(value_type, [Bits(b) for b in all_bits]))
        for bits in all_bits:
            built.key(b"scalar.%d.%x" % (value_type, bits), value_type, Bits(bits))
    for value in (False, True):
        built.key(b"bool.%d" % value, BOOL, value)
    built.key(b"bools", ARRAY, Array(BOOL, [True, False, True]))
    for element_type in range(13):
        built.key(b"empty.%d" % element_type, ARRAY, Array(element_type, []))
    nested = Array(INT32, [1, 2])
    for depth in range(4):
        nested = Array(ARRAY, [nested, Array(STRING, [b"s", b""]), Array(BOOL, [])])
        built.key(b"nested.%d" % depth, ARRAY, nested)
    return built


STRANGE_STRINGS = [
    b"", b"\0", b"a\0b\0", b"\xff", b"\xc3", b"a\xc3", b"\xe2\x82", b"\xed\xa0\x80",
    b"\xed\xb2\x80", b"\xf0\x9f\x97",
    b"\xf4\x90\x80\x80", b"\xc0\xaf", b'"\\/\b\f\n\r\t', bytes(range(256)), bytes(range(128)),
    "\u2028\u2029\ufeff\uffff\U0010ffff\x7f\x80".encode(), b"\xef\xbf\xbd", b"\\udc80",
    b"</script>",
]


def random_string(source, length):
    """Valid, invalid and cut characters, side by side."""
    parts = [b"a", "é".encode(), "€".encode(), "🗝".encode(), b"\xff", b"\xe2\x82", b"\xf0\x9f",
             b"\0", b'"', b"\n"]
    return b"".join(source.choices(parts, k=length))[:length]


class TestValues(TreeTestCase):
    def test_numbers(self):
        self.check_built(numbers_file())

    def test_numbers_in_version_1(self):
        self.check_built(numbers_file(version=1).tensor(b"t", [3, 2], F32, bytes(24)))

    def test_numbers_in_version_2(self):
        self.check_built(numbers_file(version=2).tensor(b"t", [3, 2], F32, bytes(24)))

    def test_numbers_in_big_endian(self):
        built = numbers_file(big_endian=True)
        self.check_built(built.tensor(b"t", [3, 2], F32, struct.pack(">6f", *range(6))))

    def test_random_floats(self):
        source = random.Random(1)
        floats = [Bits(source.getrandbits(32)) for _ in range(20000)]
        # The gap to the next float is twice as large above a power of two as below it.
        floats += [Bits(exponent << 23) for exponent in range(1, 255)]
        floats += [Bits(struct.unpack("<I", struct.pack("<f", 10.0**e))[0]) for e in range(-45, 39)]
        doubles = [Bits(source.getrandbits(64)) for _ in range(20000)]
        doubles += [Bits(exponent << 52) for exponent in range(1, 2047)]
        doubles += [Bits(struct.unpack("<Q", struct.pack("<d", 10.0**e))[0])
                    for e in range(-323, 309)]
        self.check_built(GgufFile().key(b"f", ARRAY, Array(FLOAT32, floats))
                         .key(b"d", ARRAY, Array(FLOAT64, doubles)))

    def test_float32_that_a_double_rounds_twice(self):
        """Most JSON readers parse a double and then round it to a float."""
        self.check_built(GgufFile().key(b"f", FLOAT32, Bits(0x15ae43fd)))

    def test_strings(self):
        built = GgufFile().key(b"all", ARRAY, Array(STRING, STRANGE_STRINGS))
        for i, string in enumerate(STRANGE_STRINGS):
            built.key(b"string.%d" % i, STRING, string)
        self.check_built(built)

    def test_long_strings(self):
        source = random.Random(2)
        built = GgufFile()
        built.key(b"plain", STRING, b"a" * (1 << 20))
        built.key(b"nuls", STRING, bytes(1 << 20))
        built.key(b"invalid", STRING, b"\xff" * (1 << 20))
        built.key(b"random", STRING, random_string(source, 1 << 20))
        # With all shifts, some character crosses every chunk boundary.
        for width, character in enumerate(("é", "€", "🗝"), 2):
            for shift in range(width):
                built.key(b"shift.%d.%d" % (width, shift), STRING,
                          b"x" * shift + character.encode() * (100000 // width))
        for length in (1023, 1024, 1025, 32767, 32768, 65535, 65536, 65537):
            built.key(b"length.%d" % length, STRING, random_string(source, length))
        self.check_built(built)

    def test_long_arrays(self):
        source = random.Random(3)
        built = GgufFile()
        tokens = [random_string(source, source.randrange(20)) for _ in range(100000)]
        built.key(b"strings", ARRAY, Array(STRING, tokens))
        built.key(b"empty strings", ARRAY, Array(STRING, [b""] * 100000))
        built.key(b"integers", ARRAY, Array(INT64, [source.getrandbits(63) for _ in range(100000)]))
        built.key(b"bools", ARRAY, Array(BOOL, source.choices([True, False], k=100000)))
        built.key(b"arrays", ARRAY, Array(ARRAY, [Array(INT8, [1])] * 50000))
        built.key(b"mixed", ARRAY, Array(STRING, [random_string(source, 70000) for _ in range(5)]))
        self.check_built(built)


def tensor_bytes(n_bytes, seed=4):
    return random.Random(seed).randbytes(n_bytes)


def shapes_file(**options):
    built = GgufFile(**options)
    order = built.order
    for ne in ([], [1], [7], [3, 5], [2, 3, 4], [2, 3, 4, 5], [1, 1, 1, 1], [1, 8], [8, 1]):
        count = math.prod(ne)
        name = b"shape-" + b"x".join(b"%d" % n for n in ne)
        built.tensor(name, ne, F32, struct.pack(f"{order}{count}f", *range(count)))
    for ne in ([0], [0, 3], [3, 0], [2, 0, 2, 2], [0, 0, 0, 0]):
        built.tensor(b"empty-" + b"x".join(b"%d" % n for n in ne), ne)
    for type_id, block_bytes in ((2, 18), (8, 34), (37, 18), (38, 18)):
        built.tensor(b"type-%d" % type_id, [64, 3], type_id, tensor_bytes(6 * block_bytes))
        built.tensor(b"type-%d-empty" % type_id, [32, 0], type_id)
    for type_id in (12, 14):
        built.tensor(b"type-%d-empty" % type_id, [0, 4], type_id)
    return built


class TestTensors(TreeTestCase):
    @mounting.mark("smoke")
    def test_shapes(self):
        self.check_built(shapes_file(), with_programs=True)

    def test_shapes_in_version_1(self):
        self.check_built(shapes_file(version=1))

    def test_shapes_in_big_endian(self):
        self.check_built(shapes_file(big_endian=True))

    def test_alignments(self):
        for alignment in (1, 8, 16, 64, 4096, 65536):
            with self.subTest(alignment=alignment):
                path = shapes_file(alignment=alignment).write(self.path(f"{alignment}.gguf"))
                mountpoint = self.mount(path, mountpoint=self.new_mountpoint(str(alignment)))
                tree_check.check_tree(self, path, mountpoint)

    def test_plain_numbers(self):
        """Every F16 and BF16, and random bits of the wider types."""
        built = GgufFile()
        built.tensor(b"f16", [256, 256], 1, struct.pack("<65536H", *range(65536)))
        built.tensor(b"bf16", [256, 256], 30, struct.pack("<65536H", *range(65536)))
        built.tensor(b"i8", [256], 24, bytes(range(256)))
        built.tensor(b"i16", [65536], 25, struct.pack("<65536H", *range(65536)))
        for name, type_id, size in ((b"i32", 26, 4), (b"i64", 27, 8), (b"f32", 0, 4)):
            built.tensor(name, [4096], type_id, tensor_bytes(4096 * size))
        near_ties = [(1 << 54) + (1 << 30) + d for d in (-1, 0, 1)] + [2**63 - 1, -2**63, 2**24 + 1]
        built.tensor(b"i64-ties", [len(near_ties)], 27,
                     struct.pack(f"<{len(near_ties)}q", *near_ties))
        doubles = [1e308, -1e308, 1e-46, 7e-46, 1e-320, math.inf, -math.inf, -0.0, 0.1,
                   3.4028235677973366e38]
        built.tensor(b"f64", [len(doubles)], 28, struct.pack(f"<{len(doubles)}d", *doubles))
        self.check_built(built)

    def test_unknown_types(self):
        built = GgufFile()
        for type_id in (4, 5, 43, 99, 255, 2**31, 2**32 - 1):
            built.tensor(b"type-%d" % type_id, [32, 2], type_id, tensor_bytes(64))
        built.tensor(b"no-dimensions", [], 99, tensor_bytes(1))
        built.tensor(b"empty", [0, 5], 99)
        self.check_built(built.tensor(b"known", [4], F32, tensor_bytes(16)))

    def test_five_dimensions_and_more(self):
        """Video models have 5 dimensions; ComfyUI-GGUF also records the shape before reshaping."""
        def shape_key(name, shape, element_type=INT32):
            built.key(b"comfy.gguf.orig_shape." + name, ARRAY, Array(element_type, shape))

        for version, big_endian in ((1, False), (3, False), (3, True)):
            with self.subTest(version=version, big_endian=big_endian):
                built = GgufFile(version, big_endian)
                built.tensor(b"five", [2, 3, 1, 4, 5], F32, tensor_bytes(480))
                built.tensor(b"eight", [1, 2, 1, 2, 1, 2, 1, 2], F32, tensor_bytes(64))
                built.tensor(b"reshaped", [32, 9], Q8_0, tensor_bytes(9 * 34))
                built.tensor(b"flat", [24], F32, tensor_bytes(96))
                for i, shape in enumerate(([4, 5], [], [1] * 9, [-4, -6], [2**32, 2**32])):
                    name = b"wrong-%d" % i
                    shape_key(name, shape, INT64)
                    built.tensor(name, [24], F32, tensor_bytes(96))
                shape_key(b"reshaped", [2, 16, 3, 3])
                shape_key(b"flat", [1, 2, 3, 1, 4], UINT64)
                shape_key(b"nothing", [1])
                path = built.write(self.path(f"{version}{big_endian}.gguf"))
                mountpoint = self.new_mountpoint(f"m{version}{big_endian}")
                self.mount(path, mountpoint=mountpoint)
                tree_check.check_tree(self, path, mountpoint)
                with open(os.path.join(mountpoint, "tensors/reshaped/info"), "rb") as file:
                    info = json.load(file)
                self.assertEqual(([2, 16, 3, 3], [32, 9]), (info["shape"], info["ne"]))
                result = self.run_ggufs("--check", path)
                self.assertEqual(0, result.status, result)
                self.assertEqual(6, result.out.count("comfy.gguf.orig_shape."), result.out)

    def test_no_keys(self):
        self.check_built(GgufFile().tensor(b"t", [1], F32, b"\0\0\x80\x3f"))

    def test_no_tensors(self):
        self.check_built(GgufFile().key(b"general.architecture", STRING, b"none"))

    def test_neither_keys_nor_tensors(self):
        for version in (1, 2, 3):
            with self.subTest(version=version):
                path = GgufFile(version=version).write(self.path(f"{version}.gguf"))
                mountpoint = self.mount(path, mountpoint=self.new_mountpoint(str(version)))
                tree_check.check_tree(self, path, mountpoint)

    def test_many_tensors(self):
        built = GgufFile()
        for i in range(1000):
            built.tensor(b"blk.%d.weight" % i, [2], F32, struct.pack("<2f", i, i))
        self.check_built(built)

    def test_with_a_single_thread(self):
        self.check_built(shapes_file(), "-s")

    def test_names_that_are_not_there(self):
        path = shapes_file().write(self.path("model.gguf"))
        mountpoint = self.mount(path)
        for name in ("x", "tensors/x", "metadata/x.json", "tensors/shape-7/x", "metadata.json/x",
                     "x" * 255):
            self.assertFalse(os.path.lexists(os.path.join(mountpoint, name)), name)
