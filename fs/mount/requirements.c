#include "fs/mount/requirements.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/nsfs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sysexits.h>
#include <unistd.h>

static void print_container_hints(void)
{
    fputs("ggufs: to let a container mount, start it with: docker run --device /dev/fuse "
          "--cap-add SYS_ADMIN --security-opt apparmor=unconfined\n"
          "ggufs: without a mount, use ggufs --list, --cat, --info or --extract; to run the model: "
          "ggufs --extract tree MODEL && ggufs-run tree\n",
          stderr);
}

/* ---- namespaces ---- */

/* Return true if root is not the machine's: the process is in a user namespace. */
static bool is_in_user_namespace(void)
{
    unsigned long first = 0, outside = 0, count = 0;
    FILE *map = fopen("/proc/self/uid_map", "re");
    bool is_whole = true;

    if (map) {
        is_whole = fscanf(map, "%lu %lu %lu", &first, &outside, &count) != 3 ||
                   (first == 0 && outside == 0 && count == 0xffffffff);
        fclose(map);
    }
    return !is_whole;
}

/* Return true if the mount namespace is known to belong to another user namespace. */
static bool is_foreign_mount_namespace(void)
{
    const int mounts = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    const int owner = mounts < 0 ? -1 : ioctl(mounts, NS_GET_USERNS);
    bool is_foreign = mounts >= 0 && owner < 0 && errno == EPERM;
    struct stat of_mounts, ours;

    if (owner >= 0 && fstat(owner, &of_mounts) == 0 && stat("/proc/self/ns/user", &ours) == 0)
        is_foreign = of_mounts.st_ino != ours.st_ino;
    if (owner >= 0)
        close(owner);
    if (mounts >= 0)
        close(mounts);
    return is_foreign;
}

/* ---- the device ---- */

static void explain_device(int error)
{
    struct statvfs system;
    struct stat status;

    if (stat("/dev/fuse", &status) == 0 && !S_ISCHR(status.st_mode))
        fprintf(
            stderr,
            "ggufs: /dev/fuse is a %s instead of a device: pass it to a container with docker's "
            "--device /dev/fuse, not as a volume\n",
            S_ISDIR(status.st_mode) ? "directory" : "file");
    else if (error == ENOENT)
        fputs("ggufs: /dev/fuse is missing: load the kernel's module with \"modprobe fuse\"\n",
              stderr);
    else if (error == ENODEV || error == ENXIO)
        fputs("ggufs: /dev/fuse is there, but the kernel has no FUSE: load its module with "
              "\"modprobe fuse\"\n",
              stderr);
    else if (error == EPERM)
        fputs("ggufs: /dev/fuse is there, but the control group denies it: allow the device with "
              "docker's --device /dev/fuse, or systemd's DeviceAllow=/dev/fuse\n",
              stderr);
    else if (error == EACCES && statvfs("/dev/fuse", &system) == 0 && (system.f_flag & ST_NODEV))
        fputs("ggufs: /dev/fuse lies on a file system that is mounted with nodev, which closes all "
              "devices: bind the host's /dev/fuse instead\n",
              stderr);
    else
        fprintf(stderr,
                "ggufs: /dev/fuse cannot be opened: %s; root%s can allow it: chmod 666 /dev/fuse\n",
                strerror(error), is_in_user_namespace() ? " of the host" : "");
}

static int check_device(void)
{
    const int descriptor = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    struct stat status;

    if (descriptor >= 0) {
        const bool is_device = fstat(descriptor, &status) == 0 && S_ISCHR(status.st_mode);

        close(descriptor);
        if (is_device)
            return EX_OK;
    }
    if (errno == EMFILE) {
        fprintf(
            stderr,
            "ggufs: /dev/fuse cannot be opened: %s; raise the limit of open files (ulimit -n)\n",
            strerror(EMFILE));
        return EX_OSERR;
    }
    explain_device(errno);
    print_container_hints();
    return EX_UNAVAILABLE;
}

/*
 * Look for fusermount3 where libfuse does: in its own folder, then in PATH. Returns its path, for
 * the caller to free, or NULL.
 */
