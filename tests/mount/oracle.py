"""The expected tree of a model, computed from the file alone.

expected_tree() gives every path with its kind, mode, links and a check of its contents. JSON is
compared as parsed values, since its escapes may be written in several ways.
"""

import collections
import hashlib
import json
import math
import os
import re
import struct
from fractions import Fraction
from typing import Callable, NamedTuple, Optional

import element_files
import tokenizer_oracle
from plain_values import values_of

# ---- JSON ----


class FloatText(str):
    """A number with a point or an exponent, as it is written."""


def parse_json(data):
    """Objects as lists of (name, value), floats as FloatText."""
    def no_constant(text):
        raise AssertionError(f"{text} is no JSON")
    return json.loads(data.decode("utf-8"), parse_float=FloatText, parse_constant=no_constant,
                      object_pairs_hook=list)


def text_of(raw):
    """Return a string of a model as Python shows it after JSON."""
    return raw.decode("utf-8", "surrogateescape")


def n_digits(text):
    """The significant digits of a decimal number."""
    digits = text.lower().split("e")[0].lstrip("-").replace(".", "").lstrip("0")
    return len(digits.rstrip("0")) or 1


def float_letter(width):
    return "<f" if width == 32 else "<d"


def float32_of(text):
    """Return the bits of the float32 nearest to a decimal, rounding once."""
    exact = Fraction(text)
    guess, = struct.unpack("<I", struct.pack("<f", abs(float(text))))
    nearby = [n for n in (guess - 1, guess, guess + 1) if 0 <= n < 0x7f800000]
    value = {n: Fraction(struct.unpack("<f", struct.pack("<I", n))[0]) for n in nearby}
    best = min(nearby, key=lambda n: (abs(value[n] - abs(exact)), n % 2))
    return struct.pack("<I", best | (0x80000000 if text.startswith("-") else 0))


def fewest_digits(value):
    if value.width == 64:
        return n_digits(repr(float(value)))
    bits = struct.pack("<f", value)
    for digits in range(1, 9):
        text = f"{value:.{digits}g}"
        try:
            if struct.pack("<f", float(text)) == bits == float32_of(text):
                return digits
        except OverflowError:  # rounded up beyond the largest float32
            pass
    return 9


good_floats = set()


def check_float(value, found):
    """Check that the text reads back to the same bits and has no surplus digit."""
    if not math.isfinite(value):
        assert found is None, f"{value} is written {found!r} instead of null"
        return
    bits = struct.pack(float_letter(value.width), value)
    if (bits, found) in good_floats:
        return
    assert isinstance(found, FloatText), f"{value} is written {found!r}, which is no float"
    back = struct.pack(float_letter(value.width), float(found))
    assert back == bits, f"{found} reads back as {back.hex()}, the model has {bits.hex()}"
    if value.width == 32:
        back = float32_of(found)
        assert back == bits, f"{found}, rounded once, is {back.hex()}, the model has {bits.hex()}"
    fewest = fewest_digits(value)
    assert n_digits(found) <= fewest, \
        f"{found} has more than the {fewest} digits that {value!r} needs"
    good_floats.add((bits, found))


def check_value(expected, found):
    """`expected` is a value of gguf_reader.Model, `found` comes from parse_json()."""
    if isinstance(expected, list):
        assert isinstance(found, list) and len(expected) == len(found), \
            f"an array of {len(expected)} elements became {str(found)[:200]}"
        if expected and isinstance(expected[0], bytes):
            if [text_of(e) for e in expected] == found:
                return
        for one, other in zip(expected, found):
            check_value(one, other)
    elif isinstance(expected, float):
        check_float(expected, found)
    elif isinstance(expected, bytes):
        assert text_of(expected) == found, f"{expected[:200]!r} became {str(found)[:200]!r}"
    else:
        assert type(expected) is type(found) and expected == found, \
            f"{expected!r} became {found!r}"


def json_line(data):
    """Parse `data`, which must be one line."""
    assert data.endswith(b"\n"), "no newline at the end"
    assert data.count(b"\n") == 1, "more than one line"
    return parse_json(data)


def lines_between(data, opening, closing):
    """The lines between two brackets, without the commas that separate them."""
    lines = data.split(b"\n")
    assert lines[-1] == b"", "no newline at the end"
    assert (lines[0], lines[-2]) == (opening, closing), f"not between {opening} and {closing}"
    lines = lines[1:-2]
    for i, line in enumerate(lines[:-1]):
        assert line.endswith(b","), f"line {i + 2} ends without a comma"
    return [line[:-1] for line in lines[:-1]] + lines[-1:]


