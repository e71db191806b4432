"""The shared library: how it is found and called, and its errors as exceptions."""
from __future__ import annotations

import ctypes
import errno
import os
import threading
from typing import Any

from . import _layouts


class Error(OSError):
    """
    Why a model cannot be opened or read. It is an OSError, and a FileNotFoundError, PermissionError,
    IsADirectoryError or BlockingIOError where these are meant.
    """

    rule: str | None = None  # the rule of ggufs(5), FINDINGS, that the file breaks: "overlap"
    remedy: str | None = None
    offset: int | None = None  # of the byte in the file that it is about

    @property
    def code(self) -> int:
        """The same as errno."""
        return self.errno or 0


class StaleError(Error):
    """A file of the model was replaced, or another header was written to it: open the model again."""


class UnsupportedType(Error, TypeError):
    """The values of this type of tensors cannot be decoded, or no encoder is there."""


_CLASSES: dict[int, type[Error]] = {errno.ESTALE: StaleError, errno.ENOTSUP: UnsupportedType}
for _number, _base in ((errno.ENOENT, FileNotFoundError), (errno.EACCES, PermissionError),
                       (errno.EISDIR, IsADirectoryError), (errno.ENOTDIR, NotADirectoryError),
                       (errno.EAGAIN, BlockingIOError)):
    _CLASSES[_number] = type("Error", (Error, _base), {"__module__": "ggufs"})


def error(code: int, message: str | None = None, path: str | None = None) -> Error:
    """The exception for a negative errno."""
    kind = _CLASSES.get(-code, Error)
    return kind(-code, message or os.strerror(-code), *([path] if path is not None else []))


def check(code: int, path: str | None = None) -> int:
    if code < 0:
        raise MemoryError() if code == -errno.ENOMEM else error(code, None, path)
    return code


def _load() -> ctypes.CDLL:
    beside = os.path.join(os.path.dirname(__file__), "libggufs.so.0")
    path = os.environ.get("GGUFS_LIBRARY") or (beside if os.path.exists(beside) else "libggufs.so.0")
    library = ctypes.CDLL(path)
    for name, (result, parameters) in _layouts.FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, parameters
    return library


library: Any = _load()


def text(data: bytes | None) -> str:
    """Bytes of a file or of the system; those that are not UTF-8 become lone surrogates."""
    return (data or b"").decode("utf-8", "surrogateescape")


def string(value: Any) -> str:
    """A struct ggufs_string."""
    return text(ctypes.string_at(value.data, value.length_bytes) if value.length_bytes else b"")


def address(buffer: Any, n_bytes: int, is_written: bool = True) -> Any:
    """What a function takes for a contiguous buffer of at least n_bytes; it keeps the buffer alive."""
    view = memoryview(buffer)
    if is_written and view.readonly:
        raise ValueError("the buffer is read-only")
    if not view.c_contiguous:
        raise ValueError("the buffer is not contiguous in C order")
    if view.nbytes < n_bytes:
        raise ValueError(f"the buffer has {view.nbytes} bytes, but {n_bytes} are needed")
    if view.nbytes == 0:
        return None
    if view.readonly:
        return _ReadOnly(view)
    return (ctypes.c_char * view.nbytes).from_buffer(view.cast("B") if view.ndim else view)


class _PyBuffer(ctypes.Structure):
    """The beginning of Py_buffer, which never changes."""

    _fields_ = [("buf", ctypes.c_void_p), ("rest", ctypes.c_char * 256)]


class _ReadOnly:
    """The address of a buffer that ctypes takes for no array, because it is read-only: bytes."""

    def __init__(self, view: memoryview) -> None:
        self._buffer = _PyBuffer()
        ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(view), ctypes.byref(self._buffer), 0)
        self._as_parameter_ = ctypes.c_void_p(self._buffer.buf)

    def __del__(self) -> None:
        ctypes.pythonapi.PyBuffer_Release(ctypes.byref(self._buffer))


class Handle:
    """An open model of the library. It is closed when nobody is in a call with it."""

    def __init__(self, path: str, options: str) -> None:
        self.path, self.options = path, options
        self._pointer = ctypes.c_void_p()
        self._changed = threading.Condition()
        self._n_users = 0
        why = _layouts.Error()
        code = library.ggufs_open(os.fsencode(path), options.encode("utf-8", "surrogateescape"),
                                  ctypes.byref(self._pointer), ctypes.byref(why))
        self.closed: bool = code < 0
        if code < 0:
            failure = error(code, text(why.message), path)
            failure.rule = text(why.rule) or None
            failure.remedy = text(why.remedy) or None
            failure.offset = None if why.offset == 2**64 - 1 else why.offset
            raise failure

    def __enter__(self) -> ctypes.c_void_p:
        with self._changed:
            if self.closed:
                raise ValueError("the model is closed")
            self._n_users += 1
        return self._pointer

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._n_users -= 1
            self._changed.notify_all()

    def close(self) -> None:
        with self._changed:
            if self.closed:
                return
            self.closed = True
            library.ggufs_cancel(self._pointer)
            while self._n_users > 0:
                self._changed.wait()
        library.ggufs_close(self._pointer)

    def __del__(self) -> None:
        if not getattr(self, "closed", True):
            self.close()
