#include "fs/mount/requirements.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
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

static int check_device(void)
{
    static const struct {
        int error;
        const char *remedy;
    } remedies[] = {
        {ENOENT, "load the kernel's module: modprobe fuse"},
        {ENODEV, "load the kernel's module: modprobe fuse"},
        {ENXIO, "load the kernel's module: modprobe fuse"},
        {EACCES, "root can allow it: chmod 666 /dev/fuse"},
        {EPERM,
         "the control group denies the device: allow it with docker's --device /dev/fuse, or "
         "systemd's DeviceAllow=/dev/fuse"},
        {EMFILE, "raise the limit of open files (ulimit -n)"},
        {0, "pass the device to a container with docker's --device /dev/fuse, not as a volume"},
    };
    const int descriptor = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    int error = descriptor < 0 ? errno : 0;
    struct stat status;
    size_t i = 0;

    if (descriptor >= 0) {
        if (fstat(descriptor, &status) != 0 || !S_ISCHR(status.st_mode))
            error = ENOTTY;
        close(descriptor);
    }
    if (error == 0)
        return EX_OK;
    while (remedies[i].error != error && remedies[i].error != 0)
        i++;
    fprintf(stderr, "ggufs: /dev/fuse cannot be opened: %s; %s\n",
            error == ENOTTY ? "not a device" : strerror(error), remedies[i].remedy);
    if (error == EMFILE)
        return EX_OSERR;
    print_container_hints();
    return EX_UNAVAILABLE;
}

/* Look for fusermount3 where libfuse does: in its own folder, then in PATH. */
static bool has_fusermount(void)
{
    const char *folder = getenv("PATH");
    bool is_found = access("/usr/bin/fusermount3", X_OK) == 0;

    while (folder && *folder != '\0' && !is_found) {
        const int length = (int)strcspn(folder, ":");
        char file[PATH_MAX];

        is_found = snprintf(file, sizeof file, "%.*s/fusermount3", length, folder) < PATH_MAX &&
                   access(file, X_OK) == 0;
        folder += length + (folder[length] == ':');
    }
    return is_found;
}

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

int fs_requirements_check(void)
{
    int status = check_device();

    if (status == EX_OK)
        status = check_rights();
    /* Root mounts without fusermount3. */
    if (status == EX_OK && geteuid() != 0 && !has_fusermount()) {
        fprintf(stderr, "ggufs: fusermount3 is missing, which mounts for you; install it: "
                        "apt-get install fuse3\n");
        status = EX_UNAVAILABLE;
    }
    return status;
}

void fs_requirements_explain_refusal(int error)
{
    /* libfuse and fusermount3 have printed the reason of other errors. */
    if (geteuid() == 0 && error != EINVAL)
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
