#include "fs/command/arguments.h"

#include "fs/command/command_line.h"
#include "fs/command/terminal.h"
#include "gguf/stores/stores.h"
#include "gguf/support/safe_print.h"
#include "gguf/support/shard_names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Return how many of the `n` arguments, from the first on, are shards of one model; at least 1. */
static int count_shards(const char *const *arguments, int n)
{
    int count = 1;

    while (count < n && gguf_are_shards_of_one_model(arguments[0], arguments[count]))
        count++;
    return count;
}

/* Return true for a model file, also in a store. */
static bool is_file(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 ? !S_ISDIR(status.st_mode) : gguf_store_is_name(path);
}

/* Refuse the arguments of a command, with its line of the usage. `which` is a word or "". */
static int refuse_arguments(const struct fs_options *options, const char *what, const char *which)
{
    const bool has_name = options->command != FS_MOUNT;
    const char *name = has_name ? gguf_option_command_name(&fs_command_line, options->command) : "";
    const char *form = strstr(fs_command_line.usage, fs_command_line.program);

    if (has_name)
        form = strstr(form, name) - strlen(fs_command_line.program) - 1;
    fs_print_error("%s%s%s%s; usage: %.*s", name, has_name ? ": " : "", what, which,
                   (int)strcspn(form, "\n"), form);
    return -EINVAL;
}

/* Refuse the name of a command without its dashes, unless there is a file of that name. */
static int check_for_command(const char *word)
{
    struct stat status;

    if (stat(word, &status) == 0)
        return 0;
    for (enum fs_command command = FS_INFO; command < FS_N_COMMANDS; command++) {
        const char *name = gguf_option_command_name(&fs_command_line, command);

        if (strcmp(word, name + 2) == 0) {
            fs_print_error("%s: no such file; did you mean %s?", word, name);
            return -EINVAL;
        }
    }
    return 0;
}

static bool has_files(const char *path)
{
    struct gguf_folder folder = {0};
    const int result = gguf_direct_access.list(NULL, path, &folder);

    free(folder.entries);
    return result == 0 && folder.n_entries > 0;
}

/* Refuse MOUNTPOINT MODEL, if no file or folder of models can be meant by the first word. */
static int check_order(const char *const *arguments, int n)
{
    if (n < 2 || is_file(arguments[0]) || has_files(arguments[0]) ||
        gguf_has_model_ending(arguments[0]) || !is_file(arguments[1]) ||
        count_shards(arguments + 1, n - 1) < n - 1)
        return 0;
    fprintf(stderr, "ggufs: the model comes first, then the mount point: ggufs ");
    gguf_print_shell_word(stderr, arguments[1]);
    fputc(' ', stderr);
    gguf_print_shell_word(stderr, arguments[0]);
    fputc('\n', stderr);
    return -EINVAL;
}

/* MODEL... */
static int assign_models(struct fs_options *options)
{
    for (int i = 0; i < options->line.n_words; i++) {
        const char *model = options->line.words[i];
        bool is_new = true;

        for (int j = 0; j < options->n_models; j++)
            is_new &= !gguf_are_shards_of_one_model(options->models[j], model);
        if (is_new)
            options->models[options->n_models++] = model;
    }
    return options->n_models > 0 ? 0 : refuse_arguments(options, "a MODEL is missing", "");
}

/* MODEL... MOUNTPOINT */
static int assign_mount(struct fs_options *options)
{
    const char **arguments = options->line.words;
    const int n = options->line.n_words;
    const int n_shards = n > 0 ? count_shards(arguments, n) : 0;

    if (n > 0 && check_for_command(arguments[0]) < 0)
        return -EINVAL;
    if (n == 0) {
        fs_print_error("MODEL and MOUNTPOINT are missing");
        fputs(fs_command_line.usage, stderr);
        return -EINVAL;
    }
    if (check_order(arguments, n) < 0)
        return -EINVAL;
    if (n == n_shards || (has_files(arguments[0]) && is_file(arguments[n - 1])))
        return refuse_arguments(options, "MOUNTPOINT is missing", "");
    options->directory = arguments[--options->line.n_words];
    return assign_models(options);
}

