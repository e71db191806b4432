#!/usr/bin/env python3
"""The command line without mounts: usage, refusals, the mount point, the manual, --check."""

import json
import os
import shutil
import signal
import struct
import subprocess

import mounting
from gguf_file import F32, Q4_0, STRING, UINT32, GgufFile
from gguf_reader import Model

MARKS = ("smoke",)

setUpModule = mounting.require_binary

# sysexits.h
EX_OK, EX_USAGE, EX_DATAERR, EX_NOINPUT = 0, 64, 65, 66
EX_CANTCREAT, EX_IOERR, EX_NOPERM = 73, 74, 77


class CommandTestCase(mounting.MountTestCase):
    def setUp(self):
        super().setUp()
        self.model = GgufFile().tensor(b"t", [4], F32, bytes(16)).write(self.path("model.gguf"))

    def assert_refused(self, status, arguments, *words, **more):
        """Check that ggufs exits with `status`, prints the words to stderr only, and mounts nothing."""
        result = self.run_ggufs(*arguments, **more)
        was_mounted = mounting.mount_entry(self.mountpoint)
        mounting.unmount(self.mountpoint)
        self.assertIsNone(was_mounted, f"it was mounted nevertheless: {result}")
        self.assert_status(status, result)
        self.assertEqual("", result.out, "refusals go to stderr")
        for word in words:
            self.assertIn(word, result.err)
        return result


