#!/usr/bin/env python3
"""Files that are no language models, in the layouts that llama.cpp and its kin write."""

import math
import os
import struct
import subprocess
import unittest

import mounting
from gguf_file import (ARRAY, BOOL, F16, F32, FLOAT32, INT32, STRING, UINT32, Array, GgufFile)
from tree_check import check_tree

RUNNER = mounting.BINARY + "-run"


def zeros(n_elements):
    return bytes(4 * n_elements)


def imatrix(n_counts):
    """tools/imatrix/imatrix.cpp: sorted by name, the sums before the counts."""
    file = GgufFile()
    file.key(b"general.type", STRING, b"imatrix")
    file.key(b"imatrix.datasets", ARRAY, Array(STRING, [b"wiki.train.raw"]))
    file.key(b"imatrix.chunk_count", UINT32, 64)
    file.key(b"imatrix.chunk_size", UINT32, 512)
    for name, n in sorted(n_counts.items()):
        file.tensor(name + b".in_sum2", [256, n][:1 + (n > 1)], F32, bytes(1024 * n))
        file.tensor(name + b".counts", [1, n][:1 + (n > 1)], F32, bytes(4 * n))
    return file


def adapter():
    """convert_lora_to_gguf.py"""
    file = GgufFile()
    file.key(b"general.architecture", STRING, b"llama")
    file.key(b"general.type", STRING, b"adapter")
    file.key(b"adapter.type", STRING, b"lora")
    file.key(b"general.base_model.count", UINT32, 1)
    file.key(b"general.base_model.0.name", STRING, b"Llama 3.2 1B")
    file.key(b"general.base_model.0.organization", STRING, b"Meta Llama")
    file.key(b"adapter.lora.alpha", FLOAT32, 32.0)
    for layer in range(2):
        for name in b"attn_q", b"ffn_down":
            file.tensor(b"blk.%d.%s.weight.lora_a" % (layer, name), [64, 16], F32, zeros(1024))
            file.tensor(b"blk.%d.%s.weight.lora_b" % (layer, name), [16, 32], F32, zeros(512))
    return file


def control_vector():
    """tools/cvector-generator/cvector-generator.cpp"""
    file = GgufFile()
    file.key(b"general.architecture", STRING, b"controlvector")
    file.key(b"controlvector.model_hint", STRING, b"llama")
    file.key(b"controlvector.layer_count", INT32, 3)
    for layer in range(1, 4):
        file.tensor(b"direction.%d" % layer, [32], F32, zeros(32))
    return file


def projector():
    """conversion/ of llama.cpp, for tools/mtmd/clip.cpp"""
    file = GgufFile()
    file.key(b"general.architecture", STRING, b"clip")
    file.key(b"general.type", STRING, b"mmproj")
    file.key(b"clip.has_vision_encoder", BOOL, 1)
    file.key(b"clip.projector_type", STRING, b"gemma3")
    file.key(b"clip.vision.image_size", UINT32, 896)
    file.key(b"clip.vision.patch_size", UINT32, 14)
    file.tensor(b"v.patch_embd.weight", [14, 14, 3, 8], F16, bytes(2 * 14 * 14 * 24))
    file.tensor(b"v.blk.0.attn_q.weight", [8, 8], F32, zeros(64))
    file.tensor(b"mm.input_projection.weight", [8, 8], F32, zeros(64))
    return file


def diffusion(architecture):
    """ComfyUI-GGUF's tools/convert.py; without architecture, stable-diffusion.cpp"""
    file = GgufFile()
    prefix = b"model.diffusion_model."
    if architecture:
        file.key(b"general.architecture", STRING, architecture)
        prefix = b""
    file.tensor(prefix + b"double_blocks.0.img_attn.proj.weight", [32, 4], F32, zeros(128))
    file.tensor(prefix + b"single_blocks.9.linear1.weight", [32, 4], F32, zeros(128))
    return file


def made(architecture, keys, tensors):
    """A file with keys of the architecture and with tensors of zeros."""
    file = GgufFile()
    file.key(b"general.architecture", STRING, architecture)
    for name, value_type, value in keys:
        file.key(architecture + b"." + name, value_type, value)
    for name, ne in tensors:
        file.tensor(name, ne, F32, zeros(math.prod(ne)))
    return file


def text_encoder():
    return made(b"t5encoder", [(b"block_count", UINT32, 24)],
                [(b"enc.blk.0.attn_q.weight", [8, 8]), (b"token_embd.weight", [8, 8])])


def draft():
    """An EAGLE-3 model: src/models/eagle3.cpp of llama.cpp"""
    return made(b"eagle3", [(b"block_count", UINT32, 1), (b"target_layers", ARRAY, Array(INT32, [2, 16, 29]))],
                [(b"fc.weight", [24, 8]), (b"blk.0.attn_q.weight", [8, 8])])


def recognizer():
    return made(b"whisper", [(b"encoder.mels_count", UINT32, 80), (b"vocab_size", UINT32, 51866)],
                [(b"encoder.conv1.weight", [3, 8])])


def synthesizer():
    return made(b"kokoro", [], [(b"kokoro.albert.embd", [8, 8])])


