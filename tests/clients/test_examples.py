#!/usr/bin/env python3
"""The programs in contrib/examples print what its README.md shows, on the sample model."""

import os
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "mount"))
import mounting  # noqa: E402

EXAMPLES = ROOT / "contrib" / "examples"
SECONDS = 300

setUpModule = mounting.require_fuse


def sessions():
    """The commands of the README with what they print."""
    text = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    for block in re.findall(r"^```\n(\$ .*?)^```\n", text, re.M | re.S):
        for step in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, _, printed = step.partition("\n")
            yield command, printed


class TestExamples(mounting.MountTestCase):
    def setUp(self):
        super().setUp()
        self.mount_in_background(mounting.sample(), self.mountpoint)
        os.symlink(ROOT / "contrib", self.path("contrib"))

    def run_session(self, command):
        python = f'python3() {{ "{sys.executable}" "$@"; }}'
        return subprocess.run(["bash", "-c", f"set -eo pipefail\n{python}\n{command}"],
                              cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=SECONDS, check=False,
                              env={**os.environ, "LC_ALL": "C.UTF-8", "TOKENIZERS_PARALLELISM": "false",
                                   "PATH": f"{ROOT}/build:{os.environ['PATH']}",
                                   "PYTHONPATH": f"{ROOT}/contrib/python",
                                   "GGUFS_LIBRARY": f"{ROOT}/build/libggufs.so"})

    def test_sessions(self):
        for command, printed in sessions():
            with self.subTest(command=command):
                done = self.run_session(command)
                self.assertEqual(0, done.returncode, done.stderr)
                self.assertEqual(printed.split("\n"), done.stdout.split("\n"))

    def test_every_program_is_shown(self):
        shown = " ".join(command for command, _ in sessions())
        for path in EXAMPLES.iterdir():
            if path.suffix in (".py", ".sh"):
                self.assertIn(path.name, shown)


if __name__ == "__main__":
    unittest.main()
