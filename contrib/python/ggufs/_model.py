"""Models, their metadata and their tensors."""
from __future__ import annotations

import builtins
import ctypes
import difflib
import errno
import html
import io
import json
import math
import operator
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from . import _layouts
from ._files import Files
from ._library import Handle, address, check as check_code, error, library, string, text
from ._types import EXACT, Type, check_out, format_of, types

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_Value = TypeVar("_Value")
_NUMBERS = {_layouts.UINT8: "u1", _layouts.INT8: "i1", _layouts.UINT16: "u2", _layouts.INT16: "i2",
            _layouts.UINT32: "u4", _layouts.INT32: "i4", _layouts.FLOAT32: "f4", _layouts.BOOL: "?",
            _layouts.UINT64: "u8", _layouts.INT64: "i8", _layouts.FLOAT64: "f8"}
_CODES = {"u1": "B", "i1": "b", "u2": "H", "i2": "h", "u4": "I", "i4": "i", "f4": "f", "?": "?", "u8": "Q", "i8": "q",
          "f8": "d"}
_AT_ONCE = 1 << 24  # elements of a call: Ctrl-C is heard between two calls


class _Names(Mapping[str, _Value]):
    """A mapping by names in the order of the file, whose KeyError tells the nearest name."""

    def __init__(self, kind: str, names: dict[str, Any]) -> None:
        self._kind, self._names = kind, names

    def _find(self, name: str) -> Any:
        try:
            return self._names[name]
        except KeyError:
            near = difflib.get_close_matches(str(name), self._names, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise KeyError(f"no {self._kind} {name!r}{hint}") from None

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class Array(Sequence[Any]):
    """An array in the metadata. Nothing is copied before it is indexed."""

    def __init__(self, handle: Handle, key: Any) -> None:
        self._handle, self._key = handle, key
        with handle:
            self._length: int = key.contents.n_elements
            self._dtype = _NUMBERS.get(key.contents.element_type)

    def _read(self, first: int, n: int) -> list[Any]:
        with self._handle as model:
            if self._dtype is None:
                strings = (_layouts.String * n)()
                check_code(library.ggufs_key_strings(model, self._key, first, n, strings))
                return [string(one) for one in strings]
            buffer = bytearray(n * self._key.contents.element_bytes)
            check_code(library.ggufs_key_numbers(model, self._key, first, n, address(buffer, len(buffer))))
        return memoryview(buffer).cast(_CODES[self._dtype]).tolist()

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            chosen = range(*index.indices(self._length))
            if not chosen:
                return []
            first = min(chosen[0], chosen[-1])
            read = self._read(first, max(chosen[0], chosen[-1]) - first + 1)
            return [read[i - first] for i in chosen]
        at = operator.index(index)
        if not -self._length <= at < self._length:
            raise IndexError(f"index {at} of an array of {self._length} elements")
        return self._read(at % self._length, 1)[0]

    def __iter__(self) -> Iterator[Any]:
        for first in range(0, self._length, 4096):
            yield from self._read(first, min(4096, self._length - first))

    def tolist(self) -> list[Any]:
        return self._read(0, self._length)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        import numpy
        if copy is False:
            raise ValueError("the array is in the file: NumPy needs a copy")
        return numpy.array(self.tolist(), dtype or self._dtype)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and not isinstance(other, str) and self.tolist() == builtins.list(other)

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self[:5]))
        return f"<ggufs.Array of {self._length}: [{shown}{', …' if self._length > 5 else ''}]>"


class Metadata(_Names[Any]):
    """
    The keys of a model: int, float, bool, str, Array, and lists for arrays of arrays. Bytes that are not UTF-8 are
    lone surrogates, as in os.fsdecode().
    """

    def __init__(self, handle: Handle, files: Files) -> None:
        self._handle, self._files = handle, files
        with handle as model:
            count = library.ggufs_get_info(model).contents.n_keys
            keys = [library.ggufs_key_at(model, i) for i in range(count)]
            super().__init__("key", {string(key.contents.name): key for key in keys})

    def __getitem__(self, name: str) -> Any:
        pointer = self._find(name)
        with self._handle:
            key = pointer.contents
            if key.type == _layouts.STRING:
                return string(key.string)
            if key.type == _layouts.BOOL:
                return bool(key.u64)
            if key.type != _layouts.ARRAY:
                return {"f": key.f64, "i": key.i64, "u": key.u64}[_NUMBERS[key.type][0]]
            if key.element_type != _layouts.ARRAY:
                return Array(self._handle, pointer)
        with self._files.open("metadata.json") as file:
            return json.load(file)[name]

    def __repr__(self) -> str:
        return "\n".join([f"<ggufs.Metadata of {len(self)} keys>", *(f"{name} = {self[name]!r}" for name in self)])


