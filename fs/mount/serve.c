#include "fs/mount/serve.h"

#include "fs/mount/daemon.h"
#include "fs/mount/prefetch.h"
#include "fs/mount/requests.h"
#include "fs/mount/complain.h"

#include <errno.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <sysexits.h>
#include <unistd.h>

static void print_log(enum fuse_log_level level, const char *format, va_list args)
{
    /* libfuse writes some lines in pieces. */
    static _Thread_local bool is_inside_line;

    if (level <= FUSE_LOG_ERR && !is_inside_line)
        fputs("ggufs: ", stderr);
    is_inside_line = strchr(format, '\n') == NULL;
    vfprintf(stderr, format, args);
}

/* Adds "-o NAME=VALUE": in front of the user's options, which then go over it, or behind them. */
static int add_option(struct fuse_args *args, int position, const char *name, const char *value)
{
    char *option = malloc(strlen(name) + 2 * strlen(value) + 8);
    char *end;
    int result;

    if (!option)
        return -ENOMEM;
    end = option + sprintf(option, "-o%s", name);
    for (; *value != '\0'; value++) {
        if (*value == ',' || *value == '\\')
            *end++ = '\\';
        *end++ = *value;
    }
    *end = '\0';
    result = fuse_opt_insert_arg(args, position, option);
    free(option);
    return result < 0 ? -ENOMEM : 0;
}

static int add_options(const struct fs_tree *tree, const struct fs_mount_options *options,
                       struct fuse_args *args)
{
    char max_read[16];
    int result = add_option(args, 1, "fsname=", tree->model->files[tree->model->named_file].path);

    snprintf(max_read, sizeof max_read, "%u", options->max_read);
    if (result == 0 && options->max_read > 0)
        result = add_option(args, 1, "max_read=", max_read);

    if (result == 0)
        result = add_option(args, 1, "subtype=", "ggufs");
    if (result == 0)
        result = add_option(args, 1, "default_permissions", "");
    /* Whatever the user says. */
    return result == 0 ? add_option(args, args->argc, "ro", "") : result;
}

static int loop_with_threads(struct fuse_session *session, const struct fs_mount_options *options)
{
    struct fuse_loop_config *config = fuse_loop_cfg_create();
    int result;

    if (!config)
        return -ENOMEM;
    fuse_loop_cfg_set_clone_fd(config, options->clone_fd);
    if (options->max_threads)
        fuse_loop_cfg_set_max_threads(config, options->max_threads);
    if (options->max_idle_threads)
        fuse_loop_cfg_set_idle_threads(config, options->max_idle_threads);
    result = fuse_session_loop_mt(session, config);
    fuse_loop_cfg_destroy(config);
    return result;
}

#define READ_AHEAD_KIB 512u

struct session_job {
    struct fuse_session *session;
    struct fs_changes *changes;
    const struct fs_mount_options *options;
    const char *mountpoint;
    struct fs_prefetch prefetch;
    sigset_t signals; /* the mask to serve with */
};

static void prepare_server(void *argument)
{
    struct session_job *job = argument;

    if (job->options->mlock)
        fs_prefetch_lock(&job->prefetch);
}

/* Serves in the server process; a signal that ends it is no failure. */
static int serve_requests(void *argument)
{
    struct session_job *job = argument;
    int result;

    if (fuse_set_signal_handlers(job->session) != 0)
        return EX_OSERR;
    fs_prefetch_start(&job->prefetch); /* its thread leaves the signals to this one */
    sigprocmask(SIG_SETMASK, &job->signals, NULL);
    if (job->options->single_threaded)
        result = fuse_session_loop(job->session);
    else
        result = loop_with_threads(job->session, job->options);
    fs_changes_stop(job->changes);
    fs_prefetch_stop(&job->prefetch);
    fuse_remove_signal_handlers(job->session);
    return result < 0 ? EX_OSERR : EX_OK;
}

/*
 * How far the kernel reads ahead of a sequential reader, which FUSE limits to 128 KiB. Only root
 * may change it. Returns when the server has answered for the first time, or has ended.
 */
