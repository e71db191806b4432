#!/usr/bin/env python3
"""ggufs-run: signals, terminals, and what it leaves behind."""

import fcntl
import json
import os
import select
import shutil
import signal
import stat
import struct
import subprocess
import termios
import unittest

import mounting
from runner_case import EX_DATAERR, EX_NOINPUT, EX_OK, INTERRUPTED, RUNNER, RunnerTestCase

MARKS = ("smoke",)

setUpModule = mounting.require_fuse


class TestSignals(RunnerTestCase):
    def interrupt(self, number, status, *options):
        process = self.start("--ignore-eos", "-c", "50000", *options, self.model, "a")
        process.stdout.read(2)  # it generates
        self.assertEqual([], os.listdir(self.runtime), "the directory is gone by now")
        process.send_signal(number)
        _, err = process.communicate(timeout=mounting.DEADLINE)
        self.assertEqual(status, process.returncode, err)
        return err.decode()

    def test_interrupt(self):
        self.assertIn("tokens/s", self.interrupt(signal.SIGINT, INTERRUPTED))

    def test_interrupt_while_nobody_reads(self):
        """An interrupt is not reported as an output error, even while the output waits for its
        reader."""
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
        process = subprocess.Popen([RUNNER, *self.options(self.model), "--ignore-eos", "-c",
                                    "50000", self.model, "a"], stdin=subprocess.DEVNULL,
                                   stdout=writer, stderr=subprocess.PIPE, env=self.environment)
        os.close(writer)

        def waits():
            """The pipe of one page has a token, so poll(2) finds no room, and the main thread sleeps."""
            n_bytes = struct.unpack("i", fcntl.ioctl(reader, termios.FIONREAD, bytes(4)))[0]
            return n_bytes > 0 and mounting.stat_of(process.pid)[0] == b"S"
        mounting.wait_until(waits, "it does not wait for its reader")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=mounting.DEADLINE)
        self.assertEqual(INTERRUPTED, process.returncode, err)

    def test_terminate(self):
        self.interrupt(signal.SIGTERM, 128 + signal.SIGTERM)
        self.interrupt(signal.SIGHUP, 128 + signal.SIGHUP)

    def test_kill(self):
        self.interrupt(signal.SIGKILL, -signal.SIGKILL)
        mounting.wait_until(lambda: not self.processes(), "ggufs survives")

    def test_pipe(self):
        process = self.start("--ignore-eos", "-c", "50000", self.model, "a")
        process.stdout.read(2)
        process.stdout.close()
        process.stderr.read()
        process.stderr.close()
        self.assertEqual(-signal.SIGPIPE, process.wait(mounting.DEADLINE))
        mounting.wait_until(lambda: not self.processes(), "ggufs survives")

    def test_while_it_mounts(self):
        for delay in range(10):
            process = self.start("-n", "1", self.model, "a")
            try:
                process.wait(delay / 500)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGTERM)
            process.communicate(timeout=mounting.DEADLINE)
            self.assertIn(process.returncode, (0, 128 + signal.SIGTERM, -signal.SIGTERM))
            mounting.wait_until(lambda: not self.processes(), "ggufs survives")
            self.assertEqual([], os.listdir(self.runtime))


