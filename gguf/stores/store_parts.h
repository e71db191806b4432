/* Functions that the stores share. See stores.h. */
#pragma once

#include "gguf/stores/stores.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

/* No store has more models. */
enum { GGUF_STORE_MAX_MODELS = 20000 };

/* A store at one place. */
struct gguf_store_search {
    const struct gguf_store_access *access;
    const struct gguf_store_kind *kind;
    const char *root;
    const char *wanted;            /* the name of the model that the user wants; NULL: all */
    struct gguf_model_list index;  /* names and paths of what load() takes */
    struct gguf_model_list *found; /* by load() */
    char *listed;                  /* the folder that was listed last */
    struct gguf_folder folder;     /* … and what is in it */
    void *user;                    /* of functions that visit */
};

/* Fill in search->index. Opens no manifest. Returns 0 or a negative errno. */
typedef int gguf_store_index(struct gguf_store_search *search);
/* Add the models of an entry: the wanted one, or all. Returns 0 or -ENOMEM. */
typedef int gguf_store_load(struct gguf_store_search *search,
                            const struct gguf_listed_model *entry);
/* Return a name as the index has it, but for the tag, or NULL if it has another form. */
typedef char *gguf_store_key(const char *name);

/* A kind of store: a row of the table in store_places.c. */
struct gguf_store_kind {
    const char *prefix, *form;
    const char *places;   /* where a store may be, separated by '\n': "/PATH", "$VARIABLE/PATH" */
    const char *inside;   /* the store is this folder in a folder that the user names */
    bool is_confined;     /* links must not lead out of the store */
    bool has_tags;        /* a name without a tag has ":latest" */
    unsigned blob_depth;  /* the store of …/blobs/BLOB is so many folders up; 0: unknown */
    char *(*roots)(void); /* the places, if they must be computed; owned */
    gguf_store_key *key;  /* NULL: the name itself */
    gguf_store_index *index;
    gguf_store_load *load;
};

/* A folder where a store may be. */
struct gguf_store_spot {
    const struct gguf_store_kind *kind;
    char *root;
};

enum { GGUF_STORE_KINDS = 9, GGUF_STORE_MAX_PLACES = 12 };

/* Of two rows with one prefix, the first is asked first. */
extern const struct gguf_store_kind gguf_store_kinds[GGUF_STORE_KINDS];

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

gguf_store_index gguf_ollama_index, gguf_oci_index, gguf_docker_index, gguf_ramalama_index,
    gguf_flat_index, gguf_hub_index, gguf_lm_studio_index;
gguf_store_load gguf_ollama_load, gguf_oci_load, gguf_ramalama_load, gguf_flat_load, gguf_hub_load,
    gguf_lm_studio_load;
gguf_store_key gguf_ollama_key, gguf_docker_key, gguf_repository_key, gguf_lm_studio_key;
char *gguf_lm_studio_roots(void);

/* ---- texts ---- */

/* Write a text. Returns NULL if out of memory; the caller frees it. */
char *gguf_store_text(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Return the next line of a text, or NULL after the last. It is cut at its '\n'. */
char *gguf_store_next_line(char **rest);

/* Append ":latest" to a name without a tag. Takes the name, which may be NULL. */
char *gguf_store_add_tag(char *name);

/* ---- files ---- */

/*
 * Call `visit` for all in a folder, and in the folders for which it returns true. Returns 0, or why
 * the folder cannot be listed; what cannot be listed below it is empty.
 */
struct gguf_store_thing {
    const struct gguf_folder *folder; /* that it is in */
    const struct gguf_folder_entry *entry;
    char *path;
    char *below; /* the part of the path below the folder where the walk began */
};
typedef bool gguf_store_visit(struct gguf_store_search *search,
                              const struct gguf_store_thing *thing);
int gguf_store_walk(struct gguf_store_search *search, const char *path, gguf_store_visit *visit);

/* List a folder; {0} if it cannot be. The next call may free it. */
const struct gguf_folder *gguf_store_list_folder(struct gguf_store_search *search,
                                                 const char *path);

/* Return the entry with a name, or NULL. */
const struct gguf_folder_entry *gguf_store_entry(const struct gguf_folder *folder,
                                                 const char *name);

/* Read a regular file of at most 16 MiB, with a NUL after it. Returns NULL with errno. */
char *gguf_store_read(const struct gguf_store_search *search, const char *path);

/* Read a JSON file. Takes `path`. Returns NULL with errno, EBADMSG if it is not JSON. */
cJSON *gguf_store_read_json(const struct gguf_store_search *search, char *path);

/* Return the string of a member, or "". */
const char *gguf_store_string(const cJSON *object, const char *name);

/* ---- models ---- */

/* Add a model. Takes both texts, of which the path may be NULL. Returns it, or NULL if out of
 * memory or if the list is full. */
struct gguf_listed_model *gguf_store_add(struct gguf_model_list *list, char *name, char *path);

/* Add a file with a new name like `name`. Takes `path`, which may be NULL. 0 or -ENOMEM. */
int gguf_store_add_extra(struct gguf_listed_model *model, const char *name, char *path);

/* Set the error of a model, unless it has one or is NULL. */
void gguf_store_refuse(struct gguf_listed_model *model, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Read the manifest of an entry. Returns NULL, with the reason in `model`. */
cJSON *gguf_store_read_manifest(const struct gguf_store_search *search,
                                const struct gguf_listed_model *entry,
                                struct gguf_listed_model *model);

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

/*
 * Add the models in a repository's folder: all, or the wanted one. Without a tag in
 * it, `defaults` are tried in order. Returns 0 or -ENOMEM.
 */
int gguf_store_load_folder(struct gguf_store_search *search, const char *folder,
                           const char *repository, const char *const *defaults);
