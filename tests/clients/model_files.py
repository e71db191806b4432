"""Models of the fixtures, and files of their trees without a mount.

GGUFS and GGUFS_FIXTURES are as in tests/mount.
"""

import os
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
GGUFS = os.environ.get("GGUFS", str(ROOT / "build/ggufs"))
FIXTURES = pathlib.Path(os.environ.get("GGUFS_FIXTURES", ROOT.parent / "shared/fixtures"))


def fixtures(*folders):
    return sorted(path for folder in folders for path in (FIXTURES / folder).glob("*")
                  if path.suffix in (".gguf", ".bin"))


def read(model, path, *options):
    """Return a file of the model's tree, or None if there is none."""
    done = subprocess.run([GGUFS, *options, "--cat", str(model), path], capture_output=True, check=False)
    return done.stdout if done.returncode == 0 else None


class ModelTestCase(unittest.TestCase):
    """`path` is that of a model in a temporary folder, which a test may write."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="ggufs-")
        self.addCleanup(self.folder.cleanup)
        self.path = os.path.join(self.folder.name, "model.gguf")
