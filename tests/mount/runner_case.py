"""Runs ggufs-run; its test case, shared by the tests of the runner."""

import json
import os
import subprocess


import mounting

RUNNER = os.path.join(os.path.dirname(mounting.BINARY), "ggufs-run")

# sysexits.h
EX_OK, EX_USAGE, EX_DATAERR, EX_NOINPUT, EX_IOERR = 0, 64, 65, 66, 74
INTERRUPTED = 130

STORY = ("Once upon a time, there was a little girl named Lily. She loved to play outside in the "
         "park. One day, she saw a big, red ball. She wanted to play with it, but it was too high."
         "\nLily's mom said, \"Lily, let's go to the park.\" Lily was sad and didn't know what to")


class RunnerTestCase(mounting.MountTestCase):
    def setUp(self):
        super().setUp()
        self.model = mounting.sample()
        self.runtime = self.path("run")
        os.mkdir(self.runtime)
        # On a busy machine, the threads of a team wait long for each other.
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": self.runtime, "OMP_NUM_THREADS": "1"}
        self.addCleanup(self.assert_nothing_is_left)

    def edited(self, name, edits, zeros=()):
        """Write the sample with other keys, and with zeros for the data of some tensors."""
        path, edit_file = self.path(name), self.path("edits.json")
        with open(edit_file, "w", encoding="utf-8") as file:
            json.dump(edits, file)
        data = bytearray(subprocess.run(
            [mounting.BINARY, *mounting.MOUNT_OPTIONS, "--edits", edit_file, "--cat", "model.gguf",
             self.model], stdout=subprocess.PIPE, check=True).stdout)
        with open(path, "wb") as file:
            file.write(data)
        for tensor in zeros:
            info = json.loads(self.run_ggufs("--cat", f"tensors/{tensor}/info", path).out)
            data[info["offset"]:info["offset"] + info["n_bytes"]] = bytes(info["n_bytes"])
        return self.write(name, data)

    def options(self, model):
        """Returns the options of the private mount; none if the model is a tree."""
        return mounting.MOUNT_OPTIONS if os.path.isfile(model) else []

    def start(self, *arguments, model=None, stdin=subprocess.DEVNULL):
        model = model or self.model
        return subprocess.Popen([RUNNER, *self.options(model), *arguments], stdin=stdin,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env=self.environment)

    def run_bytes(self, *arguments, given=None, model=None):
        """Run to the end; returns (status, stdout, stderr)."""
        process = self.start(*arguments, model=model,
                             stdin=subprocess.DEVNULL if given is None else subprocess.PIPE)
        try:
            out, err = process.communicate(given, timeout=4 * mounting.DEADLINE)
        finally:
            process.kill()
            process.wait()
        return process.returncode, out, err.decode()

    def run_runner(self, *arguments, given=None, model=None, status=EX_OK):
        """Run with the model after the options; returns stdout as text."""
        result, out, err = self.run_bytes(*arguments, given=given, model=model)
        self.assertEqual(status, result, err)
        return out.decode(), err

    def generate(self, *options, prompt="the file", model=None, given=None):
        more = [] if prompt is None else [prompt]
        return self.run_runner("--temp", "0", "-n", "8", *options, model or self.model, *more,
                               given=given, model=model or self.model)[0]

    def describe(self, *options, prompt="the file", model=None, given=None):
        return json.loads(self.generate("--json", *options, prompt=prompt, model=model,
                                        given=given))

    def refused(self, status, *arguments, model=None, given=None):
        out, err = self.run_runner(*arguments, model=model, given=given, status=status)
        self.assertEqual("", out, "what is wrong goes to stderr")
        self.assertTrue(err.startswith("ggufs"), err)
        return err

    def processes(self):
        """Return the processes with our runtime directory on their command line."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    if os.fsencode(self.runtime) in file.read():
                        found.append(int(pid))
            except OSError:
                continue
        return [pid for pid in found if mounting.is_running(pid)]

    def assert_nothing_is_left(self):
        self.assertEqual([], os.listdir(self.runtime))
        with open("/proc/self/mounts", encoding="utf-8", errors="replace") as file:
            self.assertNotIn(self.runtime, file.read())
        mounting.wait_until(lambda: not self.processes(), "ggufs survives")
