#include "fs/command/options.h"

#include "fs/command/arguments.h"
#include "fs/command/option_table.h"
#include "fs/command/terminal.h"
#include "gguf/support/keyed_hash.h"
#include "gguf/support/similar_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Larger reads arrive as several requests, which several threads answer at the same time. */
#define MAX_READ (512u << 10)
/* As many as libfuse would take. */
#define MAX_THREADS 10

#define LONGEST_NAME GGUF_LONGEST_NAME

/* Return true if the option is a word of its own, false if it follows -o. */
static bool is_dashed(const struct fs_option *option)
{
    return option->name[0] == '-';
}

static bool is_name(const char *name, const char *word, size_t length)
{
    return name && strncmp(name, word, length) == 0 && name[length] == '\0';
}

/* Return the row of the option with the name name[0..length-1], or NULL. */
static const struct fs_option *find_option(const char *name, size_t length)
{
    for (size_t i = 0; i < fs_n_options; i++) {
        const struct fs_option *option = &fs_option_table[i];

        if (is_name(option->name, name, length) || is_name(option->synonym, name, length))
            return option;
    }
    return NULL;
}

/* ---- unknown options ---- */

/* Return the option whose name, without dashes, is closest to `name`, or NULL if none is close. */
static const struct fs_option *closest_option(const char *name)
{
    const struct fs_option *closest = NULL;
    size_t least = 0;

    for (size_t i = 0; i < fs_n_options && strlen(name) > 1; i++) {
        const struct fs_option *option = &fs_option_table[i];
        const char *known = option->synonym ? option->synonym : option->name;
        const char *bare = known + strspn(known, "-");

        if (option->help && strspn(known, "-") != 1 && gguf_is_closer(name, bare, &least))
            closest = option;
    }
    return closest;
}

/* `word` is as the user wrote it; `is_behind_o` is true if it followed -o. */
static int refuse_unknown(const char *word, bool is_behind_o, const char *cut_option)
{
    char name[LONGEST_NAME + 1] = "";
    const char *start = word + strspn(word, "-");
    const size_t length = strcspn(start, "=");
    const struct fs_option *meant;

    if (length < sizeof name)
        memcpy(name, start, length);
    meant = closest_option(name);
    if (strcmp(word, "-u") == 0 || strcmp(word, "--unmount") == 0 || strcmp(word, "--umount") == 0)
        fs_print_error("unknown option %s; to unmount: fusermount3 -u MOUNTPOINT", word);
    else if (cut_option)
        fs_print_error(
            "unknown option -o %s; if it belongs to the value of %s before it, write the "
            "comma as \\, or use --set, which needs no escaping",
            word, cut_option);
    else if (meant)
        fs_print_error("unknown option %s%s; did you mean %s%s?", is_behind_o ? "-o " : "", word,
                       is_dashed(meant) ? "" : "-o ",
                       meant->synonym ? meant->synonym : meant->name);
    else
        fs_print_error("unknown option %s%s; for a list: ggufs --help", is_behind_o ? "-o " : "",
                       word);
    return -EINVAL;
}

/* ---- words ---- */

/* Add an option that other commands take, too, to the number that stands for all of them. */
static void note_content_option(struct fs_options *options, const struct fs_option_use *use)
{
    const char *const texts[] = {use->shown, use->value ? use->value : ""};

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const struct gguf_hash_key key = {{options->content_options, i}};

        options->content_options = gguf_hash(&key, texts[i], strlen(texts[i]));
    }
}

/* `word` is the whole option; its name ends at `end`, where "=VALUE" may follow. */
static int take(struct fs_options *options, bool *is_used, const struct fs_option *option,
                const char *word, const char *value, bool has_successor)
{
    char shown[LONGEST_NAME + 8];
    const struct fs_option_use use = {option, shown, value, word, has_successor};

    snprintf(shown, sizeof shown, "%s%s", is_dashed(option) ? "" : "-o ", option->name);
    if (option->argument && !value) {
        fs_print_error("option %s needs a value: %s%s%s%s", shown, shown,
                       is_dashed(option) ? " " : "=", option->argument,
                       option->without_value ? option->without_value : "");
        return -EINVAL;
    }
    if (!option->argument && value) {
        fs_print_error("option %s takes no value, but got %s", shown, word);
        return -EINVAL;
    }
    is_used[option - fs_option_table] = true;
    if (option->commands != 1u << FS_MOUNT)
        note_content_option(options, &use);
    return option->handle(options, &use);
}

/* End `word` at its next comma and undo its escapes, as libfuse does. Returns the rest or NULL. */
static char *cut_word(char *word)
{
    char *end = word;

    for (; *word != '\0' && *word != ','; word++) {
        unsigned octal;

        if (*word == '\\' && word[1] >= '0' && word[1] <= '3' &&
            sscanf(word + 1, "%3o", &octal) == 1 && strspn(word + 1, "01234567") >= 3) {
            *end++ = (char)octal;
            word += 3;
            continue;
        }
        word += *word == '\\' && word[1] != '\0';
        *end++ = *word;
    }
    word = *word == ',' ? word + 1 : NULL;
    *end = '\0';
    return word;
}

