"""An independent reader of GGUF files, versions 1 to 3, in both byte orders.

It follows the specification and nothing of ggufs, and trusts the file: it is for tests only.
"""

import os
import struct
from typing import NamedTuple, Optional

# Names, elements and bytes of the blocks of all types, by id.
TYPES = {
    0: ("F32", 1, 4), 1: ("F16", 1, 2), 2: ("Q4_0", 32, 18), 3: ("Q4_1", 32, 20),
    6: ("Q5_0", 32, 22), 7: ("Q5_1", 32, 24), 8: ("Q8_0", 32, 34), 9: ("Q8_1", 32, 36),
    10: ("Q2_K", 256, 84), 11: ("Q3_K", 256, 110), 12: ("Q4_K", 256, 144), 13: ("Q5_K", 256, 176),
    14: ("Q6_K", 256, 210), 15: ("Q8_K", 256, 292), 16: ("IQ2_XXS", 256, 66),
    17: ("IQ2_XS", 256, 74), 18: ("IQ3_XXS", 256, 98), 19: ("IQ1_S", 256, 50),
    20: ("IQ4_NL", 32, 18), 21: ("IQ3_S", 256, 110), 22: ("IQ2_S", 256, 82),
    23: ("IQ4_XS", 256, 136), 24: ("I8", 1, 1), 25: ("I16", 1, 2), 26: ("I32", 1, 4),
    27: ("I64", 1, 8), 28: ("F64", 1, 8), 29: ("IQ1_M", 256, 56), 30: ("BF16", 1, 2),
    34: ("TQ1_0", 256, 54), 35: ("TQ2_0", 256, 66), 39: ("MXFP4", 32, 17), 40: ("NVFP4", 64, 36),
    41: ("Q1_0", 128, 18), 42: ("Q2_0", 64, 18),
}

# Types that ggml dropped: their size is known, their rows are interleaved and not decoded.
REMOVED_TYPES = {
    37: ("IQ4_NL_4_8", 32, 18), 38: ("IQ4_NL_8_8", 32, 18),
}

SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q",
           12: "d"}
FLOAT32, STRING, ARRAY, FLOAT64 = 6, 8, 9, 12


class Float32(float):
    """A value of type float32."""
    width = 32


class Float64(float):
    """A value of type float64."""
    width = 64


class Tensor(NamedTuple):
    name: bytes
    type_id: int
    ne: tuple
    offset: int  # from the start of the file
    n_elements: int
    type_name: Optional[str] = None
    block_size: Optional[int] = None
    type_size: Optional[int] = None
    n_bytes: Optional[int] = None
    has_values: bool = False


class Model:
    """The contents of a file: keys, a list of (name, value), and tensors, both in file order."""

    def __init__(self, path):
        self.path = os.fsencode(os.path.abspath(path))
        with open(path, "rb") as file:
            self.data = file.read()
            self.status = os.fstat(file.fileno())
        if self.data[:4] != b"GGUF":
            raise ValueError(f"{path}: not a GGUF file")
        self.big_endian = self.data[4:8] == b"\0\0\0\3"
        self.order = ">" if self.big_endian else "<"
        self.at = 4
        self.version = self.scalar("I")
        self.count_letter = "I" if self.version == 1 else "Q"
        n_tensors = self.scalar(self.count_letter)
        n_keys = self.scalar(self.count_letter)
        self.keys = []
        for _ in range(n_keys):
            key = (self.string(), self.value(self.scalar("I")))
            if key not in self.keys:  # files exist that repeat a key
                self.keys.append(key)
        self.alignment = dict(self.keys).get(b"general.alignment", 32)
        infos = [self.tensor_info() for _ in range(n_tensors)]
        self.data_offset = -(-self.at // self.alignment) * self.alignment
        self.tensors = [self.placed(*info) for info in infos]

    def scalar(self, letter):
        value, = struct.unpack_from(self.order + letter, self.data, self.at)
        self.at += struct.calcsize("=" + letter)
        return value

    def string(self):
        length = self.scalar(self.count_letter)
        self.at += length
        return self.data[self.at - length:self.at]

    def value(self, value_type):
        if value_type == STRING:
            return self.string()
        if value_type == ARRAY:
            element_type = self.scalar("I")
            return self.array(element_type, self.scalar(self.count_letter))
        return self.array(value_type, 1)[0]

    def array(self, element_type, count):
        if element_type in (STRING, ARRAY):
            return [self.value(element_type) for _ in range(count)]
        letters = f"{self.order}{count}{SCALARS[element_type]}"
        values = struct.unpack_from(letters, self.data, self.at)
        self.at += struct.calcsize(letters)
        if element_type == FLOAT32:
            return [Float32(v) for v in values]
        if element_type == FLOAT64:
            return [Float64(v) for v in values]
        return list(values)

    def tensor_info(self):
        name = self.string()
        ne = tuple(self.scalar(self.count_letter) for _ in range(self.scalar("I")))
        return name, ne, self.scalar("I"), self.scalar("Q")

    def placed(self, name, ne, type_id, offset):
        n_elements = 1
        for n in ne:
            n_elements *= n
        tensor = Tensor(name, type_id, ne, self.data_offset + offset, n_elements)
        row = TYPES.get(type_id) or REMOVED_TYPES.get(type_id)
        if not row:
            return tensor
        type_name, block_size, type_size = row
        return tensor._replace(type_name=type_name, block_size=block_size, type_size=type_size,
                               n_bytes=n_elements // block_size * type_size,
                               has_values=type_id in TYPES)

    def raw(self, tensor):
        return self.data[tensor.offset:tensor.offset + tensor.n_bytes]
