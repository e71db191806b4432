#include "fs/command/command_line.h"

#include "fs/command/arguments.h"
#include "fs/command/edit_options.h"
#include "fs/command/options.h"
#include "fs/command/terminal.h"
#include "gguf/ambiguous_types.h"
#include "gguf/fusions.h"
#include "gguf/legacy/families.h"
#include "gguf/support/keyed_hash.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Larger reads arrive as several requests, which several threads answer at the same time. */
#define MAX_READ (512u << 10)
/* As many as libfuse has by default. */
#define KEPT_THREADS 10

#define BIT(command) (1u << (command))
#define MOUNT        BIT(FS_MOUNT)
/* Commands that make a tree. */
#define TREES                                                                                      \
    (MOUNT | BIT(FS_INFO) | BIT(FS_LIST) | BIT(FS_CAT) | BIT(FS_EXTRACT) | BIT(FS_STATS) |         \
     BIT(FS_DIFF))
/* Commands that open a model. */
#define MODELS (TREES | BIT(FS_CHECK) | BIT(FS_RENDER))

/* Commands that print facts. */
#define FACTS                                                                                      \
    (BIT(FS_INFO) | BIT(FS_LIST) | BIT(FS_STATS) | BIT(FS_DIFF) | BIT(FS_CHECK) | BIT(FS_STATUS))

#define LEAST_ID     0
#define MOST_ID      (UINT32_MAX - 1)
#define MOST_COUNT   100000
#define MOST_SECONDS 1000000 /* eleven days */

#define HEADING(title)                                                                             \
    {                                                                                              \
        .help = (title), .kind = GGUF_OPTION_HEADING                                               \
    }
#define COMMAND(command_) GGUF_OPTION_NOTHING, .command = (command_)
#define SET(kind, member) GGUF_OPTION_##kind, .offset = offsetof(struct fs_options, member)
#define RANGE(from, to)   .least = (from), .most = (to)
#define FOR(commands_)    .commands = (commands_)
#define CALL(handler)     GGUF_OPTION_HANDLER, .handle = (handler)

static const struct gguf_choice dtypes[] = {
    {"f32", FS_DTYPE_F32}, {"f16", FS_DTYPE_F16}, {"bf16", FS_DTYPE_BF16}, {0}};
static const struct gguf_choice parts[] = {
    {"model", GGUF_TEXT_PART}, {"mmproj", GGUF_PROJECTOR_PART}, {0}};
static const struct gguf_choice eras[] = {{"0", 1}, {"1", 2}, {"2", 3}, {0}};
static const struct gguf_choice loaders[] = {{"llama.cpp", GGUF_LOADER_LLAMA},
                                             {"ollama", GGUF_LOADER_OLLAMA},
                                             {"ik", GGUF_LOADER_IK},
                                             {NULL, 0}};

/* Ids of the types of llama.cpp's --cache-type-k. */
static const struct gguf_choice cache_types[] = {
    {"f32", 0},  {"f16", 1},  {"bf16", 30}, {"q8_0", 8},    {"q4_0", 2},
    {"q4_1", 3}, {"q5_0", 6}, {"q5_1", 7},  {"iq4_nl", 20}, {0}};

static const struct gguf_choice logs[] = {
    {"stderr", FS_LOG_STDERR}, {"syslog", FS_LOG_SYSLOG}, {0}};
static const struct gguf_choice ik_types[] = {{"old", 1}, {0}};

/* ---- models ---- */

static int take_type(void *target, const struct gguf_option_use *use)
{
    struct fs_options *options = target;
    struct gguf_report report = {0};

    if (gguf_add_type_choice(&options->open, use->value, &report) == 0)
        return 0;
    fs_print_error("option %s=%s: %s", use->shown, use->value, report.first_error.message);
    return -EINVAL;
}

/* ---- mounting ---- */

/* Add the option to options->mount.fuse. */
static int take_for_libfuse(void *target, const struct gguf_option_use *use)
{
    struct fs_options *options = target;

    if (use->value && *use->value == '\0') {
        fs_print_error("option %s=: needs a value that is not empty", use->shown);
        return -EINVAL;
    }
    options->mount.foreground |= strcmp(use->option->names, "-d") == 0;
    return gguf_texts_add(&options->mount.fuse, use->whole);
}

