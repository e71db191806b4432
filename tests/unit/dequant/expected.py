#!/usr/bin/env python3
"""Computes rows of random_blocks.c with a second implementation of the types, in NumPy.

Prints the row of every type below and compares it with the file. For a new type, add its block as a
dtype, a function that decodes it and a row of TYPES. Write them from the documentation of the
format, not from dequant/. The last line is "N passed, N failed".
"""
import os
import re
import sys
from typing import Callable, NamedTuple

import numpy as np

import expected_forks
import expected_ik_plain as plain
from expected_rows import ROWS

ELEMENTS = 65536  # as in random_blocks.h


class Type(NamedTuple):
    id: int
    name: str
    elements: int         # of a block of one row
    block: np.dtype       # of a stored block: one block of each interleaved row
    decode: Callable      # (stored blocks, numbers of the row header, row of the group) -> float32
    scales: tuple = ()    # fields of f16 or float32 that get finite values
    has_byte_order: bool = True
    header: str = "<f4"   # dtype of the numbers in a row header: "<f2" or "<f4"
    header_numbers: int = 0
    rows: int = 1


class Random:
    """SplitMix64, as next_random() in random_blocks.c."""

    def __init__(self, seed):
        self.state = seed

    def take(self, n):
        golden = 0x9e3779b97f4a7c15
        z = np.uint64(self.state) + np.arange(1, n + 1, dtype=np.uint64) * np.uint64(golden)
        self.state = (self.state + n * golden) % 2**64
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xbf58476d1ce4e5b9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94d049bb133111eb)
        return z ^ (z >> np.uint64(31))

    def take_scales(self, n):
        """The bits of n numbers of float16, as random_f16()."""
        r = self.take(n)
        exponents = (r >> np.uint64(32)) % np.uint64(21)
        return (r & np.uint64(0x83ff) | exponents << np.uint64(10)).astype("<u2")


def as_numbers(bits, dtype):
    """View bits of float16 as such, or make float32 of them, as float_bits()."""
    if dtype == np.dtype("<f2"):
        return bits.view("<f2")
    wide = bits.astype("<u4")
    return (((wide >> 15) << 31 | (wide & 0x7fff) << 13) + ((127 - 15) << 23)).view("<f4")


def make_blocks(t):
    n = ELEMENTS // t.elements + 1
    random = Random(t.id)
    blocks = (random.take(n * t.block.itemsize) >> np.uint64(40)).astype("u1").view(t.block)
    scales = random.take_scales(2 * n).reshape(n, 2)
    place = 0
    for name in t.scales:
        field = t.block[name]
        count = int(np.prod(field.shape, dtype=int))
        chosen = np.ascontiguousarray(scales[:, (place + np.arange(count)) % 2])
        blocks[name] = as_numbers(chosen, field.base).reshape(blocks[name].shape)
        place += count
    return blocks


def make_headers(t):
    bits = Random(t.id + 1000).take_scales(t.rows * t.header_numbers)
    return as_numbers(bits, np.dtype(t.header)).reshape(t.rows, t.header_numbers)


def fnv1a(data):
    value = 0xcbf29ce484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001b3 % 2**64
    return value


def row_of(t):
    """The row of random_blocks.c."""
    blocks, headers = make_blocks(t), make_headers(t)
    rows = [t.decode(blocks, headers[k], k) for k in range(t.rows)]
    assert all(row.dtype == np.float32 and row.shape == (len(blocks), t.elements) for row in rows)
    values = fnv1a(b"".join(row.tobytes() for row in rows))
    swapped = fnv1a((blocks.byteswap() if t.has_byte_order else blocks).tobytes())
    scale, offset = "NO_SCALE", 0
    if t.scales:
        bits = 8 * t.block[t.scales[0]].base.itemsize
        scale = f"F{bits}_SCALE" if len(t.scales) == 1 else f"TWO_F{bits}_SCALES"
        offset = t.block.fields[t.scales[0]][1]
    return (f'{{{t.id}, 2, "{t.name}", {t.elements}, {t.block.itemsize // t.rows}, {scale}, '
            f'{offset}, 0x{values:016x}, 0x{swapped:016x}}},')


# ---- Decoders ----

IQ4_VALUES = np.array([-127, -104, -83, -65, -49, -35, -22, -10,
                       1, 13, 25, 38, 53, 69, 89, 113], np.int16)


def floats(numbers):
    return numbers.astype(np.float32)


Q4_1 = np.dtype([("d", "<f2"), ("m", "<f2"), ("qs", "u1", 16)])


