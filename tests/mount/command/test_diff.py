#!/usr/bin/env python3
"""ggufs --diff and --stats against NumPy."""

import json
import os
import random
import subprocess
import unittest

import mounting
from gguf_file import (ARRAY, F16, F32, FLOAT32, INT32, Q8_0, STRING, UINT32, Array, GgufFile)


BF16 = 30

try:
    import numpy
except ImportError:
    numpy = None


def values_of(path, name):
    done = subprocess.run([mounting.BINARY, *mounting.MOUNT_OPTIONS, "--cat", path, f"tensors/{name}/f32"],
                          capture_output=True, check=True)
    return numpy.frombuffer(done.stdout, numpy.float32).astype(numpy.float64)


@unittest.skipUnless(numpy, "needs NumPy")
class TestDiff(mounting.MountTestCase):
    def run_ggufs(self, status, *arguments):
        done = subprocess.run([mounting.BINARY, *mounting.MOUNT_OPTIONS, *arguments],
                              capture_output=True, text=True)
        self.assertEqual((status, ""), (done.returncode, done.stderr if status < 2 else ""), done.stderr)
        return done.stdout if status < 2 else done.stderr

    def diff(self, status, *arguments):
        return json.loads(self.run_ggufs(status, "--diff", "--json", *arguments))

    def write(self, name, tensors, keys=()):
        built = GgufFile()
        for key in keys:
            built.key(*key)
        for tensor in tensors:
            built.tensor(*tensor)
        return built.write(self.path(name))

    def write_text(self, name, text):
        with open(self.path(name), "x") as file:
            file.write(text)
        return self.path(name)

    def check_tensor(self, found, a, b, weights=None):
        """`weights` has a number for each element."""
        weights = numpy.ones(len(a)) if weights is None else weights
        nmse = ((b - a) ** 2 * weights).sum() / (a ** 2 * weights).sum()
        cosine = (a * b * weights).sum() / numpy.sqrt((a * a * weights).sum() * (b * b * weights).sum())
        self.assertLessEqual(abs(found["nmse"] - nmse), 1e-12 * nmse, found)
        self.assertLessEqual(abs(found["cosine"] - cosine), 1e-12, found)
        largest = numpy.abs(b - a)
        self.assertEqual(largest.max(), found["largest_error"])
        shape = found["a_shape"]
        at = [int(i) for i in numpy.unravel_index(int(largest.argmax()), shape)]
        self.assertEqual(at, found["largest_error_at"])

    def test_values_of_several_types(self):
        source = random.Random(1)
        random_values = numpy.random.default_rng(2)
        tensors = [[], []]
        for i in range(6):
            ne = [96, 50 * i * i + 3]
            values = random_values.normal(0, 1 + i, ne[0] * ne[1]).astype("<f4")
            noisy = (values + random_values.normal(0, 0.01, len(values))).astype("<f4")
            bf16 = (values.view("<u4") >> 16).astype("<u2")
            other = [(F32, noisy), (F16, values.astype("<f2")), (BF16, bf16)][i % 3]
            tensors[0].append((b"blk.%d.w" % i, ne, F32, values.tobytes()))
            tensors[1].append((b"blk.%d.w" % i, ne, other[0], other[1].tobytes()))
        # In another order, and blocks of random bytes without large exponents.
        blocks = [b"".join(source.randbytes(1) + b"\x2c" + source.randbytes(32) for _ in range(12))
                  for _ in range(2)]
        for side in range(2):
            tensors[side].append((b"q", [128, 3], Q8_0, blocks[side]))
        a = self.write("a.gguf", tensors[0])
        b = self.write("b.gguf", tensors[1][::-1])
        found = self.diff(1, a, b)
        self.assertEqual([], found["metadata"])
        self.assertEqual(7, found["total"]["compared"])
        errors = [tensor["nmse"] for tensor in found["tensors"]]
        self.assertEqual(sorted(errors, reverse=True), errors)
        for tensor in found["tensors"]:
            self.assertEqual("values", tensor["difference"])
            self.check_tensor(tensor, values_of(a, tensor["name"]), values_of(b, tensor["name"]))
        names = [tensor["name"] for tensor in found["tensors"]]
        whole = [numpy.concatenate([values_of(path, name) for name in names]) for path in (a, b)]
        nmse = ((whole[1] - whole[0]) ** 2).sum() / (whole[0] ** 2).sum()
        self.assertLessEqual(abs(found["total"]["nmse"] - nmse), 1e-12 * nmse)
        text = self.run_ggufs(1, "--diff", a, b)
        self.assertEqual(names, [line.split()[0] for line in text.split("\n")[1:-2]])
        chosen = self.diff(1, a, b, "blk.[12].*", "tensors/q")
        self.assertEqual({"blk.1.w", "blk.2.w", "q"}, {tensor["name"] for tensor in chosen["tensors"]})
        self.assertIn("no tensor", self.run_ggufs(66, "--diff", a, b, "nothing"))

    def test_the_same(self):
        tensors = [(b"t", [4], F32, numpy.array([1, 2, numpy.nan, -numpy.inf], "<f4").tobytes())]
        keys = [(b"k", UINT32, 5), (b"a", ARRAY, Array(STRING, [b"x", b"y"]))]
        a, b = self.write("a.gguf", tensors, keys), self.write("b.gguf", tensors, keys[::-1])
        self.assertEqual("", self.run_ggufs(0, "--diff", a, b))
        self.assertEqual("", self.run_ggufs(0, "--diff", a, a))

    def test_metadata_and_shapes(self):
        data = bytes(48)
        a = self.write("a.gguf", [(b"same", [12], F32, data), (b"shape", [3, 4], F32, data),
                                  (b"gone\n", [12], F32, data), (b"strange", [12], 31337, data),
                                  (b"same strange", [12], 31337, data)],
                       [(b"k.number", UINT32, 5), (b"k.type", UINT32, 5), (b"k.gone", UINT32, 5),
                        (b"k.list", ARRAY, Array(FLOAT32, [1] * 100)), (b"k.same", STRING, b"x")])
        b = self.write("b.gguf", [(b"same", [12], F32, data), (b"shape", [4, 3], F32, data),
                                  (b"new", [12], F32, data), (b"strange", [12], 31337, b"x" * 48),
                                  (b"same strange", [12], 31337, data)],
                       [(b"k.number", UINT32, 6), (b"k.type", INT32, 5), (b"k.new", STRING, b"s" * 200),
                        (b"k.list", ARRAY, Array(FLOAT32, [1] * 99 + [2])), (b"k.same", STRING, b"x")])
        found = self.diff(1, a, b)
        self.assertEqual({"k.number", "k.type", "k.gone", "k.new", "k.list"},
                         {key["key"] for key in found["metadata"]})
        keys = {key["key"]: key for key in found["metadata"]}
        self.assertEqual((5, 6), (keys["k.number"]["a"], keys["k.number"]["b"]))
        self.assertEqual(("uint32", "int32"), (keys["k.type"]["a_type"], keys["k.type"]["b_type"]))
        self.assertEqual(100, len(keys["k.list"]["b"]))
        self.assertNotIn("a", keys["k.new"])
        kinds = {tensor["name"]: tensor["difference"] for tensor in found["tensors"]}
        self.assertEqual({"same": "none", "shape": "shape", "gone\n": "missing", "new": "missing",
                          "strange": "unknown", "same strange": "none"}, kinds)
        text = self.run_ggufs(1, "--diff", a, b)
        for line in ("< k.number: 5", "> k.number: 6", "> k.type: 5 (int32)", "< tensor shape: F32 [4, 3]",
                     "> tensor new: F32 [12]", "< tensor gone\\x0a: F32 [12]"):
            self.assertIn(line + "\n", text)
        self.assertIn("> tensor strange: unknown [12]\n  the stored bytes differ", text)
        self.assertEqual(1, text.count("stored bytes"))
        # With patterns, keys are not compared.
        self.assertEqual([], self.diff(0, a, b, "same")["metadata"])

    def test_long_values_are_cut(self):
        """60 bytes of JSON, two of them quotes, are shown whole."""
        models = [self.write(f"{n}.gguf", [], [(b"text", STRING, b"x" * n)]) for n in (58, 59)]
        self.assertEqual(f'< text: "{58 * "x"}"\n> text: "{59 * "x"}...\n',
                         self.run_ggufs(1, "--diff", *models))

    def test_values_that_are_not_finite(self):
        a = [1, numpy.nan, numpy.inf, 4, 5, numpy.inf]
        b = [1, numpy.nan, -numpy.inf, 4, numpy.nan, numpy.inf]
        paths = [self.write(name, [(b"t", [6], F32, numpy.array(values, "<f4").tobytes())])
                 for name, values in (("a.gguf", a), ("b.gguf", b))]
        found = self.diff(1, *paths)["tensors"][0]
        self.assertEqual((4, 2, 0), (found["not_finite"], found["not_finite_unequal"], found["nmse"]))

    def test_errors(self):
        model = self.write("a.gguf", [(b"t", [2], F32, bytes(8))])
        self.assertIn("second MODEL is missing", self.run_ggufs(64, "--diff", model))
        self.run_ggufs(66, "--diff", model, self.path("none.gguf"))

    def test_a_pattern_that_needs_stars(self):
        model = self.write("a.gguf", [(b"blk.0.attn_q.weight", [2], F32, bytes(8))])
        for words in (["--stats", model], ["--diff", model, model]):
            message = self.run_ggufs(66, *words, "attn_q")
            self.assertIn("no tensor fits attn_q; did you mean '*attn_q*'?", message)
            self.assertIn("to list all: ggufs --list MODEL tensors", self.run_ggufs(66, *words, "attn_z"))

    def test_layers(self):
        tensors = [(b"blk.%d.a" % i, [32], Q8_0, bytes(34)) for i in (10, 2, 0)]
        tensors += [(b"blk.2.b", [4], F32, bytes(16)), (b"output", [2], F32, bytes(8))]
        out = self.run_ggufs(0, "--info", "--layers", self.write("a.gguf", tensors))
        lines = [line.split() for line in out.partition("   layer ")[2].splitlines()[1:]]
        self.assertEqual([["0", "1", "32", "34", "8.50", "Q8_0"],
                          ["2", "2", "36", "50", "11.11", "Q8_0", "F32"],
                          ["10", "1", "32", "34", "8.50", "Q8_0"],
                          ["none", "1", "2", "8", "32.00", "F32"]], lines)
        self.assertRegex(out, r"\nall +5 +102 +126 +100.0 % +9.88\n")

    def test_stats(self):
        values = numpy.array([3, 0, -1, numpy.nan], "<f4")
        model = self.write("a.gguf", [(b"a", [4], F32, values.tobytes()), (b"b", [32], Q8_0, bytes(34))])
        found = [json.loads(line) for line in self.run_ggufs(0, "--stats", "--json", model).splitlines()]
        self.assertEqual([(model, "a", "F32"), (model, "b", "Q8_0")], [(t["file"], t["name"], t["type"]) for t in found])
        self.assertEqual([(3, -1, 1, 1), (0, 0, 32, 0)],
                         [(t["max"], t["min"], t["zeros"], t["nan"]) for t in found])
        lines = self.run_ggufs(0, "--stats", model, "b").split("\n")
        self.assertEqual(["b", "Q8_0", "32"], lines[1].split()[:3])
        self.assertEqual(3, len(lines))


@unittest.skipUnless(numpy, "needs NumPy")
class TestMounted(mounting.MountTestCase):
    def setUp(self):
        mounting.require_fuse()
        super().setUp()

    def test_a_mounted_tree_equals_its_model(self):
        sample = mounting.sample()
        done = subprocess.run([mounting.BINARY, *mounting.MOUNT_OPTIONS, "--diff", "--json", self.mount(sample), sample],
                              capture_output=True, check=True)
        found = json.loads(done.stdout)
        self.assertEqual([], found["metadata"])
        self.assertEqual(len(os.listdir(os.path.join(self.mountpoint, "tensors"))), len(found["tensors"]))
        self.assertEqual({("none", 0)}, {(tensor["difference"], tensor["nmse"]) for tensor in found["tensors"]})