static int take_subdir(void *target, const struct gguf_option_use *use)
{
    struct fs_options *options = target;

    if (*use->value == '\0') {
        fs_print_error("option %s=: needs the path of a directory; the root is /", use->shown);
        return -EINVAL;
    }
    options->mount.subdir = use->value;
    return 0;
}

/* mount(8) passes rw unless it is given ro, and also reports a write-protected disk this way. */
static int take_rw(void *target, const struct gguf_option_use *use)
{
    fs_print_error("warning: option %s: the tree cannot be written to; mounted read-only",
                   use->shown);
    return 0;
}

static int take_remount(void *target, const struct gguf_option_use *use)
{
    fs_print_error(
        "option %s: ggufs cannot change an existing mount, whose tree is fixed; unmount it with "
        "\"fusermount3 -u MOUNTPOINT\" and mount it again; root can change flags of the kernel: "
        "mount -i -o remount,noexec MOUNTPOINT",
        use->shown);
    return -EINVAL;
}

static int refuse_unmount(void *target, const struct gguf_option_use *use)
{
    fs_print_error("unknown option %s; to unmount: fusermount3 -u MOUNTPOINT", use->shown);
    return -EINVAL;
}

/* clang-format would put each member on a line: */
/* clang-format off */
static const struct gguf_option rows[] = {
    HEADING("Commands, which need no mount"),
    {"--info", NULL, "print a summary of each MODEL", COMMAND(FS_INFO)},
    {"--list", NULL, "list the files of the tree, with their sizes", COMMAND(FS_LIST)},
    {"--cat", NULL, "write files of the tree to standard output", COMMAND(FS_CAT)},
    {"--extract", NULL, "write files of the tree into directory DIR", COMMAND(FS_EXTRACT)},
    {"--stats", NULL, "print statistics of the tensors", COMMAND(FS_STATS)},
    {"--diff", NULL, "compare two models", COMMAND(FS_DIFF)},
    {"--check", NULL, "print all errors in each MODEL", COMMAND(FS_CHECK)},
    {"--render", NULL, "print the prompt that the model's chat template makes", COMMAND(FS_RENDER)},
    {"--status", NULL, "print what the mounts of ggufs do", COMMAND(FS_STATUS)},
    {"-u --unmount --umount", NULL, NULL, CALL(refuse_unmount)},
    {"-h --help", NULL, "print this help and exit", COMMAND(FS_HELP)},
    {"-V --version", NULL, "print the versions of ggufs, libfuse and the FUSE protocol and exit",
     COMMAND(FS_VERSION)},

    HEADING("Options of commands"),
    {"--json", NULL, "print JSON, an object per line, instead of text", SET(ON, json), FOR(FACTS)},
    {"-c --ctx-size", "N", "with --info: tokens of context, for the memory that the model takes",
     SET(UINT32, cache.n_context), RANGE(1, INT32_MAX), FOR(BIT(FS_INFO))},
    {"--cache-type", "TYPE", "with --info: type of keys and values", SET(CHOICE, cache.type),
     .choices = cache_types, FOR(BIT(FS_INFO))},
    {"--data", NULL, "with --check: read all tensor data as well", SET(ON, data),
     FOR(BIT(FS_CHECK))},
    {"--for", "LOADER", "with --check: find what llama.cpp, ollama or ik refuses",
     SET(CHOICE, loader), .choices = loaders, FOR(BIT(FS_CHECK))},
    {"--force", NULL, "with --extract: replace files that differ", SET(ON, force),
     FOR(BIT(FS_EXTRACT))},
    {"--messages", "FILE", "with --render: the messages, in JSON", SET(TEXT, variables.messages),
     FOR(BIT(FS_RENDER))},
    {"--tools", "FILE", "with --render: the tools, a list in JSON", SET(TEXT, variables.tools),
     FOR(BIT(FS_RENDER))},
    {"--template-arg", "KEY=JSON", "with --render: set a variable of the template",
     SET(PAIRS, variables.arguments), FOR(BIT(FS_RENDER))},
    {"--template", "NAME", "with --render: the template with this name", SET(TEXT, template),
     FOR(BIT(FS_RENDER))},
    {"--tokens", NULL, "with --render: print a line per part, with the ids of control tokens",
     SET(ON, tokens), FOR(BIT(FS_RENDER))},

    HEADING("What the tree shows"),
    {"--set", "KEY=[TYPE:]VALUE", "set a metadata key; a new one needs its TYPE",
     CALL(fs_take_edit), FOR(MODELS)},
    {"--unset", "KEY", "remove a metadata key", CALL(fs_take_edit), FOR(MODELS)},
    {"--edits", "FILE", "set keys and edit tensors as a JSON file says", CALL(fs_take_edit),
     FOR(MODELS)},
    {"--layers", "LIST", "keep these layers; without LIST, with --info: a line per layer",
     CALL(fs_take_layers), FOR(MODELS), .fits = fs_is_list},
    {"--experts", "LIST", "keep these experts; @FILE has a list per layer", CALL(fs_take_edit),
     FOR(MODELS)},
    {"--drop", "PATTERN", "leave out tensors; vision, mtp: those parts", CALL(fs_take_edit),
     FOR(MODELS)},
    {"--add", "FILE:PATTERN", "take tensors of another model; =TO renames them", CALL(fs_take_edit), FOR(MODELS)},
    {"--rename", "FROM=TO", "rename tensors", CALL(fs_take_edit), FOR(MODELS)},
    {"--fuse", "KIND", "join tensors: gate_up_exps, qkv or ffn_gate_up", CALL(fs_take_edit),
     .choice_at = gguf_fusion_name, FOR(MODELS)},
    {"--unfuse", "KIND", "divide joined tensors", CALL(fs_take_edit),
     .choice_at = gguf_fusion_name, FOR(MODELS)},
    {"--shards", "N", "add split/: the model in N files, of a SIZE, or one per tensor",
     CALL(fs_take_shards), FOR(TREES)},
    {"--small-first", "SIZE", "tensors below SIZE are in the first shard",
     SET(BYTES, split.small_bytes), .least = 1, FOR(TREES)},
    {"--dry-run", NULL, "print a summary and the tensors of the tree, and end", SET(ON, dry_run),
     FOR(MOUNT | BIT(FS_CAT) | BIT(FS_EXTRACT))},
    {"export", "TYPE", "type of weights in model.gguf: stored, f32, f16, bf16, q8_0, q4_0",
     SET(CHOICE, export), .least = FS_EXPORT_STORED, .choice_at = fs_export_choice_at, FOR(TREES),
     .without_value = "; to export the mount by NFS, no option is needed"},
    {"--mmproj", "FILE", "the model's projector; adds ollama.gguf, both in one file",
     SET(TEXT, projector), FOR(TREES)},
    {"part", "PART", "the tree is of this part of a file of Ollama: model, mmproj",
     SET(CHOICE, open.part), .choices = parts, FOR(TREES)},
    {"dtype", "TYPE", "number type in safetensors files: f32, f16 or bf16", SET(CHOICE, dtype),
     .choices = dtypes, FOR(TREES)},
    {"split", "SIZE", "add split/: the model in files of up to SIZE", SET(BYTES, split.limit_bytes),
     .least = 1, FOR(TREES)},
    {"hf_shard", "SIZE", "divide the weights in hf/ into files of up to SIZE",
     SET(BYTES, hf_shard_bytes), .least = 1, FOR(TREES)},
    {"subdir", "PATH", "mount this directory of the tree instead of its root",
     CALL(take_subdir), FOR(MOUNT)},
    {"set", "KEY=[TYPE:]VALUE", "the same as --set, with commas escaped", CALL(fs_take_edit),
     FOR(MODELS)},
    {"unset", "KEY", "the same as --unset", CALL(fs_take_edit), FOR(MODELS)},
    {"edits", "FILE", "the same as --edits", CALL(fs_take_edit), FOR(MODELS)},

    HEADING("How MODEL is read"),
    {"partial", NULL, "accept a MODEL that is still being downloaded", SET(ON, open.partial),
     FOR(MODELS)},
    {"offset", "BYTES", "the model starts at this byte of MODEL", SET(BYTES, open.offset),
     FOR(MODELS)},
    {"size", "BYTES", "the model has this many bytes in MODEL", SET(BYTES, open.size_bytes),
     .least = 1, FOR(MODELS)},
    {"family", "NAME", "read an old ggml file as a model of this family", SET(TEXT, open.family),
     .choice_at = gguf_family_name_at, FOR(MODELS)},
    {"era", "N", "block layout of an rwkv.cpp 100 file: 0, 1 or 2", SET(CHOICE, open.era),
     .choices = eras, FOR(MODELS)},
    {"type", "ID:NAME", "the type of tensors with this type id, of several", CALL(take_type),
     FOR(MODELS)},
    {"ik", "old", "types that ik_llama.cpp changed are the old ones", SET(ON, open.old_ik),
     .choices = ik_types, FOR(MODELS)},
    {"nosandbox", NULL, "run without the sandbox", SET(OFF, mount.sandbox), FOR(MODELS)},

    HEADING("Mounting; one -o takes several options, separated by commas"),
    {"-o", "OPTION,...", "options without dashes, as listed here", GGUF_OPTION_GROUP,
     FOR(0)},
    {"-f", NULL, "stay in the foreground", SET(ON, mount.foreground), FOR(MOUNT)},
    {"allow_other", NULL, "let all users read the tree", CALL(take_for_libfuse), FOR(MOUNT)},
    {"allow_root", NULL, "let you and root read the tree", CALL(take_for_libfuse), FOR(MOUNT)},
    {"timeout", "SECONDS", "unmount a tree that nobody has used for so long",
     SET(UINT32, mount.timeout_seconds), RANGE(1, MOST_SECONDS), FOR(MOUNT)},
    {"nonempty", NULL, "mount over files that are in MOUNTPOINT", SET(ON, mount.nonempty),
     FOR(MOUNT)},
    {"uid", "N", "show user N as the owner of the files", SET(UINT32, mount.uid),
     RANGE(LEAST_ID, MOST_ID), FOR(MOUNT)},
    {"gid", "N", "show group N as the group of the files", SET(UINT32, mount.gid),
     RANGE(LEAST_ID, MOST_ID), FOR(MOUNT)},
    {"umask", "M", "permission bits to remove, octal", SET(OCTAL, mount.umask), .most = 0777,
     FOR(MOUNT)},
    {"fsname", "NAME", "source that mount(8) and df(1) show", CALL(take_for_libfuse),
     FOR(MOUNT)},
    {"subtype", "NAME", "the file system type after \"fuse.\"", CALL(take_for_libfuse),
     FOR(MOUNT)},

    HEADING("Speed and memory of a mount"),
    {"direct_io", NULL, "do not cache file contents in the kernel", SET(ON, mount.direct_io),
     FOR(MOUNT)},
    {"threads", "N", "keep N threads between requests", SET(UINT32, mount.kept_threads),
     RANGE(1, MOST_COUNT), FOR(MOUNT)},
    {"max_threads", "N", "the same as threads=N", SET(UINT32, mount.kept_threads),
     RANGE(1, MOST_COUNT), FOR(MOUNT)},
    {"max_read", "N", "largest read request, in bytes", SET(UINT32, mount.max_read),
     RANGE(0, UINT32_MAX), FOR(MOUNT)},
    {"-s", NULL, "the same as -o threads=1", SET(CONSTANT, mount.kept_threads), .least = 1,
     FOR(MOUNT)},

    HEADING("Messages of a mount"),
    {"log", "TARGET", "log to stderr or syslog", SET(CHOICE, mount.log), .choices = logs, FOR(MOUNT)},
    {"-q", NULL, "log errors only", SET(ON, mount.is_quiet), FOR(MOUNT)},
    {"-d", NULL, "print every request; implies -f", CALL(take_for_libfuse), FOR(MOUNT)},

    /* Options that mount(8), fstab(5) and users of libfuse pass. The keeper always unmounts. */
    {"ro suid nosuid dev nodev exec noexec async sync dirsync atime noatime default_permissions",
     NULL, NULL, CALL(take_for_libfuse), FOR(MOUNT)},
    {"context fscontext defcontext rootcontext", "LABEL", NULL, CALL(take_for_libfuse),
     FOR(MOUNT)},
    {"defaults auto noauto user nouser users nousers owner noowner group nogroup nofail _netdev "
     "diratime nodiratime relatime norelatime strictatime nostrictatime lazytime nolazytime silent "
     "loud auto_unmount", NULL, NULL, GGUF_OPTION_NOTHING, FOR(MOUNT)},
    {"comment", "TEXT", NULL, GGUF_OPTION_NOTHING, FOR(MOUNT)},
    {"sloppy", NULL, NULL, GGUF_OPTION_SLOPPY, FOR(MOUNT)},
    {"rw", NULL, NULL, CALL(take_rw), FOR(MOUNT)},
    {"remount", NULL, NULL, CALL(take_remount), FOR(MOUNT)},
};
/* clang-format on */