def decode_q4_1(blocks, header, k):
    q = np.concatenate([blocks["qs"] & 15, blocks["qs"] >> 4], axis=1)
    return floats(q) * floats(blocks["d"])[:, None] + floats(blocks["m"])[:, None]


def r4_nibbles(qs, k):
    """The 32 nibbles of row k. The last dimensions of qs are run of bytes, row, byte."""
    q = np.empty(qs.shape[:-3] + (32,), np.uint8)
    for run in range(4):
        first = 16 * (run % 2) + 4 * (run // 2)
        q[..., first:first + 4] = qs[..., run, k, :] & 15
        q[..., first + 8:first + 12] = qs[..., run, k, :] >> 4
    return q


IQ4_NL_R4 = np.dtype([("d", "<f2", 4), ("qs", "u1", (4, 4, 4))])


def decode_iq4_nl_r4(blocks, header, k):
    return floats(blocks["d"])[:, k, None] * floats(IQ4_VALUES[r4_nibbles(blocks["qs"], k)])


IQ4_KS_R4 = np.dtype([("scales", "u1", (8, 4)), ("qs", "u1", (8, 4, 4, 4))])


def decode_iq4_ks_r4(blocks, header, k):
    scales = blocks["scales"][:, :, k, None].astype(np.int16)
    values = IQ4_VALUES[r4_nibbles(blocks["qs"], k)] + 4 * (scales & 1)
    return (header[0] * floats((scales & 254) - 127) * floats(values)).reshape(-1, 256)


def ik_plain(number, name, elements, **rest):
    """A type of expected_ik_plain.py; one without a row header has an f16 scale `d`."""
    scales = () if "header_numbers" in rest else ("d",)
    return Type(number, name, elements, getattr(plain, name),
                getattr(plain, f"decode_{name.lower()}"), scales=scales, has_byte_order=False,
                **rest)


F16 = {"header": "<f2", "header_numbers": 1}
F32 = {"header": "<f4", "header_numbers": 1}

TYPES = [
    Type(3, "Q4_1", 32, Q4_1, decode_q4_1, scales=("d", "m")),
    ik_plain(36, "I2_S", 128, header_numbers=8),  # the tail
    ik_plain(133, "Q6_0", 32),
    ik_plain(134, "IQ1_BN", 64, **F16),
    ik_plain(135, "IQ2_BN", 64, **F32),
    ik_plain(137, "IQ2_K", 256),
    ik_plain(138, "IQ3_K", 256),
    ik_plain(139, "IQ4_K", 256),
    ik_plain(140, "IQ5_K", 256),
    ik_plain(141, "IQ6_K", 256),
    ik_plain(144, "IQ4_KS", 256, **F32),
    ik_plain(145, "IQ2_KS", 256, **F16),
    ik_plain(146, "IQ4_KSS", 256, **F32),
    ik_plain(151, "Q8_KV", 32, header_numbers=2),
    ik_plain(152, "IQ5_KS", 256, **F32),
    ik_plain(153, "IQ2_KT", 256, **F32),
    ik_plain(154, "IQ3_KT", 256, **F32),
    ik_plain(155, "IQ4_KT", 256, **F32),
    ik_plain(156, "IQ3_KS", 256, **F16),
    ik_plain(157, "IQ2_KL", 256, **F16),
    ik_plain(158, "IQ1_KT", 256, **F32),
    Type(220, "IQ4_NL_R4", 32, IQ4_NL_R4, decode_iq4_nl_r4, scales=("d",), rows=4,
         has_byte_order=False),
    Type(344, "IQ4_KS_R4", 256, IQ4_KS_R4, decode_iq4_ks_r4, rows=4, header_numbers=1,
         has_byte_order=False),
] + [
    Type(number, name, elements, block, decode, scales=scales, rows=rows,
         header=header or "<f4", header_numbers=int(header is not None), has_byte_order=False)
    for number, name, elements, rows, block, decode, scales, header in ROWS
] + [
    Type(number, name, elements, block, decode, scales=scales, rows=rows, has_byte_order=False,
         **header)
    for number, name, elements, rows, block, decode, scales, header in expected_forks.ROWS
]


def main():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "random_blocks.c")
    with open(path, encoding="utf-8") as file:
        text = re.sub(r"\s+", " ", file.read())
    n_failed = 0
    for t in TYPES:
        row = row_of(t)
        is_there = row in text
        print(f"{row}{'' if is_there else '   NOT in random_blocks.c'}")
        n_failed += not is_there
    print(f"{len(TYPES) - n_failed} passed, {n_failed} failed")
    return n_failed > 0


if __name__ == "__main__":
    sys.exit(main())
