#!/usr/bin/env python3
"""tokenizer/ and the tokenizer in hf/: whole trees of vocabularies against the oracle."""


import mounting
import tokenizer_oracle
import tree_check
from gguf_file import ARRAY, FLOAT32, INT32, STRING, UINT8, UINT32, Array, GgufFile

setUpModule = mounting.require_fuse

TOKENS = [b"<unk>", b"<s>", b"</s>", b"a", b"b", b"ab", b"", b"a", b"\xff\xc3",
          "\u2581a".encode(), b"<0x41>", b"<0x0a>", b"\n", b"\n\n", b"[CLS]", b"<mask>",
          "\u0120the\u0100".encode(), b"\\\t\r\x1b", "\u2028\u202e\x85".encode(), b"x",
          b"t" * 5000, b"[unused1]", "\u2581[CLS]".encode(), "\u2581##b".encode()]
TYPES = [2, 3, 3, 1, 1, 1, 0, 1, 1, 4, 6, 6, 1, 1, 3, 4, 1, 1, 5, 1, 1, 9, 1, 1]
MERGES = [b"a b", b"ab a", b"\n \n", b"c d", b"a", b"", b"\xff a", b"\\ \t"]


def vocabulary(kind, pre=b"llama-bpe", with_merges=True, **options):
    built = GgufFile(**options)
    built.key(b"tokenizer.ggml.model", STRING, kind)
    built.key(b"tokenizer.ggml.pre", STRING, pre)
    built.key(b"tokenizer.ggml.tokens", ARRAY, Array(STRING, TOKENS))
    built.key(b"tokenizer.ggml.token_type", ARRAY, Array(INT32, TYPES))
    built.key(b"tokenizer.ggml.scores", ARRAY, Array(FLOAT32, [-float(i) for i in range(len(TOKENS))]))
    if with_merges:
        built.key(b"tokenizer.ggml.merges", ARRAY, Array(STRING, MERGES))
    built.key(b"tokenizer.ggml.bos_token_id", UINT32, 1)
    built.key(b"tokenizer.chat_template", STRING, b"{{ messages }}\xff\n" * 1000)
    built.key(b"tokenizer.chat_template.tool_use", STRING, b"{{ tools }}")
    built.key(b"tokenizer.chat_template.../a", STRING, b"")
    return built


class TestVocabularies(mounting.MountTestCase):
    def check(self, built):
        path = built.write(self.path("model.gguf"))
        mountpoint = self.mount(path)
        try:
            tree_check.check_tree(self, path, mountpoint)
        finally:
            mounting.unmount(mountpoint)

    def test_kinds(self):
        for kind in (b"llama", b"gpt2", b"gemma4", b"bert", b"t5", b"plamo2", b"none"):
            with self.subTest(kind):
                self.check(vocabulary(kind))

    def test_encodings(self):
        for options in ({"version": 1}, {"version": 2}, {"big_endian": True}):
            with self.subTest(options):
                self.check(vocabulary(b"llama", **options))
                self.check(vocabulary(b"gpt2", with_merges=False, **options))

    def test_pretokenizers(self):
        for pre in (b"gemma4", b"sarvam-moe", b"deepseek-llm", tokenizer_oracle.UNKNOWN_PRETOKENIZER):
            with self.subTest(pre):
                self.check(vocabulary(b"gpt2", pre))

    def test_arrays_that_do_not_fit(self):
        tokens = Array(STRING, [b"a", b"b"])
        for name, value in ((b"token_type", Array(INT32, [1])), (b"scores", Array(FLOAT32, [1.0])),
                            (b"merges", Array(UINT8, [1])), (b"tokens", Array(UINT8, [1, 2])),
                            (b"tokens", Array(STRING, []))):
            with self.subTest(name):
                built = GgufFile().key(b"tokenizer.ggml.model", STRING, b"gpt2")
                if name != b"tokens":
                    built.key(b"tokenizer.ggml.tokens", ARRAY, tokens)
                self.check(built.key(b"tokenizer.ggml." + name, ARRAY, value))