/* Hash an option into content_options, unless only the mount command takes it. */
static void note_content_option(void *target, const struct gguf_option_use *use)
{
    struct fs_options *options = target;
    const char *const texts[] = {use->shown, use->value ? use->value : ""};

    if (use->option->commands == MOUNT)
        return;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const struct gguf_hash_key key = {{options->content_options, i}};

        options->content_options = gguf_hash(&key, texts[i], strlen(texts[i]));
    }
}

const struct gguf_option_table fs_command_line = {
    .program = "ggufs",
    .rows = rows,
    .n_rows = sizeof rows / sizeof *rows,
    .usage = "usage: ggufs [options] MODEL... MOUNTPOINT\n"
             "       ggufs --info [--json] [--layers] [-c N] [--cache-type TYPE] MODEL...\n"
             "       ggufs --list [--json] MODEL [PATH...]\n"
             "       ggufs --cat PATH... MODEL\n"
             "       ggufs --extract [--force] DIR MODEL [PATTERN...]\n"
             "       ggufs --stats [--json] MODEL [PATTERN...]\n"
             "       ggufs --diff [--json] MODEL MODEL [PATTERN...]\n"
             "       ggufs --check [--data] [--for LOADER] [--json] MODEL...\n"
             "       ggufs --render [--messages FILE] [--tools FILE] [--template NAME] MODEL\n"
             "       ggufs --status [--json] [MOUNTPOINT...]\n",
    .about = "Mounts a GGUF model as a directory tree; unmount it with: fusermount3 -u MOUNTPOINT. "
             "The forms with a -- word read the same tree without mounting it.",
    .end = "See ggufs(1) for details and exit statuses.\n",
    .no_command = "mounting",
    .command_offset = offsetof(struct fs_options, command),
    .final_commands = BIT(FS_HELP) | BIT(FS_VERSION),
    .print_error = fs_print_error,
    .note = note_content_option,
};

