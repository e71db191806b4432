"""Plain numbers of a tensor as little-endian float32."""

import array
import ctypes
import struct
import sys
from functools import lru_cache

LETTERS = {"F32": "I", "F16": "H", "BF16": "H", "F64": "d", "I8": "b", "I16": "h", "I32": "i",
           "I64": "q"}


def half_to_float(bits):
    """The bits of the float32 of the same value; NaNs become quiet, as ggml and hardware do it."""
    sign = (bits & 0x8000) << 16
    exponent = bits >> 10 & 31
    mantissa = bits & 0x3ff
    if exponent == 31:
        return sign | 0x7f800000 | mantissa << 13 | (0x400000 if mantissa else 0)
    if exponent == 0:
        number, = struct.unpack("<I", struct.pack("<f", mantissa * 2.0**-24))
        return sign | number
    return sign | exponent + 112 << 23 | mantissa << 13


@lru_cache(maxsize=None)
def table_of(type_name):
    if type_name == "F16":
        return [half_to_float(bits) for bits in range(0x10000)]
    return [bits << 16 for bits in range(0x10000)]


def integer_to_float(number):
    """A C cast, which rounds once: to the nearest, ties to even."""
    shift = max(abs(number).bit_length() - 24, 0)
    kept, rest = divmod(abs(number), 1 << shift)
    half = (1 << shift) / 2
    if shift and (rest > half or rest == half and kept % 2 == 1):
        kept += 1
    return float(kept << shift) * (-1 if number < 0 else 1)


def values_of(raw, type_name, big_endian):
    """Return the f32 file of a tensor, or None if its type has blocks."""
    letter = LETTERS.get(type_name)
    if not letter:
        return None
    numbers = array.array(letter, raw)
    if big_endian != (sys.byteorder == "big"):
        numbers.byteswap()
    if letter == "I":
        out = numbers
    elif letter == "H":
        out = array.array("I", map(table_of(type_name).__getitem__, numbers))
    elif letter == "d":
        out = array.array("f", (ctypes.c_float(number).value for number in numbers))
    else:
        out = array.array("f", map(integer_to_float, numbers))
    if sys.byteorder == "big":
        out.byteswap()
    return out.tobytes()
