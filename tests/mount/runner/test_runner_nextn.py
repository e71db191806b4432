#!/usr/bin/env python3
"""ggufs-run with drafts by a model's nextn layer: the same text as without, in fewer passes.

The models are random and small, of an architecture each, and their tokens are bytes. Their layers add
little to the embedding of the last token, and the nextn layer passes on the embedding of the token
after it, so that many of its drafts are right and many are wrong.
"""

import json

import numpy

import gguf_file
import mounting
import runner_case
from gguf_file import ARRAY, BOOL, FLOAT32, STRING, UINT32

setUpModule = mounting.require_fuse

N_EMBD, N_HEAD, N_KV, DIM, N_FF, N_EXPERT, N_VOCAB = 32, 4, 2, 8, 48, 4, 256
N_LAYER = 3
N_ROTATED = {"glm4moe": DIM, "mimo2": DIM, "qwen35moe": DIM}
PROMPT = "The file is read, then the tree is made."
THREADS = ("1", "2", "3")


def byte_tokens():
    """Returns the 256 bytes as tokens of GPT-2, which has other characters for those that are not printed."""
    printed = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(byte if byte in printed else next(others)).encode() for byte in range(256)]


class Model:
    """A random model; its nextn layer comes after the N_LAYER others."""

    def __init__(self, architecture, strength=0.1, seed=1):
        self.architecture = architecture
        self.random = numpy.random.default_rng(seed)
        self.strength = strength  # of what layers add
        self.tensors = {}
        self.file = gguf_file.GgufFile()
        self.file.key(b"general.architecture", STRING, architecture.encode())
        self.keys(UINT32, block_count=N_LAYER + 1, nextn_predict_layers=1,
                  embedding_length=N_EMBD, context_length=512)
        self.keys(UINT32, **{"attention.head_count": N_HEAD, "feed_forward_length": N_FF})
        self.keys(FLOAT32, **{"attention.layer_norm_rms_epsilon": 1e-6})
        self.file.key(b"tokenizer.ggml.model", STRING, b"gpt2").key(b"tokenizer.ggml.pre", STRING, b"gpt-2")
        self.file.key(b"tokenizer.ggml.tokens", ARRAY, gguf_file.Array(STRING, byte_tokens()))
        self.file.key(b"tokenizer.ggml.merges", ARRAY, gguf_file.Array(STRING, []))
        if architecture in N_ROTATED:
            self.keys(UINT32, **{"rope.dimension_count": N_ROTATED[architecture]})
        self.add("token_embd.weight", N_VOCAB, N_EMBD)
        self.add("output.weight", N_VOCAB, N_EMBD)
        self.norm("output_norm.weight")
        for layer in range(N_LAYER + 1):
            ARCHITECTURES[architecture](self, layer, f"blk.{layer}.")
        prefix = f"blk.{N_LAYER}.nextn."
        for name in ("enorm", "hnorm", "shared_head_norm"):
            self.norm(prefix + name + ".weight")
        self.tensors[prefix + "enorm.weight"][:] = 1
        self.tensors[prefix + "shared_head_norm.weight"] = self.tensors["output_norm.weight"]
        self.tensors[prefix + "eh_proj.weight"] = numpy.hstack(
            (numpy.eye(N_EMBD), strength * self.normal(N_EMBD, N_EMBD)))

    def normal(self, *shape):
        return self.random.standard_normal(shape) / numpy.sqrt(shape[-1])

    def keys(self, value_type, **keys):
        for name, value in keys.items():
            self.file.key(f"{self.architecture}.{name}".encode(), value_type, value)

    def add(self, name, *shape, scale=1):
        self.tensors[name] = scale * self.normal(*shape)

    def norm(self, name, width=N_EMBD):
        self.tensors[name] = self.random.uniform(0.8, 1.2, width)

    def queries_and_keys(self, prefix, *, bias=False, norms=False):
        for name, width in (("q", N_HEAD), ("k", N_KV), ("v", N_KV)):
            self.add(f"{prefix}attn_{name}.weight", width * DIM, N_EMBD)
            if bias:
                self.add(f"{prefix}attn_{name}.bias", width * DIM)
        for name in ("q", "k") if norms else ():
            self.norm(f"{prefix}attn_{name}_norm.weight", DIM)

    def attention(self, prefix, **options):
        self.norm(prefix + "attn_norm.weight")
        self.queries_and_keys(prefix, **options)
        self.add(prefix + "attn_output.weight", N_EMBD, N_HEAD * DIM, scale=self.strength)

    def network(self, prefix, end="", *experts):
        for name in ("gate", "up"):
            self.add(f"{prefix}ffn_{name}{end}.weight", *experts, N_FF, N_EMBD)
        self.add(f"{prefix}ffn_down{end}.weight", *experts, N_EMBD, N_FF, scale=self.strength)

    def experts(self, prefix, bias="exp_probs_b.bias", has_shared=True):
        self.add(prefix + "ffn_gate_inp.weight", N_EXPERT, N_EMBD)
        self.network(prefix, "_exps", N_EXPERT)
        if bias:
            self.add(prefix + bias, N_EXPERT)
        if has_shared:
            self.network(prefix, "_shexp")

    def expert_keys(self):
        self.keys(UINT32, expert_count=N_EXPERT, expert_used_count=2)
        self.keys(BOOL, expert_weights_norm=1)
        self.keys(UINT32, expert_gating_func=2)

    def write(self, path, without=()):
        for name in without:
            del self.tensors[name]
        for name, values in self.tensors.items():
            self.file.tensor(name.encode(), values.shape[::-1],
                             data=values.astype("<f4").tobytes())
        return self.file.write(path)