/* Check mount options that exclude or need each other. */
static int check_mount(const struct fs_mount_options *mount)
{
    if (mount->log == FS_LOG_STDERR && !mount->foreground) {
        fs_print_error("-o log=stderr needs -f: in the background, ggufs leaves the terminal");
        return -EINVAL;
    }
    return 0;
}

/* Check the options for the tree, and let --dry-run print instead. */
static int check_tree(struct fs_options *options)
{
    static const char *shown[] = {"summary.txt", "tensors.tsv"};
    struct gguf_report report = {0};
    char size[24];

    if (options->layers && options->command != FS_INFO) {
        fs_print_error("option --layers needs a value: --layers LIST, for instance 0-9,12");
        return -EINVAL;
    }
    if (options->split.small_bytes > 0 && options->split.limit_bytes == 0) {
        fs_print_error("--small-first needs --shards");
        return -EINVAL;
    }
    if (options->dry_run) {
        options->command = FS_CAT;
        options->paths = shown;
        options->n_paths = 2;
    }
    snprintf(size, sizeof size, "%" PRIu64, options->split.small_bytes);
    return options->split.small_bytes == 0
               ? 0
               : gguf_surgery_add(&options->edits.surgery, "--small-first", size, &report);
}

int fs_options_parse(int argc, char **argv, struct fs_options *options)
{
    int result;

    *options = (struct fs_options){.cache = {.type = DEQUANT_F16},
                                   .mount = {.sandbox = true,
                                             .max_read = MAX_READ,
                                             .kept_threads = KEPT_THREADS,
                                             .uid = getuid(),
                                             .gid = getgid()}};
    result = gguf_options_parse(&fs_command_line, argc, argv, options, &options->line);
    if (result < 0 || options->command == FS_HELP || options->command == FS_VERSION)
        return result;
    options->mount.keep_cache = !options->open.partial && !options->mount.direct_io;
    options->models = calloc((size_t)options->line.n_words + 1, sizeof *options->models);
    if (!options->models) {
        fs_refuse_memory();
        return -ENOMEM;
    }
    result = check_mount(&options->mount);
    if (result == 0)
        result = fs_arguments_assign(options);
    if (result == 0)
        result = check_tree(options);
    for (int i = 0; result == 0 && i < options->n_models; i++) {
        if (*options->models[i] == '\0') {
            fs_print_error("the name of the MODEL is empty (a variable without a value?)");
            result = -EINVAL;
        }
    }
    return result;
}

void fs_options_free(struct fs_options *options)
{
    gguf_edits_free(&options->edits);
    free((void *)options->mount.fuse.texts);
    free((void *)options->variables.arguments.texts);
    free((void *)options->models);
    gguf_command_line_free(&options->line);
}
