"""Types of tensors, and the conversion of data in memory."""
from __future__ import annotations

import ctypes
import errno
import math
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _layouts
from ._library import address, check, error, library, text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Type(NamedTuple):
    """How numbers are stored: rows of blocks of block_elements numbers in block_bytes."""

    name: str
    id: int
    program: str  # that gave it the id: "ggml", "ik_llama.cpp"
    block_elements: int
    block_bytes: int
    can_decode: bool
    can_encode: bool
    is_in_ggml: bool  # llama.cpp of today loads it


# Pointers by name. A name of an old layout is that of today's type.
_pointers: dict[str, Any] = {}
types: dict[str, Type] = {}
"""Types by name, those of today before others."""

_index = 0
while _row := library.ggufs_type_at(_index):
    _index += 1
    _name = text(_row.contents.name)
    if _name not in types:
        _pointers[_name] = _row
        types[_name] = Type(_name, _row.contents.id, text(_row.contents.program), _row.contents.block_elements,
                            _row.contents.block_bytes, _row.contents.can_decode, _row.contents.can_encode,
                            _row.contents.is_in_ggml)

FORMATS = {"f32": (_layouts.F32, "f4"), "f16": (_layouts.F16, "f2"), "bf16": (_layouts.BF16, "u2")}
# Types whose numbers a float32 would round, or that are integers: given as they are.
EXACT = {"F64": "f8", "I8": "i1", "I16": "i2", "I32": "i4", "I64": "i8"}


def format_of(dtype: Any, type_name: str) -> tuple[int, str]:
    """(enum ggufs_format, NumPy's type) for what a caller named; None: float32, or as stored in EXACT."""
    name = str(getattr(dtype, "__name__", dtype)).lower()
    name = {"float32": "f32", "float16": "f16", "bfloat16": "bf16", "<f4": "f32", "<f2": "f16"}.get(name, name)
    if dtype is None:
        return (_layouts.STORED, EXACT[type_name]) if type_name in EXACT else FORMATS["f32"]
    if name in FORMATS:
        return FORMATS[name]
    raise ValueError(f"no format {dtype!r}: it is one of {', '.join(FORMATS)}")


def check_out(out: Any, shape: tuple[int, ...], dtype: str) -> Any:
    """The array to fill: the caller's, or a new one."""
    import numpy
    if out is None:
        return numpy.empty(shape, dtype)
    if out.dtype != numpy.dtype(dtype) or out.shape != shape or not out.flags.c_contiguous or not out.flags.writeable:
        raise ValueError(f"out must be a writable, contiguous array of {numpy.dtype(dtype)} with shape {shape}")
    return out


def _find(type: Any) -> tuple[Type, Any]:
    """A type by its name, in any case, its id, or an enum with its name as of the package gguf."""
    name = getattr(type, "name", type)
    if isinstance(name, int):
        name = next((one.name for one in types.values() if one.id == name), name)
    name = str(name).upper()
    if name not in types:
        raise KeyError(f"no type {type!r}: see ggufs.types")
    return types[name], _pointers[name]


def _rows_bytes(pointer: Any, row_elements: int, n_rows: int) -> int:
    n_bytes = ctypes.c_uint64()
    code = library.ggufs_rows_bytes(pointer, row_elements, n_rows, ctypes.byref(n_bytes))
    if code == -errno.EINVAL:
        raise ValueError(f"rows of {row_elements} elements are no whole blocks of {text(pointer.contents.name)}")
    check(code)
    return n_bytes.value


def dequantize(data: Any, type: Any, shape: tuple[int, ...] | None = None, *,
               out: NDArray[np.float32] | None = None) -> NDArray[np.float32]:
    """
    Decode little-endian bytes of a whole tensor of this shape, bit for bit as ggml. Without a shape, the last
    dimension of the array `data` is bytes of rows, as in gguf.quants.
    """
    info, pointer = _find(type)
    view = memoryview(data)
    if shape is None:
        row_bytes = view.shape[-1] * view.itemsize if view.shape else 0
        if row_bytes % info.block_bytes:
            raise ValueError(f"rows of {row_bytes} bytes are no whole blocks of {info.name}: give the shape")
        shape = (*(view.shape or ())[:-1], row_bytes // info.block_bytes * info.block_elements)
    row, n_rows = (shape[-1] if shape else 1), math.prod(shape[:-1])
    if not info.can_decode:
        raise error(-errno.ENOTSUP, f"{info.name} cannot be decoded")
    n_bytes = _rows_bytes(pointer, row, n_rows)
    if view.nbytes != n_bytes:
        raise ValueError(f"{info.name} of shape {shape} has {n_bytes} bytes, not {view.nbytes}")
    made = check_out(out, tuple(shape), "f4")
    if made.size:
        check(library.ggufs_decode(pointer, address(data, n_bytes, False), row, n_rows, address(made, made.nbytes)))
    return made  # type: ignore[no-any-return]


def quantize(values: Any, type: Any, *, out: NDArray[np.uint8] | None = None) -> NDArray[np.uint8]:
    """Encode floats to bytes of rows, an array of uint8: to F32, F16, BF16, Q8_0 or Q4_0."""
    import numpy
    info, pointer = _find(type)
    values = numpy.ascontiguousarray(values, "f4")
    if not info.can_encode:
        raise error(-errno.ENOTSUP, f"{info.name} has no encoder; those with one are "
                    f"{', '.join(one.name for one in types.values() if one.can_encode)}")
    row = values.shape[-1] if values.ndim else 1
    n_rows = math.prod(values.shape[:-1])
    made = check_out(out, (*values.shape[:-1], _rows_bytes(pointer, row, 1)), "u1")
    if made.size:
        check(library.ggufs_encode(pointer, address(values, values.nbytes, False), row, n_rows,
                                   address(made, made.nbytes)))
    return made  # type: ignore[no-any-return]
