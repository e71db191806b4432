#!/usr/bin/env python3
"""File handles, by which servers of NFS and virtiofs name files: they outlive the kernel's cache and
the daemon, and a handle of another model gives ESTALE."""

import contextlib
import ctypes
import errno
import os
import shutil
import struct

import mounting
from gguf_file import F32, Q8_0, STRING, GgufFile

MARKS = ("sanitize",)

AT_FDCWD = -100
MAX_HANDLE_BYTES = 128


def setUpModule():
    mounting.require_fuse()
    if os.geteuid() != 0:
        mounting.skip_loudly("only root may open files by handle")


class FileHandle(ctypes.Structure):
    """struct file_handle of fcntl.h"""
    _fields_ = [("handle_bytes", ctypes.c_uint), ("handle_type", ctypes.c_int),
                ("f_handle", ctypes.c_ubyte * MAX_HANDLE_BYTES)]


LIBC = ctypes.CDLL(None, use_errno=True)


def check(result, name):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), name)
    return result


def handle_of(path):
    """The file handle of a path, whose links are not followed."""
    handle = FileHandle(handle_bytes=MAX_HANDLE_BYTES)
    mount_id = ctypes.c_int()
    check(LIBC.name_to_handle_at(AT_FDCWD, os.fsencode(path), ctypes.byref(handle),
                                 ctypes.byref(mount_id), 0), path)
    return handle.handle_type, bytes(handle.f_handle[:handle.handle_bytes])


@contextlib.contextmanager
def opened(mountpoint, handle, flags):
    kind, data = handle
    raw = FileHandle(handle_bytes=len(data), handle_type=kind)
    raw.f_handle[:len(data)] = data
    mount = os.open(mountpoint, os.O_RDONLY | os.O_DIRECTORY)
    try:
        descriptor = check(LIBC.open_by_handle_at(mount, ctypes.byref(raw), flags), str(handle))
    finally:
        os.close(mount)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def content(descriptor):
    """What a node shows: a directory's names, a link's target, a file's bytes."""
    status = os.fstat(descriptor)
    path = f"/proc/self/fd/{descriptor}"
    if os.path.isdir(path):
        return sorted(os.listdir(path))
    if not os.path.isfile(path):
        return os.readlink("", dir_fd=descriptor)
    with open(path, "rb") as file:
        data = file.read()
    assert len(data) == status.st_size
    return data


def drop_caches():
    """Make the kernel forget inodes that nobody uses. Returns False if that is not permitted."""
    try:
        with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as file:
            file.write("2")
        return True
    except OSError:
        return False


class HandleTestCase(mounting.MountTestCase):
    def setUp(self):
        super().setUp()
        self.model = self.build(b"a name").write(self.path("model.gguf"))

    @staticmethod
    def build(name, data=b"0123456789abcdef"):
        built = GgufFile().key(b"general.name", STRING, name)
        built.tensor(b"blk.0.t", [4], F32, data)
        return built.tensor(b"q", [32], Q8_0, b"\0\x3c" + bytes(range(32)))

    def remount(self, *arguments):
        mounting.unmount(self.mountpoint)
        self.mount_in_background(*arguments, self.mountpoint)

    def handles(self):
        """The handle of every node but the root's, and what the node shows."""
        found = {}
        for folder, folders, files in os.walk(self.mountpoint):
            for name in folders + files:
                path = os.path.join(folder, name)
                descriptor = os.open(path, os.O_PATH | os.O_NOFOLLOW)
                found[os.path.relpath(path, self.mountpoint)] = (
                    handle_of(path), os.fstat(descriptor).st_ino, content(descriptor))
                os.close(descriptor)
        self.assertIn("layers/0/t", found)
        return found

    def assert_opened(self, handles):
        for name, (handle, inode, expected) in handles.items():
            with opened(self.mountpoint, handle, os.O_PATH) as descriptor:
                self.assertEqual(inode, os.fstat(descriptor).st_ino, name)
                self.assertEqual(expected, content(descriptor), name)

    def assert_stale(self, handles):
        for name, (handle, _, _) in handles.items():
            with self.assertRaises(OSError, msg=name) as caught:
                with opened(self.mountpoint, handle, os.O_RDONLY):
                    pass
            self.assertEqual("ESTALE", errno.errorcode[caught.exception.errno], name)


