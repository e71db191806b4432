#!/usr/bin/env python3
"""hf.unsupported.txt: the reasons why a model has no checkpoint."""

import os
import unittest

import mounting
from checkpoint_models import N_EMBD, N_FF, N_HEAD, N_VOCAB, Built, CheckpointTestCase, llama, numpy
from gguf_file import ARRAY, FLOAT32, STRING, UINT32, Array

setUpModule = mounting.require_fuse


def biased():
    built = llama()
    built.biases()
    return built


@unittest.skipUnless(numpy, "NumPy is missing")
def phi3(n_qkv, **keys):
    """phi3 with `n_qkv` rows of queries, keys and values in one tensor."""
    built = Built("phi3", **keys)
    built.key("attention.layer_norm_rms_epsilon", FLOAT32, 1e-5)
    built.rest()
    for name, *shape in (("attn_norm", N_EMBD), ("ffn_norm", N_EMBD), ("attn_qkv", n_qkv, N_EMBD),
                         ("attn_output", N_EMBD, N_EMBD), ("ffn_up", 2 * N_FF, N_EMBD),
                         ("ffn_down", N_EMBD, N_FF)):
        built.tensor(f"blk.0.{name}.weight", *shape)
    return built


class UnsupportedTest(CheckpointTestCase):
    def test_unknown_architecture(self):
        self.expect_unsupported(Built("abacus"), 'architecture "abacus"')

    def test_missing_key(self):
        built = llama()
        built.file.keys = [key for key in built.file.keys if b"context_length" not in key]
        built.file.n_keys -= 1
        self.expect_unsupported(built, '"llama.context_length"', "max_position_embeddings")

    def test_rotated_weights(self):
        built = llama()
        built.file.key(b"prism.hadamard.sign_mode", STRING, b"explicit")
        self.expect_unsupported(built, "The weights are stored rotated")

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
            self.expect_unsupported(built, "The model has no tensor", name.split(".")[-1])
            mounting.unmount(self.mountpoint)

    def expect_missing(self, make, *names):
        """Each of these tensors of the models that `make` makes is named if it is left out."""
        for name in names:
            with self.subTest(name):
                built = make()
                n_tensors = len(built.file.tensors)
                built.file.tensors = [tensor for tensor in built.file.tensors
                                      if tensor[0] != name.encode()]
                self.assertEqual(n_tensors - 1, len(built.file.tensors))
                self.expect_unsupported(built, "The model has no tensor", name.removesuffix(".weight"))
                mounting.unmount(self.mountpoint)

    def test_layers_that_differ(self):
        """What a layer of the same kind has, transformers expects in all of them."""
        self.expect_missing(lambda: llama(n_layer=2), "blk.0.attn_norm.weight",
                            "blk.1.attn_norm.weight", "blk.1.ffn_norm.weight")

    def test_layers_without_a_part(self):
        """What all layers lack: gates, biases, and the inner tensors of recurrent layers."""
        def mamba():
            built = Built("mamba", **{"attention.head_count": None, "ssm.conv_kernel": 4,
                                      "ssm.state_size": 2, "ssm.inner_size": 16,
                                      "ssm.time_step_rank": 1})
            built.key("attention.layer_norm_rms_epsilon", FLOAT32, 1e-5)
            built.rest()
            for name, *shape in (("attn_norm.weight", N_EMBD), ("ssm_in.weight", 32, N_EMBD),
                                 ("ssm_conv1d.weight", 16, 4), ("ssm_conv1d.bias", 16), ("ssm_x.weight", 5, 16),
                                 ("ssm_dt.weight", 16, 1), ("ssm_dt.bias", 16), ("ssm_a", 16, 2),
                                 ("ssm_d", 16), ("ssm_out.weight", N_EMBD, 16)):
                built.tensor(f"blk.0.{name}", *shape)
            return built

        hf = self.open(mamba())
        self.assertTrue(os.path.exists(os.path.join(hf, "model.safetensors")))
        mounting.unmount(self.mountpoint)
        self.expect_missing(mamba, *(f"blk.0.ssm_{name}" for name in (
            "in.weight", "out.weight", "conv1d.weight", "x.weight", "dt.weight", "dt.bias", "a", "d")))
        self.expect_missing(biased, "blk.0.ffn_gate.weight", "blk.0.attn_q.bias", "blk.0.attn_k.bias",
                            "blk.0.attn_v.bias")

    def test_tensors_that_a_class_always_has(self):
        def gpt2():
            built = Built("gpt2")
            built.key("attention.layer_norm_epsilon", FLOAT32, 1e-5)
            built.rest()
            built.tensor("blk.0.attn_qkv.weight", 3 * N_EMBD, N_EMBD)
            built.gpt_layer()
            return built

        self.expect_missing(gpt2, "position_embd.weight", "output_norm.bias", "blk.0.attn_qkv.bias",
                            "blk.0.attn_norm.bias", "blk.0.attn_output.bias", "blk.0.ffn_up.bias")

    def test_number_of_experts(self):
        """The key counts those of one tensor."""
        def experts(architecture, n_experts):
            built = Built(architecture, expert_count=n_experts, expert_used_count=1)
            built.key("attention.layer_norm_rms_epsilon", FLOAT32, 1e-5)
            built.rest()
            built.layer()
            built.tensor("blk.0.ffn_up_exps.weight", 2, N_FF, N_EMBD)
            return built

        for architecture, n_experts, text in (
                ("llama", 3, 'Key "llama.expert_count" is 3, but tensor "blk.0.ffn_up_exps.weight" has 2 experts'),
                ("llama", None, 'no key "llama.expert_count", but tensor "blk.0.ffn_up_exps.weight" has 2 experts'),
                ("deepseek2", None,
                 'no key "deepseek2.expert_count", but tensor "blk.0.ffn_up_exps.weight" has 2 experts')):
            with self.subTest(text):
                self.expect_unsupported(experts(architecture, n_experts), text)
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

    def test_rotations_without_a_form(self):
        """rope_parameters cannot say these; leaving them out would be silently wrong."""
        built = llama()
        built.key("rope.scaling.attn_factor", FLOAT32, 1.5)
        self.expect_unsupported(built, "rope.scaling.attn_factor is 1.5")
        mounting.unmount(self.mountpoint)
        built = llama()
        built.tensor("rope_freqs.weight", 2)
        built.key("rope.scaling.factor", FLOAT32, 4)
        self.expect_unsupported(built, "a factor of linear scaling, 4, and tensors of factors")
        mounting.unmount(self.mountpoint)
        built = phi3(3 * N_EMBD, **{"rope.scaling.original_context_length": 16})
        for length in ("short", "long"):
            built.tensor(f"rope_factors_{length}.weight", 2)
        self.expect_unsupported(built, "rope.scaling.attn_factor is 1, and the class Phi3ForCausalLM computes")

    def test_heads_of_another_width(self):
        built = Built("qwen3", **{"attention.head_count": 4})
        built.key("attention.layer_norm_rms_epsilon", FLOAT32, 1e-5)
        built.rest()
        built.layer()
        built.feed_forward()
        for name in "qk":
            built.tensor(f"blk.0.attn_{name}_norm.weight", 2)
        self.assertTrue(os.path.exists(os.path.join(self.open(built), "config.json")))
        mounting.unmount(self.mountpoint)
        built.file.tensors = [tensor for tensor in built.file.tensors if tensor[0] != b"blk.0.attn_q.weight"]
        built.tensor("blk.0.attn_q.weight", 2 * N_EMBD, N_EMBD)
        self.expect_unsupported(built, '"qwen3.attention.key_length"', "heads of width 2")

    def test_numbers_of_heads_that_do_not_fit(self):
        """Without its key, the number of heads of keys is that of queries, which the shapes contradict."""
        for architecture, text in (("llama", '"blk.0.attn_k.weight"'), ("qwen3", "2 heads of 4")):
            built = Built(architecture)
            built.key("attention.layer_norm_rms_epsilon", FLOAT32, 1e-5)
            built.rest()
            built.layer(n_head_kv=1)
            built.feed_forward()
            if architecture == "qwen3":
                for name in "qk":
                    built.tensor(f"blk.0.attn_{name}_norm.weight", N_EMBD // N_HEAD)
            self.expect_unsupported(built, text)
            mounting.unmount(self.mountpoint)

    def test_number_of_heads_that_a_fused_product_contradicts(self):
        """phi3 without attention.head_count_kv would have as many heads of keys as of queries."""
        rows = (N_HEAD + 2) * N_EMBD // N_HEAD
        self.assertTrue(os.path.exists(os.path.join(
            self.open(phi3(rows, **{"attention.head_count_kv": 1})), "config.json")))
        mounting.unmount(self.mountpoint)
        self.assertTrue(os.path.exists(os.path.join(self.open(phi3(3 * N_EMBD)), "config.json")))
        mounting.unmount(self.mountpoint)
        self.expect_unsupported(phi3(rows), f'Tensor "blk.0.attn_qkv.weight" has {rows} rows',
                                "attention.head_count_kv (missing)")

    def test_missing_numbers_of_an_activation(self):
        """Apertus has them in keys, whose names lack the architecture."""
        names = ("alpha_n", "alpha_p", "beta", "eps")
        for missing in names:
            with self.subTest(missing):
                built = Built("apertus")
                built.key("attention.layer_norm_rms_epsilon", FLOAT32, 1e-5)
                built.rest()
                built.tensor("output.weight", N_VOCAB, N_EMBD)
                built.layer()
                built.feed_forward()
                for name in ("q", "k"):
                    built.tensor(f"blk.0.attn_{name}_norm.weight", N_EMBD // N_HEAD)
                for name in names:
                    if name != missing:
                        built.file.key(f"xielu.{name}".encode(), ARRAY, Array(FLOAT32, [0.25]))
                self.expect_unsupported(built, f'The model has no key "xielu.{missing}"')
                mounting.unmount(self.mountpoint)

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
        """LFM2 has two names for the norm of the output."""
        built = Built("lfm2")
        for name in ("token_embd_norm", "output_norm"):
            built.tensor(f"{name}.weight", N_EMBD)
        self.expect_unsupported(built, 'Both "token_embd_norm.weight" and "output_norm.weight" become tensor '
                                '"model.embedding_norm.weight"')

    def test_long_arrays_are_not_by_layer(self):
        built = Built("llama", **{"attention.head_count": None})
        built.key("attention.head_count", ARRAY, Array(UINT32, [N_HEAD] * 2000))
        built.key("attention.head_count_kv", UINT32, N_HEAD)
        built.key("attention.layer_norm_rms_epsilon", FLOAT32, 1e-5)
        built.rest()
        built.layer()
        self.expect_unsupported(built, '"blk.0.attn_q.weight"')

