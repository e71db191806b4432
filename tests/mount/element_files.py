"""The files with a tensor's elements in other formats, checked without the libraries that read them:
f16, bf16, *.npy and model.safetensors."""

import ast
import json
import struct

from plain_values import values_of

try:
    import numpy
except ImportError:
    numpy = None

DTYPES = {"F32": "<f4", "F16": "<f2", "BF16": "<u2", "F64": "<f8", "I8": "i1", "I16": "<i2",
          "I32": "<i4", "I64": "<i8"}


def rounded(values, dtype):
    """The numbers of an array of float32 in a dtype of safetensors; those of BF16 are bits."""
    values = numpy.asarray(values, "<f4")
    if dtype != "BF16":
        with numpy.errstate(over="ignore", invalid="ignore"):
            return values.astype(DTYPES[dtype])
    bits = values.view("<u4")
    up = (bits + 0x7fff + (bits >> 16 & 1)) >> 16
    return numpy.where(numpy.isnan(values), bits >> 16 | 0x40, up).astype("<u2")


def floats_of(numbers, dtype):
    return (numbers.astype("<u4") << 16).view("<f4") if dtype == "BF16" else numbers


def check_numbers(found, values, dtype):
    """Check the bytes of numbers against the float32 that they are rounded from. NaNs are equal."""
    found = numpy.frombuffer(found, DTYPES[dtype])
    expected = rounded(values, dtype)
    assert found.shape == expected.shape, f"{found.size} numbers instead of {expected.size}"
    is_nan = numpy.isnan(floats_of(expected, dtype))
    good = numpy.where(is_nan, numpy.isnan(floats_of(found, dtype)), found == expected)
    assert good.all(), f"{dtype}: {found[~good][:4]} should be {expected[~good][:4]}"


def plain_values(model, tensor):
    """The values of a tensor, or None if they are blocks or there is no NumPy."""
    if numpy is None or not tensor.has_values:
        return None
    data = values_of(model.raw(tensor), tensor.type_name, model.big_endian)
    return None if data is None else numpy.frombuffer(data, "<f4")


def check_rounded(model, tensor, dtype, data):
    values = plain_values(model, tensor)
    if values is not None:
        check_numbers(data, values, dtype)


def npy_header(shape, descr):
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {tuple(shape)!r}, }}".encode()
    text += b" " * (-(10 + len(text) + 1) % 64) + b"\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text


def check_npy(model, tensor, shape, dtype, data):
    header = npy_header(shape, DTYPES[dtype])
    assert data[:len(header)] == header, f"{data[:len(header)]} should be {header}"
    assert len(header) % 64 == 0 and ast.literal_eval(header[10:].decode())["shape"] == tuple(shape)
    check_rounded(model, tensor, dtype, data[len(header):])


def has_safetensors(model):
    for tensor in model.tensors:
        try:
            if not tensor.has_values or tensor.name.decode() == "__metadata__":
                return False
        except UnicodeDecodeError:
            return False
    return True


def dtype_of(type_name, forced=None):
    if type_name in ("I8", "I16", "I32", "I64"):
        return type_name
    return forced or (type_name if type_name in ("F32", "F16", "F64") else "BF16")


def width_of(dtype):
    """Bytes of a number."""
    return int(DTYPES[dtype][-1])


def parse_safetensors(data):
    """Returns {name: (dtype, shape, bytes)}; checks all rules of the format."""
    n, = struct.unpack_from("<Q", data)
    text = data[8:8 + n]
    assert n % 8 == 0 and n <= 100_000_000 and text[:1] == b"{", f"a header of {n} bytes"
    pairs = json.loads(text, object_pairs_hook=list)
    assert pairs[0] == ("__metadata__", [("format", "pt")]), pairs[0]
    tensors, end = {}, 0
    for name, entry in pairs[1:]:
        entry = dict(entry)
        assert name not in tensors and entry["data_offsets"][0] == end, name
        start, end = entry["data_offsets"]
        tensors[name] = entry["dtype"], entry["shape"], data[8 + n + start:8 + n + end]
        count = 1
        for size in entry["shape"]:
            count *= size
        width = width_of(entry["dtype"])
        assert end - start == width * count and start % width == 0, name
    assert len(data) == 8 + n + end, f"{len(data)} bytes instead of {8 + n + end}"
    return tensors


def check_safetensors(model, shape_of, data, forced=None):
    """`shape_of` is a function of model and tensor."""
    found = parse_safetensors(data)
    # Sorted by width, so that all numbers lie at multiples of their size.
    tensors = sorted(model.tensors, key=lambda tensor: -width_of(dtype_of(tensor.type_name, forced)))
    assert list(found) == [tensor.name.decode() for tensor in tensors]
    for tensor, (dtype, shape, numbers) in zip(tensors, found.values()):
        assert (dtype, shape) == (dtype_of(tensor.type_name, forced), shape_of(model, tensor))
        values = plain_values(model, tensor)
        if values is None:
            continue
        if dtype == tensor.type_name and dtype[0] == "I" or dtype == "F64":
            raw = numpy.frombuffer(model.raw(tensor), DTYPES[dtype])
            raw = raw.byteswap() if model.big_endian else raw
            assert numbers == raw.tobytes(), tensor.name
        else:
            check_numbers(numbers, values, dtype)
