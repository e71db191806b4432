#include "fs/command/option_table.h"

#include "fs/command/option_handlers.h"

#include <stdint.h>
#include <string.h>

#define BIT(command) (1u << (command))
#define ANY          (BIT(FS_N_COMMANDS) - 1)
#define MOUNTING     BIT(FS_MOUNT)
/* Commands that make a tree. */
#define TREES                                                                                      \
    (MOUNTING | BIT(FS_INFO) | BIT(FS_LIST) | BIT(FS_CAT) | BIT(FS_EXTRACT) | BIT(FS_STATS) |      \
     BIT(FS_DIFF))
/* Commands that open a model. */
#define MODELS (TREES | BIT(FS_CHECK))

#define ROW(name_, argument_, help_, handler, commands_)                                           \
    .name = (name_), .argument = (argument_), .help = (help_), .handle = (handler),                \
    .commands = (commands_)
#define MEMBER(member) .offset = offsetof(struct fs_options, member)

#define OPTION(name, argument, help, handler, commands)                                            \
    {                                                                                              \
        ROW(name, argument, help, handler, commands)                                               \
    }
#define COMMAND(name, command_, help, synonym_)                                                    \
    {                                                                                              \
        ROW(name, NULL, help, fs_take_command, ANY), .command = (command_), .synonym = (synonym_)  \
    }
#define FLAG(name, commands, member, help)                                                         \
    {                                                                                              \
        ROW(name, NULL, help, fs_take_flag, commands), MEMBER(member)                              \
    }
#define NUMBER(name, argument, member, least_, most_, help)                                        \
    {                                                                                              \
        ROW(name, argument, help, fs_take_number, MOUNTING), MEMBER(member), .least = (least_),    \
                                                                             .most = (most_)       \
    }
#define SIZE(name, argument, commands, member, least_, help)                                       \
    {                                                                                              \
        ROW(name, argument, help, fs_take_size, commands), MEMBER(member), .least = (least_)       \
    }
#define TO_LIBFUSE(name, argument, help)                                                           \
    {                                                                                              \
        ROW(name, argument, help, fs_take_for_libfuse, MOUNTING)                                   \
    }
#define FROM_MOUNT(name, handler)                                                                  \
    {                                                                                              \
        ROW(name, NULL, NULL, handler, MOUNTING)                                                   \
    }

#define ANY_ID      (UINT32_MAX - 1)
#define MAX_THREADS 100000u
#define MAX_TIMEOUT 1000000u /* eleven days */