class TestTerminal(RunnerTestCase):
    """Text of a model cannot command a terminal; a pipe gets the bytes as they are."""

    HOSTILE = b"a\x1b[31m\x07\x7f\r\xc2\x9b2J \xe2\x82\xac\n\tb"
    SHOWN = rb"a\x1b[31m\x07\x7f\x0d\xc2\x9b2J " + b"\xe2\x82\xac\n\tb"

    def on_terminal(self, *arguments, given=b""):
        """Returns the output on a terminal that is both stdout and stderr."""
        master, slave = os.openpty()
        attributes = termios.tcgetattr(slave)
        attributes[1] &= ~termios.OPOST
        termios.tcsetattr(slave, termios.TCSANOW, attributes)
        process = subprocess.Popen([RUNNER, *self.options(self.model), *arguments],
                                   stdin=subprocess.PIPE, stdout=slave, stderr=slave,
                                   env=self.environment)
        os.close(slave)
        process.stdin.write(given)
        process.stdin.close()
        shown = b""
        while True:
            try:
                piece = os.read(master, 65536)
            except OSError:
                break
            if not piece:
                break
            shown += piece
        os.close(master)
        process.wait(mounting.DEADLINE)
        return shown

    def type(self, given, *arguments):
        """Type at a terminal. Returns the exit status, stdout and stderr."""
        master, slave = self.open_terminal()
        self.addCleanup(os.close, master)
        attributes = termios.tcgetattr(slave)
        attributes[3] &= ~termios.ECHO
        termios.tcsetattr(slave, termios.TCSANOW, attributes)
        process = subprocess.Popen([RUNNER, *self.options(self.model), "--temp", "0", "-n", "1",
                                    *arguments], stdin=slave, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env=self.environment)
        os.close(slave)
        os.write(master, given)
        out, err = process.communicate(timeout=mounting.DEADLINE)
        return process.returncode, out, err

    def test_a_line_that_the_terminal_cuts(self):
        """Nothing that was typed is lost silently: Linux keeps 4,095 bytes of a line."""
        status, _, err = self.type(b"a" * 5000 + b"\n/exit\n", "-i", self.model)
        self.assertEqual(EX_OK, status, err)
        self.assertEqual(1, err.count(b"a terminal cuts lines after 4095 bytes"), err)
        status, out, err = self.type(b"a" * 4094 + b"\n/exit\n", "-i", "-c", "5000", self.model)
        self.assertEqual(EX_OK, status, err)
        self.assertNotIn(b"cuts lines", err)
        status, out, err = self.type(b"a" * 5000 + b"\n\x04", self.model, "-")
        self.assertEqual((EX_DATAERR, b""), (status, out))
        self.assertIn(b"stdin: a terminal cuts lines after 4095 bytes", err)
        status, out, err = self.type(b"the file\n\x04", self.model, "-")
        self.assertEqual(EX_OK, status, err)
        self.assertTrue(out.startswith(b"the file"), out)

    def test_line_editor(self):
        """Editing, several lines, a pasted text, commands, and Ctrl-C, which clears a line first."""
        master, slave = self.open_terminal()
        self.addCleanup(os.close, master)
        process = subprocess.Popen([RUNNER, *self.options(self.model), "--temp", "0", "-n", "1", "-i",
                                    "--json", self.model], stdin=slave, stdout=subprocess.PIPE,
                                   stderr=slave, env={**self.environment, "TERM": "xterm"})
        self.addCleanup(process.stdout.close)
        os.close(slave)
        shown, prompt = b"", b"\x1b[?2004h> "

        def wait_for(text):
            nonlocal shown
            while text not in shown:
                self.assertTrue(select.select([master], [], [], mounting.DEADLINE)[0], (text, shown))
                shown += os.read(master, 65536)
            shown = shown[shown.index(text) + len(text):]

        def answer_to(keys):
            os.write(master, keys)
            said = json.loads(process.stdout.readline())
            wait_for(prompt)
            return said

        def clear():
            os.write(master, b"/clear\r")
            wait_for(b"begins anew")
            wait_for(prompt)

        wait_for(prompt)
        attributes = termios.tcgetattr(master)
        attributes[3] |= termios.ICANON | termios.ECHO
        termios.tcsetattr(master, termios.TCSANOW, attributes)
        process.send_signal(signal.SIGCONT)
        wait_for(b"> ")
        self.assertFalse(termios.tcgetattr(master)[3] & (termios.ICANON | termios.ECHO),
                         "after Ctrl-Z and fg")
        plain = answer_to(b"a b\r")
        clear()
        self.assertEqual(plain, answer_to("ä".encode() + b"\x7fb\x01a \r"), "edited in the line")
        clear()
        self.assertEqual(plain, answer_to(b"b\x1b[5~\x1b[1;5Da \r"), "edited after Page Up and Ctrl-Left")
        clear()
        self.assertEqual("assistant", answer_to(b"\x1b[200~/nothing\nb\x1b[201~\r")["role"], "lines are no command")
        clear()
        lines = answer_to(b"a\\\rb\r")
        clear()
        self.assertEqual(lines, answer_to(b"\x1b[200~a\nb\x1b[201~\r"), "two lines, typed or pasted")
        os.write(master, b"w" * 50)
        wait_for(b"w" * 50)
        fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 25, 20, 0, 0))
        wait_for(b"\r\x1b[2A\x1b[J> wwwwwwwwwwwwwwwwww")
        os.write(master, b"\x15")
        wait_for(b"> ")
        os.write(master, b"half")
        wait_for(b"half")
        process.send_signal(signal.SIGINT)
        wait_for(b"\n> ")
        os.write(master, b"/system\r")
        wait_for(b"/system: needs a text")
        os.write(master, b"/nothing\r")
        wait_for(b"/nothing: no such command")
        wait_for(prompt)
        process.send_signal(signal.SIGINT)
        self.assertEqual(INTERRUPTED, process.wait(mounting.DEADLINE))

    def test_killed_while_typing(self):
        master, slave = self.open_terminal()
        self.addCleanup(os.close, master)
        self.addCleanup(os.close, slave)
        before = termios.tcgetattr(slave)
        process = subprocess.Popen([RUNNER, *self.options(self.model), "-i", self.model],
                                   stdin=slave, stdout=slave, stderr=slave,
                                   env={**self.environment, "TERM": "xterm"})
        shown = b""
        while b"\x1b[?2004h> " not in shown:
            shown += os.read(master, 65536)
        mounting.wait_until(lambda: termios.tcgetattr(slave) != before, "the line is not edited")
        process.send_signal(signal.SIGTERM)
        while b"\x1b[?2004l" not in shown:
            self.assertTrue(select.select([master], [], [], mounting.DEADLINE)[0], shown)
            shown += os.read(master, 65536)
        self.assertEqual(128 + signal.SIGTERM, process.wait(mounting.DEADLINE))
        self.assertEqual(before, termios.tcgetattr(slave))

    def test_progress_of_a_prompt(self):
        """It appears after a second. Ctrl-C ends the chat, and the line is erased."""
        master, slave = self.open_terminal()
        self.addCleanup(os.close, master)
        process = subprocess.Popen([RUNNER, *self.options(self.model), "-c", "50000", "-b", "8", "-i",
                                    self.model], stdin=subprocess.PIPE, stdout=slave, stderr=slave,
                                   env=self.environment)
        os.close(slave)
        process.stdin.write(b"one two three " * 3000)
        process.stdin.close()
        shown = b""
        while b"prompt: " not in shown:
            shown += os.read(master, 65536)
        process.send_signal(signal.SIGINT)
        self.assertEqual(INTERRUPTED, process.wait(mounting.DEADLINE))
        shown += os.read(master, 65536)
        self.assertRegex(shown, rb"\r\x1b\[Kprompt: \d+ of \d\d\d\d\d tokens")
        self.assertRegex(shown, rb"tokens\r\x1b\[K\s*$")

    def test_messages_start_a_line(self):
        options = ("--temp", "0", "-n", "5", self.model, "the file")
        self.assertIn(b"\nggufs-run: load", self.on_terminal(*options))
        process = subprocess.run([RUNNER, *self.options(self.model), *options],
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, env=self.environment)
        self.assertIn(b"\nggufs-run: load", process.stdout)
        _, out, err = self.run_bytes(*options)
        self.assertFalse(out.endswith(b"\n"))
        self.assertTrue(err.startswith("ggufs-run: load"), err)

    def test_text(self):
        arguments = ("--temp", "0", "-n", "0", self.model, "-")
        self.assertIn(self.SHOWN, self.on_terminal(*arguments, given=self.HOSTILE))
        self.assertEqual(self.HOSTILE, self.run_bytes(*arguments, given=self.HOSTILE)[1])

    def test_tokens_of_the_prompt(self):
        shown = self.on_terminal("-n", "0", "--verbose-prompt", self.model, "-",
                                 given=b"\x1b]0;x\x07")
        self.assertNotIn(b"\x1b]", shown)
        self.assertNotIn(b"\x07", shown)

    def test_messages(self):
        name = self.path("model\x1b[31m\x9b")
        for arguments in ((name, "a"), ("--tokens", name, "--logits", "-", self.model),
                          ("-i", "--chat-template", "\x1b[31m", self.model),
                          ("-n", "\x1b[31m", self.model), ("--\x1b[31m", self.model)):
            shown = self.on_terminal(*arguments)
            self.assertNotIn(b"\x1b[31m", shown)
            self.assertIn(rb"\x1b[31m", shown)

    def test_names_in_the_model(self):
        hostile = ("-o", "set=general.architecture=str:\x1b[31mfrob")
        shown = self.on_terminal(*hostile, self.model, "a")
        self.assertIn(rb"\x1b[31mfrob", shown)
        self.assertNotIn(b"\x1b[31m", shown)

    def test_json_has_no_control_characters(self):
        arguments = ("--json", "--temp", "0", "-n", "0", self.model, "-")
        out = self.run_bytes(*arguments, given=self.HOSTILE)[1]
        self.assertEqual(self.HOSTILE.decode(), json.loads(out)["prompt"])
        self.assertNotRegex(out.decode(), "[\x00-\x09\x0b-\x1f\x7f-\x9f]")