class Tensor:
    """
    A tensor of a model, read when it is indexed: t[10:20] reads these rows. Its shape is that of NumPy and PyTorch,
    the last dimension is the fastest.
    """

    def __init__(self, handle: Handle, pointer: Any) -> None:
        self._handle, self._pointer = handle, pointer
        with handle as model:
            info = pointer.contents
            self.name: str = string(info.name)
            self.type: str = text(info.type.contents.name) if info.type else f"?{info.type_id}"
            self.type_id: int = info.type_id
            self.shape: tuple[int, ...] = tuple(info.shape[:info.n_dims])
            self.size: int = info.n_elements  # elements
            self.nbytes: int = info.size_bytes  # as stored
            self.path: str = os.fsdecode(library.ggufs_file_path(model, info.file_index))
            self.offset: int = info.file_offset  # of its bytes in that file

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of what indexing returns: float32, but integers and float64 are what they are."""
        import numpy
        return numpy.dtype(EXACT.get(self.type, "f4"))

    @property
    def raw(self) -> bytearray:
        """The bytes as stored, in the byte order of the file."""
        out = bytearray(self.nbytes)
        with self._handle as model:
            check_code(library.ggufs_read_stored(model, self._pointer, 0, self.nbytes, address(out, self.nbytes)))
        return out

    def read_into(self, buffer: Any, *, first: int = 0, n: int | None = None, dtype: Any = None) -> int:
        """
        Write elements from `first` on to a writable, contiguous buffer: `n`, or all that follow. Returns their
        number. Needs no NumPy.
        """
        import array
        if n is None:
            n = self.size - first
        if first < 0 or n < 0 or first + n > self.size:
            raise IndexError(f"elements {first} to {first + n} of {self.size}")
        format, code = format_of(dtype, self.type)
        width = array.array(_CODES.get(code, "H")).itemsize
        target = address(buffer, n * width)
        for done in range(0, n, _AT_ONCE):
            part = min(_AT_ONCE, n - done)
            with self._handle as model:
                result = library.ggufs_read(model, self._pointer, format, first + done, part,
                                            ctypes.byref(target, done * width))
            if result == -errno.ENOTSUP:
                raise error(result, f"tensor {self.name!r} has type {self.type}, which cannot be decoded; "
                            "its bytes are in .raw")
            check_code(result, self.path)
        return n

    def _read(self, first: int, shape: tuple[int, ...], dtype: Any = None, out: Any = None) -> NDArray[Any]:
        out = check_out(out, shape, format_of(dtype, self.type)[1])
        self.read_into(out, first=first, n=math.prod(shape), dtype=dtype)
        return out  # type: ignore[no-any-return]

    def numpy(self, dtype: Any = None, *, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """
        All values: "f32", "f16", or "bf16" as uint16, for torch.from_numpy(a).view(torch.bfloat16). Default: as
        indexing.
        """
        return self._read(0, self.shape, dtype, out)

    def __getitem__(self, key: Any) -> Any:
        keys = builtins.list(key) if isinstance(key, tuple) else [key]
        if Ellipsis in keys:
            at = keys.index(Ellipsis)
            keys[at:at + 1] = [slice(None)] * (self.ndim - len(keys) + 1)
        if len(keys) > self.ndim:
            raise IndexError(f"{len(keys)} indices for {self.ndim} dimensions")
        first, shape = 0, self.shape
        while keys and not isinstance(keys[0], slice):
            index = _index(keys.pop(0), shape[0])
            shape = shape[1:]
            first += index * math.prod(shape)
        if keys:
            rows = range(*keys[0].indices(shape[0]))
            lowest, end = (min(rows[0], rows[-1]), max(rows[0], rows[-1]) + 1) if rows else (0, 0)
            read = self._read(first + lowest * math.prod(shape[1:]), (end - lowest, *shape[1:]))
            # A step of -1 ends before row 0, which has no number.
            stop: int | None = rows.stop - lowest if rows else 0
            keys[0] = slice(rows.start - lowest if rows else 0, None if stop is not None and stop < 0 else stop, rows.step)
            return read[tuple(_check_slice(one) for one in keys)]
        return self._read(first, shape)[()]

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a tensor without dimensions has no length")
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("the tensor is in the file: NumPy needs a copy")
        values = self.numpy()
        return values if dtype is None else values.astype(dtype, copy=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return _tensor, (self._handle.path, self._handle.options, self.name)

    def __repr__(self) -> str:
        return f"<ggufs.Tensor {self.name!r} {self.type} {self.shape}>"


def _tensor(path: str, options: str, name: str) -> Tensor:
    return Model(path, options)[name]


def _index(key: Any, length: int) -> int:
    at = operator.index(_check_slice(key))
    if not -length <= at < length:
        raise IndexError(f"index {at} of a dimension of {length}")
    return at % length


def _check_slice(key: Any) -> Any:
    if isinstance(key, slice) or (hasattr(key, "__index__") and not isinstance(key, bool) and not hasattr(key, "shape")
                                  or getattr(key, "shape", None) == ()):
        return key
    raise TypeError(f"a tensor is indexed by integers and slices, not {key!r}; t.numpy()[…] takes more")


class Tensors(_Names[Tensor]):
    """The tensors of a model, in the order of the file."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        with handle as model:
            count = library.ggufs_get_info(model).contents.n_tensors
            found = [library.ggufs_tensor_at(model, i) for i in range(count)]
            super().__init__("tensor", {string(one.contents.name): one for one in found})

    def __getitem__(self, name: str) -> Tensor:
        return Tensor(self._handle, self._find(name))


