#!/usr/bin/env python3
"""hf/: names, shapes and values of its tensors, and config.json.

tests/clients/test_checkpoints.py loads real models with transformers.
"""

import errno
import json
import math
import os
import unittest

import mounting
from checkpoint_models import (N_EMBD, N_FF, N_HEAD, N_VOCAB, Built, CheckpointTestCase, llama,
                               numpy, read_safetensors, unpermuted)
from gguf_file import (ARRAY, BOOL, F16, F32, F64, FLOAT32, I16, I32, I64, STRING, UINT32, Array)

setUpModule = mounting.require_fuse


@unittest.skipUnless(numpy, "NumPy is missing")
class CheckpointTest(CheckpointTestCase):
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
            built.biases(i, type_id)
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

    def test_reference_layout(self):
        """The rows of such files are in the checkpoint's order, in architectures whose converter changes it."""
        built = llama()
        built.key("tensor_data_layout", STRING, b"reference")
        arrays, _ = read_safetensors(os.path.join(self.open(built), "model.safetensors"))
        self.expect(arrays, "model.layers.0.self_attn.q_proj.weight", built.arrays["blk.0.attn_q.weight"])
        mounting.unmount(self.mountpoint)
        built = Built("gptneox", **{"rope.dimension_count": 2})
        built.key("attention.layer_norm_epsilon", FLOAT32, 1e-5)
        built.key("tensor_data_layout", STRING, b"reference")
        built.key("use_parallel_residual", BOOL, True)
        built.rest()
        built.tensor("output.weight", N_VOCAB, N_EMBD)
        qkv = built.tensor("blk.0.attn_qkv.weight", 3 * N_EMBD, N_EMBD)
        built.gpt_layer()
        arrays, _ = read_safetensors(os.path.join(self.open(built), "model.safetensors"))
        self.expect(arrays, "gpt_neox.layers.0.attention.query_key_value.weight", qkv)

    def test_rotated_halves(self):
        """With sections of M-RoPE, the converter of GLM 4 reorders the rotated rows of heads."""
        built = Built("glm4", **{"rope.dimension_count": 4, "attention.head_count": 1})
        built.key("attention.layer_norm_rms_epsilon", FLOAT32, 1e-5)
        built.key("rope.dimension_sections", ARRAY, Array(UINT32, [1, 1, 0, 0]))
        built.rest()
        built.layer()
        for name, *shape in (("ffn_up", 2 * N_FF, N_EMBD), ("ffn_down", N_EMBD, N_FF),
                             ("post_attention_norm", N_EMBD), ("post_ffw_norm", N_EMBD)):
            built.tensor(f"blk.0.{name}.weight", *shape)
        arrays, _ = read_safetensors(os.path.join(self.open(built), "model.safetensors"))
        for name in "qk":
            stored = built.arrays[f"blk.0.attn_{name}.weight"]
            self.expect(arrays, f"model.layers.0.self_attn.{name}_proj.weight",
                        stored[[0, 2, 1, 3, *range(4, N_EMBD)]])

    def test_latent_attention(self):
        """kv_b, from k_b and v_b or, in files that have both forms, as it is."""
        rank, rotated, key, value = 4, 2, 3, 5
        for has_kv_b in (False, True):
            with self.subTest(has_kv_b=has_kv_b):
                built = Built("deepseek2", **{"attention.kv_lora_rank": rank, "expert_count": 2,
                                              "expert_used_count": 1,
                                              "rope.dimension_count": rotated,
                                              "attention.key_length_mla": key + rotated,
                                              "attention.value_length_mla": value})
                built.key("attention.layer_norm_rms_epsilon", FLOAT32, 1e-5)
                built.rest()
                built.feed_forward()
                for name, *shape in (("attn_norm", N_EMBD), ("ffn_norm", N_EMBD),
                                     ("attn_q", N_HEAD * (key + rotated), N_EMBD),
                                     ("attn_kv_a_mqa", rank + rotated, N_EMBD),
                                     ("attn_kv_a_norm", rank), ("attn_k_b", N_HEAD, rank, key),
                                     ("attn_v_b", N_HEAD, value, rank),
                                     ("attn_output", N_EMBD, N_HEAD * value)):
                    built.tensor(f"blk.0.{name}.weight", *shape)
                kv_b = numpy.concatenate([built.arrays["blk.0.attn_k_b.weight"].swapaxes(1, 2),
                                          built.arrays["blk.0.attn_v_b.weight"]], axis=1)
                expected = kv_b.reshape(-1, rank)
                if has_kv_b:
                    expected = built.tensor("blk.0.attn_kv_b.weight", *expected.shape)
                hf = self.open(built)
                arrays, _ = read_safetensors(os.path.join(hf, "model.safetensors"))
                self.expect(arrays, "model.layers.0.self_attn.kv_b_proj.weight", expected)
                self.assertFalse(os.path.exists(os.path.join(hf, "unused_tensors.txt")))
                mounting.unmount(self.mountpoint)

    def test_mamba_decay(self):
        built = Built("mamba", **{"feed_forward_length": None, "attention.head_count": None,
                                  "ssm.conv_kernel": 4, "ssm.inner_size": 16, "ssm.state_size": 2,
                                  "ssm.time_step_rank": 3})
        built.key("attention.layer_norm_rms_epsilon", FLOAT32, 1e-5)
        built.key("ssm.dt_b_c_rms", BOOL, False)
        built.rest()
        decay = -numpy.exp(built.random.standard_normal((16, 2))).astype("<f4")
        built.file.tensor(b"blk.0.ssm_a", [2, 16], F32, decay.tobytes())
        built.tensor("blk.0.attn_norm.weight", N_EMBD)
        built.tensor("blk.0.ssm_in.weight", 32, N_EMBD)
        built.tensor("blk.0.ssm_out.weight", N_EMBD, 16)
        for name, *shape in (("x.weight", 7, 16), ("dt.weight", 16, 3), ("dt.bias", 16), ("d", 16),
                             ("conv1d.bias", 16)):
            built.tensor(f"blk.0.ssm_{name}", *shape)
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
        built.tensor("output.weight", N_VOCAB, N_EMBD)
        for i in range(2):
            built.layer(i)
            built.tensor(f"blk.{i}.ffn_up.weight", N_FF, N_EMBD)
            built.tensor(f"blk.{i}.ffn_down.weight", N_EMBD, N_FF)
            for name in ("q", "k"):
                built.tensor(f"blk.{i}.attn_{name}_norm.weight", N_EMBD // N_HEAD)
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
                                            'half of the rotated part of a head is 2')
                else:
                    self.expect_unsupported(built, 'no tensor "rope_factors_long.weight"')
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

    def config_of(self, built):
        config = self.config(self.open(built))
        mounting.unmount(self.mountpoint)
        return config

    def test_rope_scaling(self):
        """transformers 4 reads rope_scaling: rope_parameters without what it has elsewhere."""
        for keys in (["rope.scale"], ["rope.scaling.factor"], []):
            built = llama()
            for key in keys:
                built.key(key, FLOAT32, 4)
            config = self.config_of(built)
            expected = {name: value for name, value in config["rope_parameters"].items()
                        if name != "rope_theta"}
            self.assertEqual(expected if keys else None, config.get("rope_scaling"))
            self.assertEqual("linear" if keys else "default", expected["rope_type"])

    def test_factors_of_attention(self):
        """Programs multiply with attn_factor; yarn_attn_factor is what the checkpoint had."""
        def yarn(**keys):
            built = llama()
            built.key("rope.scaling.type", STRING, b"yarn")
            built.key("rope.scaling.factor", FLOAT32, 4)
            for key, number in keys.items():
                built.key(f"rope.scaling.{key}", FLOAT32, number)
            return self.config_of(built)["rope_parameters"].get("attention_factor")

        own = 0.1 * math.log(4) + 1
        self.assertIsNone(yarn())
        self.assertAlmostEqual(1.5 * own, yarn(attn_factor=1.5), 6)
        self.assertEqual(1.25, yarn(yarn_attn_factor=1.25))
        self.assertEqual(2.5, yarn(yarn_attn_factor=1.25, attn_factor=2))
        for factor in (None, 1.5):
            built = llama()
            for length in ("short", "long"):
                built.tensor(f"rope_factors_{length}.weight", 2)
            if factor:
                built.key("rope.scaling.attn_factor", FLOAT32, factor)
            self.assertEqual(factor or 1, self.config_of(built)["rope_scaling"]["attention_factor"])

    def test_values_without_keys(self):
        """Without a key, a value is that of llama.cpp, and not the class's."""
        def make(architecture, **keys):
            built = Built(architecture)
            built.key("attention.layer_norm_rms_epsilon", FLOAT32, 1e-5)
            for key, number in keys.items():
                built.key(key.replace("__", "."), FLOAT32, number)
            built.rest()
            built.layer()
            built.feed_forward()
            return built

        granite = self.config_of(make("granite", logit_scale=2))
        self.assertEqual(1 / math.sqrt(N_EMBD / N_HEAD), granite["attention_multiplier"])
        granite = self.config_of(make("granite", logit_scale=2, attention__scale=0.25))
        self.assertEqual(0.25, granite["attention_multiplier"])
        built = make("gemma2")
        for name in ("post_attention_norm", "post_ffw_norm"):
            built.tensor(f"blk.0.{name}.weight", N_EMBD)
        gemma = self.config_of(built)
        self.assertEqual((4096, ["sliding_attention"]), (gemma["sliding_window"], gemma["layer_types"]))
        minicpm = self.config_of(make("minicpm"))
        self.assertEqual((12, N_EMBD / 256), (minicpm["embedding_multiplier"], minicpm["logits_scaling"]))
        self.assertAlmostEqual(1.4, minicpm["residual_multiplier"], 6)

    def test_layers_that_predict_further_tokens(self):
        """Only some architectures have such; the others use all layers."""
        for architecture, n_layer in (("llama", 3), ("exaone4", 2)):
            built = Built(architecture, block_count=3, nextn_predict_layers=1)
            built.key("attention.layer_norm_rms_epsilon", FLOAT32, 1e-5)
            built.rest()
            for i in range(3):
                built.layer(i)
                built.feed_forward(i)
                if architecture == "exaone4":
                    for name in ("post_attention_norm", "post_ffw_norm"):
                        built.tensor(f"blk.{i}.{name}.weight", N_EMBD)
                    for name in "qk":
                        built.tensor(f"blk.{i}.attn_{name}_norm.weight", N_EMBD // N_HEAD)
            if architecture == "exaone4":
                built.file.tensors = [tensor for tensor in built.file.tensors
                                      if not tensor[0].endswith((b".attn_norm.weight", b".ffn_norm.weight"))]
            self.assertEqual(n_layer, self.config_of(built)["num_hidden_layers"])

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
                built.biases()
            self.assertIs(has_bias, self.config(self.open(built))["attention_bias"])
            mounting.unmount(self.mountpoint)

    def test_unused_tensors_are_listed(self):
        built = llama()
        built.tensor("unheard_of.weight", 4)
        hf = self.open(built)
        with open(os.path.join(hf, "unused_tensors.txt"), encoding="utf-8") as file:
            self.assertIn('"unheard_of.weight"\n', file.read())

    def test_wrong_kinds_of_values(self):
        for key, value_type, value, reason in (
                ("attention.key_length", ARRAY, Array(STRING, [b"a", b"b"]), "array, and must be uint32"),
                ("rope.freq_base", STRING, b"much", "string, and must be float32")):
            built = llama()
            built.key(key, value_type, value)
            self.expect_unsupported(built, f'The type of key "llama.{key}" is {reason}')
            mounting.unmount(self.mountpoint)
