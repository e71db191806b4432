#include "fs/mount/opener.h"

#include "fs/mount/descriptors.h"
#include "fs/mount/sandbox.h"
#include "gguf/support/shard_names.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sysexits.h>
#include <unistd.h>

enum request { OPEN, STATUS, LIST };

struct answer {
    int result;
    struct gguf_file_status status;
    size_t n; /* entries of a folder, which are in the descriptor; or the root that failed */
};

/* ---- the process ---- */

struct root {
    const char *path;
    int folder;   /* O_PATH; of a file, its folder */
    bool is_file; /* that file, and the other shards of the model, may be links to anywhere */
    char *hidden; /* the mount point in the folder, whose file system is left alone; or NULL */
};

static int open_below(const struct root *roots, const char *path, uint64_t flags)
{
    for (const struct root *root = roots; root->path; root++) {
        const size_t length = strlen(root->path);
        struct open_how how = {.flags = flags | O_CLOEXEC, .resolve = RESOLVE_NO_MAGICLINKS};
        const char *rest = path + length;
        long descriptor;

        if (root->is_file
                ? strcmp(path, root->path) != 0 && !gguf_are_shards_of_one_model(path, root->path)
                : strncmp(path, root->path, length) != 0 || (*rest != '/' && *rest != '\0'))
            continue;
        if (root->is_file)
            rest = strrchr(path, '/');
        else
            how.resolve |= RESOLVE_BENEATH | (root->hidden ? RESOLVE_NO_XDEV : 0);
        rest += strspn(rest, "/");
        descriptor =
            syscall(SYS_openat2, root->folder, *rest != '\0' ? rest : ".", &how, sizeof how);
        return descriptor < 0 ? -errno : (int)descriptor;
    }
    return -EACCES;
}

static int open_file(void *roots, const char *path)
{
    const int descriptor = open_below(roots, path, O_RDONLY | O_NOCTTY | O_NONBLOCK);

    return descriptor < 0 ? descriptor : gguf_keep_regular(descriptor);
}

static int get_status(void *roots, const char *path, struct gguf_file_status *status)
{
    const int descriptor = open_below(roots, path, O_PATH);

    return descriptor < 0 ? descriptor : gguf_take_status(descriptor, status);
}

static int list_folder(void *argument, const char *path, struct gguf_folder *folder)
{
    const struct gguf_store_access access = {.status = get_status, .argument = argument};
    int descriptor;

    for (const struct root *root = argument; root->path; root++)
        if (root->hidden && strcmp(path, root->hidden) == 0)
            return -ELOOP;
    descriptor = open_below(argument, path, O_RDONLY | O_DIRECTORY);
    return descriptor < 0 ? descriptor : gguf_folder_read(descriptor, &access, path, folder);
}

/* Write the entries of a folder to memory that a descriptor names. Returns it or -errno. */
static int write_folder(const struct gguf_folder *folder)
{
    const size_t bytes = folder->n_entries * sizeof *folder->entries;
    const int descriptor = memfd_create("folder", MFD_CLOEXEC);

    for (size_t at = 0; descriptor >= 0 && at < bytes;) {
        const ssize_t n = write(descriptor, (const char *)folder->entries + at, bytes - at);

        if (n < 0) {
            close(descriptor);
            return -ENOMEM;
        }
        at += (size_t)n;
    }
    return descriptor < 0 ? -errno : descriptor;
}

static bool reply(int socket, struct root *roots, enum request request, const char *path)
{
    struct answer answer = {0};
    struct gguf_folder folder = {0};
    int descriptor = -1;
    bool is_sent;

    switch (request) {
    case OPEN:
        answer.result = descriptor = open_file(roots, path);
        break;
    case STATUS:
        answer.result = get_status(roots, path, &answer.status);
        break;
    case LIST:
        answer.result = list_folder(roots, path, &folder);
        if (answer.result == 0)
            answer.result = descriptor = write_folder(&folder);
        answer.n = folder.n_entries;
    }
    is_sent = fs_send_message(socket, &answer, sizeof answer, descriptor);
    if (descriptor >= 0)
        close(descriptor);
    free(folder.entries);
    return is_sent;
}

/* Answer requests until the server has ended. */
static _Noreturn void serve(int socket, struct root *roots)
{
    char request[PATH_MAX + 2];
    ssize_t n;

    while ((n = recv(socket, request, sizeof request - 1, 0)) > 0) {
        request[n] = '\0';
        if (!reply(socket, roots, (enum request)request[0], request + 1))
            break;
    }
    _exit(EX_OK);
}

