"""Small vocabularies of each kind as GGUF files, trained on texts made with a seed."""

import json
import struct

import gguf
import tokenizers
from tokenizers import models, pre_tokenizers, trainers

import texts

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, BYTE = 1, 2, 3, 4, 6
MARK = "\u2581"


def _write(path, kind, tokens, types, *, scores=None, merges=None, pre=None, **keys):
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tokenizer_model(kind)
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    if scores is not None:
        writer.add_token_scores(scores)
    if merges is not None:
        writer.add_token_merges(merges)
    if pre is not None:
        writer.add_tokenizer_pre(pre)
    for name, value in keys.items():
        add = {bool: writer.add_bool, int: writer.add_uint32, str: writer.add_string,
               list: writer.add_array}[type(value)]
        add(f"tokenizer.ggml.{name}", value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return path


def _train(model, trainer, lines, pre_tokenizer=None):
    tokenizer = tokenizers.Tokenizer(model)
    if pre_tokenizer:
        tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.train_from_iterator(lines, trainer)
    vocabulary = tokenizer.get_vocab(with_added_tokens=False)
    return sorted(vocabulary, key=vocabulary.get), tokenizer


def _model_of(tokenizer):
    return json.loads(tokenizer.to_str())["model"]


def _merges(tokenizer):
    return [" ".join(pair) for pair in _model_of(tokenizer)["merges"]]


def byte_level(path, pre, seed=1):
    """A byte-level vocabulary. Its tokens cross all boundaries of words: each split matters."""
    names, trained = _train(
        models.BPE(), trainers.BpeTrainer(vocab_size=4000, show_progress=False,
                                          initial_alphabet=pre_tokenizers.ByteLevel.alphabet()),
        texts.make(seed, 3000), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False))
    special = ["<s>", "</s>", "<|im_start|>", "<|im_end|>", "<user>"]
    return _write(path, "gpt2", names + special,
                  [NORMAL] * len(names) + [CONTROL, CONTROL, CONTROL, NORMAL, USER_DEFINED],
                  merges=_merges(trained), pre=pre, bos_token_id=len(names), eos_token_id=len(names) + 1)


def _marked(seed, n):
    return [text.replace(" ", MARK) for text in texts.make(seed, n)]


def _byte_tokens():
    return [f"<0x{byte:02X}>" for byte in range(256)]


def sentencepiece(path, is_space_added=True, seed=2):
    names, _ = _train(models.BPE(), trainers.BpeTrainer(vocab_size=4000, limit_alphabet=400,
                                                        show_progress=False), _marked(seed, 3000))
    first = ["<unk>", "<s>", "</s>"] + _byte_tokens()
    special = ["<|turn|>", "<user  defined>"]
    return _write(path, "llama", first + names + special,
                  [UNKNOWN, CONTROL, CONTROL] + [BYTE] * 256 + [NORMAL] * len(names)
                  + [CONTROL, USER_DEFINED],
                  scores=[0.0] * len(first) + [-float(i) for i in range(len(names))] + [0.0, 0.0],
                  bos_token_id=1, eos_token_id=2, add_space_prefix=is_space_added)


def raw(path, kind, pre, seed=3):
    """Byte pairs of characters instead of bytes; runs of line breaks are tokens without merges."""
    lines = [line for text in _marked(seed, 3000) for line in text.split("\n")]
    names, trained = _train(models.BPE(), trainers.BpeTrainer(vocab_size=4000, limit_alphabet=400,
                                                              show_progress=False), lines)
    first = ["<pad>", "<eos>", "<bos>", "<unk>"] + _byte_tokens()
    breaks = ["\n" * n for n in range(1, 9)]
    return _write(path, kind, first + breaks + names,
                  [CONTROL] * 3 + [UNKNOWN] + [BYTE] * 256 + [NORMAL] * (len(breaks) + len(names)),
                  merges=_merges(trained), pre=pre,
                  bos_token_id=2, eos_token_id=1)


def wordpiece(path, is_lowered=True, seed=5):
    names, _ = _train(models.WordPiece(unk_token="[UNK]"),
                      trainers.WordPieceTrainer(vocab_size=4000, show_progress=False),
                      [text.lower() if is_lowered else text for text in texts.make(seed, 3000)],
                      pre_tokenizers.BertPreTokenizer())
    first = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokens = [name[2:] if name.startswith("##") and len(name) > 2 else MARK + name for name in names]
    return _write(path, "bert", first + tokens, [CONTROL] * len(first) + [NORMAL] * len(tokens),
                  padding_token_id=0, unknown_token_id=1, cls_token_id=2, seperator_token_id=3,
                  mask_token_id=4, **{"normalizer.lowercase": is_lowered})
