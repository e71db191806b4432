#!/usr/bin/env python3
"""Run a GGUF model in transformers: forward_pass.py MOUNT TEXT

from_pretrained() reads an ordinary checkpoint in hf/; it needs no support for GGUF.
"""
import sys

import torch
import transformers

mount, text = sys.argv[1:]
transformers.utils.logging.disable_progress_bar()
tokenizer = transformers.AutoTokenizer.from_pretrained(f"{mount}/hf")
model = transformers.AutoModelForCausalLM.from_pretrained(f"{mount}/hf", dtype=torch.float32)
inputs = tokenizer(text, return_tensors="pt")
with torch.no_grad():
    logits = model(**inputs).logits[0]
print(f"{type(model).__name__}, {sum(p.numel() for p in model.parameters())} parameters")
print(f"tokens: {inputs['input_ids'][0].tolist()}")
print(f"logits: {tuple(logits.shape)}, all finite: {bool(logits.isfinite().all())}")
perplexity = torch.nn.functional.cross_entropy(logits[:-1], inputs["input_ids"][0, 1:]).exp()
print(f"perplexity of the text: {perplexity:.0f}")
