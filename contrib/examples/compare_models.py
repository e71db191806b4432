#!/usr/bin/env python3
"""Print the error of each tensor of one model against another, without a mount: compare_models.py MODEL OTHER"""
import sys

import numpy

import ggufs

with ggufs.open(sys.argv[1]) as model, ggufs.open(sys.argv[2]) as other:
    for name, tensor in model.tensors.items():
        if name not in other.tensors or other[name].shape != tensor.shape:
            print(f"{name}\tis missing")
            continue
        a, b = tensor.numpy("f32"), other[name].numpy("f32")
        norm = numpy.square(a, dtype="f8").sum()
        print(f"{name}\t{tensor.type} {other[name].type}\t{numpy.square(a - b, dtype='f8').sum() / norm if norm else 0:.2e}")
