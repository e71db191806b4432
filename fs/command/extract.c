#include "fs/command/commands.h"

#include "fs/command/copy_file.h"
#include "fs/command/model_input.h"
#include "fs/command/tree_selection.h"
#include "fs/command/terminal.h"
#include "gguf/support/exit_status.h"
#include "gguf/support/progress.h"

#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sysexits.h>
#include <unistd.h>

/* Patterns used when the user names none: everything except values that can be computed from it. */
static const char *const default_patterns[] = {
    "summary.txt",    "metadata.json", "metadata", "tensors.json",
    "tensors/*/info", "tensors/*/raw", "layers",   "tokenizer",
};

/*
 * The name of a file while it is being written. It cannot be a name of the tree, in which two
 * hexadecimal digits follow each '%'.
 */
#define PARTIAL_NAME "%ggufs-partial"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

struct extraction {
    const char *model;
    const char *directory; /* as named by the user */
    bool force;
    struct fs_tree *tree;
    struct fs_selection selection;

    uint64_t total_bytes, done_bytes;
    uint64_t new_bytes; /* total size of files that do not exist yet */
    struct gguf_progress progress;

    struct fs_interrupt interrupt;

    int descriptor; /* of the file being written or compared */
};

/* System calls for writing, in addition to the calls that every confined process may make. */
static const int writing_calls[] = {
    SCMP_SYS(openat),    SCMP_SYS(mkdirat),   SCMP_SYS(unlinkat),   SCMP_SYS(renameat),
    SCMP_SYS(renameat2), SCMP_SYS(symlinkat), SCMP_SYS(readlinkat), SCMP_SYS(newfstatat),
    SCMP_SYS(fstatfs),   SCMP_SYS(fallocate), SCMP_SYS(pwrite64),
};

/* ---- interrupts ---- */

/* Written by a handler, read by all threads. */
static atomic_int caught_signal;

static void catch_signal(int number)
{
    caught_signal = number;
}

static bool is_signal_caught(void *user)
{
    return caught_signal != 0;
}