class Model:
    """An open model, as ggufs.open() returns it: m["output.weight"] is a tensor. Any thread may use it."""

    def __init__(self, path: str, options: str) -> None:
        self.path = path
        self._handle = Handle(path, options)
        with self._handle as handle:
            info = library.ggufs_get_info(handle).contents
            self.format: str = text(info.format)
            self.is_big_endian: bool = info.is_big_endian
            self.alignment: int = info.alignment_bytes
            self.paths = [os.fsdecode(library.ggufs_file_path(handle, i)) for i in range(info.n_files)]
        self.files = Files(self._handle)
        self.metadata = Metadata(self._handle, self.files)
        self.tensors = Tensors(self._handle)

    def __getitem__(self, name: str) -> Tensor:
        return self.tensors[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.tensors)

    def __len__(self) -> int:
        return len(self.tensors)

    def __contains__(self, name: object) -> bool:
        return name in self.tensors

    def __bool__(self) -> bool:
        return True

    def open(self, path: str) -> io.BufferedReader:
        """A file of the tree that `ggufs` mounts, "hf/config.json": binary, seekable, read-only."""
        return self.files.open(path)

    def recheck(self) -> None:
        """Raise StaleError if a file changed. Reading does so as well."""
        with self._handle as handle:
            check_code(library.ggufs_recheck(handle), self.path)

    @property
    def closed(self) -> bool:
        return self._handle.closed

    def close(self) -> None:
        """Close the model, and files of its tree. Other threads are waited for. What was read stays valid."""
        self.files.close()
        self._handle.close()

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return Model, (self.path, self._handle.options)

    def __repr__(self) -> str:
        if self.closed:
            return f"<ggufs.Model {self.path!r}, closed>"
        return f"<ggufs.Model {self.path!r}: {self.format}, {len(self.metadata)} keys, {len(self.tensors)} tensors>"

    def _repr_html_(self) -> str:
        rows = [f"<tr><td>{html.escape(t.name)}<td>{t.type}<td>{t.shape}<td>{t.nbytes}"
                for t in ([] if self.closed else self.tensors.values())]
        return (f"<p>{html.escape(repr(self))}</p><table><tr><th>name<th>type<th>shape<th>bytes{''.join(rows[:200])}"
                f"</table>{f'<p>and {len(rows) - 200} more</p>' if len(rows) > 200 else ''}")


def _words(options: dict[str, Any]) -> str:
    """Words of -o: True is the word alone; commas and backslashes in values are escaped."""
    words = []
    for name, value in options.items():
        if value is True:
            words.append(name)
        elif value is not None and value is not False:
            escaped = str(value).replace("\\", "\\\\").replace(",", "\\,")
            words.append(f"{name}={escaped}")
    if options.get("mapped"):
        check_code(library.ggufs_catch_faults())
    return ",".join(words)


def open(path: str | os.PathLike[str], **options: Any) -> Model:
    """
    Open a model: a file, any shard of a split model, or a folder with one model. Reads the headers only.

    options: words of -o in ggufs(1): partial=True, offset=, size=, family=, era=, type="40:NVFP4", ik="old"; for
    files of the tree dtype=, export=, split=, hf_shard=; and mapped=True, which reads through a mapping, see ggufs.h.
    """
    return Model(os.fspath(path), _words(options))


class Finding(NamedTuple):
    """What a line of `ggufs --check --json` has, see ggufs(5), OUTPUT OF COMMANDS."""
    file: str
    severity: str  # "error", "warning" or "note"
    rule: str | None
    offset: int | None
    tensor: str | None
    key: str | None
    text: str
    explanation: str | None
    remedy: str | None


def check(path: str | os.PathLike[str], **options: Any) -> list[Finding]:
    """All errors, warnings and notes about a file, as `ggufs --check`; options as for open()."""
    name = os.fspath(path)
    found = []

    def each(_: Any, pointer: Any) -> None:
        one = pointer.contents
        found.append(Finding(
            os.fsdecode(one.path) if one.path else name, ("error", "warning", "note")[one.severity], text(one.rule) or None,
            None if one.offset == 2**64 - 1 else one.offset, string(one.tensor) if one.tensor.data else None,
            string(one.key) if one.key.data else None, text(one.message), text(one.explanation) or None,
            text(one.remedy) or None))
    words = _words(options).encode("utf-8", "surrogateescape")
    library.ggufs_check(os.fsencode(name), words, _layouts.Each(each), None)
    return found


__all__ = ["Array", "Finding", "Metadata", "Model", "Tensor", "Tensors", "Type", "check", "open", "types"]