def head_keys(model):
    model.keys(UINT32, **{"attention.key_length": DIM, "attention.value_length": DIM,
                          "attention.head_count_kv": N_KV})


def glm4moe(model, layer, prefix):
    """The first layer is dense."""
    if layer == 0:
        head_keys(model)
        model.expert_keys()
    model.attention(prefix, bias=True, norms=True)
    model.norm(prefix + "post_attention_norm.weight")
    if layer == 0:
        model.network(prefix)
    else:
        model.experts(prefix)


def hy_v3(model, layer, prefix):
    if layer == 0:
        head_keys(model)
        model.expert_keys()
    model.attention(prefix, norms=True)
    model.norm(prefix + "ffn_norm.weight")
    model.experts(prefix, bias="exp_probs_b")


def deepseek2(model, layer, prefix):
    """Latent attention on compressed rows."""
    rank, n_rot, plain = 16, 4, 8
    if layer == 0:
        model.expert_keys()
        model.keys(UINT32, **{
            "attention.head_count_kv": 1, "attention.kv_lora_rank": rank,
            "attention.key_length": rank + n_rot, "attention.value_length": rank,
            "attention.key_length_mla": plain + n_rot, "attention.value_length_mla": DIM,
            "rope.dimension_count": n_rot})
    model.norm(prefix + "attn_norm.weight")
    model.add(prefix + "attn_q_a.weight", 24, N_EMBD)
    model.norm(prefix + "attn_q_a_norm.weight", 24)
    model.add(prefix + "attn_q_b.weight", N_HEAD * (plain + n_rot), 24)
    model.add(prefix + "attn_kv_a_mqa.weight", rank + n_rot, N_EMBD)
    model.norm(prefix + "attn_kv_a_norm.weight", rank)
    model.add(prefix + "attn_k_b.weight", N_HEAD, rank, plain)
    model.add(prefix + "attn_v_b.weight", N_HEAD, DIM, rank)
    model.add(prefix + "attn_output.weight", N_EMBD, N_HEAD * DIM, scale=model.strength)
    model.norm(prefix + "ffn_norm.weight")
    if layer == 0:
        model.network(prefix)
    else:
        model.experts(prefix)


def mimo2(model, layer, prefix):
    """The nextn layer is dense and has a window, and another name for the norm of its head."""
    if layer == 0:
        model.expert_keys()
        model.keys(UINT32, **{"attention.key_length": DIM, "attention.value_length": DIM,
                              "attention.sliding_window": 9})
        model.keys(ARRAY, **{
            "attention.head_count_kv": gguf_file.Array(UINT32, [1, N_KV, 1, N_KV]),
            "attention.sliding_window_pattern": gguf_file.Array(BOOL, [0, 1, 0, 1])})
    n_kv = N_KV if layer % 2 else 1
    model.norm(prefix + "attn_norm.weight")
    model.add(prefix + "attn_qkv.weight", (N_HEAD + 2 * n_kv) * DIM, N_EMBD)
    model.add(prefix + "attn_output.weight", N_EMBD, N_HEAD * DIM, scale=model.strength)
    if layer % 2:
        model.add(prefix + "attn_sinks.weight", N_HEAD)
    model.norm(prefix + "ffn_norm.weight")
    if layer in (0, N_LAYER):
        model.network(prefix)
    else:
        model.experts(prefix, has_shared=False)


