#!/usr/bin/env python3
"""Convert a model to a safetensors file, without a mount: model_to_safetensors.py MODEL FILE [DTYPE]"""
import shutil
import sys

import ggufs

path, target, *dtype = sys.argv[1:]
with ggufs.open(path, dtype=dtype[0] if dtype else "bf16") as model, open(target, "xb") as file:
    shutil.copyfileobj(model.open("model.safetensors"), file, 1 << 24)
