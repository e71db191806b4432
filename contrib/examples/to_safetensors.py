#!/usr/bin/env python3
"""Write some tensors to a new safetensors file: to_safetensors.py MOUNT FILE PATTERN...

A tensor is written under its name in GGUF if it matches a pattern, such as 'blk.0.*'. For the whole
model, cp MOUNT/model.safetensors FILE is enough.
"""
import fnmatch
import sys

import safetensors.torch

mount, path, *patterns = sys.argv[1:]
chosen = {}
with safetensors.safe_open(f"{mount}/model.safetensors", framework="pt") as model:
    for name in model.keys():
        if any(fnmatch.fnmatch(name, pattern) for pattern in patterns):
            chosen[name] = model.get_tensor(name)
safetensors.torch.save_file(chosen, path, metadata={"format": "pt"})
for name in sorted(chosen):
    print(f"{name}: {str(chosen[name].dtype)[6:]}, {tuple(chosen[name].shape)}")
