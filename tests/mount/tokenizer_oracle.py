"""The files about the vocabulary that a tree must hold, computed from the model's keys."""

import json
import re
import struct
import unicodedata

RAW_PRETOKENIZERS = (b"gemma4", b"granite-embed-multi-311m", b"sarvam-moe")
UNKNOWN_PRETOKENIZER = b"unheard of"  # the only one in tests
TYPES = ("undefined", "normal", "unknown", "control", "user_defined", "unused", "byte")
UNKNOWN, CONTROL, USER_DEFINED, BYTE = 2, 3, 4, 6
KEY = b"tokenizer.ggml."


def _byte_alphabet():
    visible = [b for b in range(256) if 33 <= b <= 126 or b >= 161 and b != 173]
    hidden = [b for b in range(256) if b not in visible]
    return {**{chr(b): b for b in visible}, **{chr(256 + i): b for i, b in enumerate(hidden)}}


BYTE_OF = _byte_alphabet()


class Vocabulary:
    """The keys tokenizer.ggml.* of a model of gguf_reader."""

    def __init__(self, model):
        self.keys = dict(model.keys)
        kind = self.keys.get(KEY + b"model")
        self.kind = kind if isinstance(kind, bytes) else b""
        self.tokens = self._strings(b"tokens")
        self.first = {}  # from the text of a token to its first index
        for index, token in enumerate(self.tokens or []):
            self.first.setdefault(token, index)
        self.merges = self._strings(b"merges")
        self.types = self._numbers(b"token_type")
        self.scores = self._numbers(b"scores")
        pre = self.keys.get(KEY + b"pre")
        self.has_unknown_pretokenizer = self.kind == b"gpt2" and pre == UNKNOWN_PRETOKENIZER
        self.is_raw = self.kind == b"gemma4" or self.kind == b"gpt2" and pre in RAW_PRETOKENIZERS

    def _array(self, name, kind):
        array = self.keys.get(KEY + name)
        fits = isinstance(array, list) and all(isinstance(element, kind) for element in array)
        return array if fits else None

    def _strings(self, name):
        return self._array(name, bytes)

    def _numbers(self, name):
        return self._array(name, (int, float))

    def type_of(self, index):
        if self.types is None or index >= len(self.types):
            return 1
        return int(self.types[index]) if 0 <= self.types[index] <= BYTE else 0

    def has_tokenizer(self):
        """Return True if the tree has hf/tokenizer.json."""
        n_tokens = len(self.tokens or [])
        return (self.kind in (b"llama", b"gpt2", b"gemma4", b"bert", b"t5") and n_tokens > 0
                and not self.has_unknown_pretokenizer
                and (self.types is None or len(self.types) >= n_tokens)
                and (self.scores is None or len(self.scores) >= n_tokens)
                and (self.merges is not None or KEY + b"merges" not in self.keys)
                and (self.kind != b"t5" or self.scores is not None))


# ---- text ----

def _bytes_of(vocabulary, index):
    """Return the bytes that a token stands for."""
    token, kind = vocabulary.tokens[index], vocabulary.type_of(index)
    if kind == BYTE and re.fullmatch(rb"<0x[0-9A-Fa-f]{2}>", token):
        return bytes([int(token[3:5], 16)])
    if kind in (UNKNOWN, CONTROL, USER_DEFINED):
        return token
    if vocabulary.kind == b"gpt2" and not vocabulary.is_raw:
        characters = token.decode("utf-8", "surrogateescape")
        if all(c in BYTE_OF for c in characters):
            return bytes(BYTE_OF[c] for c in characters)
        return token
    if vocabulary.kind in (b"llama", b"gemma4", b"gpt2", b"bert", b"t5"):
        return token.replace("\u2581".encode(), b" ")
    assert vocabulary.kind != b"rwkv", "tests of the tree have no vocabulary with escapes"
    return token