class TestUsage(CommandTestCase):
    def assert_usage_error(self, arguments, *words):
        """Arguments are missing or too many: check the message, which has the usage of the command."""
        self.assert_option_error(arguments, "; usage: ggufs ", *words)

    def assert_option_error(self, arguments, *words):
        """Check the one-line message."""
        result = self.assert_refused(EX_USAGE, arguments, *words)
        self.assertTrue(result.err.startswith("ggufs: "), result.err)
        self.assertEqual(1, len(result.err.splitlines()), result.err)

    def test_no_arguments(self):
        self.assert_refused(EX_USAGE, [], "ggufs: MODEL and MOUNTPOINT are missing\nusage: ggufs ", "--status")

    def test_one_argument(self):
        self.assert_usage_error([self.model], "MOUNTPOINT is missing")

    def test_three_arguments(self):
        self.assert_refused(EX_NOINPUT, [self.model, self.mountpoint, "third"],
                            f"{self.mountpoint}: is a directory without a GGUF file")

    def test_check_without_a_model(self):
        self.assert_usage_error(["--check"], "--check", "MODEL")

    def test_unknown_options(self):
        for option in ("-x", "--frobnicate", "-F", "--check=yes", "-hx"):
            with self.subTest(option=option):
                self.assert_option_error([option, self.model, self.mountpoint], option)

    def test_bad_numbers(self):
        for option in ("uid=", "uid=me", "uid=-1", "uid=1x", "uid=4294967295",
                       "uid=99999999999999999999",
                       "gid=", "gid=me", "gid=-1", "umask=", "umask=8", "umask=1000",
                       "umask=-1", "umask=0x1", "max_threads=", "max_threads=x",
                       "threads=0", "max_threads=0",
                       "threads=100001", "era=3"):
            with self.subTest(option=option):
                self.assert_option_error(["-o", option, self.model, self.mountpoint], option)

    def test_suggestions(self):
        for words, meant in ((["--chek", self.model], "--check"), (["--lsit"], "--list"),
                             (["--dat"], "did you mean --data?"),
                             (["--extact"], "--extract"), (["--help-me"], "--help"),
                             (["-o", "thread=3"], "-o threads"), (["-o", "alow_other"], "-o allow_other"),
                             (["--uid=3"], "-o uid"), (["--unmount"], "fusermount3 -u"),
                             (["--umount"], "fusermount3 -u"),
                             (["info"], "did you mean --info?"), (["help"], "did you mean --help?"),
                             (["-o", "family=foo"], "one of: llama, whisper"),
                             (["-o", "no_such_thing_at_all"], "--help")):
            with self.subTest(words=words):
                self.assert_option_error([*words, self.model, self.mountpoint], words[0], meant)

    def test_files_of_edits(self):
        edits = self.write("edits.json", b'{"a": ')
        result = self.assert_refused(EX_USAGE, ["--edits", edits, self.model, self.mountpoint])
        self.assertEqual(f'ggufs: --edits: "{edits}": not JSON from character 7 on: it ends there\n',
                         result.err)
        missing = self.path("missing")
        for option in (["--edits", missing], ["--set", f"x=str:@{missing}"]):
            self.assert_refused(EX_NOINPUT, [*option, self.model, self.mountpoint], missing)

    def test_options_that_do_not_go_together(self):
        for words, named in ((["--data"], "--data"), (["--force"], "--force"),
                             (["--check", "--list"], "--list"),
                             (["--check", "-o", "split=1M"], "-o split"),
                             (["--list", "-f"], "-f"), (["--cat", "-o", "uid=1"], "-o uid"),
                             (["--info", "-o", "ro"], "-o ro"), (["--check=yes"], "--check"),
                             (["-o", "nonempty=1"], "-o nonempty"), (["-o", "uid"], "-o uid"),
                             (["-o", "log=stderr"], "log=stderr needs -f")):
            with self.subTest(words=words):
                self.assert_option_error([*words, self.model, self.mountpoint], named)

    def test_an_option_without_its_value(self):
        for option in ("--set", "--unset", "--edits"):
            self.assert_option_error([self.model, self.mountpoint, option], option, "needs a value")
        for option in ("fsname=", "subtype=", "subdir=", "context="):
            self.assert_option_error(["-o", option, self.model, self.mountpoint], f"-o {option}: needs")
        self.assert_option_error(["-o", "export", self.model, self.mountpoint], "-o export=TYPE",
                                 "to export the mount by NFS, no option is needed")

    def test_commands_without_their_arguments(self):
        for words, missing in ((["--list"], "MODEL"), (["--info"], "MODEL"), (["--cat"], "MODEL"),
                               (["--cat", self.model], "PATH"), (["--cat", "summary.txt"], "MODEL"),
                               (["--extract"], "DIR and MODEL"), (["--extract", self.model], "DIR"),
                               (["--extract", self.path("new")], "MODEL"), (["--diff"], "two MODELs"),
                               (["--diff", self.model], "the second MODEL is missing")):
            with self.subTest(words=words):
                self.assert_usage_error(words, f"usage: ggufs {words[0]} ", missing)

    def test_a_name_without_its_ending(self):
        name = self.model.removesuffix(".gguf")
        for words in ((name, self.mountpoint), ("--info", name), ("--info", "--layers", name), ("--layers", name, "--info")):
            self.assert_refused(EX_NOINPUT, words, f"{name}: no such file; did you mean {self.model}?")

    def test_a_comma_that_cuts_a_value(self):
        """If a comma seems to have cut a value of -o, the message gives the remedy."""
        for option in ("set=general.name=str:fast,furious", "set=a=arr:[1,2]"):
            self.assert_option_error(["-o", option, self.model, self.mountpoint], "\\,", "--set")

    def test_remount(self):
        self.assert_option_error(["-o", "remount,ro", self.model, self.mountpoint], "fusermount3 -u")

    def test_bad_number_with_check(self):
        result = self.run_ggufs("-o", "uid=me", "--check", self.model)
        self.assert_status(EX_USAGE, result)

    def test_the_argument_that_was_meant_as_the_model(self):
        """The error names the model, not a path in the tree, in either order of arguments."""
        lost = self.path("lost.gguf")
        for arguments in (["--cat", "summary.txt", lost], ["--cat", lost, "summary.txt"],
                          ["--list", lost, "tensors"], ["--list", "tensors", lost]):
            self.assert_refused(EX_NOINPUT, arguments, f"ggufs: {lost}: No such file")

    def test_several_summaries_name_their_files(self):
        other = self.path("other.gguf")
        shutil.copy(self.model, other)
        one, two = (self.run_ggufs("--info", path).out for path in (self.model, other))
        result = self.run_ggufs("--info", self.model, other)
        self.assert_status(EX_OK, result)
        self.assertEqual(f"file            {self.model}\n{one}\nfile            {other}\n{two}", result.out)

    def test_an_o_without_options(self):
        self.assert_refused(EX_USAGE, [self.model, self.mountpoint, "-o"], "-o")

    def test_help(self):
        for arguments in (["-h"], ["--help"], ["-h", "-f"], ["-h", self.model, self.mountpoint]):
            result = self.run_ggufs(*arguments)
            self.assert_status(EX_OK, result)
            self.assertEqual("", result.err)
            self.assertTrue(result.out.startswith("usage: ggufs [options] MODEL... MOUNTPOINT\n"),
                            result)

    def test_version(self):
        for option in ("-V", "--version"):
            result = self.run_ggufs(option)
            self.assert_status(EX_OK, result)
            self.assertEqual("", result.err)
            self.assertRegex(result.out, r"\Aggufs \d+\.\d+\S*\nlibfuse 3\.\S+\n"
                                         r"using FUSE kernel interface version 7\.\d+\n"
                                         r"(fusermount3 version: .*\n)?kernels \w+\n\Z")

    def test_kernels(self):
        result = self.run_ggufs("-V", env={**os.environ, "GGUFS_CPU": "scalar"})
        self.assert_status(EX_OK, result)
        self.assertIn("kernels scalar\n", result.out)
        result = self.run_ggufs("-V", env={**os.environ, "GGUFS_CPU": "abacus"})
        self.assert_status(EX_USAGE, result)
        self.assertRegex(result.err, r"\Aggufs: GGUFS_CPU=abacus: .*available: scalar[ \w]*\n\Z")
        result = self.run_ggufs("-V", env={**os.environ, "GGUFS_CPU": "\x1b[2J"})
        self.assertIn("\\x1b[2J", result.err)

    def test_full_disk(self):
        """Every command that prints fails if its output cannot be written."""
        for words in (["--check", self.model], ["--list", self.model], ["-h"], ["-V"],
                      ["--cat", "metadata.json", self.model],
                      ["--cat", "tensors/t/raw", self.model]):
            with self.subTest(words=words), open("/dev/full", "wb") as full:
                done = subprocess.run([mounting.BINARY, *words], stdout=full,
                                      stderr=subprocess.PIPE, timeout=mounting.DEADLINE)
                self.assertEqual(EX_IOERR, done.returncode)
                self.assertEqual(b"ggufs: cannot write to standard output: No space left on device\n",
                                 done.stderr)

    def test_closed_stdout(self):
        """A closed stdout is an error like a full disk."""
        for words in (["--check", self.model], ["--cat", "tensors/t/raw", self.model], ["-h"]):
            with self.subTest(words=words):
                done = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", mounting.BINARY, *words],
                                      stderr=subprocess.PIPE, timeout=mounting.DEADLINE)
                self.assertEqual(EX_IOERR, done.returncode)
                self.assertIn(b"cannot write to standard output: Bad file descriptor", done.stderr)

    def test_a_reader_that_leaves(self):
        """The command is killed by SIGPIPE, or exits with a shell's status for that, and prints
        nothing."""
        for ignored in (False, True):
            read_end, write_end = os.pipe()
            os.close(read_end)
            with os.fdopen(write_end, "wb") as pipe:
                done = subprocess.run([mounting.BINARY, "--cat", "tensors/t/f32", self.model],
                                      stdout=pipe, stderr=subprocess.PIPE,
                                      restore_signals=not ignored, timeout=mounting.DEADLINE)
            self.assertIn(done.returncode, [128 + signal.SIGPIPE] if ignored else [-signal.SIGPIPE])
            self.assertEqual(b"", done.stderr)


