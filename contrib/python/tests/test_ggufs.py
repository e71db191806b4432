"""The Python package, on files that these tests write, on the fixtures if they are there, and beside the package gguf."""
import copy
import ctypes
import errno
import glob
import html.parser
import io
import json
import os
import pickle
import re
import shutil
import struct
import subprocess
import sys
import threading

import numpy
import pytest

import ggufs
from ggufs import _layouts

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
FIXTURES = os.environ.get("GGUFS_FIXTURES", os.path.join(ROOT, "..", "shared", "fixtures"))
PROGRAM = os.environ.get("GGUFS", os.path.join(ROOT, "build", "ggufs"))
VALUES = {"u8": (0, "B", 255), "i8": (1, "b", -128), "u16": (2, "H", 65535), "i16": (3, "h", -32768),
          "u32": (4, "I", 2**32 - 1), "i32": (5, "i", -2**31), "f32": (6, "f", 0.5), "bool": (7, "?", True),
          "u64": (10, "Q", 2**64 - 1), "i64": (11, "q", -2**63), "f64": (12, "d", 0.1)}
FLOATS = numpy.arange(24, dtype="f4").reshape(2, 3, 4)
INTEGERS = numpy.array([2**63 - 1, -2**63, 2**53 + 1, 0])


def text(value):
    return struct.pack("<Q", len(value)) + value


def gguf(keys, tensors):
    """The bytes of a GGUF file. keys: (name, type, bytes of the value); tensors: (name, shape, type id, bytes)."""
    infos, data = b"", b""
    for name, shape, type_id, stored in tensors:
        infos += text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *reversed(shape), type_id, len(data))
        data += stored + bytes(-len(stored) % 32)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys))
    head += b"".join(text(name) + struct.pack("<I", kind) + value for name, kind, value in keys) + infos
    return head + bytes(-len(head) % 32) + data


@pytest.fixture
def path(tmp_path):
    strings = [b"a", b"", "ü".encode(), b"\xff"] + [str(i).encode() for i in range(1000)]
    keys = [(name.encode(), kind, struct.pack("<" + code, value)) for name, (kind, code, value) in VALUES.items()]
    keys += [(b"general.architecture", 8, text(b"none")),
             (b"strings", 9, struct.pack("<IQ", 8, len(strings)) + b"".join(map(text, strings))),
             (b"numbers", 9, struct.pack("<IQ3h", 3, 3, 1, -2, 3)), (b"bools", 9, struct.pack("<IQ2?", 7, 2, True, False)),
             (b"nested", 9, struct.pack("<IQIQ2BIQ", 9, 2, 0, 2, 1, 2, 0, 0)), (b"empty", 9, struct.pack("<IQ", 4, 0))]
    blocks = bytes(numpy.random.default_rng(1).integers(0, 60, 2 * 144, "u1"))
    tensors = [(b"floats", FLOATS.shape, 0, FLOATS.tobytes()), (b"integers", (4,), 27, INTEGERS.tobytes()),
               (b"q", (2, 256), 12, blocks), (b"scalar", (), 0, struct.pack("<f", 7)), (b"none", (0, 3), 0, b""),
               (b"old", (32,), 37, bytes(18)), (b"doubles", (2,), 28, struct.pack("<2d", 0.1, 1e300))]
    file = tmp_path / "model.gguf"
    file.write_bytes(gguf(keys, tensors))
    return str(file)


@pytest.fixture
def m(path):
    with ggufs.open(path) as model:
        yield model


# ---- models ----

def test_model(m, path):
    assert m.path == path and m.paths == [path] and m.format == "GGUF v3" and not m.is_big_endian and m.alignment == 32
    assert list(m.tensors) == ["floats", "integers", "q", "scalar", "none", "old", "doubles"]
    assert list(m) == list(m.tensors) and len(m) == 7 and "q" in m and "r" not in m
    assert repr(m) == f"<ggufs.Model {path!r}: GGUF v3, 17 keys, 7 tensors>"
    cells = []
    parser = html.parser.HTMLParser()
    parser.handle_data = cells.append
    parser.feed(m._repr_html_())
    assert {"floats", "F32", "(2, 3, 4)", "96"} <= set(cells)
    m.recheck()


