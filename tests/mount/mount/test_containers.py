#!/usr/bin/env python3
"""What containers lack and allow: the messages name the missing piece, a mount spreads to other
containers and ends with its container, and the files in contrib/containers are sound."""

import ctypes
import os
import platform
import re
import shutil
import signal
import subprocess
import unittest

import mounting
import test_confined
from test_mountpoint import (EX_OK, EX_OSERR, EX_UNAVAILABLE, SOMEBODY, MountpointTestCase,
                             require_root)

setUpModule = mounting.require_fuse

NOBODY = 65534  # a user with a name, which fusermount3 needs
FOLDER = os.path.join(mounting.ROOT, "contrib", "containers")
DEVICES = "/sys/fs/cgroup/devices"
HINT = "docker run --device /dev/fuse --cap-add SYS_ADMIN"

# The numbers of mount and landlock_create_ruleset.
MOUNT = {"x86_64": 165, "aarch64": 40}.get(platform.machine())
LANDLOCK = 444


def refuse_call(number, error):
    """Make a system call fail in this process and those that it starts."""
    program = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x00050000 | error),
               (0x06, 0, 0, 0x7fff0000)]
    filters = (test_confined.SockFilter * len(program))(
        *[test_confined.SockFilter(*row) for row in program])
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(test_confined.PR_SET_SECCOMP, 2, ctypes.byref(
            test_confined.SockProgram(len(program), filters))) != 0:
        raise OSError(ctypes.get_errno(), "PR_SET_SECCOMP")


class ContainerTestCase(MountpointTestCase):
    def setUp(self):
        super().setUp()
        require_root(self)
        mounting.require_namespace()
        for path in (self.folder, self.mountpoint):
            os.chmod(path, 0o755)

    def run_in(self, prepare, *program):
        """Run ggufs in a mount namespace that a script has prepared, started by a program."""
        done = subprocess.run(
            ["unshare", "-m", "sh", "-c", f'set -e; {prepare}\nexec "$@"', "sh", *program,
             mounting.BINARY, *mounting.MOUNT_OPTIONS, self.model, self.mountpoint],
            capture_output=True, text=True, timeout=mounting.DEADLINE)
        return mounting.Result(done.returncode, done.stdout, done.stderr)


OWN_DEVICES = """mount -t tmpfs none /dev
    mknod -m 666 /dev/fuse c 10 229
    mknod -m 666 /dev/null c 1 3
"""


class TestMessages(ContainerTestCase):
    def test_device_that_the_control_group_denies(self):
        group = os.path.join(DEVICES, f"ggufs-test-{os.getpid()}")
        try:
            os.mkdir(group)
        except OSError as error:
            self.skipTest(f"no control group of devices: {error}")
        self.addCleanup(os.rmdir, group)
        result = self.run_in(f'echo "c 10:229 rwm" >{group}/devices.deny; echo $$ >{group}/tasks')
        self.assert_refused(result, EX_UNAVAILABLE, "the control group denies the device",
                            "--device /dev/fuse", "DeviceAllow=/dev/fuse", HINT)

    def test_device_of_root(self):
        as_somebody = ["setpriv", f"--reuid={SOMEBODY}", f"--regid={SOMEBODY}", "--clear-groups"]
        closed = OWN_DEVICES + "chmod 600 /dev/fuse"
        result = self.run_in(closed, *as_somebody)
        self.assert_refused(result, EX_UNAVAILABLE, "Permission denied; root can allow it: chmod 666")

    def test_device_without_a_driver(self):
        """A number that no driver has stands for a kernel without FUSE."""
        result = self.run_in(OWN_DEVICES.replace("10 229", "10 254"))
        self.assert_refused(result, EX_UNAVAILABLE, "/dev/fuse cannot be opened", "modprobe fuse")

    def test_device_that_is_none(self):
        """An engine makes a directory if it has to bind a path that is missing on the host."""
        for make, words in (("mkdir", "Is a directory"), ("touch", "not a device")):
            result = self.run_in(f"{OWN_DEVICES} rm /dev/fuse; {make} /dev/fuse")
            self.assert_refused(result, EX_UNAVAILABLE, words, "docker's --device /dev/fuse", HINT)

    def test_capability_that_is_not_effective(self):
        result = self.run_in("", "setpriv", "--securebits=+noroot,+noroot_locked")
        self.assert_refused(result, EX_OSERR, "CAP_SYS_ADMIN was taken away", HINT)

    def test_user_namespace_without_mounts(self):
        result = self.run_in(OWN_DEVICES, "unshare", "-Ur")
        self.assert_refused(result, EX_OSERR, "the mount was refused", HINT)

    def test_user_namespace(self):
        """What rootless podman makes: root in a user namespace may mount FUSE."""
        script = '"$@" && cat "$0/tensors/t/raw" && umount "$0"'
        result = self.run_in(OWN_DEVICES, "unshare", "-Urm", "sh", "-c", script, self.mountpoint)
        self.assertEqual((EX_OK, "\0" * 16, ""), (result.status, result.out, result.err))

    @unittest.skipUnless(MOUNT, "numbers of system calls are unknown")
    def test_refused_by_a_filter(self):
        for error in (1, 13):  # EPERM, EACCES
            result = self.run_mount(self.mountpoint,
                                    preexec_fn=lambda error=error: refuse_call(MOUNT, error))
            self.assert_refused(result, EX_OSERR, "the mount was refused", HINT)

    def test_kernel_without_landlock(self):
        for error in (38, 95):  # ENOSYS, EOPNOTSUPP
            result = self.run_mount(self.mountpoint,
                                    preexec_fn=lambda error=error: refuse_call(LANDLOCK, error))
            self.assertEqual((EX_OK, ""), (result.status, result.err))
            mounting.unmount(self.mountpoint)

    @unittest.skipUnless(mounting.IS_SANDBOXED, "sanitizers need /proc")
    def test_no_proc(self):
        result = self.run_in("umount -l /proc")
        self.assert_refused(result, EX_OSERR, "/proc is not mounted", "mount -t proc proc /proc")


