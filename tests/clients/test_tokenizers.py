#!/usr/bin/env python3
"""hf/tokenizer.json gives the ids that ggufs-run gives.

    test_tokenizers.py [TEST]...

Needs the packages gguf, sentencepiece and tokenizers.
"""

import json
import os
import pathlib
import re
import subprocess
import unicodedata
import unittest

import sentencepiece
from tokenizers import Tokenizer

import model_files
import texts
import vocabularies
from model_files import fixtures, read

RUNNER = str(pathlib.Path(model_files.GGUFS).with_name("ggufs-run"))

# The file has U+FFFD instead of bytes that are not UTF-8.
DAMAGED = re.compile(r"for-tests-ggml-(base.en|tiny)")
N_TEXTS = 1000


def runner_ids(model, some_texts):
    data = b"".join(text.encode() + b"\0" for text in some_texts)
    done = subprocess.run([RUNNER, str(model), "--tokenize", "--special", "-0"], input=data,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    return [[int(number) for number in line.split()] for line in done.stdout.split(b"\n")[:-1]]


def is_comparable(text, tokenizer):
    """Return False where the library has other facts about characters than ggufs-run."""
    if tokenizer["model"]["type"] == "WordPiece":
        # Its table of control characters is of Unicode 8. U+2581 has a meaning in GGUF.
        return not any(c == "\u2581" or (unicodedata.category(c) in ("Cf", "Mc", "So")
                                         and unicodedata.ucd_3_2_0.category(c) == "Cn") for c in text)
    # llama.cpp strips ASCII white space, the library that of Unicode.
    return not any(token["rstrip"] for token in tokenizer["added_tokens"]) or not re.search(
        r"[>\]][ \t-\r]*[^\S \t-\r]", text)


class TokenizerTestCase(model_files.ModelTestCase):
    def compare(self, model, n_texts=N_TEXTS, keep=lambda text: True):
        """Compare the ids of texts with those of ggufs-run. Returns the tokenizer."""
        data = read(model, "hf/tokenizer.json")
        self.assertIsNotNone(data, model)
        parsed = json.loads(data)
        tokenizer = Tokenizer.from_buffer(data)
        special = [token["content"] for token in parsed["added_tokens"]][:200]
        some = [text for text in texts.make(pathlib.Path(model).name, n_texts, special)
                if is_comparable(text, parsed) and keep(text)]
        self.assertGreater(len(some), n_texts // 10)
        for text, expected in zip(some, runner_ids(model, some), strict=True):
            found = tokenizer.encode(text, add_special_tokens=False).ids
            self.assertEqual(expected, found, f"{model}: {text!r}")
        return tokenizer


class TestFixtures(TokenizerTestCase):
    def test_expected_ids(self):
        n_models = 0
        for model in fixtures("tokenizers"):
            if not os.path.exists(f"{model}.inp"):
                continue
            tokenizer = Tokenizer.from_buffer(read(model, "hf/tokenizer.json"))
            inputs = pathlib.Path(f"{model}.inp").read_bytes().decode()
            outputs = pathlib.Path(f"{model}.out").read_text().split("\n")
            for text, line in zip(inputs.split("\n__ggml_vocab_test__\n"), outputs):
                ids = tokenizer.encode(text, add_special_tokens=False).ids
                self.assertEqual([int(number) for number in line.split()], ids, f"{model}: {text!r}")
            n_models += 1
        if n_models == 0:
            self.skipTest(f"{model_files.FIXTURES} has no vocabularies")

    def test_same_as_the_runner(self):
        for model in fixtures("tokenizers", "gguf", "split"):
            if read(model, "hf/tokenizer.json"):
                self.compare(model)

    def test_models_and_old_files(self):
        for model in fixtures("archs", "quants", "legacy"):
            if read(model, "hf/tokenizer.json"):
                keep = (lambda text: text.isascii()) if DAMAGED.search(str(model)) else (lambda text: True)
                self.compare(model, 100, keep)


class TestKinds(TokenizerTestCase):
    def test_byte_level(self):
        self.compare(vocabularies.byte_level(self.path, "gpt-2"))

    def test_every_pretokenizer(self):
        source = (model_files.ROOT / "gguf/models/pretokenizers.c").read_text()
        rows = re.findall(r'\.names = ((?:"[^"]*"\s*)+)', source)
        names = [name for row in rows for name in row.replace('"', " ").split()]
        self.assertGreater(len(names), 80)
        base = vocabularies.byte_level(self.path, "gpt-2")
        for name in names:
            if name in ("gemma4", "granite-embed-multi-311m", "sarvam-moe"):
                continue
            path = os.path.join(self.folder.name, f"{name}.gguf")
            with open(path, "wb") as file:
                file.write(read(base, "model.gguf", "--set", f"tokenizer.ggml.pre=str:{name}"))
            self.compare(path, 200)
            os.remove(path)

    def test_pretokenizers_of_characters(self):
        for kind, pre in (("gemma4", None), ("gpt2", "granite-embed-multi-311m"), ("gpt2", "sarvam-moe")):
            self.compare(vocabularies.raw(self.path, kind, pre))

    def test_sentencepiece(self):
        for is_space_added in (True, False):
            tokenizer = self.compare(vocabularies.sentencepiece(self.path, is_space_added))
            text = "  Hello\n\tWorld \u4e16\u754c  "
            self.assertEqual(text, tokenizer.decode(tokenizer.encode(text).ids))

    def test_sentencepiece_model(self):
        """hf/tokenizer.model gives the same ids, of texts without added tokens."""
        models = [path for path in fixtures("archs", "gguf", "tokenizers") if read(path, "hf/tokenizer.model")]
        for is_space_added in (True, False):
            path = os.path.join(self.folder.name, f"{is_space_added}.gguf")
            models.append(vocabularies.sentencepiece(path, is_space_added))
        for model in models:
            data = read(model, "hf/tokenizer.json")
            added = [token["content"] for token in json.loads(data)["added_tokens"]]
            tokenizer = Tokenizer.from_buffer(data)
            processor = sentencepiece.SentencePieceProcessor(model_proto=read(model, "hf/tokenizer.model"))
            self.assertEqual(tokenizer.get_vocab_size(), processor.vocab_size())
            for text in texts.make(pathlib.Path(model).name, 300):
                if "\u2581" not in text and not any(content in text for content in added):
                    self.assertEqual(tokenizer.encode(text, add_special_tokens=False).ids,
                                     processor.encode(text), f"{model}: {text!r}")

    def test_wordpiece(self):
        for is_lowered in (True, False):
            self.compare(vocabularies.wordpiece(self.path, is_lowered))

    def test_added_tokens(self):
        tokenizer = Tokenizer.from_buffer(read(vocabularies.sentencepiece(self.path),
                                               "hf/tokenizer.json"))
        bos = tokenizer.token_to_id("<s>")
        self.assertEqual([bos], tokenizer.encode("").ids)
        self.assertEqual([bos], tokenizer.encode("a").ids[:1])
        self.assertEqual("a", tokenizer.decode(tokenizer.encode("a").ids))


if __name__ == "__main__":
    unittest.main()