/* Take the model from the start or the end of the arguments; the others are paths. */
static int assign_model_and_paths(struct fs_options *options, const char **arguments, int n,
                                  bool is_at_end)
{
    const char *other;
    int first = 0, n_shards;

    if (n == 0)
        return refuse_arguments(options, "a MODEL is missing", "");
    if (is_at_end)
        first = n - 1;
    other = arguments[n - 1 - first];
    /* If neither is a file, the error names the one that looks like a model, and not like a path.
     */
    if (!is_file(arguments[first]) &&
        (is_file(other) ||
         (gguf_has_model_ending(other) && !gguf_has_model_ending(arguments[first]) &&
          strcmp(other, "model.gguf") != 0 && !has_files(arguments[first]))))
        first = n - 1 - first;
    if (first == n - 1) {
        while (first > 0 && gguf_are_shards_of_one_model(arguments[first - 1], arguments[n - 1]))
            first--;
        n_shards = n - first;
        options->paths = arguments;
    } else {
        n_shards = count_shards(arguments, n);
        options->paths = arguments + n_shards;
    }
    options->models[options->n_models++] = arguments[first];
    options->n_paths = n - n_shards;
    return 0;
}

/* DIR MODEL [PATTERN...] */
static int assign_extract(struct fs_options *options)
{
    const char **arguments = options->line.words;

    if (options->line.n_words == 0)
        return refuse_arguments(options, "DIR and MODEL are missing", "");
    if (options->line.n_words == 1)
        return refuse_arguments(options,
                                is_file(arguments[0]) ? "DIR is missing" : "MODEL is missing", "");
    if (is_file(arguments[0]) && !is_file(arguments[1])) {
        options->directory = arguments[1];
        arguments[1] = arguments[0];
    } else {
        options->directory = arguments[0];
    }
    return assign_model_and_paths(options, arguments + 1, options->line.n_words - 1, false);
}

/* MODEL MODEL [PATTERN...] */
static int assign_diff(struct fs_options *options)
{
    int at = 0;

    for (int i = 0; i < 2 && at < options->line.n_words; i++) {
        options->models[options->n_models++] = options->line.words[at];
        /* Two shards of one model are two shards to compare only if nothing else is named. */
        at += options->line.n_words > 2
                  ? count_shards(options->line.words + at, options->line.n_words - at)
                  : 1;
    }
    options->paths = options->line.words + at;
    options->n_paths = options->line.n_words - at;
    if (options->n_models < 2)
        return refuse_arguments(
            options,
            options->n_models == 0 ? "two MODELs are missing" : "the second MODEL is missing", "");
    return 0;
}

int fs_arguments_assign(struct fs_options *options)
{
    int result;

    switch (options->command) {
    case FS_MOUNT:
        if (options->dry_run && options->line.n_words == 1)
            return assign_models(options);
        return assign_mount(options);
    case FS_INFO:
    case FS_CHECK:
        if (options->line.n_words == 0 && options->no_list)
            options->line.words[options->line.n_words++] = options->no_list;
        return assign_models(options);
    case FS_RENDER:
        result = assign_models(options);
        if (result == 0 && options->n_models > 1)
            return refuse_arguments(options, "one argument too many: ", options->models[1]);
        return result;
    case FS_LIST:
    case FS_STATS:
        return assign_model_and_paths(options, options->line.words, options->line.n_words, false);
    case FS_CAT:
        result = assign_model_and_paths(options, options->line.words, options->line.n_words, true);
        if (result == 0 && options->n_paths == 0)
            return refuse_arguments(
                options, is_file(options->models[0]) ? "a PATH is missing" : "a MODEL is missing",
                "");
        return result;
    case FS_EXTRACT:
        return assign_extract(options);
    case FS_STATUS:
        options->paths = options->line.words;
        options->n_paths = options->line.n_words;
        return 0;
    case FS_DIFF:
        return assign_diff(options);
    default:
        return 0;
    }
}
