/*
 * Models by their names in the stores of other programs, without copies:
 *
 *   ollama:[HOST/][NAMESPACE/]NAME[:TAG]  Ollama's models, as `ollama list` names them
 *   hf:ORG/NAME[@REVISION][:TAG]          the cache of Hugging Face's hub, or llama.cpp's
 *   llamacpp:ORG/NAME[:TAG]               the cache of llama.cpp
 *   lmstudio:PUBLISHER/REPOSITORY[:TAG]
 *   docker:ORG/NAME[:TAG]                 Docker Model Runner's models
 *   ramalama:TRANSPORT/ORG/NAME[:TAG]
 *   oci:DIR[:REFERENCE]                   an image layout
 *
 * A store is looked for where its program keeps it. PREFIX:DIR[:NAME] is one in a folder, if DIR
 * begins with "/", "./" or "../". After ORG/NAME, /FILE names a file, and TAG is a part of its
 * name.
 */
#pragma once

#include "gguf/stores/model_list.h"

#include <stdio.h>

/* Find a model in a store, as gguf_find_model() does. Returns 1 if `name` is not of a store. */
int gguf_store_find(const char *name, bool partial, struct gguf_listed_model *model,
                    char reason[GGUF_LIST_REASON_BYTES]);

/* Return true if a name begins with the name of a store. */
bool gguf_store_is_name(const char *name);

/*
 * List a whole store, "ollama:" or "ollama:DIR". What cannot be opened has an error. Returns 0 with
 * a list to be freed, 1 if `name` is not a store's, or a negative errno with the reason.
 */
int gguf_store_list(const struct gguf_store_access *access, const char *name,
                    struct gguf_model_list *list, char reason[GGUF_LIST_REASON_BYTES]);

enum { GGUF_STORE_MAX_PLACES = 12 };

/* Where the store of a name may be, and what follows the prefix and the folder in the name. */
struct gguf_store_places {
    struct gguf_store_spot {
        const struct gguf_store_kind *kind;
        char *root; /* the absolute path of a folder */
    } list[GGUF_STORE_MAX_PLACES];
    size_t n;
    const char *prefix, *name; /* `name` is in the user's text */
};

/* Find the places of a name. Returns false if it does not begin with the name of a store. */
bool gguf_store_find_places(const struct gguf_store_access *access, const char *name,
                            struct gguf_store_places *places);
void gguf_store_free_places(struct gguf_store_places *places);

/*
 * Print the names of models that begin with `word`, a line "NAME\t" for each. Returns true if there
 * is one: no file can be meant.
 */
bool gguf_store_complete(const char *word, FILE *stream);

/*
 * Return the name of the model that has the file at `path` in a store, or NULL; to be freed. Of
 * several it is the one that the store calls `likely`, which may be NULL, or the first.
 */
char *gguf_store_name_of(const char *path, const char *likely);
