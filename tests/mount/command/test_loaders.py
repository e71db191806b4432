#!/usr/bin/env python3
"""ggufs --check --for: what llama.cpp, Ollama and ik_llama.cpp refuse."""

import csv
import os
import struct
import unittest

import mounting
from gguf_file import ARRAY, F16, F32, FLOAT32, INT32, STRING, UINT32, UINT64, Array, GgufFile

LOADERS = os.path.join(mounting.FIXTURES, "stores", "loaders")
EX_OK, EX_DATAERR = 0, 65
N_EMBD, N_HEAD, N_FF, N_TOKENS = 32, 2, 64, 4

KEYS = {
    b"general.architecture": (STRING, b"llama"),
    b"llama.block_count": (UINT32, 1),
    b"llama.context_length": (UINT32, 64),
    b"llama.embedding_length": (UINT32, N_EMBD),
    b"llama.feed_forward_length": (UINT32, N_FF),
    b"llama.attention.head_count": (UINT32, N_HEAD),
    b"llama.attention.layer_norm_rms_epsilon": (FLOAT32, 1e-5),
    b"tokenizer.ggml.model": (STRING, b"llama"),
    b"tokenizer.ggml.tokens": (ARRAY, Array(STRING, [b"<unk>", b"<s>", b"</s>", b"a"])),
    b"tokenizer.ggml.scores": (ARRAY, Array(FLOAT32, [0.0] * N_TOKENS)),
    b"tokenizer.ggml.token_type": (ARRAY, Array(INT32, [2, 3, 3, 1])),
}
TENSORS = {
    b"token_embd.weight": [N_EMBD, N_TOKENS],
    b"output_norm.weight": [N_EMBD],
    b"blk.0.attn_norm.weight": [N_EMBD],
    b"blk.0.attn_q.weight": [N_EMBD, N_EMBD],
    b"blk.0.attn_k.weight": [N_EMBD, N_EMBD],
    b"blk.0.attn_v.weight": [N_EMBD, N_EMBD],
    b"blk.0.attn_output.weight": [N_EMBD, N_EMBD],
    b"blk.0.ffn_norm.weight": [N_EMBD],
    b"blk.0.ffn_gate.weight": [N_EMBD, N_FF],
    b"blk.0.ffn_up.weight": [N_EMBD, N_FF],
    b"blk.0.ffn_down.weight": [N_FF, N_EMBD],
}

# Name of the case: changed keys and tensors (None: without it), and a text of the finding.
FAULTS = {
    "tensor missing": ({}, {b"blk.0.attn_v.weight": None}, "blk.0.attn_v.weight"),
    "tensor of no architecture": ({}, {b"extra.weight": [4]}, "has no such tensor"),
    "layer beyond block_count": ({}, {b"blk.1.attn_norm.weight": [N_EMBD]}, "has no such tensor"),
    "rows of keys": ({}, {b"blk.0.attn_k.weight": [N_EMBD, 31]}, "must be 32"),
    "rows of embeddings": ({}, {b"token_embd.weight": [N_EMBD, 3]}, "number of tokens"),
    "key of another type": ({b"llama.block_count": (UINT64, 1)}, {}, "it must be uint32"),
    "key missing": ({b"llama.embedding_length": None}, {}, "llama.embedding_length"),
    "array of another length": ({b"llama.attention.head_count": (ARRAY, Array(INT32, [2, 2]))}, {}, "length is 2"),
    "no layers": ({b"llama.block_count": (UINT32, 0)}, {}, "1 to 512"),
    "no expert used": ({b"llama.expert_count": (UINT32, 4)}, {}, "expert"),
    "experts used but none there": ({b"llama.expert_used_count": (UINT32, 2)}, {}, "1 to expert_count"),
    "as many groups as experts": ({b"llama.expert_count": (UINT32, 4), b"llama.expert_used_count": (UINT32, 2),
                                   b"llama.expert_group_count": (UINT32, 4)}, {}, "below expert_count"),
    "groups of unequal size": ({b"llama.expert_count": (UINT32, 8), b"llama.expert_used_count": (UINT32, 2),
                                b"llama.expert_group_count": (UINT32, 3)}, {}, "divide expert_count"),
    "no group used": ({b"llama.expert_count": (UINT32, 8), b"llama.expert_used_count": (UINT32, 2),
                       b"llama.expert_group_count": (UINT32, 4)}, {}, "expert_group_count - 1"),
    "heads rotated in part": ({b"llama.rope.dimension_count": (UINT32, 8)}, {}, "size of a head"),
    "split.count of another type": ({b"split.count": (UINT32, 1)}, {}, "must be uint16"),
    "array too long": ({b"llama.rope.dimension_sections": (ARRAY, Array(INT32, [0] * 513))}, {}, "at most 512"),
    "unknown architecture": ({b"general.architecture": (STRING, b"nosuch")}, {}, "no language model"),
    "projector": ({b"general.architecture": (STRING, b"clip")}, {}, "it is a projector"),
    "no tokenizer": ({b"tokenizer.ggml.model": None}, {}, "tokenizer.ggml.model"),
    "unknown tokenizer": ({b"tokenizer.ggml.model": (STRING, b"xyz")}, {}, "tokenizer of this name"),
    "no merges": ({b"tokenizer.ggml.model": (STRING, b"gpt2")}, {}, "merges"),
    "unknown pre-tokenizer": ({b"tokenizer.ggml.model": (STRING, b"gpt2"), b"tokenizer.ggml.pre": (STRING, b"xyz"),
                               b"tokenizer.ggml.merges": (ARRAY, Array(STRING, [b"a a"]))}, {}, "pre-tokenizer"),
    "no tokens": ({b"tokenizer.ggml.tokens": None}, {}, "no list of tokens"),
    "equal tokens": ({b"tokenizer.ggml.tokens": (ARRAY, Array(STRING, [b"a", b"b", b"c", b"a"]))}, {}, "twice"),
    "scores short": ({b"tokenizer.ggml.scores": (ARRAY, Array(FLOAT32, [0.0]))}, {}, "has 1 elements"),
    "nested array": ({b"x.y": (ARRAY, Array(ARRAY, [Array(INT32, [1])]))}, {}, "arrays of arrays"),
}


