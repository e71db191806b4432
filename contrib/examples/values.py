#!/usr/bin/env python3
"""The values of a tensor in NumPy: values.py MOUNT TENSOR

Nothing is converted or copied: the array is a mapping of the file, and ggufs decodes the pages that
are touched.
"""
import json
import sys

import numpy

mount, name = sys.argv[1:]
folder = f"{mount}/tensors/{name}"
with open(f"{folder}/info", encoding="utf-8") as file:
    info = json.load(file)
values = numpy.load(f"{folder}/f32.npy", mmap_mode="r")
print(f"{name}: {info['type']}, shape {values.shape}")
print(f"first row: {values[0, :4].round(4)}")
norms = numpy.linalg.norm(values, axis=1)
print(f"longest row: {norms.argmax()}, norm {norms.max():.4f}")

halves = numpy.load(f"{folder}/f16.npy", mmap_mode="r")
print(f"largest rounding error in f16: {numpy.abs(values - halves).max():.1e}")
