#!/usr/bin/env python3
"""The sessions and snippets of README.md, run on the sample model of contrib/demo."""
import json
import os
import re
import shutil
import subprocess
import unittest

import mounting

setUpModule = mounting.require_fuse


def blocks(heading):
    """The blocks of code in a section of README.md."""
    with open(os.path.join(mounting.ROOT, "README.md"), encoding="utf-8") as file:
        section, = re.findall(rf"^## {heading}\n(.*?)(?=^## |\Z)", file.read(), re.M | re.S)
    return re.findall(r"^```\w*\n(.*?)^```\n", section, re.M | re.S)


def steps(block):
    """The commands of a session, each with what it prints."""
    return [(step.partition("\n")[0], step.partition("\n")[2])
            for step in re.split(r"^\$ ", block, flags=re.M)[1:]]


class ReadmeTestCase(mounting.MountTestCase):
    def setUp(self):
        super().setUp()
        os.mkdir(self.path("build"))
        shutil.copy(mounting.sample(), self.path("build/sample.gguf"))

    def run_shell(self, command):
        """Runs it where the sample is, with ggufs in the path."""
        ggufs = f'ggufs() {{ "{mounting.BINARY}" {" ".join(mounting.MOUNT_OPTIONS)} "$@"; }}'
        done = subprocess.run(["bash", "-c", f"set -eo pipefail\n{ggufs}\n{command}"],
                              cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=mounting.DEADLINE, env={**os.environ, "LC_ALL": "C.UTF-8"})
        return mounting.Result(done.returncode, done.stdout.decode(), done.stderr.decode())

    def test_what_you_see(self):
        self.mount(self.path("build/sample.gguf"))  # as contrib/demo leaves it
        session, = blocks("What you see")
        for command, printed in steps(session):
            with self.subTest(command=command):
                result = self.run_shell(command)
                self.assertEqual((0, ""), (result.status, result.err))
                # A terminal gets columns where a pipe gets lines.
                self.assertEqual(printed.split(), result.out.split())

    def test_the_refusal(self):
        session, = blocks("Safety")
        result = None
        for command, printed in steps(session):
            result = self.run_shell(command)
        self.assertEqual((65, ""), (result.status, result.err))
        shown = " ".join(printed.partition("…")[0].split())
        self.assertIn("unfinished download?", shown)
        self.assertTrue(" ".join(result.out.split()).startswith(shown), result.out)

    def test_cookbook(self):
        sample = self.path("build/sample.gguf")
        for name in ("mnt", "a", "b"):
            mountpoint = self.mountpoint if name == "mnt" else self.new_mountpoint(name)
            self.mount(sample, mountpoint=mountpoint)
        shutil.copy(sample, self.path("old.gguf"))
        block, = blocks("Cookbook")
        result = self.run_shell(block)
        self.assertEqual((0, ""), (result.status, result.err))
        with open(os.path.join(self.mountpoint, "tensors.json"), encoding="utf-8") as file:
            tensors = json.load(file)
        lines = result.out.split("\n")
        self.assertEqual(str(sum(tensor["n_elements"] for tensor in tensors)), lines.pop(0))
        types = sorted({tensor["type"] for tensor in tensors})
        for name in types:
            some = [tensor["n_bytes"] for tensor in tensors if tensor["type"] == name]
            self.assertEqual(f"{name}\t{len(some)}\t{sum(some)}", lines.pop(0))
        for layer in ("0", "1", "2", "3", "other"):
            some = [tensor["n_bytes"] for tensor in tensors
                    if (tensor["name"].split(".")[1] if tensor["name"].startswith("blk.")
                        else "other") == layer]
            self.assertEqual(f"{layer}\t{sum(some)}", lines.pop(0))
        largest = max(tensor["n_bytes"] for tensor in tensors)
        self.assertEqual(str(largest), lines[0].split("\t")[0])
        self.assertIn("{%- for message in messages %}", lines[5])
        self.assertRegex(lines[-2], '^".+"$')
        info = self.run_ggufs("--info", *mounting.MOUNT_OPTIONS, self.path("new.gguf"))
        self.assertEqual("name            My model", info.out.split("\n")[0])
        info = self.run_ggufs("--info", *mounting.MOUNT_OPTIONS, self.path("q8_0.gguf"))
        self.assertRegex(info.out, "\nquantization +Q8_0\n")

    def test_perplexity(self):
        """The numbers depend a little on the kernels."""
        self.mount(self.path("build/sample.gguf"))
        session, = blocks("Run the model")
        (command, printed), = [step for step in steps(session) if "--perplexity" in step[0]]
        shutil.copy(os.path.join(mounting.ROOT, "LICENSE"), self.folder)
        result = self.run_shell(f'PATH={os.path.dirname(mounting.BINARY)}:$PATH {command}')
        self.assertEqual(0, result.status, result)
        self.assertEqual(re.sub(r"[\d.]+", "", printed), re.sub(r"[\d.]+", "", result.out))
        for expected, number in zip(printed.split(), result.out.split()):
            if re.fullmatch(r"[\d.]+", expected):
                self.assertAlmostEqual(float(expected), float(number), delta=float(expected) / 100)

    def test_numpy(self):
        self.mount(self.path("build/sample.gguf"))
        block, = blocks("NumPy and PyTorch")
        result = self.run_shell("python=$(test -x /usr/bin/python3 && echo /usr/bin/python3 || echo python3)\n"
                                f"$python - <<'END'\n{block}\nprint(w.shape, w.dtype)\nEND")
        self.assertEqual((0, "(352, 256) float32\n", ""), (result.status, result.out, result.err))


if __name__ == "__main__":
    unittest.main()