def step35(model, layer, prefix):
    if layer == 0:
        head_keys(model)
        model.expert_keys()
        model.keys(UINT32, **{"attention.sliding_window": 9})
        model.keys(ARRAY, **{
            "attention.sliding_window_pattern": gguf_file.Array(BOOL, [0, 1, 1, 1])})
    model.attention(prefix, norms=True)
    model.add(prefix + "attn_gate.weight", N_HEAD, N_EMBD)
    model.norm(prefix + "ffn_norm.weight")
    if layer in (0, N_LAYER):
        model.network(prefix)
    else:
        model.experts(prefix)


def cohere2moe(model, layer, prefix):
    """Attention and feed-forward side by side."""
    if layer == 0:
        head_keys(model)
        model.expert_keys()
        model.keys(FLOAT32, **{"attention.layer_norm_epsilon": 1e-6, "logit_scale": 0.5})
        model.keys(UINT32, **{"attention.sliding_window": 9, "leading_dense_block_count": 1})
        model.keys(ARRAY, **{
            "attention.sliding_window_pattern": gguf_file.Array(BOOL, [1, 1, 1, 0])})
    model.attention(prefix)
    if layer == 0:
        model.network(prefix)
    else:
        model.experts(prefix, bias=None)


def qwen35moe(model, layer, prefix):
    """Two layers of gated delta nets, then attention with gates."""
    heads, groups, width_k, width_v = 4, 2, 6, 8
    if layer == 0:
        head_keys(model)
        model.expert_keys()
        model.keys(UINT32, **{"ssm.group_count": groups})
    if layer < 2:
        channels = 2 * groups * width_k + heads * width_v
        model.norm(prefix + "attn_norm.weight")
        model.add(prefix + "attn_qkv.weight", channels, N_EMBD)
        model.add(prefix + "attn_gate.weight", heads * width_v, N_EMBD)
        model.add(prefix + "ssm_beta.weight", heads, N_EMBD)
        model.add(prefix + "ssm_alpha.weight", heads, N_EMBD)
        model.add(prefix + "ssm_conv1d.weight", channels, 4)
        model.add(prefix + "ssm_dt.bias", heads)
        model.tensors[prefix + "ssm_a"] = -model.random.uniform(0.05, 0.5, heads)
        model.norm(prefix + "ssm_norm.weight", width_v)
        model.add(prefix + "ssm_out.weight", N_EMBD, heads * width_v, scale=model.strength)
    else:
        model.attention(prefix, norms=True)
        model.add(prefix + "attn_q.weight", 2 * N_HEAD * DIM, N_EMBD)
    model.norm(prefix + "post_attention_norm.weight")
    model.experts(prefix, bias=None)
    model.add(prefix + "ffn_gate_inp_shexp.weight", N_EMBD)


ARCHITECTURES = {function.__name__: function
                 for function in (glm4moe, hy_v3, deepseek2, mimo2, step35, cohere2moe,
                                  qwen35moe)}


def architectures():
    """All of them take minutes under sanitizers, and most of the code is the same."""
    return list(ARCHITECTURES)[::3] if mounting.is_sanitized() else list(ARCHITECTURES)


class NextnTestCase(runner_case.RunnerTestCase):
    def describe_nextn(self, model, *options, prompt=PROMPT):
        """Run without drafts, then with those of the nextn layer, compare, and return them."""
        plain = self.describe("--draft", "0", *options, prompt=prompt, model=model)
        drafted = self.describe("--draft-type", "nextn", *options, prompt=prompt, model=model)
        for name in ("ids", "text", "stop"):
            self.assertEqual(plain[name], drafted[name])
        self.assertEqual({"tokens": 0, "accepted": 0}, plain["timings"]["nextn_drafts"])
        self.assertEqual({"tokens": 0, "accepted": 0}, drafted["timings"]["drafts"])
        drafts = drafted["timings"]["nextn_drafts"]
        self.assertGreater(drafts["tokens"], 0)
        self.assertLessEqual(drafts["accepted"], drafts["tokens"])
        return drafts

    def write_model(self, architecture, without=(), **options):
        model = Model(architecture, **options)
        return model.write(self.path(f"{architecture}.gguf"), without)


