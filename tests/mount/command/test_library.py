#!/usr/bin/env python3
"""libggufs as programs find it: installed, with its manual's programs, and on files that are bad or get lost."""
import glob
import os
import platform
import re
import shlex
import shutil
import subprocess

import numpy

import mounting

BUILD = os.path.dirname(mounting.BINARY)
WALK = os.path.join(BUILD, "walk-library")
MAKE_HOSTILE = os.path.join(mounting.ROOT, "build", "make-hostile")


def setUpModule():
    mounting.require_binary()


def run(*command, **options):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False,
                          timeout=20 * mounting.DEADLINE, **options)
    if done.returncode != 0:
        raise AssertionError(f"{shlex.join(command)}: {done.returncode}\n{done.stderr.decode(errors='replace')}")
    return done.stdout


def cat(model, path, *options):
    return run(mounting.BINARY, *mounting.MOUNT_OPTIONS, *options, "--cat", path, model)


class InstalledTestCase(mounting.MountTestCase):
    """The programs in ggufs(3), compiled with what `make install` installs."""

    @classmethod
    def programs(cls):
        with open(os.path.join(mounting.ROOT, "ggufs.3"), encoding="utf-8") as file:
            found = re.findall(r"^\.Bd -literal\n(#include.*?)^\.Ed", file.read(), re.M | re.S)
        return [program.replace("\\e", "\\") for program in found]

    def install(self):
        folder = self.path("installed")
        run(*mounting.MAKE, "install", f"DESTDIR={folder}", "PREFIX=/usr")
        return folder

    def compile(self, source, compiler, *flags):
        program = self.path("program")
        run(*shlex.split(compiler), "-Wall", "-Wextra", "-Werror", "-o", program, source, *flags)
        return program

    def check_means(self, program):
        printed = dict(line.rsplit("\t", 1) for line in run(program, mounting.SAMPLE).decode().splitlines())
        self.assertGreater(len(printed), 20)
        for name, mean in printed.items():
            values = numpy.frombuffer(cat(mounting.SAMPLE, f"tensors/{name}/f32"), "<f4")
            self.assertAlmostEqual(values.mean(dtype="f8"), float(mean), 7, name)

    def check_tokens(self, program):
        model = mounting.SAMPLE
        self.assertEqual(cat(model, "tokenizer/tokens.txt").count(b"\n"), run(program, model).count(b"\n"))

    def check_file(self, program):
        model = mounting.SAMPLE
        for path in ("model.safetensors", "metadata.json"):
            self.assertEqual(cat(model, path, "-o", "dtype=f16"), run(program, model, path))
        done = subprocess.run([program, model, "none"], capture_output=True, text=True, check=False)
        self.assertEqual((1, "none: No such file or directory\n"), (done.returncode, done.stderr))

    def test_programs_of_the_manual(self):
        if mounting.is_sanitized():
            self.skipTest("compiled without sanitizers")
        folder = self.install()
        libraries = os.path.join(folder, "usr/lib")
        environment = {**os.environ, "PKG_CONFIG_PATH": os.path.join(libraries, "pkgconfig"),
                       "PKG_CONFIG_SYSROOT_DIR": folder}
        flags = run("pkg-config", "--cflags", "--libs", "ggufs", env=environment).decode().split()
        static = run("pkg-config", "--static", "--libs-only-other", "--libs-only-l", "ggufs", env=environment).decode()
        static = [os.path.join(libraries, "libggufs.a"), f"-I{folder}/usr/include",
                  *static.replace("-lggufs", "").split()]
        checks = (self.check_means, self.check_tokens, self.check_file)
        programs = self.programs()
        self.assertEqual(len(checks), len(programs))
        for text, check in zip(programs, checks):
            source = self.path("program.c")
            with open(source, "w", encoding="utf-8") as file:
                file.write(text)
            shutil.copyfile(source, source + "c")
            check(self.compile(source, "cc -std=c11 -D_DEFAULT_SOURCE", *flags, f"-Wl,-rpath,{libraries}"))
            check(self.compile(source, "cc", *static))
            if shutil.which("c++"):
                check(self.compile(source + "c", "c++ -std=c++17 -x c++", *flags, f"-Wl,-rpath,{libraries}"))

    def test_exports(self):
        """Nothing but ggufs_* is visible, each function of the header is there, and nothing else is needed."""
        library = os.path.join(BUILD, "libggufs.so")
        with open(os.path.join(mounting.ROOT, "fs/library/ggufs.h"), encoding="utf-8") as file:
            declared = set(re.findall(r"^(?!static)\w[^;{}#]*?\b(ggufs_\w+)\([^{}]*?\);", file.read(), re.M))
        self.assertGreaterEqual(len(declared), 29)
        self.assertLessEqual(len(declared), 30)
        defined = run("nm", "-D", "--defined-only", library).decode()
        self.assertEqual(declared | {"GGUFS_0"}, {line.split()[2].partition("@")[0] for line in defined.splitlines()})
        if not mounting.is_sanitized():
            needed = re.findall(r"NEEDED.*\[(.*?)\]", run("readelf", "-d", library).decode())
            self.assertEqual({"libc", "libcjson", "libm", "libnettle", "libunistring"},
                             {name.partition(".")[0] for name in needed if not name.startswith("ld-")})
            self.assertIn("Library soname: [libggufs.so.0]", run("readelf", "-d", library).decode())
            static = run("nm", "-g", "--defined-only", os.path.join(BUILD, "libggufs.a")).decode()
            self.assertEqual(declared, {line.split()[2] for line in static.splitlines() if len(line.split()) == 3})

    def test_interface_of_the_last_release(self):
        """Functions and structures that programs know are there as they were. `make abi` records a change that is meant."""
        if mounting.is_sanitized() or platform.machine() != "x86_64":
            self.skipTest("the file is of the ordinary library of x86_64")
        if not shutil.which("abidiff"):
            mounting.skip_loudly("no abidiff")
        done = subprocess.run(["abidiff", "--no-added-syms", os.path.join(mounting.ROOT, "contrib/packaging/libggufs.abi"),
                               os.path.join(BUILD, "libggufs.so")], capture_output=True, text=True, check=False)
        self.assertEqual(0, done.returncode, done.stdout[-3000:] + done.stderr[-1000:])


