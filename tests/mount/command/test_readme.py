#!/usr/bin/env python3
"""The sessions and snippets of README.md, run on the sample model of contrib/demo."""
import json
import os
import re
import shutil
import subprocess

import mounting

setUpModule = mounting.require_fuse


def blocks(heading):
    """The blocks of code in a section of README.md, or before the first section for ""."""
    with open(os.path.join(mounting.ROOT, "README.md"), encoding="utf-8") as file:
        text = file.read()
    if not heading:
        section = text.partition("\n## ")[0]
    else:
        section, = re.findall(rf"^## {heading}\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    return re.findall(r"^```\w*\n(.*?)^```\n", section, re.M | re.S)


def steps(block):
    """The commands of a session, each with what it prints."""
    return [(step.partition("\n")[0], step.partition("\n")[2])
            for step in re.split(r"^\$ ", block, flags=re.M)[1:]]


PYTHON = "python=$(test -x /usr/bin/python3 && echo /usr/bin/python3 || echo python3)"


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

    def test_the_program_in_use(self):
        """The session of a mount, with the sample in place of its model of 4 B: the numbers differ."""
        _, session = blocks("")
        mount, summary, ls, sizes, python, unmount = steps(session)
        self.assertRegex(mount[0], r"^ggufs \S+\.gguf mnt$")
        self.assertEqual("fusermount3 -u mnt", unmount[0])
        self.mount(self.path("build/sample.gguf"))
        out = [self.run_shell(command.replace("-sh ", "")).out
               for command, _ in (summary, ls, sizes)]
        keys = re.compile(r"^[a-z]+(?: [a-z]+)?(?=  )", re.M)
        self.assertEqual(keys.findall(summary[1]), keys.findall(out[0]))
        self.assertEqual(ls[1].split(), out[1].split())
        self.assertEqual(re.findall(r"[a-z]\w+\.?\w+(?=\s)", sizes[1].partition("\n")[2]),
                         out[2].split())
        lines = re.findall(r"^>>> (.*)$", python[1], re.M)
        lines[-1] = f"print(({lines[-1]}))"
        code = "\n".join(lines)
        result = self.run_shell(f"{PYTHON}\n$python - <<'END'\n{code}\nEND")
        self.assertEqual((0, ""), (result.status, result.err))
        self.assertTrue(result.out.startswith("((256, 256), memmap(["), result.out)

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
        self.mount(self.path("build/sample.gguf"))
        shutil.copy(self.path("build/sample.gguf"), self.path("old.gguf"))
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
        largest = max(tensor["n_bytes"] for tensor in tensors)
        self.assertEqual(str(largest), lines[0].split("\t")[0])
        self.assertIn("{%- for message in messages %}", lines[5])
        info = self.run_ggufs("--info", *mounting.MOUNT_OPTIONS, self.path("new.gguf"))
        self.assertEqual("name            My model", info.out.split("\n")[0])
        info = self.run_ggufs("--info", *mounting.MOUNT_OPTIONS, self.path("q8_0.gguf"))
        self.assertRegex(info.out, "\nquantization +Q8_0\n")

    def test_numpy(self):
        self.mount(self.path("build/sample.gguf"))
        block, = blocks("NumPy, PyTorch, transformers")
        result = self.run_shell(f"{PYTHON}\n$python - <<'END'\n{block}\nprint(w.shape, w.dtype)\nEND")
        self.assertEqual((0, "(352, 256) float32\n", ""), (result.status, result.out, result.err))
