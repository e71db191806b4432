/* Functions that the stores share. See stores.h. */
#pragma once

#include "gguf/stores/stores.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

/* No store has more models, no repository more files. */
enum { GGUF_STORE_MAX_MODELS = 20000 };

/* A store at one place. */
struct gguf_store_search {
    const struct gguf_store_access *access;
    const char *root;
    struct gguf_model_list *found; /* by load() */
    char *listed;                  /* the folder that was listed last */
    struct gguf_folder folder;     /* … and what is in it */
};

/* A kind of store: a row of the table in stores.c. */
struct gguf_store_kind {
    const char *prefix, *form;
    const struct gguf_store_place {
        const char *variable, *end; /* of the environment; NULL: `end` is the whole path */
    } * places;                     /* where a store may be, NULL: see roots() */
    const char *inside;             /* the store is this folder in a folder that the user names */
    bool is_confined;               /* links must not lead out of the store */
    bool needs_path;                /* it has no usual place */

    char *(*roots)(void); /* the places, each with '\n' */
    /* Write the name of a model as index() gives it. Returns false for another form. */
    bool (*key)(const char *name, char *out, size_t room);
    /* Add names and paths of what load() takes. Opens no manifest. 0 or a negative errno. */
    int (*index)(struct gguf_store_search *search, struct gguf_model_list *index);
    /* Add the models of an entry: the one that `wanted` names, or all. 0 or -ENOMEM. */
    int (*load)(struct gguf_store_search *search, const struct gguf_listed_model *entry,
                const char *wanted);
};

/* A folder where a store may be. */
struct gguf_store_spot {
    const struct gguf_store_kind *kind;
    char *root;
};

enum { GGUF_STORE_KINDS = 9, GGUF_STORE_MAX_PLACES = 12 };

/* Of two rows with one prefix, the first is asked first. */
extern const struct gguf_store_kind *const gguf_store_kinds[GGUF_STORE_KINDS];

/* Where the store of a name may be, and what follows the prefix and the folder in the name. */
struct gguf_store_places {
    struct gguf_store_spot list[GGUF_STORE_MAX_PLACES];
    size_t n;
    const char *prefix, *name; /* `name` is in the user's text */
};

/* Find the places of a name. Returns false if it does not begin with the name of a store. */
bool gguf_store_find_places(const struct gguf_store_access *access, const char *name,
                            struct gguf_store_places *places);
void gguf_store_free_places(struct gguf_store_places *places);

bool gguf_store_is_folder(const struct gguf_store_access *access, const char *path);

extern const struct gguf_store_kind gguf_ollama_store, gguf_oci_store, gguf_docker_store,
    gguf_ramalama_store, gguf_hub_store, gguf_llama_hub_store, gguf_flat_store,
    gguf_llama_flat_store, gguf_lm_studio_store;

/* Write a text. Returns NULL if out of memory; the caller frees it. */
char *gguf_store_text(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Return the next name of a list, or NULL after the last. It is cut at its '\n'. */
char *gguf_store_next_name(char **rest);

/* List a folder; {0} if it cannot be. The next call may free it. */
const struct gguf_folder *gguf_store_list_folder(struct gguf_store_search *search,
                                                 const char *path);

/* Return the entry with a name, or NULL. */
const struct gguf_folder_entry *gguf_store_entry(const struct gguf_folder *folder,
                                                 const char *name);

/* Read a regular file of at most 16 MiB, with a NUL after it. Returns NULL with errno. */
char *gguf_store_read(const struct gguf_store_search *search, const char *path);

/* Read a JSON file. Returns NULL with errno, EBADMSG if it is not JSON. */
cJSON *gguf_store_read_json(const struct gguf_store_search *search, const char *path);

/* Return the string of a member, or "". */
const char *gguf_store_string(const cJSON *object, const char *name);

/* Add a model. Takes both texts, which may be NULL. Returns it, or NULL if out of memory
 * or if the list is full. */
struct gguf_listed_model *gguf_store_add(struct gguf_model_list *list, char *name, char *path);

/* Add a file with a new name like `name`. Takes `path`, which may be NULL. 0 or -ENOMEM. */
int gguf_store_add_extra(struct gguf_listed_model *model, const char *name, char *path);

/* Set the error of a model, unless it has one. */
void gguf_store_refuse(struct gguf_listed_model *model, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Say why the manifest at `path` cannot be read: `error` is an errno. */
void gguf_store_refuse_manifest(struct gguf_listed_model *model, const char *path, int error);

/*
 * Find out if a model's file is there. If only an unfinished download of it is, *path becomes that
 * one's, and the model is partial.
 */
void gguf_store_check_file(struct gguf_store_search *search, struct gguf_listed_model *model,
                           char **path);

/* Return true for the ending of an unfinished download. */
bool gguf_store_is_partial(const char *name);

/* Append ":latest" to a name without a tag. Returns false if there is no room. */
bool gguf_store_add_tag(char *name, size_t room);

/* The key of ORG/NAME[/FILE][@REVISION][:TAG]: ORG/NAME. */
bool gguf_store_repository_key(const char *name, char *out, size_t room);

/*
 * Add the models in a repository's folder: all, or the one that `wanted` names. Without a tag in
 * it, `defaults` are tried in order. Returns 0 or -ENOMEM.
 */
int gguf_store_load_folder(struct gguf_store_search *search, const char *folder,
                           const char *repository, const char *wanted, const char *const *defaults);