const struct fs_option fs_option_table[] = {
    COMMAND("-h", FS_HELP, "print this help and exit", "--help"),
    COMMAND("-V", FS_VERSION, "print the versions of ggufs, libfuse and the FUSE protocol and exit",
            "--version"),
    COMMAND("--info", FS_INFO, "print a summary of each MODEL", NULL),
    COMMAND("--list", FS_LIST, "list the files of the tree, with their sizes", NULL),
    COMMAND("--cat", FS_CAT, "write files of the tree to standard output", NULL),
    COMMAND("--extract", FS_EXTRACT, "write files of the tree into directory DIR", NULL),
    FLAG("--force", BIT(FS_EXTRACT), force, "with --extract: replace files that differ"),
    COMMAND("--stats", FS_STATS, "print statistics of the tensors", NULL),
    COMMAND("--diff", FS_DIFF, "compare two models", NULL),
    OPTION("--imatrix", "FILE", "with --diff: weigh errors by an importance matrix",
           fs_take_imatrix, BIT(FS_DIFF)),
    OPTION("--svg", "FILE", "with --diff: draw the errors by layer to FILE", fs_take_svg,
           BIT(FS_DIFF)),
    FLAG("--json", BIT(FS_STATS) | BIT(FS_DIFF) | BIT(FS_CHECK) | BIT(FS_STATUS), json,
         "with --stats, --diff, --check and --status: print JSON"),
    COMMAND("--check", FS_CHECK, "print all errors in each MODEL", NULL),
    COMMAND("--status", FS_STATUS, "print what the mounts of ggufs do", NULL),
    FLAG("--data", BIT(FS_CHECK), data, "with --check: read all tensor data as well"),
    OPTION("--set", "KEY=TYPE:VALUE", "set a metadata key; str:@FILE reads the value from FILE",
           fs_take_set, MODELS),
    OPTION("--unset", "KEY", "remove a metadata key", fs_take_unset, MODELS),
    OPTION("--edits", "FILE", "set and remove keys as a JSON file says", fs_take_edits, MODELS),
    FLAG("-f", MOUNTING, mount.foreground, "stay in the foreground"),
    OPTION("-d", NULL, "print every request; implies -f", fs_take_debug, MOUNTING),
    FLAG("-s", MOUNTING, mount.single_threaded, "serve with a single thread"),
    OPTION("-q", NULL, "log errors only", fs_take_quiet, MOUNTING),
    OPTION("-v", NULL, "log openings and slow requests, too", fs_take_verbose, MOUNTING),

    OPTION("set", "KEY=TYPE:VALUE", "the same as --set, with commas escaped", fs_take_set, MODELS),
    OPTION("unset", "KEY", "the same as --unset", fs_take_unset, MODELS),
    SIZE("split", "SIZE", TREES, split_bytes, 1, "add split/: the model in files of up to SIZE"),
    SIZE("hf_shard", "SIZE", TREES, hf_shard_bytes, 1,
         "divide the weights in hf/ into files of up to SIZE"),
    OPTION("dtype", "TYPE", "number type in safetensors files: f32, f16 or bf16", fs_take_dtype,
           TREES),
    {ROW("export", "TYPE", "type of weights in model.gguf: stored, f32, f16, bf16, q8_0, q4_0",
         fs_take_export, TREES),
     .without_value = "; to export the mount by NFS, no option is needed"},
    SIZE("offset", "BYTES", MODELS, open.offset, 0, "the model starts at this byte of MODEL"),
    SIZE("size", "BYTES", MODELS, open.size_bytes, 1, "the model has this many bytes in MODEL"),
    FLAG("partial", MODELS, open.partial, "accept a MODEL that is still being downloaded"),
    OPTION("family", "NAME", "read an old ggml file as a model of this family", fs_take_family,
           MODELS),
    OPTION("era", "N", "block layout of an rwkv.cpp 100 file: 0, 1 or 2", fs_take_era, MODELS),
    OPTION("type", "ID:NAME", "the type of tensors with this type id, of several", fs_take_type,
           MODELS),
    OPTION("ik", "old", "types that ik_llama.cpp changed are the old ones", fs_take_ik, MODELS),
    TO_LIBFUSE("allow_other", NULL, "let all users read the tree"),
    TO_LIBFUSE("allow_root", NULL, "let you and root read the tree"),
    OPTION("auto_unmount", NULL, "unmount when the daemon dies", fs_take_auto_unmount, MOUNTING),
    OPTION("subdir", "PATH", "mount this directory of the tree instead of its root", fs_take_subdir,
           MOUNTING),
    NUMBER("timeout", "SECONDS", mount.timeout_seconds, 1, MAX_TIMEOUT,
           "unmount a tree that nobody has used for so long"),
    OPTION("notify_fd", "N", "write 's' or 'f' to this descriptor: mounted, or failed",
           fs_take_notify_fd, MOUNTING),
    FLAG("nonempty", MOUNTING, mount.nonempty, "mount over files that are in MOUNTPOINT"),
    OPTION("nosandbox", NULL, "run without the sandbox", fs_take_no_sandbox, MODELS),
    FLAG("prefetch", MOUNTING, mount.prefetch, "load the model into memory in the background"),
    FLAG("mlock", MOUNTING, mount.mlock, "the same, and lock it in memory"),
    FLAG("direct_io", MOUNTING, mount.direct_io, "do not cache file contents in the kernel"),
    FLAG("passthrough", MOUNTING, mount.passthrough,
         "let the kernel read model.gguf from MODEL itself (root only)"),
    NUMBER("threads", "N", mount.max_threads, 1, MAX_THREADS, "serve with at most N threads"),
    NUMBER("uid", "N", mount.uid, 0, ANY_ID, "show user N as the owner of the files"),
    NUMBER("gid", "N", mount.gid, 0, ANY_ID, "show group N as the group of the files"),
    OPTION("umask", "M", "permission bits to remove, octal", fs_take_umask, MOUNTING),
    OPTION("log", "TARGET", "log to stderr, syslog, journal or a file", fs_take_log, MOUNTING),
    TO_LIBFUSE("fsname", "NAME", "source that mount(8) and df(1) show"),
    TO_LIBFUSE("subtype", "NAME", "the file system type after \"fuse.\""),
    FLAG("clone_fd", MOUNTING, mount.clone_fd,
         "one /dev/fuse descriptor per thread; needs nosandbox"),
    NUMBER("max_read", "N", mount.max_read, 0, UINT32_MAX, "largest read request, in bytes"),
    NUMBER("max_threads", "N", mount.max_threads, 1, MAX_THREADS, "the same as threads=N"),
    NUMBER("max_idle_threads", "N", mount.max_idle_threads, 1, MAX_THREADS,
           "keep at most N idle threads"),

    /* Options that mount(8) and fstab(5) pass. */
    FROM_MOUNT("ro", fs_take_for_libfuse),
    FROM_MOUNT("rw", fs_take_rw),
    FROM_MOUNT("remount", fs_take_remount),
    FROM_MOUNT("suid", fs_take_for_libfuse),
    FROM_MOUNT("nosuid", fs_take_for_libfuse),
    FROM_MOUNT("dev", fs_take_for_libfuse),
    FROM_MOUNT("nodev", fs_take_for_libfuse),
    FROM_MOUNT("exec", fs_take_for_libfuse),
    FROM_MOUNT("noexec", fs_take_for_libfuse),
    FROM_MOUNT("async", fs_take_for_libfuse),
    FROM_MOUNT("sync", fs_take_for_libfuse),
    FROM_MOUNT("dirsync", fs_take_for_libfuse),
    FROM_MOUNT("atime", fs_take_for_libfuse),
    FROM_MOUNT("noatime", fs_take_for_libfuse),
    FROM_MOUNT("default_permissions", fs_take_for_libfuse),
    OPTION("context", "LABEL", NULL, fs_take_for_libfuse, MOUNTING),
    OPTION("fscontext", "LABEL", NULL, fs_take_for_libfuse, MOUNTING),
    OPTION("defcontext", "LABEL", NULL, fs_take_for_libfuse, MOUNTING),
    OPTION("rootcontext", "LABEL", NULL, fs_take_for_libfuse, MOUNTING),
    OPTION("comment", "TEXT", NULL, fs_take_nothing, MOUNTING),
    FROM_MOUNT("defaults", fs_take_nothing),
    FROM_MOUNT("auto", fs_take_nothing),
    FROM_MOUNT("noauto", fs_take_nothing),
    FROM_MOUNT("user", fs_take_nothing),
    FROM_MOUNT("nouser", fs_take_nothing),
    FROM_MOUNT("users", fs_take_nothing),
    FROM_MOUNT("nousers", fs_take_nothing),
    FROM_MOUNT("owner", fs_take_nothing),
    FROM_MOUNT("noowner", fs_take_nothing),
    FROM_MOUNT("group", fs_take_nothing),
    FROM_MOUNT("nogroup", fs_take_nothing),
    FROM_MOUNT("nofail", fs_take_nothing),
    FROM_MOUNT("_netdev", fs_take_nothing),
    FROM_MOUNT("diratime", fs_take_nothing),
    FROM_MOUNT("nodiratime", fs_take_nothing),
    FROM_MOUNT("relatime", fs_take_nothing),
    FROM_MOUNT("norelatime", fs_take_nothing),
    FROM_MOUNT("strictatime", fs_take_nothing),
    FROM_MOUNT("nostrictatime", fs_take_nothing),
    FROM_MOUNT("lazytime", fs_take_nothing),
    FROM_MOUNT("nolazytime", fs_take_nothing),
    FLAG("sloppy", MOUNTING, is_sloppy, NULL),
    FROM_MOUNT("silent", fs_take_nothing),
    FROM_MOUNT("loud", fs_take_nothing),
};

