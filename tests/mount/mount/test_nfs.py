#!/usr/bin/env python3
"""A mount that nfs-ganesha exports, read by libnfs: no kernel support is needed. Skipped unless the
Debian packages nfs-ganesha-vfs, rpcbind and libnfs13 are installed."""

import ctypes
import fcntl
import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile

import mounting
import test_handles

CLONE_NEWNS, CLONE_NEWNET = 0x20000, 0x40000000
MS_REC, MS_PRIVATE = 0x4000, 0x40000
SIOCSIFFLAGS, IFF_UP, IFF_RUNNING = 0x8914, 1, 0x40
NFS_PORT, MOUNT_PORT = 2049, 20048
SPARE_NUMBERS = 100

LIBC = ctypes.CDLL(None, use_errno=True)


def load_libnfs():
    try:
        library = ctypes.CDLL("libnfs.so.13")
    except OSError:
        return None
    library.nfs_init_context.restype = ctypes.c_void_p
    library.nfs_get_error.restype = ctypes.c_char_p
    library.nfs_parse_url_dir.restype = ctypes.c_void_p
    return library


LIBNFS = load_libnfs()


def setUpModule():
    test_handles.setUpModule()
    for program in ("ganesha.nfsd", "rpcbind"):
        if not shutil.which(program):
            mounting.skip_loudly(f"no {program} here")
    if not LIBNFS:
        mounting.skip_loudly("no libnfs here")
    # A network and a /run of this process's own: rpcbind has a fixed port and socket.
    mounting.require_namespace()
    if LIBC.unshare(CLONE_NEWNS | CLONE_NEWNET) != 0:
        mounting.skip_loudly("no network namespace can be made here")
    LIBC.mount(None, b"/", None, MS_REC | MS_PRIVATE, None)
    mounting.leave_other_mounts()
    for folder in ("/run", "/var/lib/nfs"):
        if os.path.isdir(folder):
            test_handles.check(LIBC.mount(b"none", os.fsencode(folder), b"tmpfs", 0, None), folder)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP | IFF_RUNNING))


