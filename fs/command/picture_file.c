#include "fs/command/picture_file.h"

#include "fs/command/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

static const int renaming_calls[] = {SCMP_SYS(renameat), SCMP_SYS(renameat2), SCMP_SYS(unlinkat)};

static int fail(const char *path, int status)
{
    fs_print_error("%s: %s", path, strerror(errno));
    return status;
}

/* ---- what must not be replaced ---- */

/* Return the absolute path of the input file with this status, or NULL. */
static const char *find_input(const struct stat *status, const struct fs_input *inputs,
                              int n_inputs)
{
    for (int i = 0; i < n_inputs; i++) {
        const struct gguf_files *files = &inputs[i].files;

        for (uint32_t j = 0; j < files->count; j++) {
            const struct gguf_source *file = &files->list[j].file;
            struct gguf_file_status input;

            if (file->kind && file->kind->get_status(file, &input) == 0 &&
                input.device == status->st_dev && input.inode == status->st_ino)
                return file->path;
        }
    }
    return NULL;
}

/* Return true if a file is empty or begins as an SVG does. */
static bool is_svg(int descriptor)
{
    static const char *const starts[] = {"<svg", "<?xml"};
    char start[8];
    const ssize_t n = pread(descriptor, start, sizeof start, 0);

    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (n >= (ssize_t)strlen(starts[i]) && memcmp(start, starts[i], strlen(starts[i])) == 0)
            return true;
    return n == 0;
}

/* Refuse to replace a regular file that is an input, cannot be written or is no SVG. */
static int check_old(const char *path, const struct stat *status, const struct fs_input *inputs,
                     int n_inputs)
{
    const char *input = find_input(status, inputs, n_inputs);
    int descriptor;
    bool may_replace;

    if (input) {
        fs_print_error("--svg %s: this is the input %s; name another file for the picture", path,
                       input);
        return EX_USAGE;
    }
    descriptor = open(path, O_RDWR | O_CLOEXEC);
    if (descriptor < 0)
        return fail(path, EX_CANTCREAT);
    may_replace = is_svg(descriptor);
    close(descriptor);
    if (may_replace)
        return EX_OK;
    fs_print_error("--svg %s: the file exists and is not an SVG picture; name another file, or "
                   "remove this one first",
                   path);
    return EX_CANTCREAT;
}

/* ---- the temporary file ---- */

/* Open the directory of `path`, and a temporary file in it. Returns 0, or -1 with errno set. */
static int open_beside(struct fs_picture_file *picture, const char *path)
{
    const char *slash = strrchr(path, '/');
    char *directory = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    int descriptor;

    picture->name = strdup(slash ? slash + 1 : path);
    if (!directory || !picture->name ||
        asprintf(&picture->partial_name, "%s%%ggufs-partial", picture->name) < 0) {
        picture->partial_name = NULL;
        free(directory);
        errno = ENOMEM;
        return -1;
    }
    picture->directory = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    free(directory);
    if (picture->directory < 0)
        return -1;
    unlinkat(picture->directory, picture->partial_name, 0); /* left by a run that was killed */
    descriptor = openat(picture->directory, picture->partial_name,
                        O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor < 0)
        return -1;
    picture->stream = fdopen(descriptor, "w");
    return picture->stream ? 0 : -1;
}

int fs_picture_file_begin(struct fs_picture_file *picture, const char *path,
                          const struct fs_input *inputs, int n_inputs)
{
    char *resolved = realpath(path, NULL); /* a link to a file stays */
    struct stat status;
    int result = EX_OK;

    *picture = (struct fs_picture_file){.path = path, .directory = -1};
    if (stat(path, &status) != 0) {
        if (errno != ENOENT || open_beside(picture, path) < 0)
            result = fail(path, EX_CANTCREAT);
    } else if (S_ISREG(status.st_mode)) {
        result = check_old(path, &status, inputs, n_inputs);
        if (result == EX_OK && open_beside(picture, resolved ? resolved : path) < 0)
            result = fail(path, EX_CANTCREAT);
    } else {
        picture->stream = fopen(path, "we");
        if (!picture->stream)
            result = fail(path, EX_CANTCREAT);
    }
    free(resolved);
    if (result != EX_OK)
        fs_picture_file_end(picture);
    return result;
}

void fs_picture_file_allow(const struct fs_picture_file *picture,
                           struct gguf_confinement *confinement)
{
    if (picture->directory < 0)
        return;
    confinement->writable_directory = &picture->directory;
    confinement->system_calls = renaming_calls;
    confinement->n_system_calls = sizeof renaming_calls / sizeof *renaming_calls;
}

int fs_picture_file_finish(struct fs_picture_file *picture)
{
    if (fflush(picture->stream) != 0 || ferror(picture->stream))
        return fail(picture->path, EX_IOERR);
    if (picture->directory < 0)
        return EX_OK;
    if (renameat(picture->directory, picture->partial_name, picture->directory, picture->name) != 0)
        return fail(picture->path, EX_CANTCREAT);
    free(picture->partial_name);
    picture->partial_name = NULL;
    return EX_OK;
}

void fs_picture_file_end(struct fs_picture_file *picture)
{
    if (picture->stream)
        fclose(picture->stream);
    if (picture->directory >= 0) {
        if (picture->partial_name)
            unlinkat(picture->directory, picture->partial_name, 0);
        close(picture->directory);
    }
    free(picture->name);
    free(picture->partial_name);
    *picture = (struct fs_picture_file){.directory = -1};
}
