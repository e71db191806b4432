#!/usr/bin/env python3
"""hf/tokenizer.json gives the ids that ggufs-run gives, and transformers loads it.

    test_tokenizers.py [TEST]...

Needs the packages gguf and tokenizers, and for the last class transformers. GGUFS and
GGUFS_FIXTURES are as in tests/mount.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import unicodedata

from tokenizers import Tokenizer

import texts
import vocabularies

ROOT = pathlib.Path(__file__).resolve().parents[2]
GGUFS = os.environ.get("GGUFS", str(ROOT / "build/ggufs"))
RUNNER = str(pathlib.Path(GGUFS).with_name("ggufs-run"))
FIXTURES = pathlib.Path(os.environ.get("GGUFS_FIXTURES", ROOT.parent / "shared/fixtures"))

# The file has U+FFFD instead of bytes that are not UTF-8.
DAMAGED = re.compile(r"for-tests-ggml-(base.en|tiny)")
N_TEXTS = 1000


def fixtures(*folders):
    return sorted(path for folder in folders for path in (FIXTURES / folder).glob("*")
                  if path.suffix in (".gguf", ".bin"))


def read(model, path, *options):
    """Return a file of the model's tree, or None if there is none."""
    done = subprocess.run([GGUFS, *options, "--cat", str(model), path], capture_output=True, check=False)
    return done.stdout if done.returncode == 0 else None


def runner_ids(model, some_texts):
    data = b"".join(text.encode() + b"\0" for text in some_texts)
    done = subprocess.run([RUNNER, str(model), "--tokenize", "--special", "-0"], input=data,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    return [[int(number) for number in line.split()] for line in done.stdout.split(b"\n")[:-1]]


def is_comparable(text, tokenizer):
    """Return False where the library has other facts about characters than ggufs-run."""
    if tokenizer["model"]["type"] == "WordPiece":
        # Its tables of punctuation and marks are of Unicode 8. U+2581 has a meaning in GGUF.
        return all(unicodedata.ucd_3_2_0.category(c) != "Cn" and c != "\u2581" for c in text)
    # llama.cpp strips ASCII white space, the library that of Unicode.
    return not any(token["rstrip"] for token in tokenizer["added_tokens"]) or not re.search(
        r"[>\]][ \t-\r]*[^\S \t-\r]", text)


class TokenizerTestCase(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="ggufs-")
        self.addCleanup(self.folder.cleanup)
        self.path = os.path.join(self.folder.name, "model.gguf")

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
            self.skipTest(f"{FIXTURES} has no vocabularies")

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
        source = (ROOT / "gguf/conventions/pretokenizers.c").read_text()
        names = re.findall(r'^    \{"([^"]+)", &as_', source, re.MULTILINE)
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

    def test_unigram(self):
        for is_space_merged in (True, False):
            self.compare(vocabularies.unigram(self.path, is_space_merged))

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


class TestTransformers(TokenizerTestCase):
    @classmethod
    def setUpClass(cls):
        os.environ["HF_HUB_OFFLINE"] = "1"
        try:
            import transformers
        except ImportError:
            if os.environ.get("CI") == "true":
                raise
            print("\nSKIPPED: there is no package transformers", file=sys.stderr, flush=True)
            raise unittest.SkipTest("there is no package transformers") from None
        cls.transformers = transformers

    def extract(self, model, config):
        """Write the files of hf/ about the tokenizer, and a config.json, to a new folder."""
        folder = tempfile.mkdtemp(dir=self.folder.name)
        for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
                     "chat_template.jinja", "additional_chat_templates/tool_use.jinja"):
            data = read(model, f"hf/{name}")
            if data is not None:
                path = pathlib.Path(folder, name)
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(data)
        pathlib.Path(folder, "config.json").write_text(config)
        return folder

    def load(self, model, config='{"model_type": "llama"}'):
        """Load a tokenizer, and check that it gives the ids of tokenizer.json."""
        folder = self.extract(model, config)
        loaded = self.transformers.AutoTokenizer.from_pretrained(folder)
        plain = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
        self.assertEqual(plain.get_vocab_size(), len(loaded), model)
        for text in texts.make("transformers", 50):
            self.assertEqual(plain.encode(text).ids, loaded.encode(text), f"{model}: {text!r}")
            self.assertEqual(plain.encode(text, add_special_tokens=False).ids,
                             loaded.encode(text, add_special_tokens=False), f"{model}: {text!r}")
        return loaded

    def test_models(self):
        for model in fixtures("archs"):
            config = model.with_suffix(".config.json")
            # The class of this architecture does not use the pre-tokenizer of tokenizer.json.
            if config.exists() and json.loads(config.read_text())["model_type"] != "qwen2":
                self.load(model, config.read_text())

    def test_vocabularies(self):
        for model in fixtures("tokenizers"):
            self.load(model)

    def test_special_tokens(self):
        loaded = self.load(vocabularies.byte_level(self.path, "llama-bpe"))
        self.assertEqual(("<s>", "</s>"), (loaded.bos_token, loaded.eos_token))
        self.assertEqual("a b", loaded.decode(loaded.encode("a b"), skip_special_tokens=True))
        self.assertNotIn("token_type_ids", loaded("a"))
        loaded = self.load(vocabularies.wordpiece(self.path))
        self.assertEqual(("[CLS]", "[SEP]", "[MASK]"),
                         (loaded.cls_token, loaded.sep_token, loaded.mask_token))
        self.assertEqual([2, 3, 3], [i for i in loaded("a", "b")["input_ids"] if i in (2, 3)])
        self.assertEqual({0, 1}, set(loaded("a", "b")["token_type_ids"]))

    def test_chat_templates(self):
        vocabularies.byte_level(self.path, "llama-bpe")
        template = "{{ bos_token }}{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
        path = os.path.join(self.folder.name, "chat.gguf")
        with open(path, "wb") as file:
            file.write(read(self.path, "model.gguf",
                            "--set", f"tokenizer.chat_template=str:{template}",
                            "--set", "tokenizer.chat_template.tool_use=str:{{ tools }}"))
        messages = [{"role": "user", "content": "Hello"}]
        loaded = self.load(path)
        self.assertEqual("<s><user>Hello", loaded.apply_chat_template(messages, tokenize=False))
        self.assertEqual("[]", loaded.apply_chat_template(messages, chat_template="tool_use",
                                                          tools=[], tokenize=False))
        ids = loaded.apply_chat_template(messages, return_dict=False)
        self.assertEqual(loaded.encode("<s><user>Hello", add_special_tokens=False), ids)


if __name__ == "__main__":
    unittest.main()
