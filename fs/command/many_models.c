#include "fs/command/many_models.h"

#include "fs/command/finding_output.h"
#include "fs/command/model_input.h"
#include "fs/command/terminal.h"
#include "fs/models/list_texts.h"
#include "gguf/stores/stores.h"
#include "gguf/support/arrays.h"
#include "gguf/support/model_paths.h"
#include "gguf/support/safe_print.h"
#include "gguf/support/strings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

static bool is_folder(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* Return true for "ollama:" and "ollama:/DIR", false for a model in a store. */
static bool is_store(const char *name)
{
    const char *rest = strchr(name, ':');

    return rest && gguf_store_is_name(name) && access(name, F_OK) < 0 &&
           (rest[1] == '\0' || (is_folder(rest + 1) &&
                                (strchr("/.", rest[1]) || gguf_text_starts_with(name, "oci:"))));
}

/* Make an absolute path without a slash at its end. */
static char *make_absolute(const char *path)
{
    char *absolute = gguf_absolute_path(path);

    for (size_t length = absolute ? strlen(absolute) : 0; length > 1 && absolute[length - 1] == '/';
         length--)
        absolute[length - 1] = '\0';
    return absolute;
}

/*
 * Return the only folder of a store that exists, or "". The confined server cannot read where LM
 * Studio's settings say that it is.
 */
static char *only_root(const char *store)
{
    char *roots = gguf_store_roots(store), *only = NULL;
    size_t n = 0;

    for (char *at = roots, *next; at && *at != '\0'; at = next) {
        next = at + strcspn(at, "\n") + 1;
        next[-1] = '\0';
        if (is_folder(at) && n++ == 0)
            only = at;
    }
    only = strdup(n == 1 ? only : "");
    free(roots);
    return only;
}

/* Find out what a name on the command line means. */
static int find_place(const char *name, struct fs_place *place)
{
    const char *rest = strchr(name, ':');

    if (!is_store(name)) {
        place->kind = is_folder(name) ? FS_A_FOLDER : FS_A_FILE;
        place->name = make_absolute(name);
    } else {
        char *path = rest[1] != '\0' ? make_absolute(rest + 1) : only_root(name);

        place->kind = FS_A_STORE;
        if (path && asprintf(&place->name, "%.*s:%s", (int)(rest - name), name, path) < 0)
            place->name = NULL;
        free(path);
    }
    return place->name ? 0 : -ENOMEM;
}

static int add_root(struct fs_many *many, const char *path, size_t length)
{
    char **grown = gguf_grow(many->roots, &many->room, many->n_roots + 2, sizeof *grown);

    if (!grown)
        return -ENOMEM;
    many->roots = grown;
    grown[many->n_roots] = strndup(path, length);
    grown[many->n_roots + 1] = NULL;
    return grown[many->n_roots++] ? 0 : -ENOMEM;
}

/* Add what must be opened for a place. Of a store, there may be several folders, or none. */
static int add_roots(struct fs_many *many, const struct fs_place *place)
{
    char *roots;
    int result = 0;

    if (place->kind != FS_A_STORE)
        return add_root(many, place->name, strlen(place->name));
    roots = gguf_store_roots(place->name);
    for (char *at = roots; result == 0 && at && *at != '\0'; at += strlen(at) + 1) {
        at[strcspn(at, "\n")] = '\0';
        if (is_folder(at))
            result = add_root(many, at, strlen(at));
    }
    free(roots);
    return result;
}

/* Write the name under which a place's models are shown beside others. */
static const char *title_of(const struct fs_place *place, size_t *length)
{
    const char *slash = strrchr(place->name, '/');
    const char *title = place->kind != FS_A_STORE && slash ? slash + 1 : place->name;

    *length = place->kind == FS_A_STORE ? strcspn(title, ":") : strlen(title);
    return title;
}

/* Insert a name before the names of models. */
static int add_prefix(struct gguf_model_list *list, size_t first, const struct fs_place *place)
{
    size_t length;
    const char *title = title_of(place, &length);

    for (size_t i = first; i < list->n_models; i++) {
        char *longer;

        if (asprintf(&longer, "%.*s/%s", (int)length, title, list->models[i].name) < 0)
            return -ENOMEM;
        free(list->models[i].name);
        list->models[i].name = longer;
    }
    return 0;
}

/* Add the models of a folder or a store. *has_failed: an error stands for them. */
static int list_place(const struct fs_many *many, const struct fs_place *place,
                      const struct gguf_store_access *access, struct gguf_model_list *list,
                      char reason[GGUF_LIST_REASON_BYTES])
{
    const size_t first = list->n_models;
    int result = place->kind == FS_A_STORE ? gguf_store_list(access, place->name, list, reason)
                                           : gguf_list_folder(access, place->name, list, reason);

    if (result == 0 && many->options->n_models > 1)
        result = add_prefix(list, first, place);
    return result;
}

/* Say that there is nothing at a place. Returns -ENOENT. */
static int refuse_place(const struct fs_many *many, size_t i, const char *reason)
{
    const char *empty = many->places[i].kind == FS_A_STORE ? "is a store without models"
                                                           : "is a directory without a GGUF file";

    fs_print_error("%s: %s", many->options->models[i], reason[0] != '\0' ? reason : empty);
    return -ENOENT;
}

/* Add the models of all places. With `is_strict`, print an error if there is nothing at one. */
static int list_all(const struct fs_many *many, const struct gguf_store_access *opener,
                    bool is_strict, struct gguf_model_list *list)
{
    const size_t n = (size_t)many->options->n_models;
    const char **files = calloc(n + 1, sizeof *files);
    size_t n_files = 0, length;
    int result = files ? 0 : -ENOMEM;

    for (size_t i = 0; result == 0 && i < n; i++)
        if (many->places[i].kind == FS_A_FILE)
            files[n_files++] = many->places[i].name;
    if (result == 0)
        result = gguf_list_files(opener, files, n_files, list);
    for (size_t i = 0; result == 0 && i < n; i++) {
        const struct fs_place *place = &many->places[i];
        const size_t n_before = list->n_models;
        char reason[GGUF_LIST_REASON_BYTES] = "", *title;

        if (place->kind == FS_A_FILE) {
            if (is_strict && access(place->name, F_OK) < 0)
                result = refuse_place(many, i, strerror(errno));
            continue;
        }
        result = list_place(many, place, opener, list, reason);
        if (is_strict && list->n_models == n_before) {
            result = refuse_place(many, i, reason);
        } else if (result < 0 && result != -ENOMEM) {
            title = (char *)(uintptr_t)title_of(place, &length);
            title = strndup(title, length);
            result = title ? gguf_model_list_add(list, title, NULL, 0, reason) : -ENOMEM;
            free(title);
        }
    }
    free(files);
    return result;
}

static int list_models(void *argument, const struct gguf_store_access *access,
                       struct gguf_model_list *list)
{
    return list_all(argument, access, false, list);
}

int fs_many_begin(const struct fs_options *options, struct fs_many *many,
                  struct gguf_model_list *list)
{
    const size_t n = (size_t)options->n_models;
    bool is_strict;
    int result = 0;

    *list = (struct gguf_model_list){0};
    *many = (struct fs_many){.options = options, .places = calloc(n + 1, sizeof *many->places)};
    if (!many->places)
        return fs_refuse_memory();
    for (size_t i = 0; result == 0 && i < n; i++) {
        result = find_place(options->models[i], &many->places[i]);
        if (result == 0)
            result = add_roots(many, &many->places[i]);
    }
    /* A single file needs no list; and a tree that ggufs has made is no folder of models. */
    is_strict = n > 1 || many->places[0].kind == FS_A_STORE;
    if (result == 0 &&
        (is_strict || (many->places[0].kind == FS_A_FOLDER && !fs_is_tree(many->places[0].name))))
        result = list_all(many, &gguf_direct_access, is_strict, list);
    if (result == -ENOENT)
        return EX_NOINPUT;
    return result < 0 ? fs_refuse_memory() : EX_OK;
}

void fs_many_end(struct fs_many *many, struct gguf_model_list *list)
{
    for (int i = 0; many->places && i < many->options->n_models; i++)
        free(many->places[i].name);
    for (size_t i = 0; i < many->n_roots; i++)
        free(many->roots[i]);
    free(many->places);
    free(many->roots);
    gguf_model_list_free(list);
}

bool fs_are_many(const struct fs_many *many, const struct gguf_model_list *list)
{
    const struct gguf_listed_model *first = list->models;
    const char *name = many->places[0].name;

    if (list->n_models != 1)
        return list->n_models > 1;
    for (int i = 1; i < many->options->n_models; i++)
        if (many->places[i].kind != FS_A_FILE)
            return true;
    if (many->places[0].kind == FS_A_STORE)
        return !gguf_text_starts_with(name, "oci:");
    return many->places[0].kind == FS_A_FOLDER &&
           (many->options->n_models > 1 || first->n_extras > 0 || strchr(first->name, '/'));
}

/* ---- opening one of them ---- */

/* Where findings are printed, as --check does. */
struct error_text {
    FILE *stream;
    const char *path;
    bool is_explained[GGUF_N_RULES];
};

static void print_to_text(void *user, const struct gguf_finding *finding)
{
    struct error_text *text = user;

    fs_print_finding(text->stream, text->path, finding);
    if (!text->is_explained[finding->rule])
        fs_print_remedy(text->stream, text->path, finding);
    text->is_explained[finding->rule] = true;
}

static int load(void *argument, const struct gguf_store_access *access,
                const struct gguf_listed_model *listed, struct fs_tree **tree, char **error)
{
    const struct fs_many *many = argument;
    struct gguf_open_options open = many->options->open;
    size_t size;
    struct error_text text = {.stream = open_memstream(error, &size),
                              .path = listed->path && !listed->error ? listed->path : listed->name};
    struct gguf_report report = {.each = print_to_text, .user = &text};
    struct fs_input input = {0};
    int result = -EBADMSG;

    open.opener = access;
    if (!text.stream)
        return -ENOMEM;
    if (listed->error) {
        gguf_print_safe_format(text.stream, "%s: %s", text.path, listed->error);
        fputc('\n', text.stream);
    } else {
        result = fs_open_listed(&open, listed, &input, &report);
        if (result == 0)
            result = fs_make_tree_of(many->options, &input, NULL, tree, &report);
        fs_close_input(&input);
    }
    if (fclose(text.stream) != 0 && result < 0)
        result = -ENOMEM;
    /* Not the model's fault: the next one who enters it may have more luck. */
    if (result == 0 || result == -ENOMEM || result == -EMFILE || result == -ENFILE) {
        free(*error);
        *error = NULL;
    }
    return result;
}

int fs_mount_many(struct fs_many *many)
{
    const struct fs_options *options = many->options;
    const struct fs_models models = {.roots = (const char *const *)many->roots,
                                     .list = list_models,
                                     .load = load,
                                     .argument = many};

    if (options->mount.subdir) {
        fs_print_error("-o subdir is for a single model; name it, or mount without the option");
        return EX_USAGE;
    }
    return fs_serve(&(struct fs_mount){.source = many->places[0].name,
                                       .mountpoint = options->directory,
                                       .models = &models,
                                       .options = &options->mount,
                                       .content_options = options->content_options});
}

/* ---- tables ---- */

static void write_object(const void *subject, struct fs_sink *sink)
{
    fs_models_json_object(subject, sink);
    fs_sink_literal(sink, "\n");
}

bool fs_print_many(const struct fs_options *options, int *status)
{
    struct fs_many many;
    struct gguf_model_list list;
    bool are_many = false;

    *status = EX_OK;
    if (options->n_models == 1)
        *status = fs_many_begin(options, &many, &list);
    else
        return false;
    are_many = *status == EX_OK && fs_are_many(&many, &list);
    if (are_many && !options->json)
        fputs(FS_MODELS_TSV_HEADER, stdout);
    for (size_t i = 0; are_many && i < list.n_models && *status == EX_OK; i++)
        if (fs_print_written(options->json ? write_object : fs_models_tsv_line, &list.models[i]) <
            0)
            *status = fs_refuse_memory();
    fs_many_end(&many, &list);
    return are_many || *status != EX_OK;
}
