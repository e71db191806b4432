#!/usr/bin/env python3
"""The frequencies that transformers, version 5 or 4, takes from hf/config.json.

    test_rotation.py [TEST]...

The expected frequencies and the factor of attention are llama.cpp's, whose formulas are written here
again. Needs the packages gguf, torch and transformers.
"""

import math
import os
import tempfile
import unittest

import gguf
import numpy as np
import transformers
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding
from transformers.models.phi3.modeling_phi3 import Phi3RotaryEmbedding

import model_files

N_EMBD, N_HEAD, N_FF, N_CTX = 64, 2, 32, 8192
WIDTH = N_EMBD // N_HEAD
BASE = 10000.0


def write(path, architecture, keys, factors):
    """Write a model of one layer of zeros, with keys below `architecture` and tensors of factors."""
    writer = gguf.GGUFWriter(path, architecture)
    for name, number in {"context_length": N_CTX, "embedding_length": N_EMBD, "block_count": 1,
                         "feed_forward_length": N_FF, "attention.head_count": N_HEAD,
                         "attention.head_count_kv": N_HEAD, **keys}.items():
        add = {int: writer.add_uint32, float: writer.add_float32, str: writer.add_string}[type(number)]
        add(f"{architecture}.{name}", number)
    writer.add_layer_norm_rms_eps(1e-5)
    shapes = {"token_embd": (16, N_EMBD), "output_norm": (N_EMBD,), "output": (16, N_EMBD),
              "blk.0.attn_norm": (N_EMBD,), "blk.0.ffn_norm": (N_EMBD,),
              "blk.0.attn_output": (N_EMBD, N_EMBD), "blk.0.ffn_down": (N_EMBD, N_FF)}
    if architecture == "phi3":
        shapes |= {"blk.0.attn_qkv": (3 * N_EMBD, N_EMBD), "blk.0.ffn_up": (2 * N_FF, N_EMBD)}
    else:
        shapes |= {f"blk.0.attn_{name}": (N_EMBD, N_EMBD) for name in "qkv"}
        shapes |= {f"blk.0.ffn_{name}": (N_FF, N_EMBD) for name in ("gate", "up")}
    for name, shape in shapes.items():
        writer.add_tensor(f"{name}.weight", np.zeros(shape, np.float32))
    for name, values in factors.items():
        writer.add_tensor(f"{name}.weight", np.float32(values))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def yarn(factor, n_original, fast=32, slow=1):
    """The frequencies of YaRN, see rope_yarn() of ggml."""
    def dimension(turns):
        return WIDTH * math.log(n_original / (turns * 2 * math.pi)) / (2 * math.log(BASE))

    low, high = max(0, math.floor(dimension(fast))), min(WIDTH - 1, math.ceil(dimension(slow)))
    plain = BASE ** (-np.arange(0, WIDTH, 2) / WIDTH)
    mix = 1 - np.clip((np.arange(WIDTH // 2) - low) / max(0.001, high - low), 0, 1)
    return plain / factor * (1 - mix) + plain * mix


class TestRotation(model_files.ModelTestCase):
    def rotation(self, architecture="llama", factors=None, **keys):
        """Return the frequencies, and the factor of cosines and sines."""
        write(self.path, architecture, {name.replace("__", "."): key for name, key in keys.items()},
              factors or {})
        folder = tempfile.mkdtemp(dir=self.folder.name)
        data = model_files.read(self.path, "hf/config.json")
        self.assertIsNotNone(data, model_files.read(self.path, "hf.unsupported.txt"))
        with open(os.path.join(folder, "config.json"), "wb") as file:
            file.write(data)
        config = transformers.AutoConfig.from_pretrained(folder)
        made = (Phi3RotaryEmbedding if architecture == "phi3" else LlamaRotaryEmbedding)(config=config)
        return made.inv_freq.numpy(), made.attention_scaling

    def check(self, frequencies, attention, *args, **keys):
        found, factor = self.rotation(*args, **keys)
        np.testing.assert_allclose(found, frequencies, rtol=1e-6)
        self.assertAlmostEqual(attention, factor, 6)

    def test_plain_and_linear(self):
        plain = BASE ** (-np.arange(0, WIDTH, 2) / WIDTH)
        self.check(plain, 1)
        for key in ("rope__scaling__factor", "rope__scale_linear", "rope__scale"):
            self.check(plain / 4, 1, **{key: 4.0})

    def test_yarn(self):
        keys = {"rope__scaling__type": "yarn", "rope__scaling__factor": 4.0,
                "rope__scaling__original_context_length": 2048}
        own = 0.1 * math.log(4) + 1
        self.check(yarn(4, 2048), own, **keys)
        self.check(yarn(4, 2048, 16, 2), own, rope__scaling__yarn_beta_fast=16.0,
                   rope__scaling__yarn_beta_slow=2.0, **keys)
        self.check(yarn(4, 2048), own * 1.5, rope__scaling__attn_factor=1.5, **keys)
        self.check(yarn(4, 2048), 1.25, rope__scaling__yarn_attn_factor=1.25, **keys)

    def test_factors(self):
        plain = BASE ** (-np.arange(0, WIDTH, 2) / WIDTH)
        values = np.linspace(1, 3, WIDTH // 2, dtype=np.float32)
        for architecture in ("llama", "minicpm", "exaone"):
            self.check(plain / values, 1, architecture, {"rope_freqs": values})
            if architecture == "exaone":
                continue  # has no factors for long contexts
            self.check(plain / values, 1.5, architecture,
                       {"rope_factors_short": values, "rope_factors_long": 2 * values},
                       rope__scaling__attn_factor=1.5, rope__scaling__original_context_length=2048)

    def test_phi3(self):
        plain = BASE ** (-np.arange(0, WIDTH, 2) / WIDTH)
        values = np.linspace(1, 3, WIDTH // 2, dtype=np.float32)
        attention = math.sqrt(1 + math.log(4) / math.log(2048))
        self.check(plain / values, attention, "phi3",
                   {"rope_factors_short": values, "rope_factors_long": 2 * values},
                   rope__scaling__attn_factor=attention, rope__scaling__original_context_length=2048)

    def test_llama3(self):
        plain = BASE ** (-np.arange(0, WIDTH, 2) / WIDTH)
        turns = 1024 * plain / (2 * math.pi)
        smooth = np.clip((turns - 1) / 3, 0, 1)
        values = 1 / ((1 - smooth) / 8 + smooth)
        self.check(plain / values, 1, factors={"rope_freqs": values})
        self.assertIn(b'"llama3"', model_files.read(self.path, "hf/config.json"))


if __name__ == "__main__":
    unittest.main()