class TestPrivateMount(RunnerTestCase):
    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv"), "needs root and setpriv")
    def test_a_mount_that_cannot_be_removed(self):
        """The runner exits with EX_OSERR and a message, and ggufs ends. The mount goes with its
        namespace, which has no /etc/mtab."""
        mounting.require_namespace()
        etc, device = self.path("etc"), self.path("fuse")
        os.mkdir(etc)
        for name in ("passwd", "group", "ld.so.cache"):
            if os.path.exists(f"/etc/{name}"):
                shutil.copy(f"/etc/{name}", etc)
        os.mknod(device, 0o666 | stat.S_IFCHR, os.stat("/dev/fuse").st_rdev)
        for path in (device, self.runtime):
            os.chmod(path, 0o777)
        os.chmod(self.folder, 0o755)
        # Another user may not be able to enter the folder of the build.
        for path in (RUNNER, mounting.BINARY, self.model):
            shutil.copy(path, self.folder)
        runner, model = (self.path(os.path.basename(path)) for path in (RUNNER, self.model))
        script = ('mount --bind "$1" /etc && mount --bind "$2" /dev/fuse || exit 99; shift 2; '
                  'exec setpriv --reuid=65534 --regid=65534 --clear-groups "$@"')
        process = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", etc, device, runner,
                                  *self.options(model), "--temp", "0", "-n", "8", model,
                                  "the file"], stdin=subprocess.DEVNULL, capture_output=True,
                                 env=self.environment)
        err = process.stderr.decode()
        self.assertEqual(71, process.returncode, err)
        self.assertEqual(b"", process.stdout)
        left, = [name for name in os.listdir(self.runtime)]
        self.assertIn(f"{left}: cannot remove the private mount", err)
        self.assertIn("umount -l", err)
        self.assertEqual([], self.processes())
        os.rmdir(os.path.join(self.runtime, left))

    def test_incomplete_logits(self):
        """A run that fails leaves an empty file, and one that fails before it computes the old
        file."""
        tokens = self.write("tokens", struct.pack("<3i", 1, 2, 0x7fffffff))
        out = self.write("out", b"old")
        self.refused(EX_DATAERR, "--tokens", tokens, "--logits", out, "-b", "1", self.model)
        with open(out, "rb") as file:
            self.assertIn(file.read(), (b"", b"old"))
        self.refused(EX_NOINPUT, "--tokens", tokens, "--logits", out, self.path("nothing"))
        process = self.start("--tokens", self.write("many", bytes(4 * 2000)), "--logits", out,
                             "-b", "1", self.model)
        mounting.wait_until(lambda: os.path.getsize(out) > 3, "nothing is written")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=mounting.DEADLINE)
        self.assertEqual(128 + signal.SIGTERM, process.returncode)
