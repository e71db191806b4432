#!/usr/bin/env python3
"""model.gguf and mmproj.gguf of Ollama's files: the keys and tensors that llama.cpp's converter writes."""

import csv
import glob
import hashlib
import json
import os
import struct
import subprocess
import unittest

import mounting
from gguf_file import ARRAY, F16, F32, FLOAT32, INT32, STRING, UINT32, Array, GgufFile
from gguf_reader import Model

STORES = os.path.join(mounting.FIXTURES, "stores")
EX_OK, EX_DATAERR, EX_NOINPUT = 0, 65, 66


def halves(raw):
    """The numbers of F16 as little-endian F32."""
    count = len(raw) // 2
    return struct.pack(f"<{count}f", *struct.unpack(f"<{count}e", raw))


def values(model, tensor):
    """The numbers of a tensor as little-endian F32; None: its type is not decoded here."""
    raw = model.raw(tensor)
    return {"F32": lambda: raw, "F16": lambda: halves(raw)}.get(tensor.type_name, lambda: None)()


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def float32(number):
    return struct.unpack("f", struct.pack("f", number))[0]


def plain(value):
    """A value of a file as JSON would hold it."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    return [plain(element) for element in value] if isinstance(value, list) else value


def is_equal(kind, expected, found):
    if kind in ("f32", "arr:f32"):
        pairs = zip(expected, found) if isinstance(expected, list) else [(expected, found)]
        return all(float32(a) == float32(b) for a, b in pairs)
    return expected == found


def text_of(kind, value):
    """A value as old-layouts/*.expected.json writes it, without the type of an array."""
    if isinstance(value, list):
        return ",".join(text_of(kind, element) for element in value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.9g}" if isinstance(value, float) else str(value)


class TranslationTestCase(mounting.MountTestCase):
    def translated(self, path, name="model.gguf"):
        """The file of that name in the model's tree, read; None: there is none."""
        result = self.run_ggufs("--cat", path, name)
        if result.status == EX_NOINPUT:
            return None
        self.assertEqual(EX_OK, result.status, result.err)
        return Model(self.write(name, result.out.encode("utf-8", "surrogateescape")))

    def write(self, name, data):
        path = self.path(name)
        with open(path, "wb") as file:
            file.write(data)
        return path

    def way_back(self, path, *edits):
        """ollama.gguf of the two files that are made of one of Ollama, the first one edited."""
        for part in ("model.gguf", "mmproj.gguf"):
            self.assertIsNotNone(self.translated(path, part))
        result = self.run_ggufs("--cat", *edits, "--mmproj", self.path("mmproj.gguf"), "ollama.gguf",
                                self.path("model.gguf"))
        self.assertEqual(EX_OK, result.status, result.err)
        made, old = Model(self.write("ollama.gguf", result.out.encode("utf-8", "surrogateescape"))), Model(path)
        # Vectors are F32 in files of Ollama, and F16 in the small ones here.
        found = [sorted((t.name, t.ne, values(model, t), len(t.ne) > 1 and t.type_id) for t in model.tensors)
                 for model in (old, made)]
        self.assertEqual(*found)
        return {name.decode(): value for name, value in made.keys}

    def check_tensor(self, model, tensor, row):
        """Compare a tensor with its type, shape and checksums."""
        accept = row.get("accept") or ""
        with self.subTest(tensor=tensor.name):
            self.assertEqual(row["ne"], ",".join(map(str, tensor.ne)))
            if tensor.type_name != row["type"]:
                self.assertIn(f"type {tensor.type_name}", accept)
            data = values(model, tensor)
            if data is None:
                self.assertEqual(row["sha256"], sha256(model.raw(tensor)))
            else:
                self.assertEqual(row["sha256_f32"], sha256(data))


@unittest.skipUnless(os.path.isdir(STORES), "no fixtures")
class TestFixtures(TranslationTestCase):
    def check_pair(self, path, start):
        """Compare a file with the keys and tensors in START.keys.json and START.tensors.tsv."""
        model = Model(path)
        keys = dict(model.keys)
        with open(start + ".keys.json", encoding="utf-8") as file:
            for name, key in json.load(file)["keys"].items():
                if key["class"] == "must":
                    with self.subTest(key=name):
                        self.assertIn(name.encode(), keys)
                        self.assertTrue(is_equal(key["type"], key["value"], plain(keys[name.encode()])),
                                        keys[name.encode()])
        tensors = {tensor.name.decode(): tensor for tensor in model.tensors}
        with open(start + ".tensors.tsv", encoding="utf-8") as file:
            rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
        self.assertEqual({row["name"] for row in rows}, set(tensors))
        for row in rows:
            self.check_tensor(model, tensors[row["name"]], row)

    def test_fused_files(self):
        for path in sorted(glob.glob(os.path.join(STORES, "fused", "*.fused.gguf"))):
            for part in ("model", "mmproj"):
                with self.subTest(file=os.path.basename(path), part=part):
                    start = path.replace(".fused.gguf", "." + part)
                    made = self.translated(path, part + ".gguf")
                    self.assertEqual(os.path.exists(start + ".keys.json"), made is not None)
                    if made:
                        self.check_pair(made.path, start)

    def check_old(self, made, expected):
        keys = {name.decode(): plain(value) for name, value in made.keys}
        for name, (kind, text) in expected["keys"].items():
            with self.subTest(key=name):
                text = text.split(" ", 1)[-1] if kind == "arr" else text
                self.assertEqual(text, text_of(kind, keys.get(name)))
        tensors = {tensor.name.decode(): tensor for tensor in made.tensors}
        rows = [row for row in expected["tensors"] if not row.get("orphan")]
        self.assertEqual({row["name"] for row in rows}, set(tensors))
        for row in rows:
            row["ne"] = ",".join(map(str, row["ne"]))
            self.check_tensor(made, tensors[row["name"]], row)

    def test_the_way_back(self):
        """A fused file comes back, but for what a text model and a projector do not say."""
        unknown = {"gemma3": {"tokens", "scores", "token_type", "add_padding_token", "add_unknown_token"},
                   "mistral3": {"pre"}}
        for name, keys in unknown.items():
            start = os.path.join(STORES, "fused", name)
            pair = ["--mmproj", start + ".mmproj.gguf", start + ".model.gguf"]
            with self.subTest(name=name):
                result = self.run_ggufs("--cat", *pair[:2], "ollama.gguf", pair[2])
                self.assertEqual(EX_OK, result.status, result.err)
                made = Model(self.write("ollama.gguf", result.out.encode("utf-8", "surrogateescape")))
                fused = Model(start + ".fused.gguf")
                found = dict(made.keys)
                for key, value in fused.keys:
                    if key.decode().removeprefix("tokenizer.ggml.") not in keys:
                        self.assertEqual(value, found.get(key), key)
                self.assertEqual([(t.name, t.type_id, t.ne, fused.raw(t)) for t in fused.tensors],
                                 [(t.name, t.type_id, t.ne, made.raw(t)) for t in made.tensors])

    def test_the_way_back_of_qwen25vl(self):
        path = os.path.join(STORES, "fused", "qwen25vl.fused.gguf")
        found = self.way_back(path)
        for key, value in Model(path).keys:
            if b".vision." in key or b"mrope" in key or key == b"general.architecture":
                self.assertEqual(value, found.get(key.decode()), key)

    def test_two_files_are_mounted(self):
        start = os.path.join(STORES, "fused", "mistral3")
        self.mount(start + ".mmproj.gguf", start + ".model.gguf")
        with open(os.path.join(self.mountpoint, "ollama.gguf"), "rb") as file:
            made = Model(self.write("ollama.gguf", file.read()))
        self.assertEqual([t.name for t in Model(start + ".fused.gguf").tensors], [t.name for t in made.tensors])
        for name in ("model", "mmproj"):
            with open(os.path.join(self.mountpoint, name + ".gguf"), "rb") as file, \
                    open(f"{start}.{name}.gguf", "rb") as expected:
                self.assertEqual(expected.read(), file.read())

    def test_runner(self):
        """The text of a fused file is that of its model, also from a mount."""
        start = os.path.join(STORES, "fused", "gemma3")
        runner = os.path.join(os.path.dirname(mounting.BINARY), "ggufs-run")
        texts = set()
        self.mount(start + ".fused.gguf")
        for model in (start + ".fused.gguf", start + ".model.gguf", self.mountpoint):
            done = subprocess.run([runner, "--temp", "0", "-n", "12", model, "The tool"], stdin=subprocess.DEVNULL,
                                  capture_output=True, timeout=mounting.DEADLINE, check=True)
            texts.add(done.stdout)
        self.assertEqual(1, len(texts), texts)

    def test_old_layouts(self):
        for path in sorted(glob.glob(os.path.join(STORES, "old-layouts", "*.gguf"))):
            with open(path.replace(".gguf", ".expected.json"), encoding="utf-8") as file:
                for part, expected in json.load(file).items():
                    with self.subTest(file=os.path.basename(path), part=part):
                        self.check_old(self.translated(path, part + ".gguf"), expected)


def numbers(count, first=0):
    """Data of F16: small numbers that differ."""
    return struct.pack(f"<{count}e", *((first + i) % 251 - 125 for i in range(count)))


class TestLayouts(TranslationTestCase):
    """Layouts without a fixture, as small as their rows allow."""

    def model(self, architecture, keys, tensors):
        """A file with keys of the architecture (a name that begins with a slash is whole) and F16 tensors."""
        file = GgufFile().key(b"general.architecture", STRING, architecture.encode())
        for name, (kind, value) in keys.items():
            file.key((name[1:] if name[0] == "/" else f"{architecture}.{name}").encode(), kind, value)
        for i, (name, ne) in enumerate(tensors.items()):
            count = 1
            for n in ne:
                count *= n
            file.tensor(name.encode(), ne, F16, numbers(count, 7 * i))
        return file.write(self.path("old.gguf"))

    def expect(self, path, keys, tensors, part="model.gguf"):
        """
        The part has these keys and exactly these tensors: name: (ne, stored names or a function
        that makes the numbers).
        """
        made, old = self.translated(path, part), Model(path)
        self.assertIsNotNone(made)
        found, stored = {name.decode(): plain(value) for name, value in made.keys}, {}
        for tensor in old.tensors:
            stored[tensor.name.decode()] = halves(old.raw(tensor))
        for name, value in keys.items():
            self.assertEqual(value, found.get(name), name)
        if tensors is not None:
            self.assertEqual(set(tensors), {tensor.name.decode() for tensor in made.tensors})
            for tensor in made.tensors:
                ne, source = tensors[tensor.name.decode()]
                self.assertEqual(ne, list(tensor.ne), tensor.name)
                expected = source if isinstance(source, bytes) else b"".join(stored[name] for name in source.split())
                self.assertEqual(expected, values(made, tensor), tensor.name)
        return made

    def tokens(self, *texts):
        return {"/tokenizer.ggml.tokens": (ARRAY, Array(STRING, [text.encode() for text in texts])),
                "/tokenizer.ggml.token_type": (ARRAY, Array(INT32, [3] * len(texts)))}

    def test_gemma3n(self):
        path = self.model("gemma3n", self.tokens("<0x0A>", "<unused1>", "a", "<image>"),
                          {"token_embd.weight": [4, 4], "per_layer_token_embd.weight": [8, 3]})
        self.expect(path, {"tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": ["<0x0A>", "<unused1>", "a"],
                           "tokenizer.ggml.token_type": [6, 1, 3], "tokenizer.ggml.eos_token_ids": [1, 106]},
                    {"token_embd.weight": ([4, 3], halves(numbers(12))),
                     "per_layer_token_embd.weight": ([8, 3], "per_layer_token_embd.weight")})

    def test_renamed_text_models(self):
        sections = (ARRAY, Array(INT32, [2, 3, 3]))
        one = {"token_embd.weight": [4, 4]}
        same = {"token_embd.weight": ([4, 4], "token_embd.weight")}
        for architecture, keys, tensors, expected, renamed in (
                ("qwen3next", {"attention.head_count_kv": (ARRAY, Array(INT32, [0, 2, 0]))}, ["blk.0.ssm_dt"],
                 {"qwen3next.attention.head_count_kv": 2}, ["blk.0.ssm_dt.bias"]),
                ("laguna", {"rope.swa.freq_base": (FLOAT32, 5.0)}, ["blk.0.attn_g.weight"],
                 {"laguna.rope.freq_base_swa": 5.0}, ["blk.0.attn_gate.weight"]),
                ("gptoss", {}, ["blk.0.attn_out.weight", "blk.0.attn_sinks", "blk.1.attn_sinks.weight",
                                "blk.0.attn_output.weight"],
                 {"general.architecture": "gpt-oss", "gpt-oss.rope.scaling.type": "yarn", "tokenizer.ggml.pre": "gpt-4o"},
                 ["blk.0.attn_output.weight", "blk.0.attn_sinks.weight", "blk.1.attn_sinks.weight"]),
                ("mistral3", {"rope.scaling.beta_fast": (FLOAT32, 4.0), "rope.scaling_beta": (FLOAT32, 0.5)}, [],
                 {"mistral3.rope.scaling.yarn_beta_fast": 4.0, "mistral3.attention.temperature_scale": 0.5,
                  "tokenizer.ggml.pre": "tekken"}, []),
                ("qwen3vl", {"rope.mrope_section": sections}, [],
                 {"qwen3vl.rope.dimension_sections": [2, 3, 3, 0], "qwen3vl.n_deepstack_layers": 0}, []),
                ("qwen3vlmoe", {}, [], {"qwen3vlmoe.rope.dimension_sections": [24, 20, 20, 0]}, []),
                ("glm4moelite", {"attention.kv_lora_rank": (UINT32, 512), "rope.dimension_count": (UINT32, 64),
                                 "attention.key_length": (UINT32, 256), "attention.value_length": (UINT32, 192),
                                 "attention.head_count_kv": (UINT32, 20),
                                 "/tokenizer.ggml.eos_token_ids": (ARRAY, Array(INT32, [1, 7, 8]))}, [],
                 {"general.architecture": "deepseek2", "deepseek2.attention.head_count_kv": 1,
                  "deepseek2.attention.key_length": 576, "deepseek2.attention.value_length": 512,
                  "deepseek2.attention.key_length_mla": 256, "deepseek2.attention.value_length_mla": 192,
                  "deepseek2.expert_group_count": 1, "tokenizer.ggml.pre": "glm4",
                  "tokenizer.ggml.eot_token_id": 7, "tokenizer.ggml.eom_token_id": 8}, []),
                ("nemotron_h_omni", {"expert_count": (UINT32, 4)},
                 ["v.x.weight", "mm.x.weight", "a.x.weight", "mtp.x.weight", "blk.1.ffn_latent_in.weight"],
                 {"general.architecture": "nemotron_h_moe", "nemotron_h_moe.moe_latent_size": 4},
                 ["blk.1.ffn_latent_down.weight"]),
                ("llama4", {}, ["v.x.weight", "mm.x.weight"], {}, [])):
            if architecture == "gptoss":
                tensors = tensors[:3]
            with self.subTest(architecture=architecture):
                path = self.model(architecture, keys, one | {name: [4, 4] for name in tensors})
                kept = [name for name in tensors if not name.startswith(("v.", "mm.", "a.", "mtp."))]
                self.expect(path, expected, same | {new: ([4, 4], old) for old, new in zip(kept, renamed)})

    def test_llama3(self):
        texts = [f"t{i}" for i in range(128010)]
        texts[128009], texts[128006] = "<|eot_id|>", "<|start_header_id|>"
        path = self.model("llama", self.tokens(*texts) | {"/tokenizer.ggml.eos_token_id": (UINT32, 128001)},
                          {"token_embd.weight": [4, 4]})
        self.expect(path, {"tokenizer.ggml.pre": "llama-bpe", "tokenizer.ggml.eos_token_id": 128009,
                           "tokenizer.ggml.eot_token_id": 128009, "tokenizer.ggml.eos_token_ids": [128009]}, None)

    def test_glmocr(self):
        path = self.model("glmocr", {"attention.key_length": (UINT32, 8), "embedding_length": (UINT32, 4),
                                     "rope.mrope_section": (ARRAY, Array(INT32, [1, 2, 3])),
                                     "vision.out_hidden_size": (UINT32, 6), "vision.intermediate_size": (UINT32, 9)},
                          {"blk.0.ffn_gate.weight": [4, 2], "blk.0.ffn_up.weight": [4, 2], "blk.0.attn_out.weight": [4, 4],
                           "blk.0.post_ffn_norm.weight": [4], "v.patch_embd_0.weight": [2, 2, 3, 2],
                           "v.patch_embd_1.weight": [2, 2, 3, 2], "mm.post_norm.weight": [4]})
        self.expect(path, {"general.architecture": "glm4", "glm4.rope.dimension_sections": [1, 2, 3, 0],
                           "glm4.rope.dimension_count": 8, "tokenizer.ggml.pre": "chatglm-bpe"},
                    {"blk.0.ffn_up.weight": ([4, 4], "blk.0.ffn_gate.weight blk.0.ffn_up.weight"),
                     "blk.0.attn_output.weight": ([4, 4], "blk.0.attn_out.weight"),
                     "blk.0.post_ffw_norm.weight": ([4], "blk.0.post_ffn_norm.weight")})
        made = self.expect(path, {"clip.projector_type": "glm4v", "clip.vision.projection_dim": 6,
                                  "clip.vision.feed_forward_length": 9},
                           {"v.patch_embd.weight": ([2, 2, 3, 2], "v.patch_embd_0.weight"),
                            "v.patch_embd.weight.1": ([2, 2, 3, 2], "v.patch_embd_1.weight"),
                            "mm.post_norm.weight": ([4], "mm.post_norm.weight")}, "mmproj.gguf")
        self.assertEqual({"F32", "F16"}, {tensor.type_name for tensor in made.tensors})
        found = self.way_back(path)
        self.assertEqual([1, 2, 3], found["glmocr.rope.mrope_section"])
        self.assertEqual(6, found["glmocr.vision.out_hidden_size"])

    def test_gemma4(self):
        path = self.model("gemma4", {"vision.feed_forward_length": (UINT32, 9), "/tokenizer.ggml.model": (STRING, b"llama")},
                          {"blk.0.ffn_gate_exps.weight": [4, 2, 3], "blk.0.ffn_up_exps.weight": [4, 2, 3],
                           "blk.0.ffn_gate_inp.per_expert_scale": [3], "v.patch_embd.weight": [2, 2, 3, 4]})
        parts = numbers(24), numbers(24, 7)
        fused = b"".join(part[16 * i:16 * i + 16] for i in range(3) for part in parts)
        self.expect(path, {"tokenizer.ggml.model": "gemma4"},
                    {"blk.0.ffn_gate_up_exps.weight": ([4, 4, 3], halves(fused)),
                     "blk.0.ffn_down_exps.scale": ([3], "blk.0.ffn_gate_inp.per_expert_scale")})
        found = self.way_back(path)
        self.assertEqual([9, 3], [found[f"gemma4.vision.{key}"] for key in ("feed_forward_length", "projector.scale_factor")])

    def test_qwen3vl_projector(self):
        keys = {"vision.block_count": (UINT32, 2), "vision.patch_size": (UINT32, 2), "embedding_length": (UINT32, 5),
                "vision.deepstack_visual_indexes": (ARRAY, Array(INT32, [1])),
                "rope.mrope_section": (ARRAY, Array(INT32, [2, 3, 3]))}
        tensors = {"v.blk.0.attn_q.weight": [4, 4], "v.blk.0.attn_k.weight": [4, 4], "v.blk.0.attn_v.weight": [4, 4],
                   "v.blk.0.attn_q.bias": [4], "v.blk.0.attn_k.bias": [4], "v.blk.0.attn_v.bias": [4],
                   "v.blk.0.mlp.linear_fc1.weight": [4, 6], "v.pos_embed.weight": [4, 9],
                   "v.patch_embed.weight": [2, 2, 2, 6], "v.merger.linear_fc1.weight": [4, 4],
                   "v.deepstack_merger.0.linear_fc2.bias": [4], "v.deepstack_merger.0.norm.weight": [4]}
        path = self.model("qwen3vl", keys, tensors)
        data, frames = struct.unpack("<48f", values(Model(path), Model(path).tensors[8])), ([], [])
        for i in range(12):
            frames[i % 2].extend(data[4 * i:4 * i + 4])
        self.expect(path, {"clip.vision.image_size": 6, "clip.vision.feed_forward_length": 6,
                           "clip.vision.is_deepstack_layers": [False, True], "clip.vision.projection_dim": 5,
                           "clip.projector_type": "qwen3vl_merger", "clip.vision.image_min_pixels": 65536},
                    {"v.blk.0.attn_qkv.weight": ([4, 12], "v.blk.0.attn_q.weight v.blk.0.attn_k.weight "
                                                          "v.blk.0.attn_v.weight"),
                     "v.blk.0.attn_qkv.bias": ([12], "v.blk.0.attn_q.bias v.blk.0.attn_k.bias v.blk.0.attn_v.bias"),
                     "v.blk.0.ffn_up.weight": ([4, 6], "v.blk.0.mlp.linear_fc1.weight"),
                     "v.position_embd.weight": ([4, 9], "v.pos_embed.weight"),
                     "v.patch_embd.weight": ([2, 2, 3, 2], struct.pack("<24f", *frames[0])),
                     "v.patch_embd.weight.1": ([2, 2, 3, 2], struct.pack("<24f", *frames[1])),
                     "mm.0.weight": ([4, 4], "v.merger.linear_fc1.weight"),
                     "v.deepstack.1.fc2.bias": ([4], "v.deepstack_merger.0.linear_fc2.bias"),
                     "v.deepstack.1.norm.weight": ([4], "v.deepstack_merger.0.norm.weight")}, "mmproj.gguf")
        found = self.way_back(path, "--unset", "qwen3vl.rope.mrope_section")  # which Ollama's converter alone writes
        self.assertEqual([1], found["qwen3vl.vision.deepstack_visual_indexes"])
        self.assertEqual([2, 3, 3], found["qwen3vl.rope.mrope_section"])
        del keys["vision.deepstack_visual_indexes"], tensors["v.deepstack_merger.0.linear_fc2.bias"]
        del tensors["v.deepstack_merger.0.norm.weight"]
        self.way_back(self.model("qwen35", keys, tensors | {"token_embd.weight": [4, 4], "blk.0.ssm_dt": [4]}))

    def test_other_projectors(self):
        for architecture, keys, names, expected in (
                ("llama4", {"vision.pixel_shuffle_ratio": (FLOAT32, 0.25), "vision.layer_norm_epsilon": (FLOAT32, 0.5)},
                 {"v.positional_embedding_vlm": "v.position_embd.weight", "v.vision_adapter.mlp.fc1.weight": "mm.model.mlp.1.weight",
                  "mm.linear_1.weight": "mm.model.fc.weight", "v.blk.0.mlp.fc2.bias": "v.blk.0.ffn_down.bias",
                  "v.layernorm_pre.weight": "v.pre_ln.weight", "v.blk.0.attn_output.weight": "v.blk.0.attn_out.weight"},
                 {"clip.projector_type": "llama4", "clip.vision.projector_type": "llama4",
                  "clip.vision.projector.scale_factor": 4, "clip.vision.attention.layer_norm_epsilon": 0.5}),
                ("gemma4", {"audio.block_count": (UINT32, 1), "vision.block_count": (UINT32, 2),
                            "embedding_length": (UINT32, 7)},
                 {"a.pre_encode.out.weight": "a.input_projection.weight", "mm.a.fc.weight": "a.pre_encode.out.weight",
                  "a.blk.0.ln1.weight": "a.blk.0.attn_pre_norm.weight", "a.blk.0.ln2.weight": "a.blk.0.attn_post_norm.weight",
                  "a.blk.0.layer_pre_norm.weight": "a.blk.0.ln2.weight", "a.blk.0.linear_pos.weight": "a.blk.0.attn_k_rel.weight",
                  "mm.a.input_projection.weight": "mm.a.input_projection.weight", "v.blk.0.ln1.weight": "v.blk.0.ln1.weight",
                  "mm.input_projection.weight": "mm.input_projection.weight", "v.patch_embd.weight": "v.patch_embd.weight"},
                 {"clip.audio.projector_type": "gemma4a", "clip.vision.projector_type": "gemma4v",
                  "clip.has_audio_encoder": True, "clip.has_vision_encoder": True, "clip.audio.num_mel_bins": 128,
                  "clip.audio.projection_dim": 7, "clip.vision.projection_dim": 7, "clip.vision.image_std": [1, 1, 1]}),
                ("deepseekocr", {"sam.block_count": (UINT32, 3), "vision.head_count": (UINT32, 2)},
                 {"s.position_embd": "v.sam.pos_embd.weight", "s.blk.0.attn.rel_pos_h": "v.sam.blk.0.attn.pos_h.weight",
                  "s.blk.0.norm1.weight": "v.sam.blk.0.pre_ln.weight", "v.blk.0.self_attn.out_proj.bias": "v.blk.0.attn_out.bias",
                  "v.blk.0.layer_norm1.weight": "v.blk.0.ln1.weight", "mm.layers.weight": "mm.model.fc.weight",
                  "mm.image_newline": "v.image_newline", "v.position_embd.weight": "v.position_embd.weight"},
                 {"clip.vision.sam.block_count": 3, "clip.vision.attention.head_count": 2,
                  "clip.vision.projection_dim": 1280, "clip.projector_type": "deepseekocr"})):
            with self.subTest(architecture=architecture):
                path = self.model(architecture, keys, {name: [4, 2] for name in names})
                self.expect(path, expected, {new: ([4, 2], old) for old, new in names.items()}, "mmproj.gguf")
                if architecture == "llama4":
                    self.assertEqual(0.25, self.way_back(path)["llama4.vision.pixel_shuffle_ratio"])
                    continue
                # Sound, and names that several old ones become, have no way back.
                self.translated(path)
                pair = ["--mmproj", self.path("mmproj.gguf"), self.path("model.gguf")]
                reason = "does not know its name" if architecture == "gemma4" else "knows no file of Ollama"
                self.assertIn(reason, self.run_ggufs("--info", *pair).out)
                result = self.run_ggufs("--cat", *pair[:2], "ollama.gguf", pair[2])
                self.assertEqual(EX_NOINPUT, result.status)
                self.assertIn(reason, result.err)

    def test_nemotron_projector(self):
        """Places are resampled linearly, corners on corners."""
        keys = {"vision.image_size": (UINT32, 4), "vision.patch_size": (UINT32, 2), "vision.embedding_length": (UINT32, 2)}
        path = self.model("nemotron_h_omni", keys, {"v.position_embd": [2, 9], "v.patch_embd.weight": [12, 2],
                                                    "v.cls_embd": [2], "mm.1.weight": [2, 2], "mm.a.x.weight": [2]})
        square = struct.unpack("<18f", values(Model(path), Model(path).tensors[0]))
        corners = [square[2 * place + i] for place in (0, 2, 6, 8) for i in range(2)]
        self.expect(path, {"clip.vision.feed_forward_length": 8, "clip.has_audio_encoder": False,
                           "clip.vision.projector_type": "nemotron_v2_vl"},
                    {"v.position_embd.weight": ([2, 4], struct.pack("<8f", *corners)),
                     "v.patch_embd.weight": ([2, 2, 3, 2], "v.patch_embd.weight"),
                     "v.class_embd": ([2], "v.cls_embd"), "mm.model.mlp.1.weight": ([2, 2], "mm.1.weight")}, "mmproj.gguf")

    def test_refused_models(self):
        for architecture, tensor in (("mllama", "token_embd.weight"), ("gptoss", "blk.0.attn_qkv.weight")):
            with self.subTest(architecture=architecture):
                path = self.model(architecture, {}, {tensor: [4, 4]})
                self.assertIsNone(self.translated(path))
                result = self.run_ggufs("--cat", path, "model.unsupported.txt")
                self.assertEqual(EX_OK, result.status)
                self.assertIn("gpt-oss" if architecture == "gptoss" else architecture, result.out)
                self.assertIn(result.out.strip(), self.run_ggufs("--check", path).out)
                self.assertEqual(EX_DATAERR, self.run_ggufs("--info", "-o", "part=model", path).status)

    def test_a_translation_that_fails(self):
        """The tree has the file as it is, and says why there is no other."""
        file = GgufFile().key(b"general.architecture", STRING, b"gemma3").key(b"gemma3.vision.block_count", UINT32, 1)
        file.tensor(b"token_embd.weight", [4, 4], F16, numbers(16)).tensor(b"v.patch_embedding.weight", [32], 200, bytes(34))
        path = file.write(self.path("old.gguf"))
        self.assertIsNone(self.translated(path))
        self.assertEqual(file.to_bytes(), self.translated(path, "original.gguf").data)
        runner = os.path.join(os.path.dirname(mounting.BINARY), "ggufs-run")
        run = subprocess.run([runner, path, "x"], stdin=subprocess.DEVNULL, capture_output=True, check=False)
        for text in (self.run_ggufs("--cat", path, "model.gguf").err, self.run_ggufs("--info", path).out,
                     self.run_ggufs("--check", path).out, self.run_ggufs("--cat", path, "model.unsupported.txt").out,
                     self.run_ggufs("--info", "-o", "part=model", path).err, run.stderr.decode()):
            self.assertIn("its type is unknown", text)
        self.assertNotEqual(0, run.returncode)

    def test_unfinished_file(self):
        path = self.model("glmocr", {}, {"blk.0.ffn_gate.weight": [4, 2], "blk.0.ffn_up.weight": [4, 2],
                                         "token_embd.weight": [64, 64]})
        whole = self.translated(path)
        os.truncate(path, os.path.getsize(path) - 64)
        result = self.run_ggufs("--list", "-o", "partial", path)
        self.assertIn("model.gguf", result.out.split())
        self.assertNotEqual(EX_OK, self.run_ggufs("--cat", "-o", "partial", path, "model.gguf").status)
        with open(path, "ab") as file:
            file.write(Model(whole.path).data[-64:])
        result = self.run_ggufs("--cat", "-o", "partial", path, "model.gguf")
        self.assertEqual((EX_OK, whole.data), (result.status, result.out.encode("utf-8", "surrogateescape")))

    def test_f32_that_f16_does_not_hold(self):
        model = self.translated(self.model("mistral3", {"rope.scaling_beta": (FLOAT32, 1.0)},
                                           {"token_embd.weight": [4, 4]}), "model.gguf").path
        for number, type_name in ((0.5, "F16"), (0.1, "F32")):
            file = GgufFile().key(b"general.architecture", STRING, b"clip").key(b"clip.projector_type", STRING, b"pixtral")
            file.tensor(b"v.patch_embd.weight", [4, 2], F32, struct.pack("<8f", *[number] * 8))
            path = file.write(self.path("mmproj.gguf"))
            result = self.run_ggufs("--cat", "--mmproj", path, "ollama.gguf", model)
            self.assertEqual(EX_OK, result.status, result.err)
            made = Model(self.write("ollama.gguf", result.out.encode("utf-8", "surrogateescape")))
            found = {tensor.name: tensor for tensor in made.tensors}
            self.assertEqual(type_name, found[b"v.patch_conv.weight"].type_name)

    def test_checksums(self):
        path = self.model("llama4", {"vision.block_count": (UINT32, 1)},
                          {"token_embd.weight": [4, 4], "v.class_embedding": [4], "mm.linear_1.weight": [4, 4]})
        parts = {name: sha256(self.translated(path, name).data) for name in ("model.gguf", "mmproj.gguf", "original.gguf")}
        lines = dict(reversed(line.split("  ")) for line in self.run_ggufs("--cat", path, "SHA256SUMS").out.splitlines())
        self.assertEqual(parts, {name: lines.get(name) for name in parts})
        result = self.run_ggufs("--cat", "--mmproj", self.path("mmproj.gguf"), "SHA256SUMS", self.path("model.gguf"))
        self.way_back(path)
        with open(self.path("ollama.gguf"), "rb") as file:
            self.assertIn(sha256(file.read()) + "  ollama.gguf", result.out)

    def test_a_translated_model_is_not_translated(self):
        path = self.model("olmo3", {}, {"token_embd.weight": [4, 4]})
        made = self.translated(path)
        self.assertEqual(made.data, self.translated(made.path).data)
        self.assertIsNone(self.translated(made.path, "original.gguf"))
        self.assertEqual(Model(path).data, self.translated(path, "original.gguf").data)


if __name__ == "__main__":
    unittest.main()