def embedder():
    return made(b"bert", [(b"block_count", UINT32, 1), (b"pooling_type", UINT32, 1)],
                [(b"token_embd.weight", [8, 8]), (b"blk.0.attn_q.weight", [8, 8])])


# The file, the name of its kind, some of its lines.
KINDS = [
    (adapter(), "low-rank adapter (LoRA)",
     ["base            Llama 3.2 1B by Meta Llama", "rank            16", "alpha           32"]),
    (control_vector(), "control vector", ["model hint      llama", "layers          3"]),
    (projector(), "multimodal projector (mmproj)",
     ["images          yes", "projector       gemma3", "image size      896", "patch size      14"]),
    (diffusion(b"flux"), "diffusion model",
     ["architecture    flux"]),
    (diffusion(None), "diffusion model",
     ["architecture    flux (by its tensors)"]),
    (text_encoder(), "text encoder", ["layers          24"]),
    (draft(), "draft model", ["target layers   2, 16, 29"]),
    (recognizer(), "speech recognizer", ["mel bands       80"]),
    (synthesizer(), "speech synthesizer (TTS)", []),
    (embedder(), "embedding model", ["pooling         mean"]),
]


class KindTestCase(mounting.MountTestCase):
    def info(self, path):
        done = subprocess.run([mounting.BINARY, *mounting.MOUNT_OPTIONS, "--info", path],
                              capture_output=True, text=True)
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        return done.stdout.split("\n")


class TestKinds(KindTestCase):
    def expect_refusal(self, path, kind):
        done = subprocess.run([RUNNER, "--no-sandbox", path, "Hello"], capture_output=True, text=True)
        self.assertEqual((65, ""), (done.returncode, done.stdout), done.stderr)
        self.assertRegex(done.stderr, r"^ggufs-run: .*: this is an? [^\n]*, not a language model: [^\n]+\n$")
        self.assertIn(f" {kind}, not a language model: ", done.stderr)

    def test_kinds(self):
        for index, (file, kind, lines) in enumerate(KINDS):
            with self.subTest(kind=kind):
                path = file.write(self.path(f"{index}.gguf"))
                found = self.info(path)
                for line in [f"kind            {kind}", *lines]:
                    self.assertIn(line, found)
                self.expect_refusal(path, kind)
                self.mount(path)
                check_tree(self, path, self.mountpoint)
                mounting.unmount(self.mountpoint)

    def test_contradiction(self):
        """The metadata are believed, and the tensors are named."""
        file = adapter()
        file.keys = [file.string(b"general.architecture") + file.pack("I", STRING) + file.string(b"llama"),
                     file.string(b"llama.block_count") + file.pack("II", UINT32, 2)]
        file.n_keys = 2
        path = file.write(self.path("model.gguf"))
        self.assertIn("kind            language model by its metadata, but the tensors are those of a low-rank "
                      "adapter (LoRA)", self.info(path))
        self.expect_refusal(path, "low-rank adapter (LoRA)")

    def test_other_failures(self):
        """A language model that lacks something is not taken for another kind."""
        file = made(b"llama", [(b"block_count", UINT32, 1)],
                    [(b"token_embd.weight", [8, 8]), (b"blk.0.attn_q.weight", [8, 8])])
        done = subprocess.run([RUNNER, "--no-sandbox", file.write(self.path("a.gguf")), "a"],
                              capture_output=True, text=True)
        self.assertIn("embedding_length", done.stderr)
        self.assertNotIn("not a language model", done.stderr)


class TestImportance(KindTestCase):
    def test_covered(self):
        names = b"blk.0.attn_q.weight", b"blk.0.ffn_down_exps.weight"
        path = imatrix({names[0]: 1, names[1]: 9}).write(self.path("imatrix.gguf"))
        found = self.info(path)
        for line in ("kind            importance matrix", "datasets        wiki.train.raw", "chunks          64",
                     "chunk size      512", "covers          2 tensors"):
            self.assertIn(line, found)
        self.mount(path)
        check_tree(self, path, self.mountpoint)

    def test_hostile(self):
        """Halves that are missing, of other shapes, without numbers, or larger than any memory."""
        file = GgufFile()
        file.key(b"general.type", STRING, b"imatrix")
        values = struct.pack("<4f", math.nan, math.inf, -1, 0)
        for name in b"in_sum2", b"counts":
            file.tensor(b"bad." + name, [4], F32, values)
        file.tensor(b"alone.in_sum2", [4], F32, values).tensor(b"lonely.counts", [4], F32, values)
        file.tensor(b"odd.in_sum2", [4], F32, values).tensor(b"odd.counts", [3], F32, values[:12])
        file.tensor(b".in_sum2", [4], F32, values).tensor(b".counts", [4], F32, values)
        file.tensor(b"../up.in_sum2", [4], F32, values).tensor(b"../up.counts", [1], F32, bytes(4))
        file.tensor(b"huge.counts", [1], F32, values[8:12]).tensor(b"huge.in_sum2", [1 << 38], F32, b"")
        path = file.write(self.path("imatrix.gguf"))
        with open(path, "r+b") as model:
            model.truncate(os.path.getsize(path) + (1 << 40))
        self.assertIn("covers          6 tensors", self.info(path))
