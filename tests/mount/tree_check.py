"""Compares a mounted tree with the oracle's."""

import os
import shutil
import stat
import subprocess
import tarfile

import oracle
from gguf_reader import Model


def listing(top):
    """All paths below `top` (bytes) with their lstat, by os.walk."""
    found = {b"": os.lstat(top)}

    def fail(error):
        raise error
    for folder, folders, files in os.walk(top, onerror=fail):
        for name in folders + files:
            path = os.path.join(folder, name)
            found[os.path.relpath(path, top)] = os.lstat(path)
    return found


def read_file(path):
    with open(path, "rb", buffering=0) as file:
        return file.read()


def same_names(test, expected, found, what):
    test.assertEqual((set(), set()), (set(expected) - set(found), set(found) - set(expected)),
                     f"{what}: missing and unexpected paths")


def check_status(test, path, entry, status, source):
    """`source` is the stat of the model file."""
    kind = stat.S_IFDIR if entry.is_directory else stat.S_IFREG if entry.target is None else stat.S_IFLNK
    test.assertEqual(kind | entry.mode, status.st_mode, path)
    test.assertEqual(entry.n_links, status.st_nlink, path)
    test.assertEqual((os.getuid(), os.getgid()), (status.st_uid, status.st_gid), path)
    test.assertEqual([source.st_mtime_ns] * 3,
                     [status.st_mtime_ns, status.st_ctime_ns, status.st_atime_ns], path)
    if entry.is_directory:
        test.assertEqual(0, status.st_size, path)
    elif entry.size is not None:
        test.assertEqual(entry.size, status.st_size, path)
    if not entry.is_directory:
        test.assertEqual(-(-status.st_size // 512), status.st_blocks, path)


def check_contents(test, path, entry, data, size):
    test.assertEqual(size, len(data), f"{path}: size by lstat and bytes read")
    try:
        entry.check(data)
    except (AssertionError, ValueError) as error:
        raise AssertionError(f"{path}: {error}") from error


def check_tree(test, model_path, mountpoint):
    """Names, kinds, modes, links, sizes, times and contents. Returns the model and the lstats."""
    model = Model(model_path)
    expected = oracle.expected_tree(model)
    top = os.fsencode(mountpoint)
    found = listing(top)
    expected.update(oracle.expected_checkpoint(found))
    oracle.add_folders(expected)
    same_names(test, expected, found, model_path)
    test.assertEqual(len(found), len({status.st_ino for status in found.values()}))
    n_raw_bytes = 0
    for path, entry in expected.items():
        check_status(test, path, entry, found[path], model.status)
        if entry.target is not None:
            test.assertEqual(entry.target, os.readlink(os.path.join(top, path)), path)
        elif not entry.is_directory:
            check_contents(test, path, entry, read_file(os.path.join(top, path)),
                           found[path].st_size)
            n_raw_bytes += found[path].st_size if path.endswith(b"/raw") else 0
    test.assertEqual(sum(t.n_bytes or 0 for t in model.tensors), n_raw_bytes, "the sum of all raw")
    return model, found


# ---- programs that people use on a tree ----

def run(test, *command, **more):
    done = subprocess.run(command, capture_output=True, **more)
    test.assertEqual((0, b""), (done.returncode, done.stderr), command[:4])
    return done.stdout


def check_du(test, mountpoint, found):
    size = sum(status.st_size for status in found.values())
    test.assertEqual(size, int(run(test, "du", "-sb", mountpoint).split()[0]), "du -sb")


def check_find(test, mountpoint, found):
    paths = run(test, "find", mountpoint, "-mindepth", "1", "-printf", r"%P\0").split(b"\0")
    same_names(test, found, [b"", *paths[:-1]], "find")


def check_tar(test, mountpoint, found):
    """Check tar's archive: names and sizes, and that no file was shorter than its stated size."""
    with subprocess.Popen(["tar", "c", "-C", mountpoint, "."], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as process:
        sizes = {}
        with tarfile.open(fileobj=process.stdout, mode="r|", encoding="utf-8",
                          errors="surrogateescape") as archive:
            for member in archive:
                name = os.fsencode(member.name).removeprefix(b".").removeprefix(b"/")
                sizes[name] = member.size
        process.stdout.read()
        errors = process.stderr.read()
    test.assertEqual((0, b""), (process.returncode, errors), "tar c")
    expected = {path: 0 if stat.S_ISLNK(status.st_mode) else status.st_size for path, status in found.items()}
    test.assertEqual(expected, sizes, "tar c")


def check_copy(test, mountpoint, found, target):
    """cp -r gives the same bytes."""
    run(test, "cp", "-r", mountpoint, target)
    try:
        copied = listing(os.fsencode(target))
        same_names(test, found, copied, "cp -r")
        for path, status in found.items():
            if stat.S_ISREG(status.st_mode):
                test.assertEqual(status.st_size, copied[path].st_size, path)
        run(test, "diff", "-r", "--", mountpoint, target)
    finally:
        run(test, "chmod", "-R", "u+w", target)
        shutil.rmtree(target)


def check_jq(test, mountpoint, found):
    """jq -e: 0 or, for the values null and false, 1."""
    if not shutil.which("jq"):
        return
    names = [path for path, status in found.items() if stat.S_ISREG(status.st_mode) and
             (path.endswith(b".json") or path.endswith(b"/info"))]
    for start in range(0, len(names), 1000):
        done = subprocess.run(["jq", "-e", ".", "--", *names[start:start + 1000]], cwd=mountpoint,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        test.assertEqual(b"", done.stderr, "jq")
        test.assertLessEqual(done.returncode, 1, "jq")


def check_statfs(test, mountpoint, model):
    status = os.statvfs(mountpoint)
    test.assertEqual(-(-len(model.data) // status.f_frsize), status.f_blocks)
    # df(1) shows 0 % used: a full file system would raise alarms.
    test.assertEqual((status.f_blocks,) * 2, (status.f_bfree, status.f_bavail))
    test.assertEqual((status.f_files,) * 2, (status.f_ffree, status.f_favail))
    test.assertEqual(255, status.f_namemax)
    test.assertTrue(status.f_flag & os.ST_RDONLY)
    run(test, "df", mountpoint)


def check_programs(test, mountpoint, model, found, target):
    check_du(test, mountpoint, found)
    check_find(test, mountpoint, found)
    check_tar(test, mountpoint, found)
    check_copy(test, mountpoint, found, target)
    check_jq(test, mountpoint, found)
    check_statfs(test, mountpoint, model)