def model(keys=(), tensors=(), norm_type=F32, **options):
    file = GgufFile(**options)
    for name, pair in (KEYS | dict(keys)).items():
        if pair:
            file.key(name, *pair)
    for name, ne in (TENSORS | dict(tensors)).items():
        if ne:
            is_norm = name.endswith(b"norm.weight")
            type_id = norm_type if is_norm else F32
            size = (2 if type_id == F16 else 4) * ne[0] * (ne[1] if len(ne) > 1 else 1)
            file.tensor(name, ne, type_id, bytes(size))
    return file


class TestLoaders(mounting.MountTestCase):
    def verdict(self, file, loader):
        """The exit status and the output of --check --for."""
        path = file if isinstance(file, str) else file.write(self.path("model.gguf"))
        result = self.run_ggufs("--check", "--for", loader, path)
        self.assertIn(result.status, (EX_OK, EX_DATAERR), result.err)
        return result.status, result.out

    def test_a_sound_model_is_taken(self):
        for loader in ("llama.cpp", "ollama", "ik"):
            self.assertEqual(EX_OK, self.verdict(model(), loader)[0])

    def test_faults(self):
        for name, (keys, tensors, text) in FAULTS.items():
            for loader in ("llama.cpp", "ollama", "ik"):
                with self.subTest(name=name, loader=loader):
                    status, out = self.verdict(model(keys, tensors), loader)
                    self.assertEqual(EX_DATAERR, status, out)
                    self.assertIn(text, out)

    def test_faults_of_the_file(self):
        self.assertEqual(EX_DATAERR, self.verdict(model(norm_type=F16), "llama.cpp")[0])
        self.assertEqual(EX_DATAERR, self.verdict(model(version=1), "llama.cpp")[0])
        self.assertEqual(EX_DATAERR, self.verdict(model(big_endian=True), "llama.cpp")[0])
        self.assertEqual(EX_DATAERR, self.verdict(model(alignment=8), "llama.cpp")[0])
        self.assertEqual(EX_OK, self.verdict(model(version=2), "llama.cpp")[0])

    def test_a_gap_is_no_fault_for_ik(self):
        file = model()
        data = bytearray(file.to_bytes())
        name = b"blk.0.ffn_down.weight"
        offset = data.index(name) + len(name) + 4 + 2 * 8 + 4
        struct.pack_into("<Q", data, offset, struct.unpack_from("<Q", data, offset)[0] + 32)
        path = self.path("gap.gguf")
        with open(path, "wb") as out:
            out.write(data + bytes(32))
        self.assertEqual(EX_DATAERR, self.verdict(path, "llama.cpp")[0])
        self.assertEqual(EX_OK, self.verdict(path, "ik")[0])

    def test_fused_files(self):
        """Ollama's own files hold an encoder of pictures, which llama.cpp wants in another file."""
        file = {b"v.patch_embd.weight": [4, 4]}
        self.assertEqual(EX_DATAERR, self.verdict(model(tensors=file), "llama.cpp")[0])
        self.assertEqual(EX_OK, self.verdict(model(tensors=file), "ollama")[0])
        result = self.run_ggufs("--check", self.path("model.gguf"))
        self.assertEqual(EX_OK, result.status)
        self.assertIn("[fused]", result.out)

    def test_unknown_loader(self):
        result = self.run_ggufs("--check", "--for", "vllm", model().write(self.path("model.gguf")))
        self.assertEqual(64, result.status)
        self.assertIn("llama.cpp", result.err)

    @unittest.skipUnless(os.path.isdir(LOADERS), "no fixtures")
    def test_verdicts_of_llama(self):
        with open(os.path.join(LOADERS, "verdicts.tsv"), encoding="utf-8") as rows:
            for row in csv.DictReader(rows, delimiter="\t", quoting=csv.QUOTE_NONE):
                with self.subTest(file=row["file"]):
                    status, out = self.verdict(os.path.join(LOADERS, row["file"]), "llama.cpp")
                    self.assertEqual(row["llama.cpp"] == "ok", status == EX_OK, out)


if __name__ == "__main__":
    unittest.main()
