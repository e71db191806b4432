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

/* Add a root, which it takes, if it is not NULL. */
static int add_root(struct fs_many *many, char *path)
{
    if (!path || gguf_reserve(&many->roots, &many->room, many->n_roots + 2, sizeof path) < 0) {
        free(path);
        return -ENOMEM;
    }
    many->roots[many->n_roots++] = path;
    many->roots[many->n_roots] = NULL;
    return 0;
}

/* Find out what a name on the command line means, and add what must be opened for it. */
static int find_place(struct fs_many *many, const char *name, struct fs_place *place)
{
    const size_t first = many->n_roots, length = strcspn(name, ":");
    struct gguf_store_places places;
    int result = 0;

    if (!is_store(name)) {
        place->kind = is_folder(name) ? FS_A_FOLDER : FS_A_FILE;
        place->name = make_absolute(name);
        return place->name ? add_root(many, strdup(place->name)) : -ENOMEM;
    }
    gguf_store_find_places(&gguf_direct_access, name, &places);
    for (size_t i = 0; i < places.n && result == 0; i++)
        if (is_folder(places.list[i].root))
            result = add_root(many, make_absolute(places.list[i].root));
    gguf_store_free_places(&places);
    place->kind = FS_A_STORE;
    /* The confined server cannot read where LM Studio's settings say that it is. */
    if (result == 0 && many->n_roots == first + 1)
        place->name = gguf_text("%.*s:%s", (int)length, name, many->roots[first]);
    else if (result == 0)
        place->name = strdup(name);
    return place->name ? result : -ENOMEM;
}

/* Return the name under which a place's models are shown beside others; to be freed. */
static char *title_of(const struct fs_place *place)
{
    return place->kind == FS_A_STORE ? strndup(place->name, strcspn(place->name, ":"))
                                     : strdup(strrchr(place->name, '/') + 1);
}

/* Add the models of a folder or a store. Unless it `is_strict`, an error stands for none. */
static void list_place(const struct fs_many *many, const struct fs_place *place,
                       const struct gguf_store_access *access, bool is_strict,
                       struct gguf_model_list *list, char reason[GGUF_LIST_REASON_BYTES])
{
    const size_t first = list->n_models;
    char *title = title_of(place);
    const int result = place->kind == FS_A_STORE
                           ? gguf_store_list(access, place->name, list, reason)
                           : gguf_list_folder(access, place->name, GGUF_FOLDER, list, reason);

    for (size_t i = first; many->options->n_models > 1 && i < list->n_models; i++) {
        char *longer = title ? gguf_text("%s/%s", title, list->models[i].name) : NULL;

        if (longer) {
            free(list->models[i].name);
            list->models[i].name = longer;
        } else {
            list->error = -ENOMEM;
        }
    }
    if (result < 0 && (!is_strict || list->n_models > first))
        gguf_listed_model_refuse(gguf_model_list_add(list, title, NULL), "%s", reason);
    else
        free(title);
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
    size_t n_files = 0;
    int result = files ? 0 : -ENOMEM;

    for (size_t i = 0; result == 0 && i < n; i++)
        if (many->places[i].kind == FS_A_FILE)
            files[n_files++] = many->places[i].name;
    if (result == 0)
        gguf_list_files(opener, files, n_files, list);
    free(files);
    for (size_t i = 0; result == 0 && i < n; i++) {
        const struct fs_place *place = &many->places[i];
        const size_t n_before = list->n_models;
        char reason[GGUF_LIST_REASON_BYTES] = "";

        if (place->kind != FS_A_FILE)
            list_place(many, place, opener, is_strict, list, reason);
        if (is_strict && place->kind == FS_A_FILE && access(place->name, F_OK) < 0)
            result = refuse_place(many, i, strerror(errno));
        else if (is_strict && place->kind != FS_A_FILE && list->n_models == n_before)
            result = refuse_place(many, i, reason);
    }
    return result < 0 ? result : list->error;
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
    for (size_t i = 0; result == 0 && i < n; i++)
        result = find_place(many, options->models[i], &many->places[i]);
    /* A single file needs no list; and a tree that ggufs has made is not a folder of models. */
    is_strict = n > 1 || many->places[0].kind == FS_A_STORE;
    if (result == 0 && !(n == 1 && options->mount.subdir) &&
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
        result = listed->path ? fs_open_listed(&open, listed, &input, &report) : -ENOMEM;
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
