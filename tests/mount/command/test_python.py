#!/usr/bin/env python3
"""The Python package: its own tests, its types, and its wheel in a folder of its own."""
import ast
import os
import shutil
import subprocess
import sys
import zipfile

import mounting

PACKAGE = os.path.join(mounting.ROOT, "contrib/python")
LIBRARY = os.path.join(os.path.dirname(mounting.BINARY), "libggufs.so")


class PythonTestCase(mounting.MountTestCase):
    def setUp(self):
        super().setUp()
        mounting.require_binary()
        if mounting.is_sanitized():
            self.skipTest("Python is not built with sanitizers")

    def run_python(self, *arguments, **environment):
        done = subprocess.run([sys.executable, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=20 * mounting.DEADLINE, check=False, cwd=self.folder,
                              env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": PACKAGE,
                                   "GGUFS_FIXTURES": mounting.FIXTURES, **environment})
        self.assertEqual(0, done.returncode, done.stdout[-5000:] + done.stderr[-3000:])
        return done.stdout

    def require_module(self, name):
        if subprocess.run([sys.executable, "-c", f"import {name}"], capture_output=True, check=False).returncode != 0:
            mounting.skip_loudly(f"Python has no {name}")

    def test_own_tests(self):
        self.require_module("pytest")
        said = self.run_python("-m", "pytest", "-q", "-p", "no:cacheprovider", os.path.join(PACKAGE, "tests"),
                               GGUFS_LIBRARY=LIBRARY)
        self.assertRegex(said, r"\n[4-9]\d passed")

    def test_types(self):
        self.require_module("mypy")
        said = self.run_python("-m", "mypy", "--strict", "--cache-dir", self.path("cache"), os.path.join(PACKAGE, "ggufs"))
        self.assertIn("Success", said)

    def test_size_and_syntax(self):
        """The package is small, and Python 3.9 can read it."""
        lines = 0
        for folder, _, names in os.walk(os.path.join(PACKAGE, "ggufs")):
            for name in names:
                if name.endswith(".py") and name != "_layouts.py":
                    with open(os.path.join(folder, name), encoding="utf-8") as file:
                        text = file.read()
                    ast.parse(text, name, feature_version=(3, 9))
                    lines += text.count("\n")
        self.assertLess(lines, 1000)

    def test_wheel(self):
        """Two wheels are the same, pip makes the programs in them executable, and a program that has nothing else reads a model."""
        tree = self.path("tree")
        for path in ("lib/libggufs.so.0", "bin/ggufs", "bin/ggufs-run", "share/doc/ggufs/licenses/ggufs"):
            os.makedirs(os.path.join(tree, os.path.dirname(path)), exist_ok=True)
            shutil.copyfile(LIBRARY if "lib/" in path else mounting.BINARY, os.path.join(tree, path))
        paths = []
        for name in ("a", "b"):
            os.mkdir(self.path(name))
            paths.append(self.run_python(os.path.join(PACKAGE, "make_wheel.py"), "1.2.3", tree, self.path(name)).strip())
        self.assertRegex(paths[0], r"/ggufs-1\.2\.3-py3-none-manylinux_2_34_\w+\.whl$")
        with open(paths[0], "rb") as one, open(paths[1], "rb") as other:
            self.assertTrue(one.read() == other.read())
        with zipfile.ZipFile(paths[0]) as wheel:
            wheel.extractall(self.path("site"))
            modes = {entry.filename: entry.external_attr >> 16 for entry in wheel.infolist()}
        for name in ("ggufs", "ggufs-run"):
            self.assertEqual(0o100755, modes[f"ggufs-1.2.3.data/scripts/{name}"])
        self.assertIn("ggufs-1.2.3.dist-info/licenses/ggufs", modes)
        shutil.copyfile(mounting.SAMPLE, self.path("x.gguf"))
        program = "import ggufs; m = ggufs.open('x.gguf'); print(len(m.tensors), m.open('summary.txt').readline())"
        said = self.run_python("-c", program, PYTHONPATH=self.path("site"), GGUFS_LIBRARY="")
        self.assertRegex(said, r"^\d+ b'name  ")