class TestModel(CommandTestCase):
    """Files that are not models, and the messages about them."""

    def assert_no_model(self, data, *words, status=EX_DATAERR):
        path = self.write("given", data)
        result = self.assert_refused(status, [path, self.mountpoint], path, *words)
        lines = result.err.splitlines()
        self.assertTrue(lines[0].startswith(f"ggufs: {path}: "), lines)
        checked = self.run_ggufs("--check", path)
        self.assert_status(status, checked)
        self.assertEqual("", checked.err)
        self.assertIn(lines[0].removeprefix("ggufs: "), checked.out.splitlines())

    def test_missing(self):
        for name in ("missing", "missing/missing", "model.gguf/inside"):
            path = self.path(name)
            self.assert_refused(EX_NOINPUT, [path, self.mountpoint], f"ggufs: {path}: ")

    def test_names_of_models_that_are_no_files(self):
        for name, remedy in (("hf.co/bartowski/X-GGUF:Q4_K_M",
                              "hf download bartowski/X-GGUF --include '*Q4_K_M*.gguf' --local-dir ."),
                             ("https://huggingface.co/a/b/resolve/main/c/x.gguf?download=true",
                              "hf download a/b c/x.gguf --local-dir ."),
                             ("hf://a/b", "hf download a/b FILE.gguf --local-dir ."),
                             ("hf.co/a/b c", "hf download USER/REPOSITORY FILE.gguf"),
                             ("https://example.org/x.gguf", "curl -L -O 'https://example.org/x.gguf'"),
                             ("llama3.2:3b", "ollama:llama3.2:3b"), ("library/llama3:latest", "ollama:library/llama3")):
            with self.subTest(name=name):
                self.assert_refused(EX_NOINPUT, [name, self.mountpoint], name, "local files only",
                                    remedy)
                checked = self.run_ggufs("--check", name)
                self.assert_status(EX_NOINPUT, checked)
                self.assertIn("local files only", checked.out)
        os.link(self.model, self.path("name:tag"))
        result = self.run_ggufs("--check", "name:tag", cwd=self.folder)
        self.assert_status(EX_OK, result)

    def test_folder_below_a_folder(self):
        """A model in a folder is meant whatever lies below; without one, the only model below is."""
        folder = self.path("folder")
        closed = os.path.join(folder, "closed")
        deep = os.path.join(folder, "deep", *["d"] * 40)
        os.makedirs(deep)
        os.mkdir(closed)
        os.link(self.model, os.path.join(closed, "c.gguf"))
        os.link(self.model, os.path.join(folder, "mmproj.gguf"))
        os.link(self.model, os.path.join(folder, "a.gguf"))
        os.link(self.model, os.path.join(deep, "d.gguf"))
        self.assert_status(EX_OK, self.run_ggufs("--cat", "summary.txt", folder))
        os.remove(os.path.join(folder, "a.gguf"))
        self.assert_refused(EX_DATAERR, ["--cat", "summary.txt", folder], "over 32 folders in each other")
        shutil.rmtree(os.path.join(folder, "deep", "d"))
        self.assert_status(EX_OK, self.run_ggufs("--cat", "summary.txt", folder))
        os.link(self.model, os.path.join(folder, "deep", "b.gguf"))
        self.assert_refused(EX_NOINPUT, ["--cat", "summary.txt", folder],
                            "has 2 models; name one of: closed/c.gguf, deep/b.gguf [")
        os.chmod(closed, 0)
        self.addCleanup(os.chmod, closed, 0o700)
        # root lists every folder, unless it gives up its privileges
        words = [] if os.geteuid() else ["setpriv", "--inh-caps=-all", "--bounding-set=-all"]
        words += [mounting.BINARY, "--cat", "summary.txt", folder]
        for name in ("deep/b.gguf", "mmproj.gguf"):
            result = subprocess.run(words, capture_output=True, check=False)
            self.assertEqual(EX_OK, result.returncode, result.stderr)
            os.remove(os.path.join(folder, name))
        result = subprocess.run(words, capture_output=True, check=False)
        self.assertNotEqual(EX_OK, result.returncode)
        self.assertIn(b"folder: closed: the folder cannot be listed: Permission denied", result.stderr)

    def test_folders(self):
        """The only model in a folder is meant; other folders are named, with the remedy."""
        folder = self.path("folder")
        os.makedirs(os.path.join(folder, "empty"))
        self.assert_refused(EX_NOINPUT, [folder, self.mountpoint], f"{folder}: is a directory without")
        for shard in (1, 2):
            shutil.copy(self.model, os.path.join(folder, f"a-0000{shard}-of-00002.gguf"))
        self.assert_status(EX_OK, self.run_ggufs("--info", folder))
        os.remove(os.path.join(folder, "a-00002-of-00002.gguf"))
        os.rename(os.path.join(folder, "a-00001-of-00002.gguf"), os.path.join(folder, "a.gguf"))
        shutil.copy(self.model, os.path.join(folder, "._a.gguf"))
        for words in (["--info"], ["--check"], ["--list"], ["--cat", "summary.txt"]):
            self.assert_status(EX_OK, self.run_ggufs(*words, folder + "/"))
        self.assert_status(EX_OK, self.run_ggufs("--extract", self.path("out"), folder))
        self.assert_status(EX_OK, self.run_ggufs("--diff", folder, self.model))
        for name in "cb":
            shutil.copy(self.model, os.path.join(folder, f"{name}.gguf"))
        self.assert_refused(EX_NOINPUT, ["--cat", "summary.txt", folder],
                            f"ggufs: {folder}: has 3 models; name one of: a.gguf, b.gguf, c.gguf [not-a-file]\n")
        for command in ("--info", "--list"):
            table = self.run_ggufs(command, folder)
            self.assert_status(EX_OK, table)
            self.assertEqual(["name", "a", "b", "c"], [line.split("\t")[0] for line in table.out.splitlines()])
            objects = self.run_ggufs(command, "--json", folder).out.splitlines()
            self.assertEqual(["a", "b", "c"], [json.loads(line)["name"] for line in objects])
        self.assert_refused(EX_NOINPUT, ["--cat", "model.gguf", folder], f"ggufs: {folder}: has 3 models")
        os.mkdir(os.path.join(folder, "e"))
        for i in range(50):
            os.link(os.path.join(folder, "a.gguf"), os.path.join(folder, "e", f"d{i:02}.gguf"))
        self.assert_refused(EX_NOINPUT, ["--cat", "summary.txt", folder], "has 53 models",
                            "a.gguf, b.gguf, c.gguf, e/d00.gguf, e/d01.gguf", ", ... [not-a-file]\n")
        self.assert_refused(EX_NOINPUT, ["--cat", "model.gguf", os.path.join(folder, "e")], "has 50 models")
        self.assert_refused(EX_NOINPUT, ["--cat", "model.gguf", os.path.join(folder, "a")], "a.gguf?")
        self.assert_status(EX_OK, self.run_ggufs("--cat", "summary.txt", os.path.join(folder, "e", "d07.gguf")))
        os.rename(os.path.join(folder, "e"), os.path.join(folder, "tensors"))  # a PATH is a folder here, too
        result = self.run_ggufs("--cat", self.model, "tensors", cwd=folder)
        self.assertIn(f"{self.model}: tensors is a directory; to list it", result.err)
        for names, word in ((("blobs/", "snapshots/", "refs/"), "Hugging Face"),
                            (("models--a--b/", "version.txt"), "hf:ORG/NAME:TAG"),
                            (("blobs/", "manifests/"), "ollama:NAME:TAG"),
                            (("sha256-00",), "ollama:NAME:TAG"),
                            (("config.json", "model.safetensors"), "convert_hf_to_gguf.py")):
            store = self.path(word.replace("/", "") + str(len(names)))
            for name in names:
                os.makedirs(os.path.join(store, os.path.dirname(name)), exist_ok=True)
                if not name.endswith("/"):
                    open(os.path.join(store, name), "w").close()
            self.assert_refused(EX_NOINPUT, ["--info", store], store, word)

    def test_output_into_the_model(self):
        """Nothing is written into a file that is read."""
        with open(self.model, "rb") as file:
            before = file.read()
        link = self.path("link.gguf")
        os.link(self.model, link)
        for words in (["--set", "general.name=str:x", "--cat", "model.gguf", self.model],
                      ["--cat", "model.gguf", link], ["--info", self.model], ["--list", self.model],
                      ["--stats", self.model], ["--check", self.model],
                      ["--diff", link, link]):
            with self.subTest(words=words), open(self.model, "ab") as out:
                done = subprocess.run([mounting.BINARY, *words], stdout=out, stderr=subprocess.PIPE,
                                      timeout=mounting.DEADLINE)
                self.assertEqual(EX_USAGE, done.returncode)
                self.assertIn(b"standard output is this file", done.stderr)
        with open(self.model, "rb") as file:
            self.assertEqual(before, file.read())

    def test_options_that_do_not_fit_the_file(self):
        for option in ("family=llama", "era=1"):
            result = self.run_ggufs("-o", option, "--check", self.model)
            self.assert_status(EX_OK, result)
            self.assertIn(f"warning: -o {option}", result.err)

    def test_a_tree_instead_of_its_model(self):
        os.mkdir(self.path("tree"))
        self.write("tree/summary.txt", b"")
        for command in (["--info"], ["--list"], ["--check"], ["--extract", self.path("new")], []):
            result = self.run_ggufs(*command, self.path("tree"),
                                    *([] if command else [self.mountpoint]))
            self.assert_status(EX_NOINPUT, result)
            self.assertIn("tree: is a tree that ggufs has made, not a model file: cat ", result.out + result.err)
        self.assertIn("/tree/tensors/NAME/stats.json", self.run_ggufs("--stats", self.path("tree")).err)

    def test_directory(self):
        os.mkdir(self.path("empty"))
        self.assert_refused(EX_NOINPUT, [self.path("empty"), self.mountpoint], self.path("empty"),
                            "is a directory without a GGUF file")

    def test_what_is_no_model(self):
        """One remedy each, on the line of the message."""
        url = "https://huggingface.co/a/b/resolve/main/c.gguf"
        for path, status, words in (
                (url, EX_NOINPUT, "download it first: hf download a/b c.gguf --local-dir . [not-a-file]\n"),
                ("https://a.org/c.gguf", EX_NOINPUT, "curl -L -O 'https://a.org/c.gguf' [not-a-file]\n"),
                ("/dev/null", EX_DATAERR, "store the data in a file first [not-a-file]\n"),
                (self.mountpoint, EX_NOINPUT, "is a directory without a GGUF file [not-a-file]\n"),
                ("", EX_USAGE, "the name of the MODEL is empty (a variable without a value?)\n")):
            result = self.run_ggufs(path, self.mountpoint)
            self.assert_status(status, result)
            self.assertTrue(result.err.endswith(words), result.err)
            self.assertEqual(1, result.err.count("\n"))
        text = self.write("README.md", b"# name\n" + b"text\n" * 200)
        self.assert_refused(EX_DATAERR, ["--info", text], "is a text file, not a model")

    def test_keys_that_do_not_fit_the_tensors(self):
        """Programs refuse a model with such numbers of layers and heads."""
        built = GgufFile().key(b"general.architecture", STRING, b"llama").key(b"llama.block_count", UINT32, 1)
        built.key(b"llama.attention.head_count", UINT32, 2)
        built.tensor(b"blk.0.attn_q.weight", [4, 4], F32, bytes(64))
        model = built.write(self.path("heads.gguf"))
        self.assertNotIn("warning", self.run_ggufs("--check", model).out)
        for edit, words in (("llama.block_count=9", "9 is not the number of layers"),
                            ("llama.attention.head_count=3", "3 does not divide the rows of blk.0.attn_q")):
            result = self.run_ggufs("--check", "--set", edit, model)
            self.assert_status(EX_OK, result)
            self.assertIn(words, result.out)
            self.assertIn("help: shape-keys: ", result.out)
        built.tensor(b"token_embd.weight", [4, 4], F32, bytes(64))
        model = built.write(self.path("embeddings.gguf"))
        for edits, words in (((), 'there is no key "llama.embedding_length" [needed-keys]'),
                             (("--set", "llama.context_length=f32:512"), "its type is float32, it must be uint32")):
            result = self.run_ggufs("--check", *edits, model)
            self.assert_status(EX_OK, result)
            self.assertIn(words, result.out)
        self.assertIn("help: needed-keys: ", result.out)
        self.assert_refused(EX_DATAERR, ["--set", "new.key=u99:8", "--info", model],
                            '"u99" is not a type for a new one, for instance KEY=u32:VALUE, or f32 if it can have a fraction (types: u8 ')

    def test_swapped_arguments(self):
        for mountpoint in (self.mountpoint, self.path("new")):
            result = self.assert_refused(EX_USAGE, [mountpoint, self.model])
            self.assertEqual("ggufs: the model comes first, then the mount point: "
                             f"ggufs {self.model} {mountpoint}\n", result.err)
        self.assert_refused(EX_NOINPUT, [self.path("new.gguf"), self.model], "No such file")
        # A folder with files is no mount point.
        self.assert_refused(EX_USAGE, [os.path.dirname(self.model), self.model], "MOUNTPOINT is missing")

    def test_unreadable(self):
        if os.geteuid() == 0:
            self.skipTest("root reads everything")
        os.chmod(self.model, 0)
        self.assert_refused(EX_NOPERM, [self.model, self.mountpoint], self.model,
                            "Permission denied")

    def test_fifo(self):
        path = self.path("fifo")
        os.mkfifo(path)
        self.assert_refused(EX_DATAERR, [path, self.mountpoint], path, "not a regular file")

    def test_device(self):
        self.assert_refused(EX_DATAERR, ["/dev/null", self.mountpoint], "not a regular file")

    def test_empty(self):
        self.assert_no_model(b"", "empty file")

    def test_lfs_pointer(self):
        pointer = (b"version https://git-lfs.github.com/spec/v1\n"
                   b"oid sha256:" + b"0" * 64 + b"\nsize 123456789\n")
        self.assert_no_model(pointer, "Git LFS pointer", "git lfs pull")

    def test_html(self):
        for page in (b"<!DOCTYPE html>\n<html>", b"\n  <!doctype html>", b"<html lang='en'>",
                     b"<HTML>"):
            with self.subTest(page=page):
                self.assert_no_model(page + b"<body>Not found</body></html>", "web page")

    def test_safetensors(self):
        header = b'{"t":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
        self.assert_no_model(struct.pack("<Q", len(header)) + header + b"1234", "safetensors")

    def test_other_formats(self):
        for data, word in ((b"PK\3\4" + bytes(100), "ZIP"), (b"\x1f\x8b\x08" + bytes(100), "gzip"),
                           (b'{"a": 1}\n', "JSON"), (bytes(1000), "zeros")):
            with self.subTest(word=word):
                self.assert_no_model(data, word)

    def test_old_ggml(self):
        """If no family fits, the message gives the reason for each family."""
        header = b"lmgg" + struct.pack("<7I", 2, 32, 1, 4, 1, 8, 0)
        vocabulary = struct.pack("<I1sI1s", 1, b"a", 1, b"b")
        self.assert_no_model(header, "best llama", "vocabulary")
        for family, status, word in (("mpt", EX_DATAERR, "hyperparameters"),
                                     ("nothing", EX_USAGE, "one of: llama, ")):
            self.assert_refused(status, ["-o", f"family={family}", self.write("old", header),
                                         self.mountpoint], word)
        result = self.run_ggufs("--check", self.write("old", header + vocabulary))
        self.assertEqual((0, f"{self.path('old')}: OK: ggml llama, little-endian, 16 keys, "
                             "0 tensors\n"), (result.status, result.out))

    def test_something_else(self):
        for data in (b"G", b"GGU", b"hello, world\n", b"GGML" + bytes(100), bytes(3),
                     b"FUGG\3\0\0\0"):
            with self.subTest(data=data):
                self.assert_no_model(data, "GGUF")

    def test_unknown_version(self):
        for version in (0, 4, 1000):
            self.assert_no_model(b"GGUF" + struct.pack("<IQQ", version, 0, 0), "version",
                                 str(version))

    def test_cut_in_the_header(self):
        whole = GgufFile().key(b"k", STRING, b"value").tensor(b"t", [4], F32, bytes(16)).to_bytes()
        for length in range(4, whole.index(b"t\1\0\0\0") + 20):
            with self.subTest(length=length):
                self.assert_no_model(whole[:length])


