#!/usr/bin/env python3
"""A model's tensors in PyTorch: tensors.py MOUNT"""
import json
import sys

import safetensors
import safetensors.torch
import torch

mount = sys.argv[1]

# One tensor, mapped: the pages are decoded when they are touched.
folder = f"{mount}/tensors/output.weight"
with open(f"{folder}/info", encoding="utf-8") as file:
    info = json.load(file)
mapped = torch.from_file(f"{folder}/bf16", shared=False, size=info["n_elements"],
                         dtype=torch.bfloat16).view(info["shape"])
print(f"output.weight: {tuple(mapped.shape)}, {mapped.dtype}")

# Some of the whole model, by name.
with safetensors.safe_open(f"{mount}/model.safetensors", framework="pt") as model:
    print(f"{len(model.keys())} tensors")
    rows = model.get_slice("token_embd.weight")[10:12]
print(f"two rows of token_embd.weight: {tuple(rows.shape)}")

# All of it.
state = safetensors.torch.load_file(f"{mount}/model.safetensors")
print(f"{sum(tensor.numel() for tensor in state.values())} parameters")
assert torch.equal(state["output.weight"], mapped)