const size_t fs_n_options = sizeof fs_option_table / sizeof *fs_option_table;

const char *fs_command_name(enum fs_command command)
{
    for (size_t i = 0; command != FS_MOUNT && i < fs_n_options; i++) {
        const struct fs_option *option = &fs_option_table[i];

        if (option->handle == fs_take_command && option->command == command)
            return option->synonym ? option->synonym : option->name;
    }
    return "mounting";
}

void fs_print_usage(FILE *stream)
{
    fputs("usage: ggufs [options] MODEL MOUNTPOINT\n"
          "       ggufs --info MODEL...\n"
          "       ggufs --list MODEL [PATH...]\n"
          "       ggufs --cat PATH... MODEL\n"
          "       ggufs --extract [--force] DIR MODEL [PATTERN...]\n"
          "       ggufs --stats [--json] MODEL [PATTERN...]\n"
          "       ggufs --diff [--json] [--imatrix FILE] [--svg FILE] MODEL MODEL [PATTERN...]\n"
          "       ggufs --check [--data] [--json] MODEL...\n"
          "       ggufs --status [--json] [MOUNTPOINT...]\n",
          stream);
}

void fs_print_help(FILE *stream)
{
    /* Room for all of it: a write that fails does so at the end, where its cause is known. */
    static char buffer[1 << 14];

    setvbuf(stream, buffer, _IOFBF, sizeof buffer);
    fs_print_usage(stream);
    fputs("\nMounts a GGUF model as a directory tree; unmount it with: fusermount3 -u MOUNTPOINT\n"
          "The forms with a -- word read the same tree without mounting it.\n\noptions:\n",
          stream);
    for (size_t i = 0; i < fs_n_options; i++) {
        const struct fs_option *option = &fs_option_table[i];
        const bool is_word = option->name[0] == '-';
        char left[64];

        if (!option->help)
            continue;
        snprintf(left, sizeof left, "%s%s%s%s%s%s", is_word ? "" : "-o ", option->name,
                 !option->argument ? ""
                 : is_word         ? " "
                                   : "=",
                 option->argument ? option->argument : "", option->synonym ? ", " : "",
                 option->synonym ? option->synonym : "");
        fprintf(stream, "  %-24s %s\n", left, option->help);
    }
    fputs("\nOne -o takes several options, separated by commas.\n"
          "See ggufs(1) for details and exit statuses.\n",
          stream);
}