class TestText(NextnTestCase):
    def test_greedy(self):
        for architecture in architectures():
            model = self.write_model(architecture)
            for threads in THREADS:
                with self.subTest(architecture=architecture, threads=threads):
                    self.describe_nextn(model, "-n", "120", "-t", threads)

    def test_sampling(self):
        for architecture in architectures():
            model = self.write_model(architecture)
            for seed in ("1", "2"):
                with self.subTest(architecture=architecture, seed=seed):
                    for temperature in ("0.3", "1.2"):
                        self.describe_nextn(model, "--temp", temperature, "-s", seed, "-n", "80")
                    self.describe_nextn(model, "--temp", "0.8", "--top-k", "5", "-s", seed,
                                        "--repeat-penalty", "1.2", "-n", "80")

    def test_small_batches_and_contexts(self):
        model = self.write_model("glm4moe")
        for size in ("2", "3", "7"):
            self.describe_nextn(model, "-b", size, "-n", "60")
        for size in ("60", "61", "70"):
            self.describe_nextn(model, "-c", size)

    def test_with_lookup(self):
        model = self.write_model("glm4moe")
        plain = self.describe("--draft", "0", "-n", "150", prompt=PROMPT * 2, model=model)
        both = self.describe("-n", "150", prompt=PROMPT * 2, model=model)
        self.assertEqual(plain["ids"], both["ids"])


class TestDrafts(NextnTestCase):
    def test_right_drafts(self):
        """Layers that add nothing: the last token alone decides, and the nextn layer knows it."""
        for architecture in architectures():
            model = self.write_model(architecture, strength=0)
            with self.subTest(architecture=architecture):
                drafts = self.describe_nextn(model, "-n", "200")
                self.assertEqual(drafts["tokens"], drafts["accepted"])
                n_passes = 200 - drafts["accepted"]
                self.assertGreater(200 / n_passes, 1.5)

    def test_report(self):
        model = self.write_model("glm4moe", strength=0)
        _, err = self.run_runner("--temp", "0", "-n", "50", "--draft-type", "nextn", model, PROMPT,
                                 model=model)
        self.assertRegex(err, r"\nggufs-run: drafts by nextn +\d+ tokens, +\d+ accepted\n")
        self.assertNotIn("not used", err)
        for options in (("--draft", "0"), ("--draft-type", "lookup")):
            _, err = self.run_runner("-n", "9", *options, model, PROMPT, model=model)
            self.assertNotIn("nextn  ", err)
            self.assertRegex(err, r"\d+ tensors are not used: blk\.3\.")

    def test_own_ends(self):
        """The nextn layer may have an embedding and a head of its own."""
        model = Model("glm4moe", strength=0)
        for name, end in (("embed_tokens", "token_embd"), ("shared_head_head", "output")):
            model.tensors[f"blk.{N_LAYER}.nextn.{name}.weight"] = model.tensors[end + ".weight"]
        path = model.write(self.path("own.gguf"))
        drafts = self.describe_nextn(path, "-c", "90")
        self.assertEqual(drafts["tokens"], drafts["accepted"])

    def test_incomplete_layers(self):
        """The model itself is whole: it runs, without drafts, and a message names the tensor."""
        expected = self.describe("--draft", "0", "-n", "40", model=self.write_model("glm4moe"))
        for name in ("nextn.eh_proj.weight", "nextn.enorm.weight", "nextn.hnorm.weight",
                     "attn_norm.weight", "attn_q.weight", "attn_q.bias", "ffn_up_exps.weight",
                     "exp_probs_b.bias"):
            with self.subTest(missing=name):
                name = f"blk.{N_LAYER}.{name}"
                model = self.write_model("glm4moe", without=[name])
                out, err = self.run_runner("--temp", "0", "--json", "-n", "40", model, "the file",
                                           model=model)
                self.assertEqual(expected["ids"], json.loads(out)["ids"])
                self.assertRegex(err, "glm4moe.gguf: no drafts by the nextn layer: tensors/blk.*"
                                 + name.split(".")[-2])
                _, err = self.run_runner("--draft", "0", "-n", "1", model, "a", model=model)
                self.assertNotIn("nextn layer", err)

    def test_no_layer(self):
        """The key without the tensors, as when only the model was exported."""
        model = Model("glm4moe")
        path = model.write(self.path("trunk.gguf"),
                           [name for name in model.tensors if name.startswith(f"blk.{N_LAYER}.")])
        _, err = self.run_runner("-n", "3", path, "a", model=path)
        self.assertNotIn("nextn", err)
        _, err = self.run_runner("-n", "3", "--draft-type", "nextn", path, "a", model=path)
        self.assertIn("no drafts, because the model has no nextn layer", err)

    def test_limits(self):
        err = self.refused(runner_case.EX_USAGE, "--draft-type", "x", self.model, "a")
        self.assertIn("needs one of: lookup, nextn, all", err)