static void set_read_ahead(const char *mountpoint)
{
    struct statfs system;
    struct stat status;
    char path[64];
    FILE *file;

    if (statfs(mountpoint, &system) != 0 || system.f_type != FUSE_SUPER_MAGIC ||
        stat(mountpoint, &status) != 0)
        return;
    snprintf(path, sizeof path, "/sys/class/bdi/%u:%u/read_ahead_kb", major(status.st_dev),
             minor(status.st_dev));
    file = fopen(path, "we");
    if (!file)
        return;
    fprintf(file, "%u\n", READ_AHEAD_KIB);
    fclose(file);
}

static void watch_server(void *argument)
{
    struct session_job *job = argument;

    set_read_ahead(job->mountpoint);
    if (job->options->foreground)
        return;
    /* Who is tired of waiting can interrupt it; the mount stays. */
    sigprocmask(SIG_SETMASK, &job->signals, NULL);
    fs_prefetch_watch(&job->prefetch);
}

/* Closes what lies between two descriptors. */
static void close_between(int low, int high)
{
    if (high - low > 1)
        close_range((unsigned)low + 1, (unsigned)high - 1, 0);
}

/* Descriptors that the caller left open would stay so as long as the daemon lives. */
static void close_inherited(const struct gguf_model *model)
{
    const struct gguf_source *named = &model->files[model->named_file];
    int last = STDERR_FILENO;

    /* Ours are the model's only: of the file that was named, then of the others in their order. */
    close_between(last, named->descriptor);
    last = named->descriptor;
    for (uint32_t i = 0; i < model->n_files; i++) {
        if (i == model->named_file)
            continue;
        close_between(last, model->files[i].descriptor);
        last = model->files[i].descriptor;
    }
    close_range((unsigned)last + 1, ~0U, 0);
}

static int serve_session(struct fuse_session *session, const char *mountpoint,
                         struct fs_server *server, const struct fs_mount_options *options)
{
    struct session_job job = {.session = session, .changes = &server->changes, .options = options};
    char *absolute = realpath(mountpoint, NULL);
    int status = EX_OSERR;

    if (!absolute) {
        fs_complain(mountpoint, NULL, "%s", strerror(errno));
        return EX_OSERR;
    }
    job.mountpoint = absolute;
    if (options->prefetch || options->mlock)
        fs_prefetch_prepare(&job.prefetch, server->tree->model);
    fs_daemon_block_signals(&job.signals);
    if (fuse_session_mount(session, absolute) == 0)
        status = fs_daemon_run(&(struct fs_daemon){
            .mountpoint = absolute,
            .fuse_descriptor = fuse_session_fd(session),
            .foreground = options->foreground,
            .sandbox = options->sandbox,
            .prepare = prepare_server,
            .serve = serve_requests,
            .watch = watch_server,
            .argument = &job,
        });
    else
        fs_complain(mountpoint, NULL, "the mount was refused");
    sigprocmask(SIG_SETMASK, &job.signals, NULL);
    fs_prefetch_end(&job.prefetch);
    free(absolute);
    return status;
}

int fs_serve(struct fs_tree *tree, const char *mountpoint, struct fs_mount_options *options)
{
    struct fs_server server = {.tree = tree,
                               .uid = options->uid,
                               .gid = options->gid,
                               .mode_mask = S_IFMT | (0777 & ~options->umask),
                               .max_read = options->max_read,
                               .direct_io = options->direct_io,
                               .keep_cache = options->keep_cache};
    struct fuse_session *session;
    int status;

    if (add_options(tree, options, &options->fuse) < 0) {
        fprintf(stderr, "ggufs: %s\n", strerror(ENOMEM));
        return EX_OSERR;
    }
    close_inherited(tree->model);
    fuse_set_log_func(print_log);
    errno = 0;
    session = fuse_session_new(&options->fuse, &fs_requests, sizeof fs_requests, &server);
    if (!session && errno == ENOMEM) {
        fprintf(stderr, "ggufs: %s\n", strerror(ENOMEM));
        return EX_OSERR;
    }
    if (!session)
        return EX_USAGE; /* libfuse has told which option it does not know */
    fs_changes_begin(&server.changes, tree, session);
    status = serve_session(session, mountpoint, &server, options);
    fuse_session_destroy(session);
    fs_changes_end(&server.changes);
    return status;
}
