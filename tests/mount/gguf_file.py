"""A tiny writer of GGUF files, for models that no converter makes."""

import struct
from typing import NamedTuple

UINT8, INT8, UINT16, INT16, UINT32, INT32, FLOAT32, BOOL, STRING, ARRAY = range(10)
UINT64, INT64, FLOAT64 = range(10, 13)

# struct's letters for the value types of fixed size.
LETTERS = {UINT8: "B", INT8: "b", UINT16: "H", INT16: "h", UINT32: "I", INT32: "i", FLOAT32: "f",
           BOOL: "B", UINT64: "Q", INT64: "q", FLOAT64: "d"}

F32, F16, Q4_0, Q8_0, Q4_K, I8 = 0, 1, 2, 8, 12, 24
I16, I32, I64, F64 = range(25, 29)


class Array(NamedTuple):
    """The value of a key of type ARRAY, or an element of an array of arrays."""
    element_type: int
    elements: list


class Bits(NamedTuple):
    """A float32 or float64 given by its bits, so that every NaN can be written."""
    bits: int


class GgufFile:
    """Collects keys and tensors; write() makes the file."""

    def __init__(self, version=3, big_endian=False, alignment=32):
        self.version = version
        self.order = ">" if big_endian else "<"
        self.alignment = alignment
        self.n_keys = 0
        self.keys = []
        self.tensors = []
        if alignment != 32:
            self.key(b"general.alignment", UINT32, alignment)

    def pack(self, letters, *values):
        return struct.pack(self.order + letters, *values)

    def length(self, number):
        return self.pack("I" if self.version == 1 else "Q", number)

    def string(self, text):
        return self.length(len(text)) + text

    def value(self, value_type, value):
        if value_type == STRING:
            return self.string(value)
        if value_type == ARRAY:
            start = self.pack("I", value.element_type) + self.length(len(value.elements))
            has_bits = any(isinstance(element, Bits) for element in value.elements)
            if value.element_type in LETTERS and not has_bits:
                letter = LETTERS[value.element_type]
                return start + self.pack(f"{len(value.elements)}{letter}", *value.elements)
            return start + b"".join(self.value(value.element_type, e) for e in value.elements)
        if isinstance(value, Bits):
            return self.pack("I" if value_type == FLOAT32 else "Q", value.bits)
        return self.pack(LETTERS[value_type], value)

    def key(self, name, value_type, value):
        self.keys.append(self.string(name) + self.pack("I", value_type) +
                         self.value(value_type, value))
        self.n_keys += 1
        return self

    def tensor(self, name, ne, type_id=F32, data=b""):
        self.tensors.append((name, ne, type_id, data))
        return self

    def to_bytes(self):
        out = [b"GGUF", self.pack("I", self.version), self.length(len(self.tensors)),
               self.length(self.n_keys), *self.keys]
        offset = 0
        for name, ne, type_id, data in self.tensors:
            out.append(self.string(name) + self.pack("I", len(ne)))
            out += [self.length(n) for n in ne]
            out.append(self.pack("IQ", type_id, offset))
            offset = self.aligned(offset + len(data))
        header = b"".join(out)
        if not self.tensors:
            return header
        out = [header.ljust(self.aligned(len(header)), b"\0")]
        out += [data.ljust(self.aligned(len(data)), b"\0") for _, _, _, data in self.tensors]
        return b"".join(out)

    def aligned(self, number):
        return -(-number // self.alignment) * self.alignment

    def write(self, path):
        with open(path, "wb") as file:
            file.write(self.to_bytes())
        return path
