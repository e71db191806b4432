#!/usr/bin/env python3
"""Train a GGUF model for a few steps and save it: fine_tune.py MOUNT FOLDER

The checkpoint that is saved can be converted to GGUF again by llama.cpp.
"""
import sys

import torch
import transformers

TEXT = "The quick brown fox jumps over the lazy dog. " * 4
STEPS = 8

mount, folder = sys.argv[1:]
transformers.utils.logging.disable_progress_bar()
torch.manual_seed(0)
tokenizer = transformers.AutoTokenizer.from_pretrained(f"{mount}/hf")
model = transformers.AutoModelForCausalLM.from_pretrained(f"{mount}/hf", dtype=torch.float32)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
inputs = tokenizer(TEXT, return_tensors="pt")
losses = []
for _ in range(STEPS):
    loss = model(**inputs, labels=inputs["input_ids"]).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    losses.append(loss.item())
print(f"{STEPS} steps on {inputs['input_ids'].shape[1]} tokens")
print(f"the loss is {'lower' if losses[-1] < losses[0] / 2 else 'NOT lower'} than half the first one")

model.save_pretrained(folder)
tokenizer.save_pretrained(folder)
again = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
same = all(torch.equal(a, b) for a, b in zip(model.parameters(), again.parameters()))
print(f"saved and loaded again: {'equal' if same else 'NOT equal'}")
