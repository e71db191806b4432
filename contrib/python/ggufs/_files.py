"""The files of the tree that `ggufs` mounts, without a mount."""
from __future__ import annotations

import ctypes
import difflib
import io
import weakref
from collections.abc import Iterator, Mapping
from typing import Any

from . import _layouts
from ._library import Handle, address, check, library, text


class _RawFile(io.RawIOBase):
    """A file of the tree for io.BufferedReader."""

    def __init__(self, handle: Handle, node: int, name: str) -> None:
        super().__init__()
        self._handle, self.name, self._offset = handle, name, 0
        self._file = ctypes.c_void_p()
        size = ctypes.c_uint64()
        with handle as model:
            check(library.ggufs_node_size(model, node, ctypes.byref(size)), name)
            check(library.ggufs_open_file(model, node, ctypes.byref(self._file)), name)
        self.size = size.value

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        target = offset + (0, self._offset, self.size)[whence]
        if target < 0:
            raise ValueError(f"negative position {target}")
        self._offset = target
        return target

    def tell(self) -> int:
        return self._offset

    def readinto(self, buffer: Any) -> int:
        if self.closed:
            raise ValueError("the file is closed")
        n_bytes = memoryview(buffer).nbytes
        with self._handle:
            n: int = check(library.ggufs_pread(self._file, address(buffer, 0), n_bytes, self._offset), self.name)
        self._offset += n
        return n

    def close(self) -> None:
        if not self.closed and self._file:
            with self._handle:
                library.ggufs_close_file(self._file)
                self._file = ctypes.c_void_p()
        super().close()


class File:
    """A file of the tree."""

    def __init__(self, files: Files, path: str, node: int) -> None:
        self._files, self.path, self._node = files, path, node

    @property
    def size(self) -> int:
        """Bytes. A text is written once to count them."""
        size = ctypes.c_uint64()
        with self._files._handle as model:
            check(library.ggufs_node_size(model, self._node, ctypes.byref(size)), self.path)
        return size.value

    def open(self) -> io.BufferedReader:
        raw = _RawFile(self._files._handle, self._node, self.path)
        self._files._opened.add(raw)
        return io.BufferedReader(raw, 1 << 20)

    def read_bytes(self) -> bytes:
        with self.open() as file:
            return file.read()

    def read_text(self) -> str:
        return self.read_bytes().decode("utf-8", "surrogateescape")

    def __repr__(self) -> str:
        return f"<ggufs.File {self.path!r}>"


class Files(Mapping[str, File]):
    """The files by path, "hf/config.json". Links are followed, but are not among the paths that iterating gives."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._opened: weakref.WeakSet[_RawFile] = weakref.WeakSet()

    def _find(self, path: str) -> tuple[int, Any]:
        node, info = ctypes.c_uint32(), _layouts.NodeInfo()
        with self._handle as model:
            check(library.ggufs_find_node(model, path.encode("utf-8", "surrogateescape"), ctypes.byref(node)), path)
            check(library.ggufs_describe_node(model, node, ctypes.byref(info)), path)
        return node.value, info

    def __getitem__(self, path: str) -> File:
        try:
            node, info = self._find(path)
        except (FileNotFoundError, NotADirectoryError):
            near = difflib.get_close_matches(path, self, 1)
            raise KeyError(f"no file {path!r}{f'; did you mean {near[0]!r}?' if near else ''}") from None
        if info.kind != _layouts.FILE:
            raise KeyError(f"{path!r} is a directory: m.files.list({path!r})")
        return File(self, path, node)

    def open(self, path: str) -> io.BufferedReader:
        return self[path].open()

    def list(self, path: str = "") -> list[str]:
        """The names in a directory, sorted."""
        node, info = self._find(path)
        return [text(child.name) for _, child in self._children(node, info.n_children)]

    def _children(self, node: int, n_children: int) -> Iterator[tuple[int, Any]]:
        child = ctypes.c_uint32()
        for i in range(n_children):
            info = _layouts.NodeInfo()
            with self._handle as model:
                check(library.ggufs_child(model, node, i, ctypes.byref(child)))
                check(library.ggufs_describe_node(model, child, ctypes.byref(info)))
            yield child.value, info

    def _walk(self, prefix: str, node: int, n_children: int) -> Iterator[str]:
        for child, info in self._children(node, n_children):
            path = prefix + text(info.name)
            if info.kind == _layouts.FILE:
                yield path
            elif info.kind == _layouts.DIRECTORY:
                yield from self._walk(path + "/", child, info.n_children)

    def __iter__(self) -> Iterator[str]:
        node, info = self._find("")
        return self._walk("", node, info.n_children)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def close(self) -> None:
        for raw in [*self._opened]:
            raw.close()
