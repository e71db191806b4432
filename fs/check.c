#include "fs/check.h"

#include "fs/check_data.h"
#include "fs/terminal.h"
#include "fs/tree.h"
#include "gguf/model.h"

#include <inttypes.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

/* A progress bar on a terminal; nothing elsewhere. */
struct bar {
    bool is_shown;
    struct timespec drawn;
};

static void erase(const struct bar *bar)
{
    if (bar->is_shown)
        fputs("\r\033[K", stderr);
}

static void draw(void *user, uint64_t done_bytes, uint64_t total_bytes)
{
    static const char full[] = "########################################";
    const int width = sizeof full - 1;
    const double share = total_bytes ? (double)done_bytes / (double)total_bytes : 1;
    struct bar *bar = user;
    struct timespec now;

    if (!bar->is_shown)
        return;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec == bar->drawn.tv_sec && now.tv_nsec - bar->drawn.tv_nsec < 100000000)
        return;
    bar->drawn = now;
    fprintf(stderr, "\r[%-*.*s] %3d %% of %.1f MB\033[K", width, (int)(share * width), full,
            (int)(share * 100), (double)total_bytes / 1e6);
}

struct check {
    const char *path;
    struct bar bar;
};

static void print_to_stdout(void *user, const struct gguf_finding *finding)
{
    const struct check *check = user;

    erase(&check->bar);
    fs_print_finding(stdout, "", check->path, finding);
    fflush(stdout);
}

static int check_model(const char *path, bool with_data)
{
    struct check check = {.path = path};
    struct gguf_report report = {.each = print_to_stdout, .user = &check};
    struct gguf_model *model;
    struct fs_tree *tree;

    if (gguf_open(path, &model, &report) == 0) {
        if (fs_tree_make(model, &tree, &report) == 0)
            fs_tree_free(tree);
        if (with_data) {
            check.bar.is_shown = isatty(STDERR_FILENO);
            fs_check_data(model, &report, draw, &check.bar);
            erase(&check.bar);
        }
        if (report.n_errors == 0) {
            fs_print_path(stdout, path);
            printf(": OK: %s, %s, %" PRIu64 " keys, %" PRIu64 " tensors%s\n", model->format,
                   model->big_endian ? "big-endian" : "little-endian", model->n_keys,
                   model->n_tensors, with_data ? ", data read" : "");
        }
        gguf_close(model);
    }
    return report.n_errors > 0 ? fs_exit_status(report.first_error.code) : EX_OK;
}

int fs_check_models(const struct fs_options *options)
{
    int status = EX_OK;

    for (int i = 0; i < options->n_paths; i++) {
        const int one = check_model(options->paths[i], options->data);

        if (status == EX_OK)
            status = one;
    }
    return status;
}
