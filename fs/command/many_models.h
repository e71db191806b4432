/* The models that folders, stores and several files on the command line stand for. */
#pragma once

#include "fs/command/options.h"
#include "fs/mount/serve.h"

enum fs_place_kind { FS_A_FILE, FS_A_FOLDER, FS_A_STORE };

/* The models that options->models name. */
struct fs_many {
    const struct fs_options *options;
    struct fs_place {
        enum fs_place_kind kind;
        char *name; /* an absolute path, or "ollama:", or "ollama:" with an absolute path */
    } * places;     /* one per model */
    char **roots;   /* what may be opened: absolute paths, then NULL */
    size_t n_roots, room;
};

/*
 * Find out what options->models name. `list` has what is in folders and files now. Prints an error.
 * Returns an exit status; call fs_many_end() in any case.
 */
int fs_many_begin(const struct fs_options *options, struct fs_many *many,
                  struct gguf_model_list *list);
void fs_many_end(struct fs_many *many, struct gguf_model_list *list);

/* Return true unless all that they name is one model, alone in its folder or with projectors. */
bool fs_are_many(const struct fs_many *many, const struct gguf_model_list *list);

/* Mount them. Returns an exit status. */
int fs_mount_many(struct fs_many *many);

/*
 * If the model that the user named is a folder of many, print a table of them, or with
 * options->json an object for each, and return true with an exit status.
 */
bool fs_print_many(const struct fs_options *options, int *status);
