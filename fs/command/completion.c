#include "fs/command/commands.h"

#include "fs/command/command_line.h"
#include "fs/command/model_input.h"
#include "gguf/stores/stores.h"
#include "gguf/support/option_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>

/* Where paths are completed from: the tree, or for patterns of tensors one of its directories. */
#define TENSORS "tensors/"

bool fs_is_completion(int argc, char **argv)
{
    return argc > 2 && strcmp(argv[1], "--complete") == 0;
}

/* Return the command among the words, or FS_MOUNT. */
static enum fs_command find_command(int n_words, char **words)
{
    for (int i = 1; i < n_words; i++) {
        const struct gguf_option *option =
            gguf_option_find(&fs_command_line, words[i], strlen(words[i]));

        if (option && option->command != 0)
            return (enum fs_command)option->command;
    }
    return FS_MOUNT;
}

/* Return the first file among the words other than words[at], or NULL. */
static const char *find_model(int n_words, char **words, int at)
{
    struct stat status;

    for (int i = 1; i < n_words; i++) {
        if (i != at && words[i][0] != '-' &&
            (stat(words[i], &status) == 0 ? S_ISREG(status.st_mode) : gguf_store_is_name(words[i])))
            return words[i];
    }
    return NULL;
}

/* Return false for a name that is not for a terminal. */
static bool is_plain(const char *name)
{
    while ((unsigned char)*name >= ' ' && *name != 0x7f)
        name++;
    return *name == '\0';
}

/* Offer the names in the directory of options->paths[0], a path that is not complete. */
static int offer_paths(const struct fs_options *options, struct fs_input *input)
{
    const bool is_pattern = options->command == FS_STATS || options->command == FS_DIFF;
    const char *word = options->paths[0], *slash = strrchr(word, '/');
    const size_t start_length = slash ? (size_t)(slash - word) + 1 : 0;
    const char *begun = word + start_length;
    char *directory;
    struct fs_tree *tree;
    fs_node_index node;
    const int status = fs_make_tree(options, input, &tree);

    if (status != EX_OK)
        return status;
    if (asprintf(&directory, "%s%.*s", is_pattern ? TENSORS : "", (int)start_length, word) >= 0) {
        const bool is_there = fs_tree_find(tree, directory, &node) == 0;

        for (uint32_t i = 0; is_there && i < fs_tree_node(tree, node)->n_children; i++) {
            const struct fs_node *child = fs_tree_node(tree, fs_tree_child(tree, node, i));

            if (gguf_text_starts_with(child->name, begun) && is_plain(child->name))
                printf("%.*s%s%s\t\n", (int)start_length, word, child->name,
                       fs_node_is_directory(child) && !is_pattern ? "/" : "");
        }
        free(directory);
    }
    fs_close_tree(tree);
    return EX_OK;
}

int fs_complete(int argc, char **argv)
{
    char **words = argv + 2; /* words[0] is the index, in the place of the program's name */
    const int n_words = argc - 2;
    const int at = atoi(argv[2]);
    const int expected = gguf_options_complete(&fs_command_line, n_words, words, at, stdout);
    const enum fs_command command = find_command(n_words, words);
    const char *word = at > 0 && at < n_words ? words[at] : "";
    const char *model = find_model(n_words, words, at);
    struct fs_options options = {.command = command,
                                 .models = &model,
                                 .n_models = 1,
                                 .paths = &word,
                                 .n_paths = 1,
                                 .mount = {.sandbox = true}};

    if (expected == 2 && gguf_store_complete(word, stdout))
        return 0;
    if (expected != 2 || (command != FS_LIST && command != FS_CAT && command != FS_EXTRACT &&
                          command != FS_STATS && command != FS_DIFF))
        return expected > 0;
    if (model)
        fs_run_for_models(&options, offer_paths);
    return 1;
}
