"""Model files of random tensors, and the checkpoints in hf/ of their mounts."""

import json
import os
import unittest

import mounting
from gguf_file import F16, F32, F64, FLOAT32, I16, I32, I64, STRING, UINT32, GgufFile

try:
    import numpy
except ImportError:
    numpy = None

N_EMBD, N_FF, N_HEAD, N_VOCAB = 8, 12, 2, 16


def read_safetensors(path):
    """Return the arrays of a file by name, and their dtypes."""
    with open(path, "rb") as file:
        data = file.read()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    arrays, dtypes = {}, {}
    for name, tensor in header.items():
        if name == "__metadata__":
            continue
        first, end = tensor["data_offsets"]
        piece = data[start + first:start + end]
        if tensor["dtype"] == "BF16":
            values = (numpy.frombuffer(piece, "<u2").astype("<u4") << 16).view("<f4")
        else:
            values = numpy.frombuffer(piece, {"F32": "<f4", "F16": "<f2"}[tensor["dtype"]])
        arrays[name] = values.reshape(tensor["shape"])
        dtypes[name] = tensor["dtype"]
    return arrays, dtypes


class Built:
    """A model file of random tensors."""

    def __init__(self, architecture, **numbers):
        self.file = GgufFile()
        self.arrays = {}
        self.architecture = architecture
        self.random = numpy.random.default_rng(1)
        self.file.key(b"general.architecture", STRING, architecture.encode())
        common = {"embedding_length": N_EMBD, "feed_forward_length": N_FF, "block_count": 1,
                  "context_length": 64, "attention.head_count": N_HEAD}
        for name, number in {**common, **numbers}.items():
            if number is not None:
                self.key(name, UINT32, number)

    def key(self, name, value_type, value):
        self.file.key(f"{self.architecture}.{name}".encode(), value_type, value)

    def tensor(self, name, *shape, type_id=F32):
        numbers = self.random.standard_normal(shape) * (1 if type_id in (F32, F16, F64) else 8000)
        array = numbers.astype({F32: "<f4", F16: "<f2", F64: "<f8", I16: "<i2", I32: "<i4",
                                I64: "<i8"}[type_id])
        self.arrays[name] = array
        self.file.tensor(name.encode(), list(reversed(shape)), type_id, array.tobytes())
        return array

    def layer(self, index=0, n_head_kv=N_HEAD):
        """The tensors of a layer of llama."""
        width = N_EMBD // N_HEAD
        for name, *shape in (("attn_norm", N_EMBD), ("ffn_norm", N_EMBD), ("attn_q", N_EMBD, N_EMBD),
                             ("attn_k", n_head_kv * width, N_EMBD), ("attn_v", n_head_kv * width, N_EMBD),
                             ("attn_output", N_EMBD, N_EMBD)):
            self.tensor(f"blk.{index}.{name}.weight", *shape)

    def biases(self, index=0, type_id=F32):
        """Those of attention, after layer()."""
        for name in "qkv":
            self.tensor(f"blk.{index}.attn_{name}.bias",
                        self.arrays[f"blk.{index}.attn_{name}.weight"].shape[0], type_id=type_id)

    def feed_forward(self, index=0):
        for name, *shape in (("gate", N_FF, N_EMBD), ("up", N_FF, N_EMBD), ("down", N_EMBD, N_FF)):
            self.tensor(f"blk.{index}.ffn_{name}.weight", *shape)

    def gpt_layer(self):
        """The tensors that GPT-2 and the like have besides rest() and attn_qkv, all with biases."""
        n_rows = self.arrays["blk.0.attn_qkv.weight"].shape[0]
        norms = [("token_embd_norm", N_EMBD)] if self.architecture == "bloom" else []
        for name, *shape in (("blk.0.attn_norm", N_EMBD), ("blk.0.ffn_norm", N_EMBD),
                             ("blk.0.attn_output", N_EMBD, N_EMBD), ("blk.0.ffn_up", N_FF, N_EMBD),
                             ("blk.0.ffn_down", N_EMBD, N_FF), *norms):
            for suffix, *sizes in (("weight", *shape), ("bias", shape[0])):
                if f"{name}.{suffix}" not in self.arrays:
                    self.tensor(f"{name}.{suffix}", *sizes)
        for name, n in (("blk.0.attn_qkv.bias", n_rows), ("output_norm.bias", N_EMBD)):
            if name not in self.arrays:
                self.tensor(name, n)
        if self.architecture in ("gpt2", "starcoder"):
            self.tensor("position_embd.weight", 64, N_EMBD)

    def rest(self):
        self.tensor("token_embd.weight", N_VOCAB, N_EMBD, type_id=F16)
        self.tensor("output_norm.weight", N_EMBD)


def llama(n_layer=1):
    built = Built("llama", **{"block_count": n_layer, "attention.head_count_kv": 1})
    built.key("attention.layer_norm_rms_epsilon", FLOAT32, 1e-5)
    built.rest()
    for i in range(n_layer):
        built.layer(i, n_head_kv=1)
        built.feed_forward(i)
    return built


def unpermuted(array, n_head):
    """Rows 2i and 2i + 1 of each head are rows i and i + width / 2 of the checkpoint."""
    return (array.reshape(n_head, -1, 2, *array.shape[1:]).swapaxes(1, 2).reshape(array.shape))


@unittest.skipUnless(numpy, "NumPy is missing")
class CheckpointTestCase(mounting.MountTestCase):
    def open(self, built, *options):
        self.mount(built.file.write(self.path("model.gguf")), *options)
        return os.path.join(self.mountpoint, "hf")

    def data_of(self, path):
        with open(path, "rb") as file:
            return file.read()

    def config(self, hf):
        with open(os.path.join(hf, "config.json"), encoding="utf-8") as file:
            return json.load(file)

    def expect(self, arrays, name, expected):
        self.assertEqual(expected.shape, arrays[name].shape, name)
        numpy.testing.assert_array_equal(expected, arrays[name], err_msg=name)

    def expect_unsupported(self, built, *texts):
        hf = self.open(built)
        self.assertFalse(os.path.exists(os.path.join(hf, "config.json")))
        with open(os.path.join(self.mountpoint, "hf.unsupported.txt"), encoding="utf-8") as file:
            reasons = file.read()
        for text in texts:
            self.assertIn(text, reasons)