def escape(raw, is_backslash_escaped):
    out = []
    for character in raw.decode("utf-8", "surrogateescape"):
        if character in "\n\r\t":
            out.append({"\n": "\\n", "\r": "\\r", "\t": "\\t"}[character])
        elif character == "\\" and is_backslash_escaped:
            out.append("\\\\")
        elif (unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp")
              or "\u202a" <= character <= "\u202e" or "\u2066" <= character <= "\u2069"):
            out += [f"\\x{byte:02X}" for byte in character.encode("utf-8", "surrogateescape")]
        else:
            out.append(character)
    return "".join(out)


def _check_lines(expected, data):
    lines = data.decode("utf-8").split("\n")
    assert lines.pop() == "", "the last line has no end"
    assert len(lines) == len(expected), f"{len(lines)} lines for {len(expected)} elements"
    for i, (one, other) in enumerate(zip(lines, expected)):
        assert one == other, f"line {i + 1} is {one!r} instead of {other!r}"


def _check_scores(scores, data):
    lines = data.split()
    assert len(lines) == len(scores), f"{len(lines)} lines for {len(scores)} scores"
    for line, score in zip(lines, scores):
        assert float(line) == score or score != score, f"{line} is not {score}"


def _text_files(vocabulary):
    """Pairs of a name in tokenizer/ and a check of its contents."""
    if vocabulary.tokens is not None:
        yield b"tokens.txt", lambda data: _check_lines(
            [escape(_bytes_of(vocabulary, i), True) for i in range(len(vocabulary.tokens))], data)
    if vocabulary.scores is not None:
        yield b"scores.txt", lambda data: _check_scores(vocabulary.scores, data)
    if vocabulary.types is not None:
        yield b"types.txt", lambda data: _check_lines(
            [TYPES[t] if 0 <= t < len(TYPES) else str(t) for t in vocabulary.types], data)
    if vocabulary.merges is not None:
        is_alphabet = vocabulary.kind == b"gpt2" and not vocabulary.is_raw
        yield b"merges.txt", lambda data: _check_lines(
            [escape(merge, not is_alphabet) for merge in vocabulary.merges], data)


def _check_equal(expected, data):
    assert data == expected, f"{data[:200]!r} instead of {expected[:200]!r}"


def _templates(vocabulary):
    """Pairs of NAME, empty for the default, and the template."""
    for key, value in vocabulary.keys.items():
        match = re.fullmatch(rb"tokenizer\.chat_template(?:\.(.+))?", key, re.S)
        if match and isinstance(value, bytes):
            yield match[1] or b"", value


# ---- hf/ ----

def _piece(vocabulary, index):
    """Return the text of a token of WordPiece in tokenizer.json, and its rank among those with the same."""
    text = vocabulary.tokens[index].decode("utf-8")
    if text.startswith("\u2581"):
        return text[1:], 2
    if (vocabulary.type_of(index) in (UNKNOWN, CONTROL, USER_DEFINED)
            or text.startswith("[") and text.endswith("]")):
        return text, 1
    return "##" + text, 0


def _name_of(vocabulary, index):
    """Return the text of a token in tokenizer.json, or None if it cannot have its own."""
    token = vocabulary.tokens[index]
    try:
        text = token.decode("utf-8")
    except UnicodeDecodeError:
        return None
    if not token or vocabulary.first[token] != index:
        return None
    if vocabulary.kind != b"bert":
        return text
    name, rank = _piece(vocabulary, index)
    for other in (name, name[2:]):
        if other and other.encode() in vocabulary.first:
            other_name, other_rank = _piece(vocabulary, vocabulary.first[other.encode()])
            if other_name == name and other_rank < rank:
                return None
    return name