class TestTruncated(CommandTestCase):
    """The error for an unfinished download names the tensor and the number of missing bytes."""

    def setUp(self):
        super().setUp()
        built = GgufFile().key(b"general.name", STRING, b"x")
        for i in range(4):
            built.tensor(b"blk.%d.weight" % i, [32, 10], Q4_0, bytes([i]) * 180)
        self.path_of_cut = built.write(self.path("cut.gguf"))
        self.whole = Model(self.path_of_cut)

    def short_tensors(self, length):
        return [(t.name.decode(), t.n_bytes, min(t.offset + t.n_bytes - length, t.n_bytes))
                for t in self.whole.tensors if t.offset + t.n_bytes > length]

    def test_missing_bytes(self):
        ends = [t.offset + t.n_bytes for t in self.whole.tensors]
        for length in (ends[3] - 1, ends[2] + 1, ends[2], ends[2] - 1, ends[1] - 100, ends[0] - 180,
                       ends[0] - 200):
            with self.subTest(length=length):
                os.truncate(self.path_of_cut, length)
                short = self.short_tensors(length)
                name, n_bytes, missing = short[0]
                result = self.assert_refused(EX_DATAERR, [self.path_of_cut, self.mountpoint],
                                             f'"{name}"',
                                             f"{missing} of its {n_bytes} bytes are missing")
                self.assertEqual(len(short) > 1, f"{len(short) - 1} more error" in result.err,
                                 result.err)
                checked = self.run_ggufs("--check", self.path_of_cut)
                self.assert_status(EX_DATAERR, checked)
                lines = checked.out.splitlines()
                self.assertEqual(len(short), sum("bytes are missing" in line for line in lines),
                                 lines)
                for name, n_bytes, missing in short:
                    words = f'tensor "{name}"', f"{missing} of its {n_bytes} bytes are missing"
                    self.assertEqual(1, sum(all(word in line for word in words) for line in lines))
                self.whole_file_again()

    def whole_file_again(self):
        with open(self.path_of_cut, "wb") as file:
            file.write(self.whole.data)

    def test_padding_may_be_missing(self):
        last = self.whole.tensors[-1]
        os.truncate(self.path_of_cut, last.offset + last.n_bytes)
        self.assert_status(EX_OK, self.run_ggufs("--check", self.path_of_cut))