static char *find_fusermount(void)
{
    const char *path = getenv("PATH");
    char *folders = NULL, *rest = NULL, *file = NULL;

    if (asprintf(&folders, "/usr/bin:%s", path ? path : "") < 0)
        return NULL;
    for (const char *folder = strtok_r(folders, ":", &rest); folder;
         folder = strtok_r(NULL, ":", &rest)) {
        if (asprintf(&file, "%s/fusermount3", folder) < 0) {
            file = NULL;
            break;
        }
        if (access(file, X_OK) == 0)
            break;
        free(file);
        file = NULL;
    }
    free(folders);
    return file;
}

/* Explain why fusermount3 may not mount although users may: it does not become root. */
static void explain_helper(void)
{
    char *file = find_fusermount();
    struct statvfs system;
    struct stat status;

    if (file && statvfs(file, &system) == 0 && (system.f_flag & ST_NOSUID))
        fprintf(
            stderr,
            "ggufs: %s cannot become root, because its file system is mounted with nosuid; mount "
            "as root instead\n",
            file);
    else if (file && stat(file, &status) == 0 && !(status.st_mode & S_ISUID))
        fprintf(stderr,
                "ggufs: %s cannot become root, because it has no set-user-ID bit; root can set it: "
                "chmod u+s %s\n",
                file, file);
    free(file);
}

/* ---- rights ---- */

/* Return true if the process may not mount: as root by itself, as another user with a helper. */
static bool lacks_capability(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct has[_LINUX_CAPABILITY_U32S_3];

    if (prctl(PR_CAPBSET_READ, CAP_SYS_ADMIN, 0, 0, 0) == 0)
        return true;
    return geteuid() == 0 && syscall(SYS_capget, &header, has) == 0 &&
           (has[CAP_TO_INDEX(CAP_SYS_ADMIN)].effective & CAP_TO_MASK(CAP_SYS_ADMIN)) == 0;
}

static int check_rights(void)
{
    if (lacks_capability()) {
        fprintf(stderr, "ggufs: nothing can be mounted here, because the capability CAP_SYS_ADMIN "
                        "was taken away\n");
        print_container_hints();
        return EX_OSERR;
    }
    if (geteuid() != 0 && prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1) {
        fprintf(stderr, "ggufs: fusermount3 cannot mount here, because no_new_privs is set "
                        "(systemd's NoNewPrivileges, docker's --security-opt no-new-privileges)\n");
        return EX_OSERR;
    }
    return EX_OK;
}

int fs_requirements_check(bool auto_unmount)
{
    int status = check_device();

    if (status == EX_OK)
        status = check_rights();
    /* Root mounts without fusermount3. */
    if (status == EX_OK && (geteuid() != 0 || auto_unmount)) {
        char *helper = find_fusermount();

        if (!helper) {
            fprintf(stderr, "ggufs: fusermount3 is missing, which mounts for you; install it: "
                            "apt-get install fuse3\n");
            status = EX_UNAVAILABLE;
        }
        free(helper);
    }
    return status;
}

void fs_requirements_explain_refusal(int error)
{
    if (geteuid() != 0)
        explain_helper();
    if (geteuid() != 0 || error == EINVAL)
        return;
    if (is_in_user_namespace() && is_foreign_mount_namespace())
        fputs("ggufs: the user namespace has no mounts of its own: start it with "
              "\"unshare --user --map-root-user --mount\"\n",
              stderr);
    else if (error == EACCES)
        fputs("ggufs: a security module such as AppArmor or SELinux may forbid mounts; see its "
              "messages with \"dmesg\"\n",
              stderr);
    else if (error == EPERM)
        fputs("ggufs: a seccomp filter may forbid mounts, or the kernel does not allow FUSE in "
              "user namespaces, which needs Linux 4.18\n",
              stderr);
    print_container_hints();
}

int fs_requirements_refuse_no_path(int error)
{
    if (access("/proc/self/fd", F_OK) != 0)
        fputs("ggufs: /proc is not mounted; mount it: mount -t proc proc /proc\n", stderr);
    else
        fprintf(stderr, "ggufs: /proc/self/fd: %s\n", strerror(error));
    return EX_OSERR;
}
