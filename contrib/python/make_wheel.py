#!/usr/bin/env python3
"""Writes the wheel of the package, with the shared library inside: make_wheel.py VERSION LIBRARY FOLDER"""
import base64
import glob
import hashlib
import os
import platform
import sys
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
TAG = f"py3-none-manylinux_2_34_{platform.machine()}"  # Debian 12, Ubuntu 22.04, RHEL 9 and newer
METADATA = """Metadata-Version: 2.1
Name: ggufs
Version: {version}
Summary: Reads language models in GGUF files
License: MIT
Requires-Python: >=3.9
Provides-Extra: numpy
Requires-Dist: numpy; extra == "numpy"
"""
WHEEL = f"Wheel-Version: 1.0\nGenerator: make_wheel.py\nRoot-Is-Purelib: false\nTag: {TAG}\n"


def read(path):
    with open(path, "rb") as file:
        return file.read()


def members(version, library):
    for path in sorted(glob.glob(os.path.join(HERE, "ggufs", "*.py")) + [os.path.join(HERE, "ggufs", "py.typed")]):
        yield "ggufs/" + os.path.basename(path), read(path)
    yield "ggufs/libggufs.so.0", read(library)
    info = f"ggufs-{version}.dist-info/"
    yield info + "METADATA", METADATA.format(version=version).encode()
    yield info + "WHEEL", WHEEL.encode()
    yield info + "licenses/LICENSE", read(os.path.join(HERE, "..", "..", "LICENSE"))


def main(version, library, folder):
    files = dict(members(version, library))
    record = "".join(f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}\n"
                     for name, data in files.items())
    name = f"ggufs-{version}.dist-info/RECORD"
    files[name] = (record + f"{name},,\n").encode()
    path = os.path.join(folder, f"ggufs-{version}-{TAG}.whl")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name)  # the date is fixed, so that the same input gives the same wheel
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)
    print(path)


if __name__ == "__main__":
    main(*sys.argv[1:])