def shape_of(model, tensor):
    """Returns the shape in ComfyUI-GGUF's key if it is valid for the tensor, else the stored shape."""
    stored = list(reversed(tensor.ne))
    shape = dict(model.keys).get(b"comfy.gguf.orig_shape." + tensor.name)
    if (isinstance(shape, list) and 1 <= len(shape) <= 8
            and all(type(n) is int and n >= 0 for n in shape) and math.prod(shape) == tensor.n_elements):
        return shape
    return stored


def room_of(model, tensor):
    """Return the bytes up to the next tensor with data or the end of the file."""
    if tensor.n_elements == 0:
        return None
    ends = [t.offset for t in model.tensors if t.n_elements > 0 and t.offset > tensor.offset]
    return min(ends, default=len(model.data)) - tensor.offset


def info_of(model, tensor):
    return [("name", text_of(tensor.name)),
            ("path", text_of(b"tensors/" + file_name(tensor.name))), ("type", tensor.type_name),
            ("ggml_type", tensor.type_id), *([("byte_order", "big")] if model.big_endian else []),
            ("shape", shape_of(model, tensor)),
            ("ne", list(tensor.ne)), ("n_elements", tensor.n_elements),
            ("block_size", tensor.block_size), ("type_size", tensor.type_size),
            ("n_bytes", tensor.n_bytes),
            *([("max_bytes", room_of(model, tensor))] if not tensor.type_name else []),
            ("file", text_of(os.path.basename(model.path))), ("offset", tensor.offset)]


KINDS_WITHOUT_PARAMETERS = "vocabulary without a model", "importance matrix", "control vector"


def check_summary(model, data):
    text = data.decode()
    assert not any(ord(c) < 32 and c != "\n" or 127 <= ord(c) < 160 for c in text), repr(text)
    head, _, table = text.partition("\n\n")
    lines = {line[:16].strip(): line[16:] for line in head.split("\n")}
    n_elements = str(sum(tensor.n_elements for tensor in model.tensors))
    if "parameters" not in lines:
        assert lines["kind"] in KINDS_WITHOUT_PARAMETERS, text
    else:
        assert n_elements in (lines["parameters"], lines["parameters"].partition("(")[2][:-1]), text
    assert f"{len(model.data)} bytes" in lines["size"], text
    found = {row.split()[0]: row.split()[1:4] for row in table.split("\n")[1:-1]}
    for name in {tensor.type_name for tensor in model.tensors if tensor.type_name}:
        some = [tensor for tensor in model.tensors if tensor.type_name == name]
        expected = [len(some), sum(t.n_elements for t in some), sum(t.n_bytes for t in some)]
        assert found[name] == [str(n) for n in expected], f"{name} is {expected} in\n{text}"


def check_metadata(model, data):
    lines = lines_between(data, b"{", b"}")
    assert len(lines) == len(model.keys), f"{len(lines)} lines for {len(model.keys)} keys"
    for (name, value), line in zip(model.keys, lines):
        (found_name, found_value), = parse_json(b"{" + line + b"}")
        assert found_name == text_of(name), f"{found_name!r} stands where {name!r} should"
        check_value(value, found_value)


def check_tensors(model, data):
    lines = lines_between(data, b"[", b"]")
    assert len(lines) == len(model.tensors), f"{len(lines)} lines for {len(model.tensors)} tensors"
    for tensor, line in zip(model.tensors, lines):
        check_info(model, tensor, line + b"\n")


def check_info(model, tensor, data):
    found = json_line(data)
    expected = info_of(model, tensor)
    assert found == expected, f"\n{found}\nshould be\n{expected}"


def check_bytes(expected, data):
    if data != expected:
        at = next((i for i, (a, b) in enumerate(zip(expected, data)) if a != b),
                  min(len(expected), len(data)))
        raise AssertionError(f"{len(data)} bytes, expected {len(expected)}; they differ at {at}")


def check_model_gguf(model, data):
    """Equals the file if that is GGUF v3; test_model_gguf.py checks the contents for other files."""
    if model.version == 3 and not model.big_endian:
        check_bytes(model.data, data)
    else:
        assert data[:8] == b"GGUF\3\0\0\0", f"model.gguf starts with {data[:8]}"


def has_model_gguf(model):
    """Return False if the model has big-endian tensors of unknown type: their bytes cannot be
    swapped."""
    return not model.big_endian or all(tensor.type_name for tensor in model.tensors)


