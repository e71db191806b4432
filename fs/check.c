#include "fs/check.h"

#include "fs/check_data.h"
#include "fs/terminal.h"
#include "fs/tree.h"
#include "gguf/model.h"

#include <inttypes.h>
#include <sys/ioctl.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

/* A progress bar on a terminal; nothing elsewhere. */
struct bar {
    bool is_shown;
    const char *path;
    struct timespec started, drawn;
};

static double seconds_between(struct timespec from, struct timespec to)
{
    return (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
}

static void start(struct bar *bar, const char *path)
{
    bar->is_shown = isatty(STDERR_FILENO);
    bar->path = path;
    clock_gettime(CLOCK_MONOTONIC, &bar->started);
}

static void erase(const struct bar *bar)
{
    if (bar->is_shown)
        fputs("\r\033[K", stderr);
}

/* One line: "32 % of 6.0 GB, 0.5 GB/s, 8 s left  model.gguf", cut to the terminal's width. */
static void draw(void *user, uint64_t done_bytes, uint64_t total_bytes)
{
    const double done = (double)done_bytes / 1e9, total = (double)total_bytes / 1e9;
    struct bar *bar = user;
    struct winsize window = {0};
    struct timespec now;
    double elapsed;
    char line[256];

    clock_gettime(CLOCK_MONOTONIC, &now);
    if (!bar->is_shown || seconds_between(bar->drawn, now) < 0.1 || done_bytes == 0)
        return;
    bar->drawn = now;
    elapsed = seconds_between(bar->started, now);
    ioctl(STDERR_FILENO, TIOCGWINSZ, &window);
    snprintf(line, sizeof line, "%3.0f %% of %.1f GB, %.1f GB/s, %.0f s left  %s",
             100 * done / total, total, done / elapsed, elapsed / done * (total - done), bar->path);
    fprintf(stderr, "\r\033[K%.*s", window.ws_col > 1 ? window.ws_col - 1 : 79, line);
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
            start(&check.bar, path);
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
