#include "fs/mount/serve.h"

#include "fs/mount/daemon.h"
#include "fs/mount/descriptors.h"
#include "fs/mount/log.h"
#include "fs/mount/requests.h"
#include "fs/mount/session_io.h"
#include "fs/tree/identity.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <syslog.h>
#include <unistd.h>

static int out_of_memory(void)
{
    fprintf(stderr, "ggufs: %s\n", strerror(ENOMEM));
    return EX_OSERR;
}

/* ---- options ---- */

/* Make the arguments for libfuse. The user's options override those before. Returns 0 or -1. */
static int make_arguments(const char *source, const struct fs_mount_options *options,
                          struct fuse_args *args)
{
    char max_read[32] = "ro", *name, *list = NULL;
    int result = fuse_opt_add_arg(args, "ggufs");

    if (options->max_read > 0)
        snprintf(max_read, sizeof max_read, "max_read=%u", options->max_read);
    if (asprintf(&name, "fsname=%s", source) < 0)
        return -1;
    for (size_t i = 0; result == 0 && i < 4; i++)
        result = fuse_opt_add_opt_escaped(
            &list,
            (const char *const[]){"default_permissions", "subtype=ggufs", max_read, name}[i]);
    free(name);
    for (size_t i = 0; result == 0 && i < options->fuse.n_texts; i++) {
        const char *option = options->fuse.texts[i];

        result = option[0] == '-' ? fuse_opt_add_arg(args, option)
                                  : fuse_opt_add_opt_escaped(&list, option);
    }
    if (result == 0)
        result = fuse_opt_add_opt(&list, "ro");
    if (result == 0)
        result = fuse_opt_add_arg(args, "-o");
    if (result == 0)
        result = fuse_opt_add_arg(args, list);
    free(list);
    return result;
}

/* Return true if the options let other users see the tree. */
static bool allow_others(const struct gguf_texts *options)
{
    for (size_t i = 0; i < options->n_texts; i++) {
        if (strcmp(options->texts[i], "allow_other") == 0 ||
            strcmp(options->texts[i], "allow_root") == 0)
            return true;
    }
    return false;
}

/* A mount made with sudo belongs to root, and the person who made it cannot see it. */
static void warn_of_sudo(const struct fs_session *session)
{
    const char *user = getenv("SUDO_USER");

    if (geteuid() == 0 && user && strcmp(user, "root") != 0 &&
        !allow_others(&session->mount->options->fuse))
        fs_complain(session->mount->mountpoint, NULL,
                    "only root can read this mount, because sudo made it; mount without sudo, or "
                    "let everybody read it: -o allow_other");
}

/* ---- the server ---- */

/* Many models need many descriptors. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

int fs_session_prepare(struct fs_session *session)
{
    fs_mountpoint_close_descriptor(&session->mountpoint);
    fs_log_begin();
    if (!session->mount->models)
        return EX_OK;
    raise_descriptor_limit();
    return fs_opener_start(&session->opener, session->mount->models->roots,
                           session->mountpoint.path, session->mount->options->sandbox);
}

int fs_show(struct fs_server *server, struct fs_shown *shown, struct fs_tree *tree)
{
    shown->tree = tree;
    tree->user = shown;
    fs_changes_begin(&shown->changes, tree, shown->base + FUSE_ROOT_ID, server->session);
    shown->are_logged = calloc(tree->model->n_files + FS_N_OTHER_CAUSES, sizeof *shown->are_logged);
    return shown->are_logged ? 0 : -ENOMEM;
}

void fs_hide(struct fs_shown *shown)
{
    fs_changes_end(&shown->changes);
    free(shown->are_logged);
    shown->are_logged = NULL;
}

/* Find the directory of the tree to mount. Returns an exit status. */
static int find_root(struct fs_shown *shown, const char *subdir)
{
    int result;

    if (!subdir)
        return EX_OK;
    result = fs_tree_find(shown->tree, subdir, &shown->root);
    if (result == 0 && fs_node_is_directory(fs_tree_node(shown->tree, shown->root)))
        return EX_OK;
    fs_complain(subdir, NULL,
                "option -o subdir: the tree has no such directory; for a list of its files: "
                "ggufs --list MODEL");
    return EX_NOINPUT;
}

/* ---- many models ---- */

static int show_one(void *argument, struct fs_tree *tree, uint32_t id, uint32_t generation,
                    struct timespec modified)
{
    struct fs_session *session = argument;
    struct fs_shown *shown = calloc(1, sizeof *shown);
    int result;

    if (!shown)
        return -ENOMEM;
    shown->base = (uint64_t)id << 32;
    shown->is_lasting = id != FS_MODELS_ROOT;
    shown->generation = generation;
    result = fs_show(&session->server, shown, tree);
    if (tree->model->n_files == 0)
        shown->changes.modified = modified;
    return result;
}

static void hide_one(struct fs_tree *tree)
{
    fs_hide(tree->user);
    free(tree->user);
}

