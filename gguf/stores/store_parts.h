/* Functions that the stores share. See stores.h. */
#pragma once

#include "gguf/stores/stores.h"
#include "gguf/support/strings.h"

#include <cjson/cJSON.h>

/* A store at one place. */
struct gguf_store_search {
    const struct gguf_store_access *access;
    const struct gguf_store_kind *kind;
    const char *root;
    const char *wanted;            /* the name of the model that the user wants; NULL: all */
    struct gguf_model_list index;  /* names and paths of what load() takes */
    size_t n_indexes;              /* of image layouts, which were read for it */
    struct gguf_model_list *found; /* by load() */
};

/* Fill in search->index. Opens no manifest. Returns 0 or a negative errno. */
typedef int gguf_store_index(struct gguf_store_search *search);
/* Add the models of an entry to search->found: the wanted one, or all. */
typedef void gguf_store_load(struct gguf_store_search *search,
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

enum { GGUF_STORE_KINDS = 9 };

/* The first of two rows with one prefix is asked first. */
extern const struct gguf_store_kind gguf_store_kinds[GGUF_STORE_KINDS];

gguf_store_index gguf_ollama_index, gguf_oci_index, gguf_docker_index, gguf_ramalama_index,
    gguf_flat_index, gguf_hub_index, gguf_lm_studio_index;
gguf_store_load gguf_image_load, gguf_ramalama_load, gguf_flat_load, gguf_hub_load,
    gguf_lm_studio_load;
gguf_store_key gguf_ollama_key, gguf_docker_key, gguf_repository_key, gguf_lm_studio_key;
char *gguf_lm_studio_roots(void);

/* Return true if the folder has an entry that fits a pattern, in any case. */
bool gguf_folder_has(const struct gguf_folder *folder, const char *pattern);

/* Return what a folder without a model is, with the remedy. */
const char *gguf_recognize(const struct gguf_store_access *access, const char *folder);

/* Return the tag that finds a model of a repository, a quantization; or NULL; to be freed. */
char *gguf_tag_of(const struct gguf_model_list *list, size_t i);

/* ---- texts ---- */

/* For qsort(): order structs that begin with their name. */
int gguf_compare_names(const void *a, const void *b);

/* Return true unless the path has "..", a hidden name or a byte that names of models do not have.
 */
bool gguf_is_safe(const char *path);

/* Append ":latest" to a name without a tag. Takes the name, which may be NULL. */
char *gguf_store_add_tag(char *name);

/* Append a name and a mark of it to a list in `room` bytes; "..." stands for what has no room. */
void gguf_append_name(char *list, size_t room, const char *name, const char *mark);

/* Return what follows the last slash. */
const char *gguf_base_name(const char *path);

/* Return the length of a name without its last word, which may be a type: "-Q4_K_M". */
size_t gguf_family_bytes(const char *name, size_t length);

/* Endings of programs' unfinished downloads, then NULL. */
extern const char *const gguf_partial_endings[];

/* Return the length of an unfinished download's name without its ending; of others 0. */
size_t gguf_partial_bytes(const char *name);

/* Make names fit for directories: without bytes that terminals obey, cut. Returns list->error. */
int gguf_name_directories(struct gguf_model_list *list, size_t first);

/* ---- files ---- */

/* A place that a walk comes to. */
struct gguf_thing {
    const struct gguf_folder *folder;      /* that it is in */
    const struct gguf_folder_entry *entry; /* NULL: the end of the folder */
    char *path;                            /* of the entry or, at the end, of the folder */
    char *below;  /* the part of the path below the folder where the walk began; can be changed */
    size_t first; /* what the list has from here on was found in the folder */
};
/* Return true for a folder to be walked. */
typedef bool gguf_visit(void *user, const struct gguf_thing *thing);

/*
 * Call `visit` for all in a folder, and in the folders for which it returns true. The visitor adds
 * what it finds to `list`, which gets an error for a folder that cannot be listed. Returns 0, or
 * why the first folder cannot be listed, or list->error.
 */
int gguf_walk(const struct gguf_store_access *access, struct gguf_model_list *list,
              const char *path, gguf_visit *visit, void *user);

/* Read a regular file of at most 16 MiB, with a NUL after it. Takes `path`. NULL with errno. */
char *gguf_store_read(const struct gguf_store_access *access, char *path);

/* Read a JSON file. Takes `path`. Returns NULL with errno, EBADMSG if it is not JSON. */
cJSON *gguf_store_read_json(const struct gguf_store_access *access, char *path);

/* Return the string of a member, or "". */
const char *gguf_store_string(const cJSON *object, const char *name);

/* ---- models ---- */

/* Begin a model of an entry in search->found. Returns NULL if out of memory. */
struct gguf_listed_model *gguf_store_begin(struct gguf_store_search *search,
                                           const struct gguf_listed_model *entry);

/* Add a file with a new name like `name`. Takes `path`, which may be NULL. */
void gguf_store_add_extra(struct gguf_store_search *search, struct gguf_listed_model *model,
                          const char *name, char *path);

/* Say why the manifest at `path` cannot be read: `error` is an errno. */
void gguf_store_refuse_manifest(struct gguf_listed_model *model, const char *path, int error);

/*
 * Find out if a model's file is there. If only an unfinished download of it is, *path becomes that
 * one's, and the model is partial.
 */
void gguf_store_check_file(struct gguf_store_search *search, struct gguf_listed_model *model,
                           char **path);
