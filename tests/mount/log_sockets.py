"""Sockets of the system's log and of a service manager, in a mount namespace of the tests' own."""

import ctypes
import os
import select
import socket
import stat
import struct

import mounting

CLONE_NEWNS = 0x20000
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18

SYSLOG = "/dev/log"

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result):
    if result != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def _mount(source, target, fs_type=None, flags=0):
    encoded = [None if text is None else os.fsencode(text) for text in (source, target, fs_type)]
    _check(_libc.mount(*encoded, ctypes.c_ulong(flags), None))


def _make_device_folder(old):
    """Fill the empty /dev with what a mount and Python need of the old one."""
    for name in sorted(os.listdir(old)):
        path = os.path.join(old, name)
        mode = os.lstat(path).st_mode
        if name in ("pts", "shm"):
            os.mkdir(os.path.join("/dev", name))
        elif name in ("fuse", "null", "zero", "full", "random", "urandom", "tty", "ptmx") and \
                stat.S_ISCHR(mode):
            os.close(os.open(os.path.join("/dev", name), os.O_CREAT | os.O_WRONLY))
        elif stat.S_ISLNK(mode) and name != "log":
            os.symlink(os.readlink(path), os.path.join("/dev", name))
            continue
        else:
            continue
        _mount(path, os.path.join("/dev", name), flags=MS_BIND)


def enter_private_system():
    """
    Give this process, and those that it starts, a /run and a /dev of its own, which are empty but
    for the devices. Returns the reason if that is impossible, else None.
    """
    if os.geteuid() != 0:
        return "only root can make a mount namespace"
    try:
        _check(_libc.unshare(CLONE_NEWNS))
        _mount(None, "/", flags=MS_REC | MS_PRIVATE)
        mounting.leave_other_mounts()
        _mount("tmpfs", "/run", "tmpfs")
        os.makedirs("/run/old-dev")
        _mount("/dev", "/run/old-dev", flags=MS_BIND | MS_REC)
        _mount("tmpfs", "/dev", "tmpfs")
        _make_device_folder("/run/old-dev")
    except OSError as error:
        return f"no mount namespace with a /run and a /dev of its own: {error.strerror}"
    return None


class Receiver:
    """A datagram socket at a path, or at an abstract name that begins with NUL."""

    def __init__(self, path):
        self.path = path
        if not path.startswith("\0"):
            os.makedirs(os.path.dirname(path), exist_ok=True)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self.socket.bind(path)
        self.socket.settimeout(mounting.DEADLINE)

    def close(self):
        self.socket.close()
        if not self.path.startswith("\0") and os.path.exists(self.path):
            os.unlink(self.path)

    def receive(self):
        """Return the next datagram, and the process that sent it."""
        data, control, _, _ = self.socket.recvmsg(1 << 20, socket.CMSG_SPACE(12))
        for _, kind, value in control:
            if kind == socket.SCM_CREDENTIALS:
                return data, struct.unpack("iII", value)[0]
        raise AssertionError("no credentials")

    def is_empty(self):
        return not select.select([self.socket], [], [], 0)[0]
