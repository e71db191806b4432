#!/usr/bin/env python3
"""hf/: names, shapes and values of its tensors, config.json, and what is said where there is none.

tests/clients/test_checkpoints.py loads real models with transformers.
"""

import errno
import json
import os
import unittest

import mounting
from gguf_file import (ARRAY, BOOL, F16, F32, F64, FLOAT32, I16, I32, I64, STRING, UINT32, Array,
                       GgufFile)

try:
    import numpy
except ImportError:
    numpy = None

setUpModule = mounting.require_fuse

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

    def feed_forward(self, index=0):
        for name, *shape in (("gate", N_FF, N_EMBD), ("up", N_FF, N_EMBD), ("down", N_EMBD, N_FF)):
            self.tensor(f"blk.{index}.ffn_{name}.weight", *shape)

    def gpt_layer(self):
        """The tensors that layers of GPT-2 and the like have besides attn_qkv."""
        for name, *shape in (("attn_output", N_EMBD, N_EMBD), ("ffn_up", N_FF, N_EMBD),
                             ("ffn_down", N_EMBD, N_FF)):
            if f"blk.0.{name}.weight" not in self.arrays:
                self.tensor(f"blk.0.{name}.weight", *shape)

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
class CheckpointTest(mounting.MountTestCase):
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

    def test_llama(self):
        built = llama()
        hf = self.open(built)
        arrays, dtypes = read_safetensors(os.path.join(hf, "model.safetensors"))
        layer = "model.layers.0."
        self.expect(arrays, "model.embed_tokens.weight", built.arrays["token_embd.weight"])
        self.expect(arrays, "model.norm.weight", built.arrays["output_norm.weight"])
        self.expect(arrays, layer + "self_attn.q_proj.weight",
                    unpermuted(built.arrays["blk.0.attn_q.weight"], N_HEAD))
        self.expect(arrays, layer + "self_attn.k_proj.weight",
                    unpermuted(built.arrays["blk.0.attn_k.weight"], 1))
        self.expect(arrays, layer + "mlp.down_proj.weight", built.arrays["blk.0.ffn_down.weight"])
        self.assertEqual(11, len(arrays))
        self.assertEqual({"F32", "F16"}, set(dtypes.values()))
        config = self.config(hf)
        expected = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": N_EMBD,
                    "intermediate_size": N_FF, "num_attention_heads": N_HEAD, "num_key_value_heads": 1,
                    "num_hidden_layers": 1, "rms_norm_eps": 1e-5, "vocab_size": N_VOCAB,
                    "max_position_embeddings": 64, "tie_word_embeddings": True,
                    "attention_bias": False, "rope_theta": 10000.0,
                    "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}}
        self.assertEqual(expected, {name: config[name] for name in expected})
        self.assertFalse(os.path.exists(os.path.join(hf, "unused_tensors.txt")))

    def test_dtype(self):
        built = llama()
        hf = self.open(built, "-o", "dtype=bf16")
        arrays, dtypes = read_safetensors(os.path.join(hf, "model.safetensors"))
        self.assertEqual({"BF16"}, set(dtypes.values()))
        self.assertEqual("bfloat16", self.config(hf)["torch_dtype"])
        numpy.testing.assert_allclose(built.arrays["output_norm.weight"],
                                      arrays["model.norm.weight"], rtol=2**-8)

    def test_wide_numbers_become_float32(self):
        """BF16 would round them."""
        built = llama(n_layer=4)
        for i, type_id in enumerate((F64, I16, I32, I64)):
            built.tensor(f"blk.{i}.attn_q.bias", N_EMBD, type_id=type_id)
        arrays, dtypes = read_safetensors(os.path.join(self.open(built), "model.safetensors"))
        for i in range(4):
            name = f"model.layers.{i}.self_attn.q_proj.bias"
            self.assertEqual("F32", dtypes[name])
            self.expect(arrays, name, unpermuted(
                built.arrays[f"blk.{i}.attn_q.bias"].astype("<f4"), N_HEAD))

    def test_shards(self):
        built = llama(n_layer=3)
        hf = self.open(built, "-o", "hf_shard=1K")
        with open(os.path.join(hf, "model.safetensors.index.json"), encoding="utf-8") as file:
            index = json.load(file)
        files = sorted(name for name in os.listdir(hf) if name.endswith(".safetensors"))
        self.assertGreater(len(files), 3)
        self.assertEqual(f"model-00001-of-{len(files):05}.safetensors", files[0])
        n_bytes, names = 0, {}
        for name in files:
            arrays, _ = read_safetensors(os.path.join(hf, name))
            size = sum(array.nbytes for array in arrays.values())
            self.assertTrue(size <= 1000 or len(arrays) == 1, name)
            n_bytes += size
            names.update({tensor: name for tensor in arrays})
        self.assertEqual(names, index["weight_map"])
        self.assertEqual(n_bytes, index["metadata"]["total_size"])
        self.assertEqual(len(built.arrays), len(names))

    def test_experts(self):
        built = Built("llama", expert_count=3, expert_used_count=2)
        built.key("attention.layer_norm_rms_epsilon", FLOAT32, 1e-5)
        built.rest()
        built.layer()
        built.tensor("blk.0.ffn_gate_inp.weight", 3, N_EMBD)
        for name, *shape in (("gate", N_FF, N_EMBD), ("up", N_FF, N_EMBD), ("down", N_EMBD, N_FF)):
            built.tensor(f"blk.0.ffn_{name}_exps.weight", 3, *shape, type_id=F16)
        hf = self.open(built)
        arrays, _ = read_safetensors(os.path.join(hf, "model.safetensors"))
        for i in range(3):
            for name, number in (("gate", 1), ("down", 2), ("up", 3)):
                self.expect(arrays, f"model.layers.0.block_sparse_moe.experts.{i}.w{number}.weight",
                            built.arrays[f"blk.0.ffn_{name}_exps.weight"][i])
        self.assertEqual("mixtral", self.config(hf)["model_type"])
        self.assertEqual(3, self.config(hf)["num_local_experts"])

    def test_gpt2_is_transposed(self):
        built = Built("gpt2")
        built.key("attention.layer_norm_epsilon", FLOAT32, 1e-5)
        built.rest()
        qkv = built.tensor("blk.0.attn_qkv.weight", 3 * N_EMBD, N_EMBD, type_id=F16)
        bias = built.tensor("blk.0.attn_qkv.bias", 3 * N_EMBD)
        built.gpt_layer()
        arrays, _ = read_safetensors(os.path.join(self.open(built), "model.safetensors"))
        self.expect(arrays, "transformer.h.0.attn.c_attn.weight", qkv.T)
        self.expect(arrays, "transformer.h.0.attn.c_attn.bias", bias)

    def test_gemma_norms(self):
        built = Built("gemma")
        built.key("attention.layer_norm_rms_epsilon", FLOAT32, 1e-6)
        built.rest()
        built.layer()
        built.feed_forward()
        arrays, _ = read_safetensors(os.path.join(self.open(built), "model.safetensors"))
        self.expect(arrays, "model.layers.0.input_layernorm.weight",
                    built.arrays["blk.0.attn_norm.weight"] - numpy.float32(1))

    def test_bloom_heads(self):
        built = Built("bloom")
        built.key("attention.layer_norm_epsilon", FLOAT32, 1e-5)
        built.rest()
        qkv = built.tensor("blk.0.attn_qkv.weight", 3 * N_EMBD, N_EMBD)
        built.gpt_layer()
        arrays, _ = read_safetensors(os.path.join(self.open(built), "model.safetensors"))
        self.expect(arrays, "transformer.h.0.self_attention.query_key_value.weight",
                    qkv.reshape(3, N_HEAD, -1, N_EMBD).swapaxes(0, 1).reshape(3 * N_EMBD, N_EMBD))

    def test_mamba_decay(self):
        built = Built("mamba", **{"feed_forward_length": None, "attention.head_count": None,
                                  "ssm.conv_kernel": 4, "ssm.inner_size": 16, "ssm.state_size": 2,
                                  "ssm.time_step_rank": 3})
        built.key("attention.layer_norm_rms_epsilon", FLOAT32, 1e-5)
        built.key("ssm.dt_b_c_rms", BOOL, False)
        built.rest()
        decay = -numpy.exp(built.random.standard_normal((16, 2))).astype("<f4")
        built.file.tensor(b"blk.0.ssm_a", [2, 16], F32, decay.tobytes())
        built.tensor("blk.0.ssm_in.weight", 32, N_EMBD)
        built.tensor("blk.0.ssm_out.weight", N_EMBD, 16)
        convolution = built.tensor("blk.0.ssm_conv1d.weight", 16, 4)
        hf = self.open(built)
        arrays, _ = read_safetensors(os.path.join(hf, "model.safetensors"))
        numpy.testing.assert_allclose(arrays["backbone.layers.0.mixer.A_log"], numpy.log(-decay),
                                      rtol=1e-6, atol=1e-6)
        self.expect(arrays, "backbone.layers.0.mixer.conv1d.weight", convolution[:, None, :])
        self.assertEqual("mamba", self.config(hf)["model_type"])

    def test_numbers_from_keys(self):
        """Apertus has parameters of its activation in keys."""
        built = Built("apertus", block_count=2)
        built.key("attention.layer_norm_rms_epsilon", FLOAT32, 1e-5)
        built.rest()
        for i in range(2):
            built.layer(i)
            built.feed_forward(i)
        for name in ("alpha_n", "alpha_p", "beta", "eps"):
            built.file.key(f"xielu.{name}".encode(), ARRAY, Array(FLOAT32, [0.25, -1.5]))
        arrays, dtypes = read_safetensors(os.path.join(self.open(built), "model.safetensors"))
        self.expect(arrays, "model.layers.1.mlp.act_fn.alpha_p", numpy.float32([-1.5]))
        self.expect(arrays, "model.layers.0.mlp.act_fn.eps", numpy.float32(0.25).reshape(()))
        self.assertEqual("F32", dtypes["model.layers.0.mlp.act_fn.eps"])

    def test_rope_factors(self):
        """Factors that llama3's parameters explain become these; others stay factors."""
        built = llama()
        built.tensor("rope_freqs.weight", 2)
        rope = self.config(self.open(built))["rope_parameters"]
        self.assertEqual("longrope", rope["rope_type"])
        numpy.testing.assert_allclose(rope["short_factor"], built.arrays["rope_freqs.weight"])

    def test_long_factors(self):
        for n_long in (2, 3, None):
            with self.subTest(n_long=n_long):
                built = llama()
                built.tensor("rope_factors_short.weight", 2)
                if n_long:
                    built.tensor("rope_factors_long.weight", n_long)
                if n_long == 2:
                    rope = self.config(self.open(built))["rope_parameters"]
                    for kind in ("short", "long"):
                        numpy.testing.assert_allclose(rope[f"{kind}_factor"],
                                                      built.arrays[f"rope_factors_{kind}.weight"])
                elif n_long:
                    self.expect_unsupported(built, '"rope_factors_long.weight" has 3 factors, and '
                                            '"rope_factors_short.weight" has 2')
                else:
                    self.expect_unsupported(built, 'no tensor "rope_factors_long.weight" of 2 factors')
                mounting.unmount(self.mountpoint)

    def test_factors_that_change(self):
        """config.json keeps the factors of the start, and so its size."""
        built = llama()
        old = built.tensor("rope_freqs.weight", 2).tobytes()
        path = os.path.join(self.open(built), "config.json")
        size = os.stat(path).st_size
        data = self.data_of(self.path("model.gguf"))
        with open(self.path("model.gguf"), "r+b") as file:
            file.seek(data.index(old))
            file.write(numpy.array([1.2345678e-30, 1], "<f4").tobytes())
        self.assertEqual(size, len(self.data_of(path)))
        rope = self.config(os.path.dirname(path))["rope_parameters"]
        numpy.testing.assert_allclose(rope["short_factor"], built.arrays["rope_freqs.weight"])

    def test_factors_that_arrive(self):
        """With -o partial, config.json has its final size before its factors are there."""
        for names in (["rope_freqs"], ["rope_factors_short", "rope_factors_long"]):
            with self.subTest(names):
                built = llama()
                if len(names) == 2:
                    built.key("rope.scaling.type", STRING, b"longrope")
                factors = [built.tensor(f"{name}.weight", 2) for name in names]
                data = built.file.to_bytes()
                end = data.index(factors[0].tobytes())
                model = self.write("model.gguf", data[:end])
                self.mount(model, "-o", "partial")
                hf = os.path.join(self.mountpoint, "hf")
                path = os.path.join(hf, "config.json")
                size = os.stat(path).st_size
                for _ in range(2):
                    with self.assertRaises(OSError) as caught:
                        self.data_of(path)
                    self.assertEqual(errno.EIO, caught.exception.errno)
                with open(model, "ab") as file:
                    file.write(data[end:])
                self.assertEqual(size, len(self.data_of(path)))
                rope = self.config(hf)["rope_parameters"]
                numpy.testing.assert_allclose(rope["short_factor"], factors[0])
                numpy.testing.assert_allclose(rope["long_factor"], factors[-1])
                mounting.unmount(self.mountpoint)

    def test_linear_scaling_of_first_files(self):
        built = llama()
        built.key("rope.scale_linear", FLOAT32, 4)
        rope = self.config(self.open(built))["rope_parameters"]
        self.assertEqual({"rope_theta": 10000.0, "rope_type": "linear", "factor": 4.0}, rope)

    def test_sizes_from_shapes(self):
        """Converters write other numbers into the keys of gpt_bigcode."""
        built = Built("starcoder", **{"attention.head_count_kv": 1, "feed_forward_length": 4 * N_EMBD})
        built.key("attention.layer_norm_epsilon", FLOAT32, 1e-5)
        built.rest()
        built.tensor("blk.0.attn_qkv.weight", 3 * N_EMBD, N_EMBD)
        built.tensor("blk.0.ffn_up.weight", N_FF, N_EMBD)
        built.gpt_layer()
        config = self.config(self.open(built))
        self.assertEqual((N_FF, False), (config["n_inner"], config["multi_query"]))

    def test_biases_of_attention(self):
        for has_bias in (False, True):
            built = Built("gemma")
            built.key("attention.layer_norm_rms_epsilon", FLOAT32, 1e-6)
            built.rest()
            built.layer()
            built.feed_forward()
            if has_bias:
                built.tensor("blk.0.attn_q.bias", N_EMBD)
            self.assertIs(has_bias, self.config(self.open(built))["attention_bias"])
            mounting.unmount(self.mountpoint)

    def test_unused_tensors_are_listed(self):
        built = llama()
        built.tensor("blk.0.unheard_of.weight", 4)
        hf = self.open(built)
        with open(os.path.join(hf, "unused_tensors.txt"), encoding="utf-8") as file:
            self.assertIn('"blk.0.unheard_of.weight"\n', file.read())

    def expect_unsupported(self, built, *texts):
        hf = self.open(built)
        self.assertFalse(os.path.exists(os.path.join(hf, "config.json")))
        with open(os.path.join(self.mountpoint, "hf.unsupported.txt"), encoding="utf-8") as file:
            reasons = file.read()
        for text in texts:
            self.assertIn(text, reasons)

    def test_unknown_architecture(self):
        self.expect_unsupported(Built("abacus"), 'architecture "abacus"')

    def test_missing_key(self):
        built = llama()
        built.file.keys = [key for key in built.file.keys if b"context_length" not in key]
        built.file.n_keys -= 1
        self.expect_unsupported(built, '"llama.context_length"', "max_position_embeddings")

    def test_missing_layer(self):
        built = llama()
        built.file.keys = [key for key in built.file.keys if b"block_count" not in key]
        built.key("block_count", UINT32, 2)
        built.file.n_keys -= 1
        self.expect_unsupported(built, "Layers 1 to 1 have no tensors")

    def test_missing_tensors(self):
        """Each of these is named; transformers would fill it with random numbers."""
        for name in ("token_embd", "output_norm", "blk.1.attn_q", "blk.1.attn_k", "blk.1.attn_v",
                     "blk.1.attn_output", "blk.1.ffn_up", "blk.1.ffn_down"):
            built = llama(n_layer=2)
            built.file.tensors = [tensor for tensor in built.file.tensors
                                  if tensor[0] != f"{name}.weight".encode()]
            self.expect_unsupported(built, f'The model has no tensor "{name}.weight"')
            mounting.unmount(self.mountpoint)

    def test_too_many_layers(self):
        built = llama()
        built.file.keys = [key for key in built.file.keys if b"block_count" not in key]
        built.key("block_count", UINT32, 2**32 - 1)
        built.file.n_keys -= 1
        self.expect_unsupported(built, "4294967295 layers")

    def test_scaling_without_factors(self):
        built = llama()
        built.key("rope.scaling.type", STRING, b"longrope")
        self.expect_unsupported(built, '"llama.rope.scaling.type"')

    def test_heads_that_do_not_fit(self):
        built = Built("llama", **{"attention.head_count": 3})
        built.key("attention.layer_norm_rms_epsilon", FLOAT32, 1e-5)
        built.rest()
        built.layer()
        self.expect_unsupported(built, '"blk.0.attn_q.weight"')

    def test_too_many_pieces(self):
        """A header of few bytes can ask for millions of rearranged rows."""
        built = Built("falcon", **{"block_count": 5, "embedding_length": 1,
                                   "attention.head_count": 2700, "attention.head_count_kv": 2700})
        built.key("attention.layer_norm_epsilon", FLOAT32, 1e-5)
        built.rest()
        for i in range(5):
            built.tensor(f"blk.{i}.attn_qkv.weight", 3 * 2700, 1)
        self.expect_unsupported(built, 'Tensor "blk.4.attn_qkv.weight"', "over 32768, the limit")

    def test_duplicate_names(self):
        """Experts joined in one tensor, and those of the first files."""
        built = Built("llama", expert_count=2, expert_used_count=1)
        built.key("attention.layer_norm_rms_epsilon", FLOAT32, 1e-5)
        built.rest()
        built.layer()
        built.tensor("blk.0.ffn_gate_exps.weight", 2, N_FF, N_EMBD)
        built.tensor("blk.0.ffn_gate.0.weight", N_FF, N_EMBD)
        self.expect_unsupported(built, 'Both "blk.0.ffn_gate_exps.weight" and '
                                '"blk.0.ffn_gate.0.weight" become tensor '
                                '"model.layers.0.block_sparse_moe.experts.0.w1.weight"')

    def test_long_arrays_are_not_by_layer(self):
        built = Built("llama", **{"attention.head_count": None})
        built.key("attention.head_count", ARRAY, Array(UINT32, [N_HEAD] * 2000))
        built.key("attention.head_count_kv", UINT32, N_HEAD)
        built.key("attention.layer_norm_rms_epsilon", FLOAT32, 1e-5)
        built.rest()
        built.layer()
        self.expect_unsupported(built, '"blk.0.attn_q.weight"')

    def test_wrong_kinds_of_values(self):
        """Keys of other types than usual do no harm."""
        built = llama()
        built.key("attention.key_length", ARRAY, Array(STRING, [b"a", b"b"]))
        built.key("rope.freq_base", STRING, b"much")
        config = self.config(self.open(built))
        self.assertEqual(10000.0, config["rope_theta"])


if __name__ == "__main__":
    unittest.main()