def test_errors_have_code_rule_and_place(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        ggufs.open(tmp_path / "none.gguf")
    assert isinstance(caught.value, ggufs.Error) and caught.value.code == errno.ENOENT
    assert caught.value.filename == str(tmp_path / "none.gguf")
    with pytest.raises(IsADirectoryError):
        ggufs.open(tmp_path)
    bad = tmp_path / "bad.gguf"
    bad.write_bytes(gguf([(b"general.alignment", 4, struct.pack("<I", 7))], []))
    with pytest.raises(ggufs.Error, match="7") as caught:
        ggufs.open(bad)
    assert (caught.value.code, caught.value.rule, caught.value.offset) == (errno.EINVAL, "alignment", 24)
    assert caught.value.remedy
    with pytest.raises(ggufs.Error, match="f32, f16, bf16") as caught:
        ggufs.open(bad, dtype="f17")
    assert caught.value.rule is None
    findings = ggufs.check(bad)
    assert [(one.severity, one.rule, one.file, one.offset) for one in findings] == [("error", "alignment", str(bad), 24)]


@pytest.mark.skipif(not os.path.exists(PROGRAM), reason="build/ggufs is missing")
def test_findings_are_those_of_the_command(tmp_path):
    keys = [(b"general.architecture", 8, text(b"llama")), (b"k\xff", 8, text(b"a")), (b"k\xff", 8, text(b"b")),
            (b"tokenizer.ggml.bos_token_id", 4, struct.pack("<I", 9)),
            (b"tokenizer.ggml.tokens", 9, struct.pack("<IQ", 8, 1) + text(b"a"))]
    model = tmp_path / "bad.gguf"
    for tensors in ([(b"t", (3,), 0, bytes(12)), (b"u", (3,), 9999, bytes(12))], [(b"t", (3,), 2, bytes(12))]):
        model.write_bytes(gguf(keys[:2] + keys[3:] if len(tensors) > 1 else keys, tensors))
        out = subprocess.run([PROGRAM, "--check", "--json", model], check=False, capture_output=True, text=True).stdout
        lines = [json.loads(line) for line in out.splitlines()]
        findings = ggufs.check(model)
        assert [one._asdict() for one in findings] == [line for line in lines if line["severity"] != "ok"]
        assert any(one.key for one in findings) and any(one.tensor for one in findings)
    assert "k\udcff" in [one.key for one in findings]


def test_options(path):
    for dtype, width in (("f16", "F16"), ("f32", "F32")):
        with ggufs.open(path, dtype=dtype) as model:
            if "model.safetensors" in model.files:
                header = model.open("model.safetensors")
                length, = struct.unpack("<Q", header.read(8))
                assert json.loads(header.read(length))["q"]["dtype"] == width
    with ggufs.open(path, mapped=True, export="f16", offset=None, partial=False) as model:
        assert (model["floats"].numpy() == FLOATS).all()


def test_closed_models(path):
    model = ggufs.open(path)
    tensor, tokens, file = model["floats"], model.metadata["strings"], model.open("summary.txt")
    model.close()
    model.close()
    assert model.closed and file.raw.closed and repr(model).endswith(", closed>")
    for call in (tensor.numpy, lambda: tokens[0], lambda: file.read(1), lambda: model.metadata["u8"], model.recheck,
                 lambda: model.files.list()):
        with pytest.raises(ValueError):
            call()


def test_things_keep_their_model(path):
    assert (ggufs.open(path)["floats"].numpy() == FLOATS).all()
    assert ggufs.open(path).metadata["strings"][2] == "ü"
    assert ggufs.open(path).open("metadata/u8.json").read() == b"255\n"


def test_pickle_opens_again(m):
    for again in (pickle.loads(pickle.dumps(m)), copy.copy(m)):
        assert again["floats"][1, 2, 3] == 23
    assert pickle.loads(pickle.dumps(m["q"])).shape == (2, 256)


def test_descriptors_do_not_grow(path):
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(200):
        ggufs.open(path)["floats"][0]
        with pytest.raises(ggufs.Error):
            ggufs.open(__file__)
    assert len(os.listdir("/proc/self/fd")) == before


# ---- metadata ----

def test_values_keep_their_types(m):
    for name, (_, _, value) in VALUES.items():
        assert m.metadata[name] == value and type(m.metadata[name]) is type(value), name
    assert m.metadata["general.architecture"] == "none"
    assert m.metadata["nested"] == [[1, 2], []]
    assert len(m.metadata) == 17 and list(m.metadata)[0] == "u8" and "u9" not in m.metadata
    assert "numbers = <ggufs.Array of 3: [1, -2, 3]>" in repr(m.metadata)


def test_arrays(m):
    strings = m.metadata["strings"]
    expected = ["a", "", "ü", "\udcff"] + [str(i) for i in range(1000)]
    assert len(strings) == 1004 and strings == expected and list(strings) == expected
    for cut in (slice(None), slice(5, 900, 7), slice(None, None, -1), slice(700, 2, -13), slice(5, 5), slice(-3, None)):
        assert strings[cut] == expected[cut]
    assert strings[-1] == "999" and strings[256 + 4] == "256" and expected.index("77") == strings.index("77")
    with pytest.raises(IndexError):
        strings[1004]
    numbers = numpy.asarray(m.metadata["numbers"])
    assert numbers.dtype == numpy.int16 and numbers.tolist() == [1, -2, 3]
    assert m.metadata["bools"].tolist() == [True, False] and m.metadata["empty"].tolist() == []


def test_missing_names_tell_the_nearest(m):
    with pytest.raises(KeyError, match="did you mean 'general.architecture'"):
        m.metadata["general.architectur"]
    with pytest.raises(KeyError, match="did you mean 'floats'"):
        m["float"]
    with pytest.raises(KeyError, match="did you mean 'summary.txt'"):
        m.files["summary.text"]
    with pytest.raises(KeyError, match="no tensor 'zzzzzz'\"$"):
        m["zzzzzz"]


# ---- tensors ----

def test_tensor(m, path):
    t = m["floats"]
    assert (t.name, t.type, t.shape, t.ndim, t.size, t.nbytes, len(t)) == ("floats", "F32", (2, 3, 4), 3, 24, 96, 2)
    assert repr(t) == "<ggufs.Tensor 'floats' F32 (2, 3, 4)>" and t.dtype == numpy.float32
    with open(path, "rb") as file:
        file.seek(t.offset)
        assert file.read(96) == t.raw == FLOATS.tobytes()
    assert m["scalar"][()] == 7 and m["scalar"].shape == () and m["none"].numpy().shape == (0, 3)


@pytest.mark.parametrize("key", [
    0, -1, slice(None), slice(1, 2), slice(None, None, -1), slice(0, 0), (1, 2), (1, 2, 3), (-1, -1, -1), (0, slice(1, 3)),
    (slice(None), 1), (slice(None, None, -1), slice(None, None, -2), 3), (..., 2), (1, ..., slice(1, 3)), (slice(None),) * 3,
    ..., (numpy.int64(1), slice(2, 0, -1)), (slice(1, 0, -1),)], ids=str)
def test_indexing_is_that_of_numpy(m, key):
    got, expected = m["floats"][key], FLOATS[key]
    assert numpy.shape(got) == expected.shape and (got == expected).all()


def test_wrong_indices(m):
    for key, kind in ((2, IndexError), ((0, 3), IndexError), ((0, 0, 0, 0), IndexError), ([0, 1], TypeError), ("a", TypeError),
                      (True, TypeError), (numpy.array([1]), TypeError), (None, TypeError)):
        with pytest.raises(kind):
            m["floats"][key]
    with pytest.raises(TypeError):
        len(m["scalar"])


def test_rows_alone_are_read(m, path):
    """The file is cut behind the first row."""
    t = m["q"]
    first = t[0]
    os.truncate(path, t.offset + 144)
    assert (t[0] == first).all()
    with pytest.raises(ggufs.Error) as caught:
        t[1]
    assert caught.value.code == errno.EIO


def test_formats(m):
    t = m["floats"]
    assert t.numpy("f16").dtype == numpy.float16 and (t.numpy(numpy.float16) == FLOATS).all()
    assert ((t.numpy("bf16").astype("u4") << 16).view("f4") == FLOATS).all()
    assert (m["integers"].numpy() == INTEGERS).all() and m["integers"][2] == 2**53 + 1 and m["integers"].dtype == "i8"
    assert m["doubles"].numpy().tolist() == [0.1, 1e300] and m["integers"].numpy("f32").dtype == numpy.float32
    assert numpy.asarray(t, "f8").dtype == "f8" and (numpy.asarray(t) == FLOATS).all()
    with pytest.raises(ValueError):
        t.numpy("f64")
    with pytest.raises(ggufs.UnsupportedType, match="raw") as caught:
        m["old"].numpy()
    assert caught.value.code == errno.ENOTSUP and len(m["old"].raw) == 18


def test_out(m):
    t = m["floats"]
    out = numpy.empty((2, 3, 4), "f4")
    assert t.numpy(out=out) is out and (out == FLOATS).all()
    for bad in (numpy.empty((2, 3, 4), "f8"), numpy.empty((2, 3), "f4"), numpy.empty((4, 3, 2), "f4").T):
        with pytest.raises(ValueError):
            t.numpy(out=bad)
    buffer = bytearray(16)
    assert t.read_into(buffer, first=20) == 4 and struct.unpack("<4f", buffer) == (20, 21, 22, 23)
    for arguments in ((bytes(16), {"n": 1}), (buffer, {"n": 5}), (memoryview(bytearray(64))[::2], {"n": 1})):
        with pytest.raises(ValueError):
            t.read_into(arguments[0], **arguments[1])
    with pytest.raises(IndexError):
        t.read_into(buffer, first=23, n=2)
    with pytest.raises(IndexError):
        t.read_into(buffer, first=-1, n=1)


# ---- types in memory ----

def test_dequantize(m):
    t = m["q"]
    expected = t.numpy()
    assert (ggufs.dequantize(bytes(t.raw), "q4_k", (2, 256)) == expected).all()
    assert (ggufs.dequantize(t.raw, 12, (2, 256)) == expected).all()
    rows = numpy.frombuffer(t.raw, "u1").reshape(2, 144)
    out = numpy.empty((2, 256), "f4")
    assert ggufs.dequantize(rows, "Q4_K", out=out) is out and (out == expected).all()
    for arguments in ((bytes(10), "Q4_K", (2, 256)), (bytes(144), "Q4_K", (255,)), (bytes(145), "Q4_K")):
        with pytest.raises(ValueError):
            ggufs.dequantize(*arguments)
    with pytest.raises(KeyError, match="ggufs.types"):
        ggufs.dequantize(b"", "Q9")
    with pytest.raises(ggufs.UnsupportedType):
        ggufs.dequantize(bytes(18), "IQ4_NL_4_8", (32,))


def test_quantize():
    values = numpy.random.default_rng(2).normal(size=(3, 64)).astype("f4")
    for name, limit in (("F32", 0), ("F16", 1e-3), ("BF16", 1e-2), ("Q8_0", 2e-2), ("Q4_0", 0.3)):
        data = ggufs.quantize(values, name)
        assert data.dtype == "u1" and data.shape[0] == 3
        assert abs(ggufs.dequantize(data, name) - values).max() <= limit
    with pytest.raises(ggufs.UnsupportedType, match="Q8_0, |, Q8_0"):
        ggufs.quantize(values, "Q4_K")
    with pytest.raises(ValueError):
        ggufs.quantize(values[:, :31], "Q8_0")


def test_as_the_package_gguf():
    quants = pytest.importorskip("gguf.quants")
    import gguf
    source = numpy.random.default_rng(3)
    n = 0
    for kind in gguf.GGMLQuantizationType:
        if kind.name not in ggufs.types or kind.name in ("F32", "F16") or kind not in quants._type_traits:
            continue
        info = ggufs.types[kind.name]
        data = source.integers(0, 60, (4, 8 * info.block_bytes), "u1")
        try:
            expected = quants.dequantize(data, kind)
        except NotImplementedError:
            continue
        assert ggufs.dequantize(data, kind).tobytes() == expected.astype("f4").tobytes(), kind.name
        n += 1
    assert n >= 20


@pytest.mark.skipif(not os.path.isdir(FIXTURES), reason="no fixtures")
@pytest.mark.parametrize("file", ["golden/all-types.gguf", "golden/big-endian.gguf", "ik/ik-types.gguf"])
def test_all_types_of_the_fixtures(file):
    folder = os.path.join(FIXTURES, os.path.dirname(file))
    n = 0
    with ggufs.open(os.path.join(FIXTURES, file)) as model:
        for tensor in model.tensors.values():
            expected = numpy.fromfile(os.path.join(folder, f"{tensor.name}.f32"), "<f4").reshape(tensor.shape)
            values = tensor.numpy("f32")
            # Zeros of some types of ik_llama.cpp may differ in sign.
            assert values.tobytes() == expected.tobytes() or file[0] == "i" and numpy.array_equal(values, expected), tensor
            if not model.is_big_endian:
                again = ggufs.dequantize(tensor.raw, tensor.type, tensor.shape)
                assert again.tobytes() == values.tobytes(), tensor
            assert numpy.array_equal(tensor[2:5], tensor.numpy()[2:5], equal_nan=True), tensor
            n += 1
    assert n == {"golden/all-types.gguf": 35, "golden/big-endian.gguf": 26, "ik/ik-types.gguf": 53}[file]


# ---- files of the tree ----

def test_files(m):
    assert m.files.list("metadata")[:2] == ["bool.json", "bools.json"] and "tensors" in m.files.list()
    assert m.files["metadata/u8.json"].read_text() == "255\n" and m.files["metadata/u8.json"].size == 4
    assert "tensors/floats/f32" in m.files and "tensors/floats" not in m.files and "x" not in m.files
    assert len(m.files) == len(list(m.files)) > 40 and "File 'summary.txt'" in repr(m.files["summary.txt"])
    with m.open("tensors/floats/f32") as file:
        assert file.read(4) == FLOATS.tobytes()[:4] and file.seek(-8, io.SEEK_END) == 88
        assert file.read() == FLOATS.tobytes()[88:] and file.read() == b""
        assert file.seek(0) == 0 and len(file.read()) == 96
        with pytest.raises(ValueError):
            file.seek(-1)
    assert (numpy.load(io.BytesIO(m.open("tensors/floats/f32.npy").read())) == FLOATS).all()
    with pytest.raises(KeyError, match="is a directory"):
        m.open("tensors")


# ---- threads, processes ----

def test_threads(m):
    failures = []

    def read():
        for _ in range(50):
            if not (m["floats"].numpy() == FLOATS).all() or m.open("metadata/u8.json").read() != b"255\n":
                failures.append(1)
    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_closing_waits_for_readers(path):
    for _ in range(20):
        model = ggufs.open(path)
        tensor, ended = model["floats"], []

        def read():
            try:
                while True:
                    tensor.numpy()
            except ValueError:
                ended.append(1)
        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        model.close()
        for thread in threads:
            thread.join()
        assert len(ended) == 4


def test_fork(m):
    child = os.fork()
    if child == 0:
        os._exit(0 if (m["floats"].numpy() == FLOATS).all() else 1)
    assert os.waitpid(child, 0)[1] == 0


# ---- layouts ----

@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
def test_layouts_are_those_of_the_header(tmp_path):
    header = os.path.join(ROOT, "fs/library/ggufs.h")
    written = subprocess.run([sys.executable, os.path.join(ROOT, "contrib/python/make_layouts.py"), header],
                             check=True, capture_output=True, text=True).stdout
    with open(_layouts.__file__, encoding="utf-8") as file:
        assert file.read() == written
    structs = {name: getattr(_layouts, "".join(map(str.capitalize, name.split("_")[1:])))
               for name in re.findall(r"^struct (\w+) \{", open(header, encoding="utf-8").read(), re.M)}
    lines, expected = [], []
    for name, kind in structs.items():
        lines.append(f'printf("%zu\\n", sizeof(struct {name}));')
        expected.append(ctypes.sizeof(kind))
        for member, _ in kind._fields_:
            lines.append(f'printf("%zu\\n", offsetof(struct {name}, {member}));')
            expected.append(getattr(kind, member).offset)
    assert len(structs) == 8
    source = tmp_path / "sizes.c"
    source.write_text(f'#include "{header}"\n#include <stdio.h>\nint main(void) {{ {"".join(lines)} }}\n')
    subprocess.run(["cc", "-o", tmp_path / "sizes", source], check=True)
    found = subprocess.run([tmp_path / "sizes"], check=True, capture_output=True, text=True).stdout
    assert list(map(int, found.split())) == expected


# ---- contrib/examples ----

def run_example(name, *arguments):
    return subprocess.run([sys.executable, os.path.join(ROOT, "contrib/examples", name), *arguments], check=True,
                          capture_output=True, text=True).stdout


def test_example_to_safetensors(tmp_path):
    source, target = str(tmp_path / "model.gguf"), str(tmp_path / "model.safetensors")
    (tmp_path / "model.gguf").write_bytes(gguf([], [(b"floats", FLOATS.shape, 0, FLOATS.tobytes())]))
    run_example("model_to_safetensors.py", source, target, "f32")
    with open(target, "rb") as file:
        length, = struct.unpack("<Q", file.read(8))
        entry = json.loads(file.read(length))["floats"]
        assert (entry["dtype"], entry["shape"]) == ("F32", [2, 3, 4]) and file.read() == FLOATS.tobytes()


def test_example_compare(tmp_path):
    for name, factor in (("a", 1), ("b", 1.5)):
        (tmp_path / name).write_bytes(gguf([], [(b"t", FLOATS.shape, 0, (FLOATS * numpy.float32(factor)).tobytes()),
                                                (name.encode(), (1,), 0, bytes(4))]))
    assert run_example("compare_models.py", str(tmp_path / "a"), str(tmp_path / "b")) == \
        "t\tF32 F32\t2.50e-01\na\tis missing\n"
