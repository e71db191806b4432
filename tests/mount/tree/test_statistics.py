#!/usr/bin/env python3
"""Figures about tensors against NumPy."""

import json
import math
import os
import random
import struct
import subprocess
import unittest

import mounting
from gguf_file import F32, GgufFile
from gguf_reader import TYPES
from mounting import read_file

try:
    import numpy
except ImportError:
    numpy = None

setUpModule = mounting.require_fuse


def first_of(mask, shape):
    if not mask.any():
        return None
    index = int(mask.argmax())
    at = [int(n) for n in numpy.unravel_index(index, shape)] if shape else []
    return {"index": index, "at": at}


@unittest.skipUnless(numpy, "needs NumPy")
class TestStatistics(mounting.MountTestCase):
    def check_tensor(self, folder):
        info = json.loads(read_file(folder, "info"))
        values = numpy.fromfile(folder + "/f32", numpy.float32)
        size = os.stat(folder + "/stats.json").st_size
        data = read_file(folder, "stats.json")
        self.assertEqual(size, len(data), folder)
        found = json.loads(data)
        finite = values[numpy.isfinite(values)].astype(numpy.float64)
        self.assertEqual(info["n_elements"], found["count"])
        self.assertEqual(int((values == 0).sum()), found["zeros"])
        self.assertEqual(int(numpy.isnan(values).sum()), found["nan"])
        self.assertEqual(int(numpy.isinf(values).sum()), found["inf"])
        self.assertEqual(first_of(numpy.isnan(values), info["shape"]), found["first_nan"])
        self.assertEqual(first_of(numpy.isinf(values), info["shape"]), found["first_inf"])
        step = found["histogram_step"]
        edges = found["histogram_start"] + step * numpy.arange(65)
        # numpy.histogram() counts the last edge in the last bin.
        edges[-1] = numpy.nextafter(edges[-1], -math.inf)
        self.assertEqual(list(numpy.histogram(finite, edges)[0]), found["histogram"], folder)
        if len(finite) == 0:
            self.assertEqual([None] * 4, [found[name] for name in ("min", "max", "mean", "std")])
            return
        self.assertEqual(finite.min(), numpy.float32(found["min"]))
        self.assertEqual(finite.max(), numpy.float32(found["max"]))
        scale = numpy.abs(finite).max()
        self.assertLessEqual(abs(finite.mean() - found["mean"]), 1e-11 * scale, folder)
        self.assertLessEqual(abs(finite.std() - found["std"]), 1e-11 * scale, folder)

    def check_model(self, path):
        mountpoint = self.mount(path)
        tensors = os.path.join(mountpoint, "tensors")
        n_checked = 0
        for name in sorted(os.listdir(tensors)):
            if os.path.exists(os.path.join(tensors, name, "f32")):
                self.check_tensor(os.path.join(tensors, name))
                n_checked += 1
        self.assertGreater(n_checked, 0)

    def test_sample(self):
        self.check_model(mounting.sample())

    def test_random_blocks_of_all_types(self):
        """Random bytes hold many NaNs, infinities and outliers."""
        source = random.Random(1)
        built = GgufFile()
        for type_id, (name, block_size, type_size) in TYPES.items():
            built.tensor(name.lower().encode(), [block_size * 7, 300], type_id,
                         source.randbytes(2100 * type_size))
        self.check_model(built.write(self.path("model.gguf")))

    def test_large_tensor(self):
        values = numpy.random.default_rng(1).normal(0.1, 0.02, 1000003).astype("<f4")
        values[[5, 400000, 999999]] = [3, numpy.nan, -numpy.inf]
        built = GgufFile().tensor(b"t", [1000003], F32, values.tobytes())
        self.check_model(built.write(self.path("model.gguf")))

    def test_a_changed_file_has_new_figures(self):
        path = GgufFile().tensor(b"t", [4], F32, struct.pack("<4f", 1, 2, 3, 4)).write(
            self.path("model.gguf"))
        folder = os.path.join(self.mount(path), "tensors/t")
        self.assertEqual(4, json.loads(read_file(folder, "stats.json"))["max"])
        with open(path, "r+b") as file:
            file.seek(-32, os.SEEK_END)  # the data are padded to 32 bytes
            file.write(struct.pack("<4f", 1, 2, 3, 9))
        mounting.wait_until(lambda: json.loads(read_file(folder, "stats.json"))["max"] == 9,
                            "the new maximum")

    def test_a_reader_can_be_killed(self):
        """The tensor is sparse and takes minutes; opening stats.json ends at once with a signal."""
        n_elements = 1 << 36
        path = GgufFile().tensor(b"t", [n_elements], F32, b"").write(self.path("model.gguf"))
        os.truncate(path, os.path.getsize(path) + 4 * n_elements)
        folder = os.path.join(self.mount(path), "tensors/t")
        os.stat(folder + "/stats.json")
        with subprocess.Popen(["cat", folder + "/stats.json"], stdout=subprocess.PIPE) as process:
            with self.assertRaises(subprocess.TimeoutExpired):
                process.wait(0.5)
            process.terminate()
            process.wait(mounting.DEADLINE)
        self.assertEqual(4 * n_elements, os.stat(folder + "/f32").st_size)