class TestMountPoint(CommandTestCase):
    def test_missing(self):
        path = self.path("missing/inside")
        self.assert_refused(EX_CANTCREAT, [self.model, path], path, "does not exist", "mkdir -p")

    def test_empty_name(self):
        self.assert_refused(EX_CANTCREAT, [self.model, ""], "the name of the mount point is empty")

    def test_dangling_link(self):
        os.symlink("nowhere", self.path("link"))
        self.assert_refused(EX_CANTCREAT, [self.model, self.path("link")], self.path("link"))

    def test_file(self):
        for path in (self.write("file", b"x"), self.path("file/inside")):
            self.assert_refused(EX_CANTCREAT, [self.model, path], path, "not a directory")

    def test_not_empty(self):
        for name in ("file", ".hidden"):
            with self.subTest(name=name):
                path = os.path.join(self.mountpoint, name)
                with open(path, "wb"):
                    pass
                self.assert_refused(EX_CANTCREAT, [self.model, self.mountpoint], self.mountpoint,
                                    "not empty")
                os.unlink(path)

    def test_unreadable(self):
        if os.geteuid() == 0:
            self.skipTest("root reads everything")
        os.chmod(self.mountpoint, 0)
        self.addCleanup(os.chmod, self.mountpoint, 0o755)
        self.assert_refused(EX_CANTCREAT, [self.model, self.mountpoint], self.mountpoint,
                            "Permission denied")