@mounting.mark("sanitize")
class HostileLibraryTestCase(mounting.MountTestCase):
    def walk(self, *arguments):
        # Freed memory that a thread keeps for itself would look as if it were in use.
        environment = {**os.environ, "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}
        return run(WALK, *arguments, env=environment).decode().splitlines()[-1]

    def test_hostile_files(self):
        folder = self.path("hostile")
        run(MAKE_HOSTILE, folder)
        with open(os.path.join(folder, "expected.tsv"), encoding="utf-8", errors="surrogateescape") as file:
            rows = [line.rstrip("\n").split("\t") for line in file]
        # Tensors whose names clash as file names can be read.
        good = [row[0] for row in rows if row[2] == "0" or "same file name" in row]
        bad = [row[0] for row in rows if row[0] not in good]
        for names, expected in ((good, f"{len(good)} opened, 0 refused"), (bad, f"0 opened, {len(bad)} refused")):
            self.assertGreater(len(names), 30)
            self.assertEqual(expected, self.walk(*(os.path.join(folder, name) for name in names)))

    def test_corpora(self):
        paths = glob.glob(os.path.join(mounting.ROOT, "tests/fuzz/corpus/tree/*"))
        paths += glob.glob(os.path.join(mounting.ROOT, "build/fuzz/seeds/tree/*"))
        opened, refused = map(int, re.findall(r"\d+", self.walk(*paths)))
        self.assertEqual(len(paths), opened + refused)
        self.assertGreater(opened, 0)
        self.assertGreater(refused, 50)

    def test_a_thousand_times(self):
        """The program fails if memory or descriptors grow."""
        bad = self.path("bad.gguf")
        with open(mounting.SAMPLE, "rb") as file, open(bad, "wb") as cut:
            cut.write(file.read(5000))
        model = mounting.fixture("gguf/every-kv-type.gguf") if os.path.isdir(mounting.FIXTURES) else mounting.SAMPLE
        self.assertEqual("1 opened, 1 refused", self.walk("-n", "1000", model, bad))

    def test_a_file_that_is_cut_while_threads_read(self):
        path = self.path("model.gguf")
        for options in ([], ["mapped"]):
            shutil.copyfile(mounting.SAMPLE, path)
            self.assertEqual("4 readers failed as they should", self.walk("-t", path, *options))