class TestHandles(HandleTestCase):
    def test_dropped_caches(self):
        self.mount(self.model)
        handles = self.handles()
        for _ in range(2):
            if not drop_caches():
                self.skipTest("caches cannot be dropped here")
            self.assert_opened(handles)
        self.assertEqual({name: handle for name, (handle, _, _) in handles.items()},
                         {name: handle for name, (handle, _, _) in self.handles().items()})

    def test_another_daemon_of_the_model(self):
        self.mount_in_background(self.model, self.mountpoint)
        handles = self.handles()
        self.remount(self.model)
        self.assert_opened(handles)
        self.assertEqual(handles, self.handles())
        copy = shutil.copy2(self.model, self.path("copy.gguf"))  # with its times
        self.remount("-o", "uid=1234,umask=077,direct_io,threads=3", copy)
        self.assertEqual(set(handles), set(self.handles()))
        self.assert_opened({name: known for name, known in handles.items()
                            if not name.endswith(("info", "tensors.json", "summary.txt"))})

    def test_place_of_a_handle(self):
        """The kernel finds the path of an unknown directory by its "..", and that of a file in a
        directory by reading this."""
        self.mount_in_background(self.model, self.mountpoint)
        handles = self.handles()
        self.remount(self.model)
        for name in ("tensors/blk.0.t", "layers/0", "metadata"):
            with opened(self.mountpoint, handles[name][0], os.O_RDONLY) as descriptor:
                path = os.path.join(self.mountpoint, name)
                self.assertEqual(path, os.readlink(f"/proc/self/fd/{descriptor}"))
                above = os.open("..", os.O_RDONLY, dir_fd=descriptor)
                self.assertTrue(os.path.samestat(os.fstat(above), os.stat(os.path.dirname(path))))
                os.close(above)

    def test_growing(self):
        """A file that is being downloaded has new times and sizes, and stays the same model."""
        data = self.build(b"a name").to_bytes()
        self.write("model.gguf", data[:-8])
        self.mount_in_background("-o", "partial", self.model, self.mountpoint)
        names = ("metadata.json", "tensors/blk.0.t/raw")
        handles = {name: handle_of(os.path.join(self.mountpoint, name)) for name in names}
        self.write("model.gguf", data)
        self.remount("-o", "partial", self.model)
        for name, handle in handles.items():
            with opened(self.mountpoint, handle, os.O_RDONLY) as descriptor, \
                    open(os.path.join(self.mountpoint, name), "rb") as file:
                self.assertEqual(file.read(), content(descriptor))


class TestStale(HandleTestCase):
    def test_other_models(self):
        """Same path, same tree, same sizes: the header, the data or the options differ."""
        self.mount_in_background(self.model, self.mountpoint)
        handles = self.handles()
        status = os.stat(self.model)
        at_the_same_time = {"ns": (status.st_atime_ns, status.st_mtime_ns)}

        other_header = self.build(b"b name").write(self.path("header.gguf"))
        os.utime(other_header, **at_the_same_time)
        other_data = self.build(b"a name", b"fedcba9876543210").write(self.path("data.gguf"))
        os.utime(other_data, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
        longer = self.write("longer.gguf", self.build(b"a name").to_bytes() + bytes(32))
        os.utime(longer, **at_the_same_time)
        for arguments in ((other_header,), (other_data,), (longer,),
                          ("-o", "dtype=f16", self.model), ("-o", "export=f16", self.model),
                          ("-o", "hf_shard=1M", self.model),
                          ("--set", "general.name=str:b name", self.model),
                          ("--unset", "general.name", self.model)):
            with self.subTest(arguments=arguments):
                self.remount(*arguments)
                self.assert_stale(handles)
        self.remount("--set", "general.name=str:b name", self.model)
        handles = self.handles()
        self.remount("--set", "general.name=str:c name", self.model)
        self.assert_stale(handles)
        self.remount("--set", "general.name=str:b name", self.model)
        self.assert_opened(handles)

    def test_edits_in_files(self):
        edits = self.write("edits.json", b'{"general.name": "b name"}')
        self.mount_in_background("--edits", edits, self.model, self.mountpoint)
        handles = self.handles()
        self.remount("--edits", edits, self.model)
        self.assert_opened(handles)
        self.write("edits.json", b'{"general.name": "c name"}')
        self.remount("--edits", edits, self.model)
        self.assert_stale(handles)

    def test_forged(self):
        """A client of NFS may send any handle."""
        self.mount(self.model)
        kind, data = handle_of(os.path.join(self.mountpoint, "metadata.json"))
        high, low, generation = struct.unpack("III", data)
        self.assertEqual(0, high)
        self.assertEqual(os.stat(os.path.join(self.mountpoint, "metadata.json")).st_ino, low)
        forged = [(0, 0, generation), (0, 1 << 31, generation), (0, 0xffffffff, generation),
                  (1, 0, generation), (1, low, generation), (0xffffffff, 0xffffffff, generation),
                  (0, low, generation ^ 1), (0, low, 0)]
        self.assert_stale({str(words): ((kind, struct.pack("III", *words)), None, None)
                           for words in forged})
        with opened(self.mountpoint, (kind, data), os.O_RDONLY) as descriptor:
            self.assertIn(b"a name", content(descriptor))