static void catch_signals(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};

    for (size_t i = 0; i < COUNT(signals); i++) {
        struct sigaction action;

        /* Leave a signal ignored if the caller ignored it, as nohup does. */
        if (sigaction(signals[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            sigaction(signals[i], &(struct sigaction){.sa_handler = catch_signal}, NULL);
    }
}

/* ---- one file ---- */

static int fail(struct extraction *job, fs_node_index node, int code)
{
    char path[FS_PATH_BYTES];
    int status;

    gguf_progress_erase(&job->progress);
    if (code == -EINTR)
        return 128 + caught_signal;
    fs_node_path(job->tree, node, path);
    if (code == -EEXIST)
        fs_print_error("%s/%s: a different file is there; to replace it, add --force",
                       job->directory, path);
    else if (code == -ELOOP || code == -ENOTDIR)
        fs_print_error("%s/%s: a symbolic link or another file is where a directory must be; "
                       "remove it first",
                       job->directory, path);
    else
        fs_print_error("%s/%s: %s", job->directory, path, strerror(-code));
    status = gguf_exit_status(code);
    /* The model has been opened and parsed: a refusal or a full disk concerns the directory. */
    return status == EX_NOPERM || status == EX_DATAERR ? EX_CANTCREAT : status;
}

static int show_progress(struct extraction *job, size_t n_bytes)
{
    job->done_bytes += n_bytes;
    gguf_progress_draw(&job->progress, job->done_bytes, job->total_bytes);
    return caught_signal ? -EINTR : 0;
}

static void advance(void *user, uint64_t n_bytes)
{
    show_progress(user, n_bytes);
}

static int write_bytes(void *user, uint64_t offset, const char *bytes, size_t n_bytes)
{
    struct extraction *job = user;

    for (size_t done = 0; done < n_bytes;) {
        const ssize_t n =
            pwrite(job->descriptor, bytes + done, n_bytes - done, (off_t)(offset + done));

        if (n < 0 && errno != EINTR)
            return -errno;
        done += n > 0 ? (size_t)n : 0;
    }
    return show_progress(job, n_bytes);
}

/* Return -EEXIST if the file has other bytes there. */
static int compare_bytes(void *user, uint64_t offset, const char *bytes, size_t n_bytes)
{
    struct extraction *job = user;
    char found[16 << 10];

    for (size_t done = 0; done < n_bytes;) {
        const ssize_t n = pread(job->descriptor, found, MIN(n_bytes - done, sizeof found),
                                (off_t)(offset + done));

        if (n < 0 && errno != EINTR)
            return -errno;
        if (n == 0 || (n > 0 && memcmp(found, bytes + done, (size_t)n) != 0))
            return -EEXIST;
        done += n > 0 ? (size_t)n : 0;
    }
    return show_progress(job, n_bytes);
}

/* Write a file under a temporary name, and rename it when it is complete. */
static int write_file(struct extraction *job, int directory, const char *name,
                      const struct fs_image *image)
{
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
    int result = 0;

    unlinkat(directory, PARTIAL_NAME, 0); /* left by a run that was killed */
    job->descriptor = openat(directory, PARTIAL_NAME, flags, 0666);
    if (job->descriptor < 0)
        return -errno;
    /*
     * Fail now if there is not enough space. File systems without fallocate() fail in write()
     * instead.
     */
    if (image->size_bytes > 0 && fallocate(job->descriptor, 0, 0, (off_t)image->size_bytes) != 0 &&
        errno == ENOSPC)
        result = -ENOSPC;
    if (result == 0)
        result = fs_copy_file(image, &job->interrupt, write_bytes, job);
    if (close(job->descriptor) != 0 && result == 0)
        result = -errno;
    if (result == 0 && renameat(directory, PARTIAL_NAME, directory, name) != 0)
        result = -errno;
    if (result < 0)
        unlinkat(directory, PARTIAL_NAME, 0);
    return result;
}

/* Return 1 if the file exists with these contents, 0 if it must be written, or a negative errno. */
static int compare_file(struct extraction *job, int directory, const char *name,
                        const struct fs_image *image)
{
    const uint64_t done_bytes = job->done_bytes;
    struct stat status;
    int result = -EEXIST;

    if (fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? 0 : -errno;
    if (S_ISREG(status.st_mode) && (uint64_t)status.st_size == image->size_bytes) {
        job->descriptor = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        if (job->descriptor < 0)
            return -errno;
        result = fs_copy_file(image, &job->interrupt, compare_bytes, job);
        close(job->descriptor);
        if (result == 0)
            return 1;
    }
    job->done_bytes = done_bytes;
    return result == -EEXIST && job->force && !S_ISDIR(status.st_mode) ? 0 : result;
}

static int extract_file(struct extraction *job, int directory, fs_node_index node)
{
    const char *name = fs_tree_node(job->tree, node)->name;
    const struct fs_image *image;
    int result = fs_tree_open(job->tree, node, &job->interrupt, &image);

    if (result < 0)
        return result;
    result = compare_file(job, directory, name, image);
    if (result == 0)
        result = write_file(job, directory, name, image);
    fs_tree_close(job->tree, image);
    return result < 0 ? result : 0;
}

static int extract_link(const struct extraction *job, int directory, const struct fs_node *node)
{
    char target[FS_PATH_BYTES];
    ssize_t length;

    if (symlinkat(node->target, directory, node->name) == 0)
        return 0;
    if (errno != EEXIST)
        return -errno;
    length = readlinkat(directory, node->name, target, sizeof target);
    if (length >= 0 && (size_t)length == strlen(node->target) &&
        memcmp(target, node->target, (size_t)length) == 0)
        return 0;
    if (!job->force)
        return -EEXIST;
    if (unlinkat(directory, node->name, 0) != 0 ||
        symlinkat(node->target, directory, node->name) != 0)
        return -errno;
    return 0;
}

/* ---- directories ---- */

/* Make a directory unless it exists, and open it. Returns a descriptor or a negative errno. */
static int make_directory(int parent, const char *name, int more_flags)
{
    int descriptor;

    if (mkdirat(parent, name, 0777) != 0 && errno != EEXIST)
        return -errno;
    descriptor = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | more_flags);
    return descriptor < 0 ? -errno : descriptor;
}

static int extract_children(struct extraction *job, int descriptor, fs_node_index directory);

static int extract_node(struct extraction *job, int directory, fs_node_index index)
{
    const struct fs_node *node = fs_tree_node(job->tree, index);
    int result, status;

    if (node->kind == FS_DIRECTORY) {
        result = make_directory(directory, node->name, O_NOFOLLOW);
        if (result < 0)
            return fail(job, index, result);
        status = extract_children(job, result, index);
        close(result);
        return status;
    }
    if (node->kind == FS_LINK)
        result = extract_link(job, directory, node);
    else
        result = extract_file(job, directory, index);
    if (result == 0 && caught_signal)
        result = -EINTR;
    return result < 0 ? fail(job, index, result) : EX_OK;
}

static int extract_children(struct extraction *job, int descriptor, fs_node_index directory)
{
    int status = EX_OK;

    for (uint32_t i = 0; status == EX_OK && i < fs_tree_node(job->tree, directory)->n_children;
         i++) {
        const fs_node_index child = fs_tree_child(job->tree, directory, i);

        if (fs_choice_of(&job->selection, child) != FS_NOT_CHOSEN)
            status = extract_node(job, descriptor, child);
    }
    return status;
}

/* ---- the whole ---- */

static int check_space(const struct extraction *job, int descriptor)
{
    struct statvfs system;

    if (fstatvfs(descriptor, &system) != 0 || job->new_bytes / system.f_frsize < system.f_bavail)
        return EX_OK;
    fs_print_error("%s: not enough space: %.1f MB needed, %.1f MB free", job->directory,
                   (double)job->new_bytes / 1e6,
                   (double)system.f_bavail * (double)system.f_frsize / 1e6);
    return EX_CANTCREAT;
}

static int add_size(struct extraction *job, int descriptor, fs_node_index node)
{
    char path[FS_PATH_BYTES];
    struct stat status;
    uint64_t size_bytes = 0;
    const int result = fs_tree_size(job->tree, node, NULL, &size_bytes);

    if (result < 0)
        return fail(job, node, result);
    fs_node_path(job->tree, node, path);
    job->total_bytes += fs_work_bytes(job->tree, node, size_bytes);
    if (fstatat(descriptor, path, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
        (uint64_t)status.st_size != size_bytes)
        job->new_bytes += size_bytes;
    return EX_OK;
}

static int choose(struct extraction *job, const struct fs_options *options, int descriptor)
{
    const size_t n_defaults = COUNT(default_patterns);
    int status = EX_OK;

    for (size_t i = 0; options->n_paths == 0 && i < n_defaults; i++)
        fs_selection_add(&job->selection, default_patterns[i]);
    if (options->n_paths == 0)
        fs_selection_add_links(&job->selection);
    for (int i = 0; i < options->n_paths; i++) {
        if (fs_selection_add(&job->selection, options->paths[i]) == 0)
            return fs_refuse_path(job->tree, job->model, options->paths[i]);
    }
    for (fs_node_index i = 0; status == EX_OK && i < job->tree->nodes.count; i++) {
        if (fs_tree_node(job->tree, i)->kind == FS_FILE &&
            fs_choice_of(&job->selection, i) == FS_CHOSEN)
            status = add_size(job, descriptor, i);
    }
    return status;
}

static int extract(struct extraction *job, const struct fs_options *options, int descriptor)
{
    int status = choose(job, options, descriptor);

    if (status == EX_OK)
        status = check_space(job, descriptor);
    if (status != EX_OK)
        return status;
    catch_signals();
    gguf_progress_start(&job->progress, job->model);
    status = extract_children(job, descriptor, FS_ROOT);
    gguf_progress_erase(&job->progress);
    return status;
}

static int extract_model(struct extraction *job, const struct fs_options *options,
                         struct fs_input *input, int descriptor)
{
    int status = fs_make_tree(options, input, &job->tree);

    if (status != EX_OK)
        return status;
    if (fs_selection_begin(&job->selection, job->tree) == 0)
        status = extract(job, options, descriptor);
    else
        status = fs_refuse_memory();
    fs_selection_end(&job->selection);
    fs_close_tree(job->tree);
    return status;
}

int fs_extract(const struct fs_options *options)
{
    struct extraction job = {.directory = options->directory, .force = options->force};
    struct gguf_confinement confinement = {
        .threads = true, .system_calls = writing_calls, .n_system_calls = COUNT(writing_calls)};
    struct fs_input *inputs;
    int descriptor = -1;
    int status = fs_open_inputs(options, NULL, &inputs);

    if (status != EX_OK)
        return status;
    job.model = inputs[0].path;
    job.interrupt = (struct fs_interrupt){is_signal_caught, &job, advance};
    if (inputs[0].error == 0) { /* else fs_make_tree() prints it */
        descriptor = make_directory(AT_FDCWD, job.directory, 0);
        confinement.writable_directory = &descriptor;
    }
    if (inputs[0].error == 0 && descriptor < 0) {
        fs_print_error("%s: %s", job.directory, strerror(-descriptor));
        status = EX_CANTCREAT;
    }
    if (status == EX_OK)
        status = fs_confine(options, &confinement);
    if (status == EX_OK)
        status = extract_model(&job, options, &inputs[0], descriptor);
    fs_close_inputs(options, inputs);
    if (descriptor >= 0)
        close(descriptor);
    return status;
}