def _check_tokenizer(vocabulary, data):
    tokenizer = json.loads(data.decode("utf-8"))
    assert list(tokenizer) == ["version", "truncation", "padding", "added_tokens", "normalizer",
                               "pre_tokenizer", "post_processor", "decoder", "model"], list(tokenizer)
    model = tokenizer["model"]
    assert model["type"] == {b"gpt2": "BPE", b"gemma4": "BPE", b"llama": "BPE", b"t5": "Unigram",
                             b"bert": "WordPiece"}[vocabulary.kind]
    n_tokens = len(vocabulary.tokens)
    if model["type"] == "Unigram":
        names = [name for name, _ in model["vocab"]]
    else:
        assert sorted(model["vocab"].values()) == list(range(n_tokens)), "the ids are not 0, 1, ..."
        names = sorted(model["vocab"], key=model["vocab"].get)
    assert len(names) == n_tokens, f"{len(names)} tokens instead of {n_tokens}"
    for index in range(n_tokens) if n_tokens < 2000 else (*range(1000), *range(n_tokens - 1000, n_tokens)):
        expected = _name_of(vocabulary, index) or f"\uffff{index}"
        assert names[index] == expected, f"token {index} is {names[index]!r} instead of {expected!r}"
    added = {token["id"]: token for token in tokenizer["added_tokens"]}
    for index in range(n_tokens):
        if vocabulary.type_of(index) == USER_DEFINED:
            assert index in added, f"token {index} is not added"
    for index, token in added.items():
        assert token["content"] == names[index], f"{token} is called {names[index]!r} in the vocabulary"
    if model["type"] == "BPE":
        known = set(names)
        for left, right in model["merges"]:
            assert {left, right, left + right} <= known, f"{left!r} {right!r} is not of tokens"


def _fields(data):
    """Yield the numbers and values of the fields of a message in Protocol Buffers."""
    at = 0

    def varint():
        nonlocal at
        number = shift = 0
        while True:
            byte = data[at]
            at += 1
            number |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return number

    while at < len(data):
        tag = varint()
        if tag & 7 == 0:
            value = varint()
        else:
            n = {2: varint, 5: lambda: 4}[tag & 7]()
            value, at = data[at:at + n], at + n
        yield tag >> 3, value


def _check_sentencepiece(vocabulary, data):
    """tokenizer.model has all tokens with their scores, one of them unknown, and all byte tokens or none."""
    fields = list(_fields(data))
    pieces = [dict(_fields(value)) for number, value in fields if number == 1]
    assert [number for number, _ in fields if number != 1] == [2, 3]
    assert len(pieces) == len(vocabulary.tokens)
    kinds = []
    for index, piece in enumerate(pieces):
        expected = (_name_of(vocabulary, index) or f"\uffff{index}").encode()
        assert piece[1] == expected, f"token {index} is {piece[1]!r} instead of {expected!r}"
        score = struct.unpack("<f", piece[2])[0]
        assert score == vocabulary.scores[index] or score != score, f"score {index} is {score}"
        kinds.append(piece[3])
    assert kinds.count(UNKNOWN) == 1, kinds.count(UNKNOWN)
    assert kinds.count(BYTE) in (0, 256), kinds.count(BYTE)
    assert dict(_fields(dict(fields)[2]))[35] == (BYTE in kinds)


def _check_config(data):
    config = json.loads(data.decode("utf-8"))
    assert config["tokenizer_class"] == "PreTrainedTokenizerFast"


def expected_files(model, file_name):
    """A dict from paths to checks of their contents."""
    vocabulary = Vocabulary(model)
    files = {b"tokenizer/" + name: check for name, check in _text_files(vocabulary)}
    templates = list(_templates(vocabulary))
    for name, template in templates:
        path = b"chat_template." + name if name else b"chat_template"
        files[b"tokenizer/" + file_name(path, b".jinja")] = \
            lambda data, template=template: _check_equal(template, data)
    if not vocabulary.has_tokenizer():
        return files
    files[b"hf/tokenizer.json"] = lambda data: _check_tokenizer(vocabulary, data)
    files[b"hf/tokenizer_config.json"] = _check_config
    files[b"hf/special_tokens_map.json"] = lambda data: json.loads(data.decode("utf-8"))
    if vocabulary.kind == b"llama" and vocabulary.scores is not None:
        files[b"hf/tokenizer.model"] = lambda data: _check_sentencepiece(vocabulary, data)
    for name, template in templates:
        path = (b"additional_chat_templates/" + file_name(name, b".jinja") if name
                else b"chat_template.jinja")
        files[b"hf/" + path] = lambda data, template=template: _check_equal(template, data)
    return files
