#!/usr/bin/env python3
"""The commands that read the tree without a mount, compared with the mounted tree."""

import os
import re
import resource
import shutil
import signal
import stat
import subprocess
import threading
import time
import unittest

import mounting
from gguf_file import ARRAY, F32, Q8_0, STRING, Array, GgufFile
from tree_check import listing, read_file

setUpModule = mounting.require_fuse

EX_OK, EX_USAGE, EX_DATAERR, EX_NOINPUT, EX_CANTCREAT, EX_IOERR = 0, 64, 65, 66, 73, 74

# Runs a command where /dev is empty, so that nothing can open /dev/fuse.
WITHOUT_DEVICES = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /dev && exec "$@"', "-"]


def can_hide_devices():
    done = subprocess.run([*WITHOUT_DEVICES, "test", "!", "-e", "/dev/fuse"],
                          stdin=subprocess.DEVNULL, capture_output=True)
    return done.returncode == 0


def odd_model(path):
    """Write a model with names that need escaping and a tensor of several chunks."""
    built = GgufFile().key(b"general.architecture", STRING, b"llama")
    built.key(b"odd/\x1b[2J key", STRING, b"value").key(b"", STRING, b"no name")
    built.key("模型".encode(), STRING, b"x" * 5000)
    built.tensor(b"blk.0.attn_q.weight", [1024, 1200], Q8_0, os.urandom(1024 * 1200 // 32 * 34))
    built.tensor(b"a[b]*?\\", [4], F32, b"\1\2\3\4" * 4).tensor(b"..", [4], F32, bytes(16))
    built.tensor("张量".encode(), [4], F32, bytes(16)).tensor(b"n" * 300, [4], F32, bytes(16))
    return built.write(path)


class NoMountTestCase(mounting.MountTestCase):
    def run_bytes(self, *arguments, hidden=False, status=EX_OK, **more):
        prefix = WITHOUT_DEVICES if hidden else []
        done = subprocess.run([*prefix, mounting.BINARY, *arguments], stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=2 * mounting.DEADLINE, **more)
        self.assertEqual(status, done.returncode, done.stderr)
        return done.stdout

    def assert_fails(self, status, arguments, *words):
        result = self.run_ggufs(*arguments)
        self.assert_status(status, result)
        self.assertEqual("", result.out)
        for word in words:
            self.assertIn(word, result.err)
        return result

    def listed(self, *arguments, **more):
        """{path: (size, target)} of --list."""
        found = {}
        for line in self.run_bytes("--list", *arguments, **more).splitlines():
            size, name = re.match(rb" *(\d+)  (.*)\Z", line).groups()
            name, _, target = name.partition(b" -> ")
            self.assertNotIn(name, found)
            found[name] = int(size), target or None
        return found

    def assert_same_tree(self, expected, found, names=None):
        """Compare kinds, contents and link targets in two folders; `names` limits the comparison."""
        left, right = listing(os.fsencode(expected)), listing(os.fsencode(found))
        if names is not None:
            left = {name: left[name] for name in names}
            right = {name: s for name, s in right.items() if not stat.S_ISDIR(s.st_mode)}
        self.assertEqual(set(left), set(right))
        for name, status in left.items():
            a, b = (os.path.join(os.fsencode(top), name) for top in (expected, found))
            self.assertEqual(stat.S_IFMT(status.st_mode), stat.S_IFMT(right[name].st_mode), name)
            if stat.S_ISLNK(status.st_mode):
                self.assertEqual(os.readlink(a), os.readlink(b), name)
            elif stat.S_ISREG(status.st_mode):
                self.assertTrue(read_file(a) == read_file(b), f"{name} differs")


class TestSameAsMounted(NoMountTestCase):
    def compare(self, model, hidden):
        """--list and --cat of everything but the large copies of the model."""
        mountpoint = self.mount(model)
        mounted = {name: status for name, status in listing(os.fsencode(mountpoint)).items()
                   if not stat.S_ISDIR(status.st_mode)}
        found = self.listed(model, hidden=hidden)
        self.assertEqual({name: s.st_size for name, s in mounted.items()},
                         {name: size for name, (size, _) in found.items()})
        for name, status in mounted.items():
            if stat.S_ISLNK(status.st_mode):
                path = os.path.join(os.fsencode(mountpoint), name)
                self.assertEqual(os.readlink(path), found[name][1])
        names = [name for name in found if name in (b"metadata.json", b"tensors.json")]
        values = [name for name in found if re.match(rb"tensors/[^/]*/(f32|raw)\Z", name)]
        wanted = b"tensors/output.weight/f32"
        names += [wanted] if wanted in values else sorted(values)[:2]
        for name in names:
            data = self.run_bytes("--cat", name, model, hidden=hidden)
            self.assertTrue(data == read_file(os.path.join(os.fsencode(mountpoint), name)),
                            f"{model}: {name} differs")
        mounting.unmount(mountpoint)

    def models(self):
        yield odd_model(self.path("odd.gguf"))
        yield GgufFile(big_endian=True).tensor(b"t", [64, 3], Q8_0, os.urandom(34 * 6)).write(
            self.path("big-endian.gguf"))
        yield GgufFile().write(self.path("empty.gguf"))
        if os.path.exists(mounting.SAMPLE):
            yield mounting.SAMPLE
        for folder in ("gguf", "golden", "archs", "quants", "split", "legacy", "rwkv", "ik",
                       "tokenizers"):
            top = os.path.join(mounting.FIXTURES, folder)
            for name in sorted(os.listdir(top) if os.path.isdir(top) else ()):
                path = os.path.join(top, name)
                if name.endswith((".gguf", ".bin")) and \
                        self.run_ggufs("--check", path).status == EX_OK:
                    yield path
                    if not os.environ.get("GGUFS_THOROUGH"):
                        break

    def test_all_models(self):
        """Without /dev/fuse, where it can be hidden."""
        hidden = can_hide_devices()
        n = 0
        for model in self.models():
            with self.subTest(model=model):
                self.compare(model, hidden)
                n += 1
        self.assertGreater(n, 2)

    def test_whole_trees(self):
        """--extract writes everything, including links and directories."""
        models = [odd_model(self.path("odd.gguf")), mounting.sample()]
        old = os.path.join(mounting.FIXTURES, "legacy", "llama-ggjt3-q4_0.bin")
        models += [old] if os.path.exists(old) else []
        for i, model in enumerate(models):
            with self.subTest(model=model):
                self.mount(model)
                target = self.path(f"all{i}")
                self.run_bytes("--extract", target, model, "*", hidden=can_hide_devices())
                self.assert_same_tree(self.mountpoint, target)
                mounting.unmount(self.mountpoint)

    def test_links_of_an_old_model(self):
        """Links are extracted without a PATTERN, too: runners find tensors by their GGUF names."""
        model = os.path.join(mounting.FIXTURES, "legacy", "llama-ggjt3-q4_0.bin")
        if not os.path.exists(model):
            self.skipTest("no fixtures")
        target = self.path("old")
        self.run_bytes("--extract", target, model)
        links = {name: found[1] for name, found in self.listed(model).items() if found[1]}
        self.assertIn(b"tensors/token_embd.weight", links)
        for name, link in links.items():
            path = os.path.join(os.fsencode(target), name)
            self.assertEqual(link, os.readlink(path))
            self.assertTrue(os.path.exists(os.path.join(path, b"raw")), name)

    def test_edits_and_split(self):
        model = odd_model(self.path("odd.gguf"))
        self.write("template", b"{{ a, b\\n }}\n")
        options = ["--set", f"tokenizer.chat_template=str:@{self.path('template')}",
                   "--set", "mail=str:@@home", "--set", "general.tags=arr:[\"a\",\"b\"]",
                   "--unset", "general.architecture", "-o", "split=1M"]
        self.mount(model, *options)
        target = self.path("all")
        self.run_bytes(*options, "--extract", target, model, "*")
        self.assert_same_tree(self.mountpoint, target)
        self.assertEqual(b'"{{ a, b\\\\n }}\\n"\n',
                         read_file(self.path("all/metadata/tokenizer.chat_template.json")))
        self.assertEqual(b'"@home"\n', read_file(self.path("all/metadata/mail.json")))

    def test_nothing_calls_libfuse(self):
        """Only the objects for mounting and --version refer to symbols of libfuse."""
        top = os.path.join(os.path.dirname(mounting.BINARY), "obj")
        if not os.path.isdir(top) or not shutil.which("nm"):
            self.skipTest(f"{top} or nm is missing")
        paths = [os.path.join(folder, name) for folder, _, names in os.walk(top) for name in names
                 if name.endswith(".o") and name not in ("main.o", "mount_model.o")]
        paths = [path for path in paths if os.path.relpath(path, top).startswith(("fs/", "gguf/", "dequant/")) and
                 not os.path.relpath(path, top).startswith("fs/mount/")]
        self.assertGreater(len(paths), 20)
        symbols = subprocess.run(["nm", "-uA", *paths], check=True, capture_output=True).stdout
        self.assertEqual([], [line for line in symbols.splitlines() if re.search(rb" U fuse_", line)])


class TestPaths(NoMountTestCase):
    """How arguments are interpreted."""

    def setUp(self):
        super().setUp()
        self.model = odd_model(self.path("odd.gguf"))

    def test_order_of_arguments(self):
        info = self.run_bytes("--cat", "tensors/blk.0.attn_q.weight/info", self.model)
        for words in (["--cat", self.model, "tensors/blk.0.attn_q.weight/info"],
                      [self.model, "--cat", "/tensors//blk.0.attn_q.weight/./info"],
                      ["tensors/blk.0.attn_q.weight/info", "--cat", "--", self.model],
                      ["--cat", self.model, "tensors/../tensors/blk.0*/inf[a-o]"]):
            self.assertEqual(info, self.run_bytes(*words))
        every = self.listed(self.model)
        self.assertEqual(every, self.listed(self.model, "/"))
        self.assertEqual(every, self.listed(self.model, "*"))
        some = {name: size for name, size in every.items() if name.startswith(b"metadata")}
        self.assertEqual(some, self.listed(self.model, "metadata*"))
        self.assertEqual(some, self.listed("metadata", "metadata.json", self.model))

    def test_several_files(self):
        a, b = (self.run_bytes("--cat", name, self.model) for name in ("metadata.json",
                                                                       "tensors.json"))
        self.assertEqual(a + b + a, self.run_bytes("--cat", "metadata.json", "tensors.json",
                                                   "metadata.json", self.model))
        self.assertEqual(a + b, self.run_bytes("--cat", "*.json", self.model))

    def test_names_before_patterns(self):
        self.assertEqual(b"\1\2\3\4" * 4,
                         self.run_bytes("--cat", "tensors/a[b]*?\\/raw", self.model))
        self.assertEqual({b"tensors/a[b]*?\\/raw"},
                         set(self.listed(self.model, "tensors/a\\[b\\]\\*\\?\\\\/raw")))

    def test_shards(self):
        shards = mounting.fixtures("split")
        if not shards:
            mounting.skip_loudly(f"no fixtures in {mounting.FIXTURES}")
        info = self.run_bytes("--cat", "metadata.json", shards[0])
        self.assertEqual(info, self.run_bytes("--cat", "metadata.json", *shards))
        self.assertEqual(info, self.run_bytes("--cat", *shards, "metadata.json"))
        self.mount_in_background(*shards, self.mountpoint)
        self.assertEqual(info, read_file(os.path.join(self.mountpoint, "metadata.json")))
        self.assert_fails(EX_CANTCREAT, [*shards, self.model, self.mountpoint], "is already mounted here")

    def test_what_is_not_there(self):
        self.assert_fails(EX_NOINPUT, ["--cat", "nothing", self.model], "nothing", "--list")
        self.assert_fails(EX_NOINPUT, ["--cat", "blk.0.attn_q.weight", self.model],
                          "did you mean tensors/blk.0.attn_q.weight?")
        self.assert_fails(EX_NOINPUT, ["--cat", "general.architecture", self.model],
                          "did you mean metadata/general.architecture.json?")
        self.assert_fails(EX_NOINPUT, ["--list", self.model, "blk.0.*"],
                          "did you mean tensors/blk.0.*?")
        self.assert_fails(EX_NOINPUT, ["--cat", "mnt/metadata/general.architecture.json", self.model],
                          "did you mean metadata/general.architecture.json?")
        self.assert_fails(EX_NOINPUT, ["--cat", "tensors", self.model], "is a directory")
        self.assert_fails(EX_NOINPUT, ["--cat", "tensors/*", self.model], "is a directory")
        self.assert_fails(EX_NOINPUT, ["--cat", "tensors.json/x", self.model], "tensors.json/x")
        self.assert_fails(EX_NOINPUT, ["--list", self.model, "x*y"], "x*y")
        self.assert_fails(EX_NOINPUT, ["--extract", self.path("d"), self.model, "x*y"], "x*y")
        self.assert_fails(EX_NOINPUT, ["--cat", "\x1b[2J", self.model], "\\x1b[2J")
        self.assert_fails(EX_NOINPUT, ["--cat", "metadata.json", self.path("missing")], "missing")

    def test_a_terminal_gets_safe_names(self):
        model = GgufFile().tensor(b"\xc2\x9b2J", [4], F32, bytes(16)).write(self.path("c1.gguf"))
        ours, theirs = self.open_terminal()
        subprocess.run([mounting.BINARY, "--list", model], stdout=theirs, check=True)
        shown = os.read(ours, 65536)
        self.assertNotIn(b"\xc2\x9b", shown)
        self.assertIn(b"\\xc2\\x9b2J", shown)
        self.assertIn(b"\xc2\x9b2J", self.run_bytes("--list", model))

    def test_progress_of_a_copy(self):
        """Only of what goes to a file: a pager would mix its text with the progress."""
        model = GgufFile().tensor(b"t", [3 << 20], F32, bytes(12 << 20)).write(self.path("m.gguf"))
        for to_file in (True, False):
            ours, theirs = self.open_terminal()
            with open(self.path("copy"), "wb") as copy:
                subprocess.run([mounting.BINARY, "--cat", "model.gguf", model], check=True,
                               stdout=copy if to_file else subprocess.PIPE, stderr=theirs)
            os.write(theirs, b"end")
            shown = os.read(ours, 65536)
            while not shown.endswith(b"end"):  # a terminal passes on what is written piece by piece
                shown += os.read(ours, 65536)
            self.assertEqual(to_file, b"% of 12" in shown, shown)
            self.assertTrue(shown.endswith(b"\r\x1b[Kend") if to_file else shown == b"end", shown)
            os.close(ours)
            os.close(theirs)

    def test_progress_of_checksums(self):
        """They take long, wherever they go, so the bar is erased before they are written."""
        model = GgufFile().tensor(b"t", [48 << 20], F32, bytes(192 << 20)).write(self.path("m.gguf"))
        shown = self.on_terminal("--cat", "SHA256SUMS", model)
        self.assertIn(b" % of 402.7 MB", shown)
        last = shown.rindex(b"\r\x1b[K")
        self.assertRegex(shown[:shown.index(b"  tensors/t/raw")], rb"\r\x1b\[K[0-9a-f]{64}$")
        self.assertNotIn(b" % of ", shown[last:])
        shown = self.on_terminal("--extract", self.path("out"), model, "SHA256SUMS")
        self.assertIn(b" % of 402.7 MB", shown)
        self.assertTrue(shown.endswith(b"\r\x1b[K"), shown[-100:])

    def test_ctrl_c_erases_the_progress(self):
        model = GgufFile().tensor(b"t", [48 << 20], F32, bytes(192 << 20)).write(self.path("m.gguf"))
        ours, theirs = self.open_terminal()
        self.addCleanup(os.close, ours)
        process = subprocess.Popen([mounting.BINARY, "--cat", "SHA256SUMS", model],
                                   stdout=subprocess.DEVNULL, stderr=theirs)
        os.close(theirs)
        shown = b""
        while b" % of " not in shown:
            shown += os.read(ours, 65536)
        process.send_signal(signal.SIGINT)
        self.assertEqual(-signal.SIGINT, process.wait(mounting.DEADLINE))
        try:
            while more := os.read(ours, 65536):
                shown += more
        except OSError:  # the other end is closed
            pass
        self.assertTrue(shown.endswith(b"\r\x1b[K"), shown[-100:])

    def on_terminal(self, *arguments):
        """Returns the output, of any length, on a terminal that is both stdout and stderr."""
        ours, theirs = self.open_terminal()
        shown = []

        def read():
            while True:
                try:
                    part = os.read(ours, 65536)
                except OSError:  # the other end is closed
                    return
                shown.append(part)

        reader = threading.Thread(target=read)
        reader.start()
        done = subprocess.run([mounting.BINARY, *arguments], stdout=theirs, stderr=theirs)
        os.close(theirs)
        reader.join(mounting.DEADLINE)
        os.close(ours)
        self.assertEqual(EX_OK, done.returncode, shown)
        return b"".join(shown).replace(b"\r\n", b"\n")

    def test_a_terminal_gets_safe_text(self):
        """Escaping works for characters that two chunks share; a pipe gets the bytes unchanged."""
        template = b"\x1b[2J\xc2\x9b1m\x9b2m\x7f\xe2\x80\xaee\tf\n" + "模".encode() * 1000000
        model = GgufFile().key(b"tokenizer.ggml.tokens", ARRAY, Array(STRING, [b"a"])).key(
            b"tokenizer.chat_template", STRING, template).write(self.path("text.gguf"))
        names = self.run_bytes("--list", model).decode().split()
        path, = [name for name in names if "metadata/tokenizer.chat_template" in name]
        self.assertIn("\x9b1m".encode(), self.run_bytes("--cat", path, model))
        shown = self.on_terminal("--cat", path, model)
        self.assertIn(b"\\xc2\\x9b1m", shown)
        self.assertIn(b"\\x7f\\xe2\\x80\\xae", shown)
        self.assertEqual(1000000, shown.decode().count("模"))
        self.assertNotIn(b"\x1b", shown)

    def test_progress_has_safe_names(self):
        model = GgufFile().tensor(b"t", [4], F32, bytes(16)).write(self.path("\x1b[2J\x9b.gguf"))
        shown = self.on_terminal("--check", "--data", model)
        self.assertIn(b"\\x1b[2J", shown)
        self.assertNotIn(b"\x1b[2J", shown)
        self.assertNotIn("\x9b".encode(), shown)


class TestExtract(NoMountTestCase):
    def setUp(self):
        super().setUp()
        self.model = odd_model(self.path("odd.gguf"))
        self.target = self.path("target")

    def files(self):
        return {name for name, status in listing(os.fsencode(self.target)).items()
                if not stat.S_ISDIR(status.st_mode)}

    def test_default_is_what_is_stored(self):
        self.run_bytes("--extract", self.target, self.model)
        names = self.files()
        self.assertIn(b"tensors/blk.0.attn_q.weight/raw", names)
        self.assertIn(b"metadata/general.architecture.json", names)
        kinds = {name.rpartition(b"/")[2] for name in names if name.startswith(b"tensors/")}
        self.assertEqual({b"info", b"raw"}, kinds)
        self.assertFalse({name for name in names if name.startswith((b"model.", b"hf/"))})
        self.mount(self.model)
        self.assert_same_tree(self.mountpoint, self.target, names)

    def test_the_runner_reads_it(self):
        runner = os.path.join(os.path.dirname(mounting.BINARY), "ggufs-run")
        model = mounting.fixture("gguf/stories260K.gguf")
        self.run_bytes("--extract", self.target, model)
        done = subprocess.run([runner, "-n", "20", "--temp", "0", self.target, "Once upon a time"],
                              capture_output=True, timeout=2 * mounting.DEADLINE)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertIn(b"there was a little girl named Lily", done.stdout)

    def test_patterns(self):
        self.run_bytes("--extract", self.target, self.model, "tensors/blk*/f32", "metadata*")
        every = self.listed(self.model)
        self.assertEqual({name for name in every if name.startswith(b"metadata")} |
                         {b"tensors/blk.0.attn_q.weight/f32"}, self.files())

    def test_existing_files(self):
        words = ["--extract", self.target, self.model]
        self.run_bytes(*words)
        path = os.path.join(self.target, "tensors.json")
        before = os.stat(path)
        self.run_bytes(*words)
        self.assertEqual(before.st_ino, os.stat(path).st_ino, "a file that is right is left alone")
        good = read_file(path)
        for data in (b"", good[:-1], good[:-1] + b"x", good + b"x"):
            with open(path, "wb") as file:
                file.write(data)
            self.assert_fails(EX_CANTCREAT, words, path, "--force")
            self.assertEqual(data, read_file(path))
            self.run_bytes("--force", *words)
            self.assertEqual(good, read_file(path))
        os.unlink(path)
        os.mkdir(path)
        self.assert_fails(EX_CANTCREAT, ["--force", *words], path)

    def test_never_outside(self):
        outside = self.new_mountpoint("outside")
        victim = self.write("victim", b"mine")
        os.makedirs(self.target)
        os.symlink(outside, os.path.join(self.target, "tensors"))
        for force in ([], ["--force"]):
            result = self.assert_fails(EX_NOINPUT, [*force, "--extract", self.target, self.model],
                                       "symbolic link")
            self.assertIn(os.path.join(self.target, "tensors"), result.err)
        self.assertEqual([], os.listdir(outside))
        os.unlink(os.path.join(self.target, "tensors"))
        os.symlink(victim, os.path.join(self.target, "tensors.json"))
        self.assert_fails(EX_CANTCREAT, ["--extract", self.target, self.model], "tensors.json")
        self.run_bytes("--force", "--extract", self.target, self.model)
        self.assertEqual(b"mine", read_file(victim))
        self.assertFalse(os.path.islink(os.path.join(self.target, "tensors.json")))

    def test_a_failure_leaves_no_partial_file(self):
        os.truncate(self.model, os.path.getsize(self.model) // 2)
        words = ["-o", "partial", "--extract", self.target, self.model, "tensors/blk*"]
        self.assert_fails(EX_IOERR, words, "blk.0.attn_q.weight", "Input/output error")
        self.assertEqual(set(), {n for n in self.files() if n.endswith((b"f32", b"f16", b"npy", b"raw"))})
        self.assertFalse({name for name in self.files() if b"partial" in name})

    def test_interrupts(self):
        """After an interruption, all files that exist are complete."""
        self.mount(self.model)
        n_interrupted = 0
        for delay in (0, 0.002, 0.005, 0.01, 0.02, 0.05):
            process = subprocess.Popen([mounting.BINARY, "--extract", self.target, self.model, "*"],
                                       stderr=subprocess.PIPE)
            time.sleep(delay)  # any moment is right
            process.send_signal(signal.SIGINT)
            said = process.communicate(timeout=mounting.DEADLINE)[1]
            self.assertEqual(b"", said)
            self.assertIn(process.returncode, (0, -signal.SIGINT, 128 + signal.SIGINT))
            n_interrupted += process.returncode != 0
            if os.path.isdir(self.target):
                self.assert_same_tree(self.mountpoint, self.target, self.files())
        self.assertGreater(n_interrupted, 0)

    def test_no_room(self):
        mounting.require_namespace()
        script = 'mount -t tmpfs -o size=64k none "$1" && shift && exec "$@"'
        done = subprocess.run(["unshare", "-m", "sh", "-c", script, "-", self.mountpoint,
                               mounting.BINARY, "--extract", self.mountpoint, self.model],
                              capture_output=True, timeout=mounting.DEADLINE)
        self.assertEqual(EX_CANTCREAT, done.returncode, done.stderr)
        self.assertIn(b"not enough space", done.stderr)

    def test_limit_of_file_size(self):
        """A limit gives a message, not a signal."""
        result = self.run_ggufs("--extract", self.target, self.model,
                                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024)))
        self.assert_status(EX_CANTCREAT, result)
        self.assertIn("File too large", result.err)

    @unittest.skipIf(os.geteuid() == 0 and not shutil.which("setpriv"), "no setpriv here")
    def test_no_right_to_write(self):
        os.mkdir(self.target, mode=0o555)
        os.chmod(self.folder, 0o755)
        as_user = [] if os.geteuid() else ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        done = subprocess.run([*as_user, mounting.BINARY, "--extract", self.target, self.model],
                              capture_output=True, timeout=mounting.DEADLINE)
        if b"setpriv" in done.stderr:
            self.skipTest(done.stderr.decode())
        self.assertEqual(EX_CANTCREAT, done.returncode, done.stderr)
        self.assertIn(b"Permission denied", done.stderr)

    @unittest.skipIf(mounting.is_sanitized(), "sanitizers open files of their own")
    def test_few_open_files(self):
        """The message names the limit, not a remedy that does not help."""
        n_refused = 0
        for n in range(4, 16):
            result = self.run_ggufs("--info", self.model,
                                    preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (n, n)))
            self.assertNotIn("nosandbox", result.err)
            n_refused += "(ulimit -n)" in result.err
        self.assert_status(EX_OK, result)
        if mounting.IS_SANDBOXED:
            self.assertGreater(n_refused, 0)

    def test_bad_targets(self):
        self.write("file", b"")
        self.assert_fails(EX_CANTCREAT, ["--extract", self.path("no/such"), self.model], "no/such")
        self.assert_fails(EX_CANTCREAT, ["--extract", self.path("file"), self.model], "file")
        self.assert_fails(EX_NOINPUT, ["--extract", self.target, self.path("missing")], "missing")
        self.assertFalse(os.path.exists(self.target))