# ---- file names ----

def fnv1a_64(data):
    number = 0xcbf29ce484222325
    for byte in data:
        number = ((number ^ byte) * 0x100000001b3) % 2**64
    return number


def file_name(name, suffix=b""):
    """The file name of a key or tensor: design, section 1, and fs/tree/core/names.h."""
    units = []
    for character in name.decode("utf-8", "surrogateescape"):
        raw = character.encode("utf-8", "surrogateescape")
        if name in (b".", b"..") or raw in (b"/", b"%", b"\x7f") or raw < b" ":
            raw = b"%%%02X" % raw[0]
        units.append(raw)
    if not units:
        units = [b"%"]
    if len(b"".join(units)) + len(suffix) <= 255:
        return b"".join(units) + suffix
    ending = b"%%~%016x" % fnv1a_64(name) + suffix
    cut = b""
    for unit in units:
        if len(cut) + len(unit) + len(ending) > 255:
            break
        cut += unit
    return cut + ending


# ---- the tree ----

class Entry(NamedTuple):
    is_directory: bool
    mode: int
    n_links: int
    size: Optional[int] = None  # None: whatever the contents have
    check: Optional[Callable[[bytes], None]] = None  # raises AssertionError
    target: Optional[bytes] = None  # of a symbolic link


def _file(check, size=None):
    return Entry(False, 0o444, 1, size, check)


def _directory(n_folders):
    return Entry(True, 0o555, 2 + n_folders)


def _link(target):
    return Entry(False, 0o777, 1, len(target), target=target)


def expected_tree(model):
    """A dict from paths (bytes, b"" for the root) to Entry."""
    tree = {b"": _directory(0), b"metadata": _directory(0), b"tensors": _directory(0),
            b"summary.txt": _file(lambda data: check_summary(model, data)),
            b"SHA256SUMS": _file(lambda data: check_sums(model, data)),
            b"metadata.json": _file(lambda data: check_metadata(model, data)),
            b"tensors.tsv": _file(lambda data: check_tsv(model, data)),
            b"tensors.json": _file(lambda data: check_tensors(model, data))}

    if has_model_gguf(model):
        tree[b"model.gguf"] = _file(lambda data: check_model_gguf(model, data))
    if element_files.has_safetensors(model):
        tree[b"model.safetensors"] = _file(lambda data: element_files.check_safetensors(model, shape_of, data))
    for name, value in model.keys:
        path = b"metadata/" + file_name(name, b".json")
        assert path not in tree, f"two keys are called {path!r}"
        tree[path] = _file(lambda data, value=value: check_value(value, json_line(data)))
    for tensor in model.tensors:
        folder = b"tensors/" + file_name(tensor.name)
        assert folder not in tree, f"two tensors are called {folder!r}"
        tree[folder] = _directory(0)
        tree[folder + b"/info"] = _file(lambda data, t=tensor: check_info(model, t, data))
        if tensor.n_bytes is not None:
            tree[folder + b"/raw"] = _file(lambda data, t=tensor: check_bytes(model.raw(t), data),
                                           tensor.n_bytes)
        layer = re.fullmatch(rb"blk\.([0-9]+)\.(.+)", tensor.name, re.DOTALL)
        if layer:
            path = b"layers/" + file_name(layer[1]) + b"/" + file_name(layer[2])
            tree[path] = _link(b"../../" + folder)
        if tensor.has_values:
            tree[folder + b"/f32"] = _file(lambda data, t=tensor: check_values(model, t, data),
                                           4 * tensor.n_elements)
            add_element_files(model, tensor, folder, tree)
            tree[folder + b"/stats.json"] = _file(lambda data, t=tensor: check_stats(t, data))
    for path, check in tokenizer_oracle.expected_files(model, file_name).items():
        tree[path] = _file(check)
    return tree


def add_folders(tree):
    """Add the directories above all paths, and count the directories in each."""
    for path in list(tree):
        while b"/" in path:
            path = os.path.dirname(path)
            tree.setdefault(path, _directory(0))
    n_folders = collections.Counter(os.path.dirname(path) for path, entry in tree.items()
                                    if path and entry.is_directory)
    for path, entry in tree.items():
        if entry.is_directory:
            tree[path] = _directory(n_folders[path])