/* Parse the options of one -o. */
static int take_group(struct fs_options *options, bool *is_used, const char *group)
{
    const char *cut_option = NULL; /* "-o set", if the previous option is one */
    char *copy = strdup(group);
    int result = 0;

    if (!copy)
        return -ENOMEM;
    options->owned[options->n_owned++] = copy;
    for (char *word = copy, *next; result == 0 && word; word = next) {
        const size_t length = strcspn(word, "=,");
        const struct fs_option *option = find_option(word, length);

        next = cut_word(word);
        if (*word == '\0' || strncasecmp(word, "x-", 2) == 0) /* a comment, see mount(8) */
            continue;
        if ((!option || is_dashed(option)) && options->is_sloppy)
            continue;
        if (!option || is_dashed(option))
            return refuse_unknown(word, true, cut_option);
        result = take(options, is_used, option, word,
                      word[length] == '=' ? word + length + 1 : NULL, next != NULL);
        cut_option = strcmp(option->name, "set") == 0 ? "-o set" : NULL;
    }
    return result;
}

static int take_words(struct fs_options *options, bool *is_used, int argc, char **argv)
{
    int result = 0;

    for (int i = 1; result == 0 && i < argc; i++) {
        const char *word = argv[i];
        const size_t length = strcspn(word, "=");
        const struct fs_option *option = find_option(word, length);
        const char *value = word[length] == '=' ? word + length + 1 : NULL;

        if (strcmp(word, "--") == 0) {
            while (++i < argc)
                options->arguments[options->n_arguments++] = argv[i];
        } else if (word[0] != '-' || word[1] == '\0') {
            options->arguments[options->n_arguments++] = word;
        } else if (word[1] == 'o') {
            if (word[2] != '\0' || i + 1 < argc) {
                result = take_group(options, is_used, word[2] != '\0' ? word + 2 : argv[++i]);
            } else {
                fs_print_error("-o needs an option after it");
                result = -EINVAL;
            }
        } else if (!option) {
            result = refuse_unknown(word, false, NULL);
        } else {
            if (option->argument && !value && i + 1 < argc)
                value = argv[++i];
            result = take(options, is_used, option, word, value, false);
        }
    }
    return result;
}

/* ---- what fits together ---- */

static int check_uses(const struct fs_options *options, const bool *is_used)
{
    for (size_t i = 0; i < fs_n_options; i++) {
        const struct fs_option *option = &fs_option_table[i];
        char names[128] = "";

        if (!is_used[i] || option->commands & 1u << options->command)
            continue;
        for (enum fs_command command = 0; command < FS_N_COMMANDS; command++) {
            const size_t length = strlen(names);

            if (option->commands & 1u << command)
                snprintf(names + length, sizeof names - length, "%s%s", length > 0 ? ", " : "",
                         fs_command_name(command));
        }
        fs_print_error("option %s%s does not apply to %s, only to %s",
                       is_dashed(option) ? "" : "-o ", option->name,
                       fs_command_name(options->command), names);
        return -EINVAL;
    }
    if (options->mount.clone_fd && options->mount.sandbox) {
        fs_print_error("-o clone_fd needs -o nosandbox: the threads open /dev/fuse");
        return -EINVAL;
    }
    if (options->mount.passthrough && options->mount.direct_io) {
        fs_print_error("-o passthrough and -o direct_io exclude each other: the kernel caches what "
                       "it reads itself");
        return -EINVAL;
    }
    if (options->mount.log == FS_LOG_STDERR && !options->mount.foreground) {
        fs_print_error("-o log=stderr needs -f: in the background, ggufs leaves the terminal");
        return -EINVAL;
    }
    return 0;
}

static int parse(struct fs_options *options, bool *is_used, int argc, char **argv)
{
    int result = take_words(options, is_used, argc, argv);

    if (result < 0 || options->command == FS_HELP || options->command == FS_VERSION)
        return result;
    options->mount.keep_cache = !options->open.partial && !options->mount.direct_io;
    result = check_uses(options, is_used);
    return result < 0 ? result : fs_arguments_assign(options);
}

int fs_options_parse(int argc, char **argv, struct fs_options *options)
{
    size_t n_words = 1; /* an upper bound; each comma separates one more option of a -o */
    bool *is_used = calloc(fs_n_options, sizeof *is_used); /* for each row of the table */
    int result = -ENOMEM;

    *options = (struct fs_options){.mount = {.sandbox = true,
                                             .max_read = MAX_READ,
                                             .max_threads = MAX_THREADS,
                                             .uid = getuid(),
                                             .gid = getgid()}};
    for (int i = 0; i < argc; i++) {
        n_words++;
        for (const char *comma = argv[i]; (comma = strchr(comma, ',')) != NULL; comma++)
            n_words++;
    }
    options->arguments = calloc(n_words, sizeof *options->arguments);
    options->models = calloc(n_words, sizeof *options->models);
    options->fuse_options = calloc(n_words, sizeof *options->fuse_options);
    options->owned = calloc(n_words, sizeof *options->owned);
    if (is_used && options->arguments && options->models && options->fuse_options && options->owned)
        result = parse(options, is_used, argc, argv);
    if (result == -ENOMEM)
        fs_print_error("%s", strerror(ENOMEM));
    free(is_used);
    return result;
}

void fs_options_free(struct fs_options *options)
{
    gguf_edits_free(&options->edits);
    for (int i = 0; i < options->n_owned; i++)
        free(options->owned[i]);
    free(options->owned);
    free(options->fuse_options);
    free(options->models);
    free(options->arguments);
}