static int make_set(struct fs_session *session)
{
    const struct fs_set_calls calls = {.models = session->mount->models,
                                       .access = &session->opener.access,
                                       .show = show_one,
                                       .hide = hide_one,
                                       .content_options = session->mount->content_options,
                                       .mountpoint = session->mountpoint.path,
                                       .argument = session};

    return fs_model_set_make(&calls, &session->server.set) < 0 ? out_of_memory() : EX_OK;
}

/* ---- serving ---- */

int fs_session_load(struct fs_session *session)
{
    const struct fs_mount_options *options = session->mount->options;
    struct fs_server *server = &session->server;
    struct fs_tree *tree;
    int status;

    server->session = session->fuse;
    if (session->mount->models)
        return make_set(session);
    status = session->mount->load(session->mount->argument, &tree);
    if (status != EX_OK)
        return status;
    server->shown.is_lasting = true;
    if (fs_show(server, &server->shown, tree) < 0)
        return out_of_memory();
    server->shown.generation = (uint32_t)fs_tree_identity(tree, session->mount->content_options);
    status = find_root(&server->shown, options->subdir);
    if (status != EX_OK)
        fs_hide(&server->shown);
    return status;
}

static int loop(struct fuse_session *session, const struct fs_mount_options *options)
{
    struct fuse_loop_config *config = fuse_loop_cfg_create();
    int result;

    if (!config)
        return -ENOMEM;
    /*
     * A request that computes for minutes, or that waits for a disk, keeps no other request
     * waiting. One more thread takes requests while the others answer.
     */
    fuse_loop_cfg_set_max_threads(config, 256);
    mallopt(M_MMAP_THRESHOLD, 128 << 10); /* buffers of threads that end go back to the system */
    fuse_loop_cfg_set_idle_threads(config, options->kept_threads + 1);
    result = fuse_session_loop_mt(session, config);
    fuse_loop_cfg_destroy(config);
    return result;
}

int fs_session_begin(struct fs_session *session, int fuse_descriptor)
{
    if (fs_session_serve(session->fuse, fuse_descriptor) != 0 ||
        fs_session_answer_init(session->fuse) != 0)
        return EX_OSERR;
    return EX_OK;
}

/* Being unmounted or ended by a signal is not a failure. */
int fs_session_run(struct fs_session *session)
{
    int result;

    if (fuse_set_signal_handlers(session->fuse) != 0)
        return EX_OSERR;
    sigprocmask(SIG_SETMASK, &session->signals, NULL);
    result = loop(session->fuse, session->mount->options);
    fuse_remove_signal_handlers(session->fuse);
    if (session->server.set)
        fs_model_set_free(session->server.set);
    else
        fs_hide(&session->server.shown);
    return result < 0 ? EX_OSERR : EX_OK;
}

/* ---- its parents ---- */

int fs_session_mount(struct fs_session *session)
{
    const int status = fs_mountpoint_mount(&session->mountpoint, session->fuse);

    if (status == EX_OK)
        warn_of_sudo(session);
    fs_mountpoint_close_descriptor(&session->mountpoint);
    fs_log_begin();
    return status;
}

static void log_of_libfuse(enum fuse_log_level level, const char *format, va_list args)
{
    /* With -d, libfuse writes some lines in pieces. */
    static _Thread_local bool is_inside_line;

    if (level <= FUSE_LOG_ERR && !is_inside_line)
        fs_log_list(LOG_ERR, format, args);
    else
        vfprintf(stderr, format, args);
    is_inside_line = strchr(format, '\n') == NULL;
}

int fs_serve(const struct fs_mount *mount)
{
    const struct fs_mount_options *options = mount->options;
    struct fuse_args arguments = FUSE_ARGS_INIT(0, NULL);
    struct fs_session session = {.mount = mount,
                                 .server = {.options = options, .activity = fs_activity_map()}};
    int status;

    sigprocmask(SIG_BLOCK, NULL, &session.signals);
    fs_close_all_but(mount->descriptors, mount->n_descriptors);
    if (!session.server.activity || make_arguments(mount->source, options, &arguments) < 0) {
        fuse_opt_free_args(&arguments);
        return out_of_memory();
    }
    fuse_set_log_func(log_of_libfuse);
    errno = 0;
    session.fuse = fuse_session_new(&arguments, &fs_requests, sizeof fs_requests, &session.server);
    fuse_opt_free_args(&arguments);
    if (!session.fuse)
        return errno == ENOMEM ? out_of_memory() : EX_USAGE; /* libfuse has printed the option */
    status = fs_mountpoint_open(mount->mountpoint, options, &session.mountpoint);
    if (status == EX_OK) {
        status = fs_log_open(options, session.mountpoint.path);
        if (status == EX_OK)
            status = fs_daemon_run(&session); /* returns in each process */
        if (status != EX_OK)
            fs_mountpoint_remove(&session.mountpoint);
        fs_mountpoint_close(&session.mountpoint);
    }
    fuse_session_destroy(session.fuse);
    /* A signal that ended the command before the mount was there is pending. */
    sigprocmask(SIG_SETMASK, &session.signals, NULL);
    return status;
}
