#!/usr/bin/env python3
"""Installing, and the descriptions of packages for distributions. tests/packages/run builds and tries the packages."""
import glob
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import mounting

PACKAGING = os.path.join(mounting.ROOT, "contrib/packaging")


def read(*path):
    with open(os.path.join(mounting.ROOT, *path), encoding="utf-8") as file:
        return file.read()


def version():
    return re.search(r"^VERSION := (.*)$", read("Makefile"), re.M)[1]


class PackagingTestCase(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def run_make(self, target):
        done = subprocess.run([*mounting.MAKE, target, f"DESTDIR={self.folder}", "PREFIX=/usr"],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20 * mounting.DEADLINE,
                              check=False)
        self.assertEqual((0, ""), (done.returncode, done.stderr))

    def installed(self):
        return {os.path.relpath(os.path.join(folder, name), self.folder)
                for folder, _, names in os.walk(self.folder) for name in names}

    def test_install_and_uninstall(self):
        self.run_make("install")
        self.assertLessEqual({"usr/bin/ggufs", "usr/bin/ggufs-run", "usr/share/man/man1/ggufs.1",
                              "usr/share/man/man5/ggufs.5", "usr/share/man/man7/ggufs-admin.7"}, self.installed())
        self.run_make("uninstall")
        self.assertEqual(set(), self.installed())
        self.assertNotIn("ggufs", [name for _, names, _ in os.walk(self.folder) for name in names])

    def test_every_file_is_in_a_package(self):
        self.run_make("install")
        debian = {line.replace("vendor-completions", "site-functions").replace("/lib/*/", "/lib/").replace("so.0.*", "so." + version())
                  for path in glob.glob(os.path.join(PACKAGING, "debian", "*.install"))
                  for line in read(path).split()}
        self.assertEqual(self.installed(), debian)
        places = {"%{_bindir}": "usr/bin", "%{_sbindir}": "usr/sbin", "%{_mandir}": "usr/share/man",
                  "%{_datadir}": "usr/share", "%{_unitdir}": "usr/lib/systemd/system",
                  "%{_libdir}": "usr/lib", "%{_includedir}": "usr/include"}
        spec = set()
        for place, rest in re.findall(r"^(%\{_\w+\})(/\S+)$", read(PACKAGING, "ggufs.spec"), re.M):
            spec.add(places[place] + rest.removesuffix("*").replace("%{version}", version()))
        self.assertEqual(self.installed(), spec)

    def test_versions_agree(self):
        for name, pattern in (("debian/changelog", r"\Aggufs \((.*?)\) "), ("ggufs.spec", r"^Version: *(.*)$"),
                              ("PKGBUILD", r"^pkgver=(.*)$"), ("package.nix", r'version = "(.*)";')):
            with self.subTest(name):
                self.assertEqual(version(), re.search(pattern, read(PACKAGING, name), re.M)[1])

    def test_descriptions_parse(self):
        """By the programs that read them, as far as they are installed."""
        for command in (["bash", "-n", "PKGBUILD"], ["nix-instantiate", "--parse", "package.nix"],
                        ["rpmspec", "--parse", "ggufs.spec"]):
            with self.subTest(command[0]):
                if not shutil.which(command[0]):
                    continue
                done = subprocess.run(command, cwd=PACKAGING, capture_output=True, text=True,
                                      env={**os.environ, "HOME": self.folder}, check=False)
                self.assertEqual(0, done.returncode, done.stderr)

    @unittest.skipUnless(shutil.which("git") and os.path.exists(os.path.join(mounting.ROOT, ".git")),
                         "this tree is no clone, or git is missing")
    def test_release(self):
        tree = os.path.join(self.folder, "tree")
        done = subprocess.run(["git", "clone", "-q", "--no-hardlinks", mounting.ROOT, tree], capture_output=True,
                              text=True, check=False)
        if done.returncode != 0:  # git refuses the repositories of other users
            self.skipTest(f"this tree cannot be cloned: {done.stderr.splitlines()[0]}")
        script = [os.path.join(tree, "contrib/packaging/release"), version()]
        environment = {**os.environ, "SIGN": "no"}

        def release():
            return subprocess.run(script, capture_output=True, text=True, env=environment, check=False)

        changes = os.path.join(tree, "CHANGELOG.md")
        with open(changes, encoding="utf-8") as file:
            text = file.read()
        with open(changes, "w", encoding="utf-8") as file:
            file.write(re.sub(rf"^## {re.escape(version())}\b.*$", "## Unreleased", text, flags=re.M))
        refused = release()
        self.assertEqual((65, f"release: CHANGELOG.md does not have version {version()}\n"),
                         (refused.returncode, refused.stderr))
        with open(changes, "w", encoding="utf-8") as file:
            file.write(text.replace("## Unreleased", f"## {version()} - 2026-01-01", 1))
        tarball = os.path.join(tree, "build/release", f"ggufs-{version()}.tar.gz")
        contents = []
        for _ in range(2):
            done = release()
            self.assertEqual(0, done.returncode, done.stderr)
            with open(tarball, "rb") as file:
                contents.append(file.read())
        self.assertEqual(*contents)
        names = subprocess.run(["tar", "-tf", tarball], capture_output=True, text=True, check=True).stdout.split()
        self.assertIn(f"ggufs-{version()}/Makefile", names)
        # Signing needs a tag.
        environment["SIGN"] = "yes"
        refused = release()
        self.assertEqual(65, refused.returncode)
        self.assertIn("not committed", refused.stderr)