class TestLife(ContainerTestCase):
    def test_spreads_and_ends(self):
        """A volume that one container shares and another follows, as in sidecar.yaml."""
        shared = self.path("shared")
        os.mkdir(shared)
        subprocess.run(["mount", "-t", "tmpfs", "none", shared], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", shared])
        subprocess.run(["mount", "--make-shared", shared], check=True)
        tree = os.path.join(shared, "model")
        command = ["unshare", "-mpf", "--kill-child", "--mount-proc", "--propagation", "unchanged", "sh",
                   "-c", 'fusermount3 -uqz "$0"; exec "$@"', tree, mounting.BINARY, "-f", "-o",
                   "allow_other", *mounting.MOUNT_OPTIONS, self.model, tree]
        reader = ["unshare", "-m", "--propagation", "slave", "setpriv", f"--reuid={SOMEBODY}",
                  f"--regid={SOMEBODY}", "--clear-groups", "sh", "-c"]

        def is_ready():
            return subprocess.run([*reader, f"head -c1 {tree}/summary.txt"],
                                  capture_output=True).returncode == 0

        def start():
            sidecar = subprocess.Popen(command, stderr=subprocess.PIPE)
            self.addCleanup(sidecar.communicate)
            self.addCleanup(sidecar.kill)
            mounting.wait_until(is_ready, "the probe fails")
            return sidecar

        killed = start()
        os.kill(self.processes_of(tree)[0], signal.SIGKILL)  # process 1 of the container
        killed.wait(mounting.DEADLINE)
        self.assertTrue(mounting.mount_entry(tree))  # dead
        self.assertFalse(is_ready())
        sidecar = start()
        done = subprocess.run([*reader, f"cat {tree}/tensors/t/raw"], capture_output=True)
        self.assertEqual((EX_OK, bytes(16)), (done.returncode, done.stdout), done.stderr)

        keeper, _ = self.processes_of(tree)
        os.kill(keeper, signal.SIGTERM)  # process 1 of the container
        self.assertEqual((EX_OK, b""), (sidecar.wait(mounting.DEADLINE), sidecar.stderr.read()))
        self.assertIsNone(mounting.mount_entry(tree))
        done = subprocess.run([*reader, f"ls {tree}"], capture_output=True)
        self.assertEqual((0, b""), (done.returncode, done.stdout))

    @unittest.skipUnless(mounting.IS_SANDBOXED, "sanitizers need /proc")
    def test_no_rights_at_all(self):
        """What a plain container can run, also as another user, without /dev/fuse and /proc."""
        os.chown(self.folder, SOMEBODY, SOMEBODY)
        zeros = self.write("zeros", bytes(16))
        script = f"""{OWN_DEVICES}
            rm /dev/fuse; umount -l /proc; cd {self.folder}
            run() {{ setpriv --reuid={SOMEBODY} --regid={SOMEBODY} --clear-groups --no-new-privs \
                --bounding-set=-all "$0" "$@"; }}
            run --list {self.model} tensors/t/raw && run --cat tensors/t/info {self.model} &&
                run --extract tree {self.model} && cmp tree/tensors/t/raw {zeros}"""
        done = subprocess.run(["unshare", "-m", "sh", "-c", script, mounting.BINARY],
                              capture_output=True)
        self.assertEqual((0, b""), (done.returncode, done.stderr))
        self.assertIn(b"tensors/t/raw", done.stdout)
        self.assertIn(b'"shape":[4]', done.stdout.replace(b" ", b""))


class TestFiles(unittest.TestCase):
    def read(self, name):
        with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
            return file.read()

    def instructions(self):
        text = re.sub(r"^#.*\n", "", self.read("Containerfile"), flags=re.M).replace("\\\n", " ")
        return [line.split(None, 1) for line in text.splitlines() if line.strip()]

    def test_containerfile(self):
        instructions = self.instructions()
        self.assertLessEqual({name for name, _ in instructions},
                             {"FROM", "COPY", "WORKDIR", "RUN", "STOPSIGNAL", "ENTRYPOINT", "CMD"})
        for name, value in instructions:
            if name == "RUN":
                subprocess.run(["sh", "-n", "-c", value], check=True)

    def test_packages_of_the_image(self):
        """The packages of all libraries that the programs load are installed in the image."""
        if not shutil.which("dpkg-query") or mounting.is_sanitized():
            self.skipTest("needs dpkg, and programs as users build them")
        with open("/etc/os-release", encoding="utf-8") as file:
            if 'VERSION_ID="12"' not in file.read():
                self.skipTest("not Debian 12")
        installed = set([value for name, value in self.instructions() if name == "RUN"][-1].split())
        for program in ("ggufs", "ggufs-run"):
            needed = subprocess.run(["objdump", "-p", os.path.join(mounting.ROOT, "build", program)],
                                    capture_output=True, text=True, check=True).stdout
            for library in re.findall(r"NEEDED +(\S+)", needed):
                owner = subprocess.run(["dpkg-query", "-S", f"*/{library}"], capture_output=True,
                                       text=True, check=True).stdout
                owners = {line.split(":")[0] for line in owner.splitlines()}
                self.assertTrue(owners & (installed | {"libc6"}), f"{library}: {owners}")

    def pod(self, name):
        try:
            import yaml
        except ImportError:
            self.skipTest("no python3-yaml here")
        return yaml.safe_load(self.read(name))

    def check_pod(self, pod):
        self.assertEqual(("v1", "Pod"), (pod["apiVersion"], pod["kind"]))
        volumes = {volume["name"] for volume in pod["spec"]["volumes"]}
        for container in pod["spec"]["initContainers"] + pod["spec"]["containers"]:
            mounts = container["volumeMounts"]
            self.assertLessEqual({mount["name"] for mount in mounts}, volumes)
            # Kubernetes lets only privileged containers share their mounts.
            shares = any(mount.get("mountPropagation") == "Bidirectional" for mount in mounts)
            self.assertEqual(shares, container["securityContext"].get("privileged", False))

    def test_sidecar(self):
        pod = self.pod("sidecar.yaml")
        self.check_pod(pod)
        [sidecar], [reader] = pod["spec"]["initContainers"], pod["spec"]["containers"]
        self.assertEqual("HostToContainer", reader["volumeMounts"][0]["mountPropagation"])
        self.assertEqual("Always", sidecar["restartPolicy"])
        [script] = sidecar["args"]
        clear, _, rest = script.partition("; exec ")
        command = rest.split()
        self.assertEqual("ggufs", command[0])
        self.assertIn("allow_other", command)  # the reader is another user
        self.assertEqual([sidecar["startupProbe"]["exec"]["command"][-1]],
                         [f"{command[-1]}/summary.txt"])
        # What a killed container left is unmounted first.
        self.assertEqual(["fusermount3", "-uqz", command[-1]], clear.split())
        # The options are right: only the model is missing.
        done = subprocess.run([mounting.BINARY, *command[1:]], capture_output=True, text=True)
        self.assertEqual(66, done.returncode, done.stderr)

    def test_extract(self):
        pod = self.pod("extract.yaml")
        self.check_pod(pod)
        [extract] = pod["spec"]["initContainers"]
        done = subprocess.run([mounting.BINARY, *extract["args"]], capture_output=True, text=True)
        self.assertEqual(66, done.returncode, done.stderr)
