#!/usr/bin/env python3
"""AutoTokenizer of transformers loads hf/, and gives the ids of hf/tokenizer.json.

    test_auto_tokenizer.py [TEST]...

Needs the packages gguf, tokenizers and transformers.
"""

import json
import os
import pathlib
import tempfile
import unittest

os.environ["HF_HUB_OFFLINE"] = "1"

from tokenizers import Tokenizer
from transformers import AutoTokenizer

import model_files
import texts
import vocabularies
from model_files import fixtures, read


class TestAutoTokenizer(model_files.ModelTestCase):
    def extract(self, model, config):
        """Write the files of hf/ about the tokenizer, and a config.json if given, to a new folder."""
        folder = tempfile.mkdtemp(dir=self.folder.name)
        for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "tokenizer.model",
                     "chat_template.jinja", "additional_chat_templates/tool_use.jinja"):
            data = read(model, f"hf/{name}")
            if data is not None:
                path = pathlib.Path(folder, name)
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(data)
        if config:
            pathlib.Path(folder, "config.json").write_text(config)
        return folder

    def load(self, model, config=None):
        """Load a tokenizer, and check that it gives the ids of tokenizer.json."""
        folder = self.extract(model, config)
        loaded = AutoTokenizer.from_pretrained(folder)
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
