#!/usr/bin/env python3
"""The options of both programs: --help, the manual and the completion show the same ones."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest

import mounting

MARKS = ("smoke",)

setUpModule = mounting.require_binary

PROGRAMS = {"ggufs": mounting.BINARY, "ggufs-run": mounting.BINARY + "-run"}
COLUMNS = 79


def output(*words, **keywords):
    return subprocess.run(words, capture_output=True, text=True, timeout=mounting.DEADLINE,
                          check=False, **keywords)


def help_of(program):
    return output(PROGRAMS[program], "--help").stdout


def options_of_help(program):
    """Return {name: argument}. An option of -o has no dashes."""
    found = {}
    for line in help_of(program).splitlines():
        match = re.match(r"  (-\S.*?)(?:   |  (?=\S)|$)", line)
        if match:
            names, _, argument = re.sub("^-o (?=[a-z])", "", match[1]).partition(
                "=" if re.match("-o [a-z]", match[1]) else "\n")
            words = names.split(", ")
            if not argument:
                words[-1], _, argument = words[-1].partition(" ")
            found.update(dict.fromkeys(words, argument))
    return found


def plain(words):
    """Return the text of mandoc words without macros and the space around Ns."""
    text = " ".join(words).replace("Oo ", "[").replace(" Oc", "]").replace(" Ns ", "")
    text = re.sub("Op (.*)", r"[\1]", text)
    return re.sub(r"\b(Ar|Cm|Li|No) |\\&", "", re.sub(" ([:,])", r"\1", text))


def options_of_manual(program):
    """From ".It Fl h , Fl -help", ".It Fl n , Fl -predict Ar N", ".It Cm uid Ns = Ns Ar N"."""
    found = {}
    with open(os.path.join(mounting.ROOT, program + ".1"), encoding="utf-8") as file:
        text = file.read()
    for line in re.findall(r"^\.It ((?:Fl|Cm) .*)", text, re.MULTILINE):
        for item in re.split(" , (?=Fl|Cm)", line):
            names, _, argument = item.partition(" Ar ")
            if names.startswith("Cm "):
                name, _, argument = plain(item.split()).partition("=")
                found[name] = argument
            else:
                names = plain(names.split()).replace("Fl Fl ", "--").replace("Fl ", "-")
                found[names.replace("\\-", "-")] = plain(argument.split())
    return found


class TestOptions(unittest.TestCase):
    def test_the_manual_has_the_options_of_help(self):
        for program in PROGRAMS:
            with self.subTest(program=program):
                if not os.path.exists(os.path.join(mounting.ROOT, program + ".1")):
                    mounting.skip_loudly(f"no {program}.1")
                shown, manual = options_of_help(program), options_of_manual(program)
                self.assertIn("--help", shown)
                self.assertEqual(sorted(shown), sorted(manual))
                for name, argument in shown.items():
                    # Only the last name of an option has the argument.
                    if argument and manual[name]:
                        self.assertEqual(argument, manual[name], name)

    def test_help_fits_a_terminal(self):
        for program in PROGRAMS:
            for line in help_of(program).splitlines():
                self.assertLessEqual(len(line), COLUMNS, line)

    def test_all_options_are_completed(self):
        for program in PROGRAMS:
            found = set()
            for words in (["1", "-"], ["2", "-o", ""]):
                done = output(PROGRAMS[program], "--complete", *words)
                found |= {line.partition("\t")[0].rstrip("=") for line in done.stdout.splitlines()}
            self.assertEqual(set(options_of_help(program)), found)


class TestCompletion(unittest.TestCase):
    """The scripts, run as bash runs them."""

    def complete(self, line, cwd=mounting.ROOT):
        """Return the words that bash offers at the end of a line."""
        script = os.path.join(mounting.ROOT, "contrib", "completion", "ggufs.bash")
        code = f"""
            compopt() {{ [[ $2 != filenames ]] || echo filenames; }}
            source {script}
            COMP_LINE=$1 COMP_POINT=${{#1}} COMP_WORDBREAKS=$' \\t\\n"\\'><=;|&(:'
            _ggufs
            printf '%s\\n' "${{COMPREPLY[@]}}"
        """
        done = output("bash", "-c", code, "bash", line, cwd=cwd)
        self.assertEqual("", done.stderr)
        return done.stdout.split()

    def test_values(self):
        run = PROGRAMS["ggufs-run"]
        for line, expected in (
                (f"{mounting.BINARY} -o export=", ["stored", "f32", "f16", "bf16", "q8_0", "q4_0"]),
                (f"{mounting.BINARY} -o ro,dtype=b", ["bf16"]),
                (f"{mounting.BINARY} --expo", []),
                (f"{mounting.BINARY} lms", ["lmstudio:"]),  # not as a file, whose colon bash quotes
                (f"{mounting.BINARY} --ext", ["--extract"]),
                (f"{run} --cache-type q", ["q8_0"]),
                (f"{run} --draft-type=n", ["nextn"])):
            with self.subTest(line=line):
                self.assertEqual(expected, self.complete(line))

    def test_paths_in_the_tree(self):
        with tempfile.TemporaryDirectory() as folder:
            name = "my model.gguf"
            shutil.copy(mounting.SAMPLE, os.path.join(folder, name))
            listed = output(mounting.BINARY, "--list", name, cwd=folder).stdout
            tensor = re.search(r"tensors/([^/\n]+)/raw", listed)[1]
            escaped = name.replace(" ", "\\ ")
            for line, expected in (
                    (f"--cat {escaped} summ", ["summary.txt"]),
                    (f"--list {escaped} tensors/{tensor[:-1]}", f"tensors/{tensor}/"),
                    (f"--stats {escaped} {tensor[:-1]}", tensor)):
                with self.subTest(line=line):
                    found = self.complete(f"{mounting.BINARY} {line}", cwd=folder)
                    if isinstance(expected, str):
                        self.assertIn(expected, found)
                    else:
                        self.assertEqual(sorted(expected), sorted(found))

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("one.gguf", "two.json"):
                with open(os.path.join(folder, name), "wb"):
                    pass
            for line in ("on", "--info on", "--edits on"):
                self.assertEqual(["filenames", "one.gguf"],
                                 self.complete(f"{mounting.BINARY} {line}", cwd=folder), line)


if __name__ == "__main__":
    unittest.main()