/* Open a root, while links still lead to it as the user sees it. */
static int open_root(struct root *root, const char *path, const char *mountpoint)
{
    char *real = realpath(path, NULL), *folder = strdup(path);
    struct stat status;
    int result = real && folder && stat(real, &status) == 0 ? 0 : -errno;

    *root = (struct root){.path = path, .folder = -1};
    if (result == 0) {
        const size_t length = strlen(real);

        root->is_file = !S_ISDIR(status.st_mode);
        if (strncmp(mountpoint, real, length) == 0 && (length == 1 || mountpoint[length] == '/') &&
            asprintf(&root->hidden, "%s%s", path, mountpoint + (length > 1 ? length : 0)) < 0)
            result = -ENOMEM;
        if (root->is_file)
            strrchr(folder, '/')[1] = '\0';
        root->folder = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
        result = root->folder < 0 ? -errno : result;
    }
    free(folder);
    free(real);
    return result;
}

/* ---- requests of the server ---- */

/* Ask for a path. Returns the answer's result, with a descriptor or -1. */
static int ask(struct fs_opener *opener, enum request request, const char *path,
               struct answer *answer, int *descriptor)
{
    char message[PATH_MAX + 1];
    const size_t length = strlen(path);

    *descriptor = -1;
    if (length >= sizeof message - 1)
        return -ENAMETOOLONG;
    message[0] = (char)request;
    memcpy(message + 1, path, length);
    pthread_mutex_lock(&opener->lock);
    if (send(opener->socket, message, length + 1, MSG_NOSIGNAL) < 0 ||
        !fs_receive_message(opener->socket, answer, sizeof *answer, descriptor))
        answer->result = -EIO;
    pthread_mutex_unlock(&opener->lock);
    /* The kernel drops a descriptor that this process has no room for. */
    return answer->result >= 0 && request != STATUS && *descriptor < 0 ? -EMFILE : answer->result;
}

static int ask_open(void *opener, const char *path)
{
    struct answer answer;
    int descriptor;
    const int result = ask(opener, OPEN, path, &answer, &descriptor);

    return result < 0 ? result : descriptor;
}

static int ask_status(void *opener, const char *path, struct gguf_file_status *status)
{
    struct answer answer;
    int descriptor;
    const int result = ask(opener, STATUS, path, &answer, &descriptor);

    *status = answer.status;
    return result;
}

static int ask_list(void *opener, const char *path, struct gguf_folder *folder)
{
    struct answer answer = {0};
    int descriptor, result = ask(opener, LIST, path, &answer, &descriptor);
    const size_t bytes = answer.n * sizeof *folder->entries;

    folder->n_entries = answer.n;
    folder->entries = result < 0 ? NULL : malloc(bytes + 1);
    if (result >= 0 && !folder->entries)
        result = -ENOMEM;
    else if (result >= 0 && pread(descriptor, folder->entries, bytes, 0) != (ssize_t)bytes)
        result = -EIO;
    if (descriptor >= 0)
        close(descriptor);
    if (result < 0)
        free(folder->entries);
    return result < 0 ? result : 0;
}

/* ---- the start ---- */

/* Runs in the new process. Tells the server if the roots could be opened, and by whom not. */
static _Noreturn void run(int socket, const char *const *paths, const char *mountpoint,
                          bool sandbox)
{
    struct root *roots;
    struct answer answer = {0};
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    size_t n = 0;

    while (paths[n])
        n++;
    roots = calloc(n + 1, sizeof *roots);
    for (size_t i = 0; roots && i < n && answer.result == 0; i++) {
        answer.result = open_root(&roots[i], paths[i], mountpoint);
        answer.n = i;
    }
    if (!roots)
        answer.result = -ENOMEM;
    for (int i = STDIN_FILENO; i <= STDERR_FILENO; i++)
        dup2(null, i);
    if (answer.result == 0 && sandbox && !fs_sandbox_enter_opener())
        answer.result = -EPERM;
    if (!fs_send_message(socket, &answer, sizeof answer, -1) || answer.result < 0)
        _exit(EX_OSERR);
    serve(socket, roots);
}

int fs_opener_start(struct fs_opener *opener, const char *const *roots, const char *mountpoint,
                    bool sandbox)
{
    struct answer answer = {.result = -EIO};
    int ends[2], none;
    pid_t child;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        fprintf(stderr, "ggufs: socketpair: %s\n", strerror(errno));
        return EX_OSERR;
    }
    child = fork();
    if (child == 0) {
        /* Descriptors of the server would keep its users from noticing its end. */
        fs_close_all_but(&ends[1], 1);
        run(ends[1], roots, mountpoint, sandbox);
    }
    close(ends[1]);
    if (child < 0 || !fs_receive_message(ends[0], &answer, sizeof answer, &none) ||
        answer.result < 0) {
        fprintf(stderr, "ggufs: %s: cannot be opened: %s\n", roots[answer.n],
                strerror(child < 0 ? errno : -answer.result));
        return EX_NOINPUT;
    }
    *opener = (struct fs_opener){
        .socket = ends[0],
        .access = {.open = ask_open, .status = ask_status, .list = ask_list, .argument = opener}};
    pthread_mutex_init(&opener->lock, NULL);
    return EX_OK;
}