def can_connect(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


CONFIGURATION = """
NFS_CORE_PARAM {{
    Protocols = 3; NFS_Port = {nfs}; MNT_Port = {mount};
    Enable_NLM = false; Enable_RQUOTA = false;
}}
EXPORT {{
    Export_Id = 1; Path = {path}; Pseudo = /model; Protocols = 3; Transports = TCP; SecType = sys;
    Access_Type = RO; Squash = No_Root_Squash; Filesystem_id = 7.7; FSAL {{ Name = VFS; }}
}}
"""


class Client:
    """A client of NFS 3, which keeps the handles of files that are open, however often the server
    restarts."""

    def __init__(self, path):
        self.context = ctypes.c_void_p(LIBNFS.nfs_init_context())
        url = f"nfs://127.0.0.1{path}?version=3&nfsport={NFS_PORT}&mountport={MOUNT_PORT}"
        assert LIBNFS.nfs_parse_url_dir(self.context, url.encode()), url
        self.check(LIBNFS.nfs_mount(self.context, b"127.0.0.1", path.encode()))

    def close(self):
        LIBNFS.nfs_destroy_context(self.context)

    def check(self, result):
        if result < 0:
            raise OSError(-result, LIBNFS.nfs_get_error(self.context).decode())
        return result

    def is_connected(self):
        """Look a path up. The first request after a restart may fail with the old connection."""
        status = (ctypes.c_uint64 * 32)()  # larger than struct nfs_stat_64
        return LIBNFS.nfs_stat64(self.context, b"/metadata.json", status) == 0

    def open(self, name):
        handle = ctypes.c_void_p()
        self.check(LIBNFS.nfs_open(self.context, b"/" + os.fsencode(name), os.O_RDONLY,
                                   ctypes.byref(handle)))
        return handle

    def read(self, handle, size):
        """Read a whole file of `size` bytes, and try to read on."""
        data, done = ctypes.create_string_buffer(size + 1), 0
        while True:
            n = self.check(LIBNFS.nfs_pread(
                self.context, handle, ctypes.c_uint64(done),
                ctypes.c_uint64(min(size + 1 - done, 65536)), ctypes.byref(data, done)))
            done += n
            if n == 0:
                return data.raw[:done]

    def inode_and_size(self, handle):
        status = (ctypes.c_uint64 * 32)()  # larger than struct nfs_stat_64
        self.check(LIBNFS.nfs_fstat64(self.context, handle, status))
        return status[1], status[7]

    def close_file(self, handle):
        LIBNFS.nfs_close(self.context, handle)


class TestNfs(test_handles.HandleTestCase):
    def setUp(self):
        super().setUp()
        self.server = None
        self.occupied = []
        self.addCleanup(lambda: self.free(len(self.occupied)))
        self.addCleanup(self.stop_server)
        portmapper = subprocess.Popen(["rpcbind", "-f"], stdin=subprocess.DEVNULL)
        self.addCleanup(portmapper.wait)
        self.addCleanup(portmapper.terminate)
        mounting.wait_until(lambda: can_connect(111), "no rpcbind")
        configuration = CONFIGURATION.format(nfs=NFS_PORT, mount=MOUNT_PORT, path=self.mountpoint)
        self.write("ganesha.conf", configuration.encode())

    def start_server(self):
        os.makedirs("/run/ganesha", exist_ok=True)
        self.server = subprocess.Popen(
            ["ganesha.nfsd", "-F", "-f", self.path("ganesha.conf"), "-L",
             self.path("ganesha.log"), "-p", self.path("ganesha.pid")], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        def answers():
            if self.server.poll() is not None:
                with open(self.path("ganesha.log"), encoding="utf-8") as log:
                    self.fail(f"the server ended: {log.read()}")
            return can_connect(NFS_PORT) and can_connect(MOUNT_PORT)
        mounting.wait_until(answers, "no server")

    def stop_server(self):
        if self.server:
            self.server.send_signal(signal.SIGKILL)
            self.server.wait()
            self.server = None

    def occupy(self):
        """Take the lowest device number that is free, and return it."""
        folder = tempfile.mkdtemp(dir=self.folder)
        test_handles.check(LIBC.mount(b"none", os.fsencode(folder), b"tmpfs", 0, None), folder)
        self.occupied.append(folder)
        return os.stat(folder).st_dev

    def free(self, n):
        """Give n device numbers back, the latest first."""
        for _ in range(n):
            test_handles.check(LIBC.umount2(os.fsencode(self.occupied.pop()), 0), "umount2")

    def mount_high(self):
        """Mount with a device number that nobody else gets, since lower ones are free."""
        for _ in range(SPARE_NUMBERS):
            self.occupy()
        self.mount_in_background(self.model, self.mountpoint)
        self.free(SPARE_NUMBERS)

    def mount_again(self, device, *arguments):
        """Mount and return True if the device number is this one, which the kernel gives if all lower
        ones are taken and others mount nothing meanwhile."""
        mounting.unmount(self.mountpoint)
        while self.occupy() < device:
            pass
        self.free(1)
        self.mount_in_background(*arguments, self.mountpoint)
        self.free(len(self.occupied))
        return os.stat(self.mountpoint).st_dev == device

    def remount(self, *arguments):
        """Restart the server, which keeps the mount busy. Its handles hold the device number."""
        self.stop_server()
        device = os.stat(self.mountpoint).st_dev
        mounting.wait_until(lambda: self.mount_again(device, *arguments), "the device number stays in use")
        self.start_server()

    def connect(self):
        def try_once():
            try:
                return Client(self.mountpoint)
            except OSError:  # it listens, but does not serve yet
                return None
        client = mounting.wait_until(try_once, "no client can connect")
        self.addCleanup(client.close)
        return client

    def test_survives_restarts(self):
        self.mount_high()
        self.start_server()
        client = self.connect()
        expected, inodes, opened = {}, {}, {}
        for folder, _, names in os.walk(self.mountpoint):
            for name in names:
                path = os.path.join(folder, name)
                if not os.path.islink(path):
                    name = os.path.relpath(path, self.mountpoint)
                    with open(path, "rb") as file:
                        expected[name] = file.read()
                        inodes[name] = os.fstat(file.fileno()).st_ino
        self.assertIn("tensors/q/f32", expected)
        for name in expected:
            opened[name] = client.open(name)

        def assert_same():
            for name, data in expected.items():
                self.assertEqual((inodes[name], len(data)), client.inode_and_size(opened[name]))
                self.assertEqual(data, client.read(opened[name], len(data)), name)
        assert_same()
        test_handles.drop_caches()
        assert_same()
        self.remount(self.model)
        mounting.wait_until(client.is_connected, "the client stays cut off")
        assert_same()
        self.remount(self.build(b"b name").write(self.path("other.gguf")))
        mounting.wait_until(client.is_connected, "the client stays cut off")
        for name, data in expected.items():
            with self.assertRaisesRegex(OSError, "NFS3ERR_STALE", msg=name):
                client.inode_and_size(opened[name])
            with self.assertRaises(OSError, msg=name):
                client.read(opened[name], len(data))
        handle = client.open("metadata/general.name.json")
        self.assertEqual(b'"b name"\n', client.read(handle, 9))
        for handle in (handle, *opened.values()):
            client.close_file(handle)
