#!/usr/bin/env python3
"""Writes the wheel of the package: make_wheel.py VERSION TREE FOLDER

TREE is what contrib/packaging/build-dist made. Its library, programs and licences go into the wheel.
"""
import base64
import glob
import hashlib
import os
import struct
import sys
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
MACHINES = {62: "x86_64", 183: "aarch64"}  # by the ELF header of the library
METADATA = """Metadata-Version: 2.1
Name: ggufs
Version: {version}
Summary: Reads language models in GGUF files
License: MIT; the libraries inside: see licenses/
Requires-Python: >=3.9
Provides-Extra: numpy
Requires-Dist: numpy; extra == "numpy"
Description-Content-Type: text/markdown

"""
WHEEL = "Wheel-Version: 1.0\nGenerator: make_wheel.py\nRoot-Is-Purelib: false\nTag: {tag}\n"


def read(*path):
    with open(os.path.join(*path), "rb") as file:
        return file.read()


def names(*path):
    return sorted(map(os.path.basename, glob.glob(os.path.join(*path))))


def main(version, tree, folder):
    library = read(tree, "lib", "libggufs.so.0")
    # Debian 12, Ubuntu 22.04, RHEL 9 and newer
    tag = "py3-none-manylinux_2_34_" + MACHINES[struct.unpack_from("<H", library, 18)[0]]
    info = f"ggufs-{version}.dist-info/"
    licences = os.path.join(tree, "share", "doc", "ggufs", "licenses")
    files = {"ggufs/" + name: read(HERE, "ggufs", name) for name in names(HERE, "ggufs", "*.py") + ["py.typed"]}
    files["ggufs/libggufs.so.0"] = library
    for name in ("ggufs", "ggufs-run"):
        files[f"ggufs-{version}.data/scripts/{name}"] = read(tree, "bin", name)
    for name in names(licences, "*"):
        files[info + "licenses/" + name] = read(licences, name)
    files[info + "METADATA"] = METADATA.format(version=version).encode() + read(HERE, "README.md")
    files[info + "WHEEL"] = WHEEL.format(tag=tag).encode()
    record = "".join(f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}\n"
                     for name, data in files.items())
    files[info + "RECORD"] = f"{record}{info}RECORD,,\n".encode()
    path = os.path.join(folder, f"ggufs-{version}-{tag}.whl")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name)  # the date is fixed, so that the same input gives the same wheel
            entry.external_attr = (0o100755 if "/scripts/" in name else 0o100644) << 16  # pip wants the type as well
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)
    print(path)


if __name__ == "__main__":
    main(*sys.argv[1:])