def check_sums(model, data):
    """The sum of model.gguf is known if that is the file itself; test_sums.py checks it for others."""
    files = [(b"tensors/" + file_name(tensor.name) + b"/raw", model.raw(tensor))
             for tensor in model.tensors if tensor.n_bytes is not None]
    if has_model_gguf(model):
        is_same = model.version == 3 and not model.big_endian
        files.append((b"model.gguf", model.data if is_same else None))
    lines = data.splitlines(keepends=True)
    assert len(lines) == len(files), (len(lines), len(files))
    for line, (name, contents) in zip(lines, files):
        mark = b"\\" if b"\\" in name else b""
        end = b"  " + name.replace(b"\\", b"\\\\") + b"\n"
        digits = line[len(mark):len(mark) + 64]
        assert line == mark + digits + end, (line, name)
        assert contents is None or digits.decode() == hashlib.sha256(contents).hexdigest(), line


def check_tsv(model, data):
    lines = data.decode().split("\n")
    assert lines[0].split("\t") == ["name", "type", "shape", "elements", "bytes", "bits_per_weight", "folder"]
    assert lines[-1] == "" and len(lines) == len(model.tensors) + 2, lines[-2:]
    for tensor, line in zip(model.tensors, lines[1:]):
        has_bits = tensor.type_name and tensor.n_elements
        expected = [tensor.type_name or str(tensor.type_id), "x".join(map(str, shape_of(model, tensor))),
                    str(tensor.n_elements), str(tensor.n_bytes) if tensor.type_name else "",
                    f"{8 * tensor.n_bytes / tensor.n_elements:.4f}" if has_bits else ""]
        found = line.split("\t")
        assert found[1:-1] == expected, (found, expected)
        assert found[0] == tokenizer_oracle.escape(tensor.name, True), (found[0], tensor.name)
        assert found[-1] == tokenizer_oracle.escape(b"tensors/" + file_name(tensor.name), True), found


def check_stats(tensor, data):
    """test_statistics.py checks the figures."""
    found = json.loads(data)
    n_finite = tensor.n_elements - found["nan"] - found["inf"]
    assert (found["count"], sum(found["histogram"])) == (tensor.n_elements, n_finite), data


def check_safetensors(data):
    """Tensors follow one another without gaps, in the sizes that their shapes give."""
    n_bytes = int.from_bytes(data[:8], "little")
    assert n_bytes % 8 == 0, n_bytes
    tensors = json.loads(data[8:8 + n_bytes])
    assert tensors.pop("__metadata__") == {"format": "pt"}
    at = 0
    for name, tensor in tensors.items():
        start, end = tensor["data_offsets"]
        width = {"F32": 4, "F16": 2, "BF16": 2}[tensor["dtype"]]
        assert (start, end - start) == (at, math.prod(tensor["shape"]) * width), name
        at = end
    assert len(data) == 8 + n_bytes + at, len(data)


def expected_checkpoint(found):
    """The entries of hf/ among the paths of a tree; tests/mount/tree/test_hf.py checks their values."""
    tree = {}
    if not {b"hf/config.json", b"hf/tokenizer.json"} <= set(found):
        tree[b"hf.unsupported.txt"] = _file(lambda data: data.decode())
    if b"hf/config.json" not in found:
        return tree
    for name in (b"config.json", b"generation_config.json"):
        tree[b"hf/" + name] = _file(json.loads)
    for path in found:
        if re.fullmatch(rb"hf/model(-\d{5}-of-\d{5})?\.safetensors", path):
            tree[path] = _file(check_safetensors)
    if b"hf/unused_tensors.txt" in found:
        tree[b"hf/unused_tensors.txt"] = _file(lambda data: data.decode())
    return tree


def add_element_files(model, tensor, folder, tree):
    for name, dtype in (b"/f16", "F16"), (b"/bf16", "BF16"):
        tree[folder + name] = _file(
            lambda data, dtype=dtype: element_files.check_rounded(model, tensor, dtype, data),
            2 * tensor.n_elements)
    shape = shape_of(model, tensor)
    for name, dtype, width in (b"/f32.npy", "F32", 4), (b"/f16.npy", "F16", 2):
        tree[folder + name] = _file(
            lambda data, dtype=dtype: element_files.check_npy(model, tensor, shape, dtype, data),
            len(element_files.npy_header(shape, f"<f{width}")) + width * tensor.n_elements)


def check_values(model, tensor, data):
    """Types of plain numbers only; tests/unit and test_read.py have the blocks."""
    expected = values_of(model.raw(tensor), tensor.type_name, model.big_endian)
    if expected is not None:
        check_bytes(expected, data)
