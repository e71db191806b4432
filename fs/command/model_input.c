#include "fs/command/model_input.h"

#include "fs/command/finding_output.h"
#include "fs/command/terminal.h"
#include "fs/tree/facts/facts.h"
#include "fs/command/tree_selection.h"
#include "gguf/loader_checks.h"
#include "gguf/support/exit_status.h"
#include "gguf/support/file_status.h"
#include "gguf/support/strings.h"
#include "gguf/support/safe_print.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

/* ---- opening ---- */

bool fs_is_tree(const char *path)
{
    char *summary = gguf_text("%s/summary.txt", path);
    const bool is_there = summary && access(summary, R_OK) == 0;

    free(summary);
    return is_there;
}

static void refuse_path(struct fs_input *input, int error, const char *format, const char *text)
{
    struct gguf_report report = {0};

    input->error = gguf_error(&report, GGUF_RULE_NOT_A_FILE, error, GGUF_NO_PLACE, format, text);
    input->why = report.first_error;
}

/* Open a file beside the model's; there is room for it. */
static int open_extra(const struct gguf_store_access *opener, const char *path, const char *name,
                      struct fs_input *input, struct gguf_report *report)
{
    struct fs_extra *extra = &input->extras[input->n_extras];
    const int result = gguf_file_open(&gguf_read_file, opener, 0, path, &extra->file, report);

    if (result < 0)
        return result;
    input->n_extras++;
    extra->name = strdup(name);
    return extra->name ? 0 : gguf_system_error(report, -ENOMEM, GGUF_NO_PLACE);
}

/* Open the files of a model, and those beside it. */
static int open_files(const struct gguf_open_options *open, const struct gguf_listed_model *listed,
                      struct fs_input *input, struct gguf_report *report)
{
    struct gguf_open_options options = *open;
    int result;

    options.partial |= listed->is_partial;
    options.shards = listed->shards;
    options.n_shards = listed->n_shards;
    input->extras = calloc(listed->n_extras + 1, sizeof *input->extras); /* one for --mmproj */
    if (!input->extras)
        return gguf_system_error(report, -ENOMEM, GGUF_NO_PLACE);
    result = gguf_files_open(input->path, &options, &input->files, report);
    for (size_t i = 0; result == 0 && i < listed->n_extras; i++) {
        const char *path = listed->extras[i].path;
        struct gguf_report own = {0};

        result = open_extra(open->opener, path, listed->extras[i].name, input, &own);
        if (result < 0)
            gguf_error(report, own.first_error.rule, result, GGUF_NO_PLACE, "its file %s: %s", path,
                       own.first_error.message);
    }
    return result;
}

/* Open the file of --mmproj, if there is one, as a file beside the model's. */
static void open_projector(const struct fs_options *options, struct fs_input *input)
{
    struct gguf_report report = {0};

    if (!options->projector || input->error < 0)
        return;
    input->error =
        open_extra(options->open.opener, options->projector, "mmproj.gguf", input, &report);
    if (input->error == 0)
        return;
    gguf_files_close(&input->files);
    refuse_path(input, input->error, "--mmproj: %s", report.first_error.message);
}

/* A directory that ggufs has made is not the model, except where the model in it is compared. */
static int refuse_tree(const struct fs_options *options, const char *tree,
                       struct gguf_listed_model *listed, char reason[GGUF_LIST_REASON_BYTES])
{
    if (options->command != FS_DIFF)
        return gguf_set_reason(
            reason, -EISDIR, "is a tree that ggufs has made, not a model file: cat %s/%s", tree,
            options->command == FS_STATS ? "tensors/NAME/stats.json" : "summary.txt");
    listed->path = gguf_text("%s/model.gguf", tree);
    return listed->path ? 0 : gguf_set_reason(reason, -ENOMEM, "%s", strerror(ENOMEM));
}

/* `listed` is the model if it is known, or NULL. */
static void open_input(const struct fs_options *options, const char *name,
                       const struct gguf_listed_model *listed, struct fs_input *input)
{
    char reason[GGUF_LIST_REASON_BYTES];
    struct gguf_report report = {0};

    input->path = name;
    if (!listed)
        input->error = fs_is_tree(name)
                           ? refuse_tree(options, name, &input->listed, reason)
                           : gguf_find_model(name, options->open.partial, &input->listed, reason);
    if (input->error < 0) {
        refuse_path(input, input->error, "%s", reason);
        return;
    }
    listed = listed ? listed : &input->listed;
    input->path = listed->path;
    input->error = open_files(&options->open, listed, input, &report);
    input->why = report.first_error;
    input->store_name =
        options->command == FS_INFO ? gguf_store_name_of(input->path, listed->name) : NULL;
    if (input->store_name)
        gguf_store_find(input->store_name, true, &input->stored, reason);
    open_projector(options, input);
}

/* Return the path of an input's file that is also standard output, or NULL. */
static const char *find_output(const struct fs_input *inputs, int n_inputs)
{
    struct gguf_file_status output, status;

    if (gguf_get_file_status(STDOUT_FILENO, &output) < 0)
        return NULL;
    for (int i = 0; i < n_inputs; i++) {
        for (uint32_t j = 0; inputs[i].error == 0 && j < inputs[i].files.count; j++) {
            const struct gguf_source *source = &inputs[i].files.list[j].file.source;

            if (source->kind && source->kind->get_status(source, &status) == 0 &&
                status.device == output.device && status.inode == output.inode)
                return source->path;
        }
    }
    return NULL;
}

/* Open the files of models that edits take tensors from. */
static void open_others(const struct fs_options *options)
{
    struct fs_options plain = *options;

    plain.command = FS_DIFF; /* which takes a mount for the model in it */
    plain.open = (struct gguf_open_options){.unmapped = options->open.unmapped};
    for (struct gguf_other *other = options->edits.surgery.others; other; other = other->next) {
        struct fs_input input = {0};

        open_input(&plain, other->path, NULL, &input);
        if (input.error == 0)
            other->files = input.files;
        other->error = input.error;
        other->why = input.why;
        input.files = (struct gguf_files){0};
        fs_close_input(&input);
    }
}

int fs_open_inputs(const struct fs_options *options, const struct gguf_listed_model *listed,
                   struct fs_input **inputs)
{
    const struct gguf_other *other = options->edits.surgery.others;
    struct fs_input *list = calloc((size_t)options->n_models + 1, sizeof *list);
    const char *output;

    *inputs = list;
    if (!list)
        return fs_refuse_memory();
    for (int i = 0; i < options->n_models; i++)
        open_input(options, options->models[i], listed, &list[i]);
    open_others(options);
    output = options->command == FS_MOUNT ? NULL : find_output(list, options->n_models);
    for (; options->command != FS_MOUNT && !output && other; other = other->next)
        output = find_output(&(struct fs_input){.files = other->files, .error = other->error}, 1);
    if (!output)
        return EX_OK;
    fs_print_error(
        "%s: standard output is this file, which would be damaged; write to another file", output);
    fs_close_inputs(options, list);
    return EX_USAGE;
}

void fs_close_inputs(const struct fs_options *options, struct fs_input *inputs)
{
    for (int i = 0; i < options->n_models; i++)
        fs_close_input(&inputs[i]);
    free(inputs);
}

void fs_close_input(struct fs_input *input)
{
    gguf_files_close(&input->files);
    fs_extras_free(input->extras, input->n_extras);
    gguf_listed_model_free(&input->listed);
    gguf_listed_model_free(&input->stored);
    free(input->store_name);
    *input = (struct fs_input){0};
}

int fs_open_listed(const struct gguf_open_options *open, const struct gguf_listed_model *listed,
                   struct fs_input *input, struct gguf_report *report)
{
    *input = (struct fs_input){.path = listed->path};
    return open_files(open, listed, input, report);
}

int fs_confine(const struct fs_options *options, const struct gguf_confinement *confinement)
{
    const char *step;
    const int result = options->mount.sandbox ? gguf_confine(confinement, &step) : 0;

    if (result == 0)
        return EX_OK;
    fs_print_error("cannot enter the sandbox to parse the model: %s: %s; %s", step,
                   strerror(-result),
                   result == -EMFILE ? "raise the limit of open files (ulimit -n)"
                                     : "-o nosandbox does without");
    return EX_OSERR;
}

/* ---- parsing ---- */

static bool has_type(const struct gguf_model *model, uint32_t id)
{
    for (uint64_t i = 0; i < model->n_tensors; i++) {
        if (model->tensors[i].type_id == id)
            return true;
    }
    return false;
}

/* Warn of options that have no effect on the model. */
static void warn_of_options(const struct fs_options *options, const char *path,
                            const struct gguf_model *model)
{
    const char *format = model->format;

    if (options->open.family && !gguf_text_starts_with(format, "gg"))
        fs_print_error("%s: warning: -o family=%s has no effect on %s; it is for old ggml files",
                       path, options->open.family, format);
    if (options->open.era > 0 && !gguf_text_starts_with(format, "rwkv.cpp v100"))
        fs_print_error("%s: warning: -o era=%d has no effect on %s; it is for rwkv.cpp v100", path,
                       options->open.era - 1, format);
    for (size_t i = 0; i < options->open.n_types; i++) {
        const struct dequant_type *type = options->open.types[i];

        if (!has_type(model, type->id))
            fs_print_error("%s: warning: -o type=%" PRIu32
                           ":%s has no effect: no tensor has type %" PRIu32,
                           path, type->id, type->name, type->id);
    }
}

int fs_parse_input(const struct fs_options *options, struct fs_input *input,
                   struct gguf_model **model, struct gguf_report *report)
{
    int result = input->error;

    *model = NULL;
    if (result < 0)
        return gguf_error(report, input->why.rule, result, gguf_at(input->why.file_offset), "%s",
                          input->why.message);
    result = gguf_parse_files(&input->files, &options->open, model, report);
    if (result == 0)
        warn_of_options(options, input->path, *model);
    return result;
}

struct refusal {
    const char *path;
    size_t n_errors;
    bool is_composed;            /* its findings tell what becomes of the model */
    struct fs_findings findings; /* for the summary */
};

/* Print the first error, and the notes after it, for instance how much is missing. */
static void print_first(void *user, const struct gguf_finding *finding)
{
    struct refusal *refusal = user;

    fs_findings_add(&refusal->findings, finding);
    if (finding->severity == GGUF_ERROR && refusal->n_errors++ > 0)
        return;
    if (refusal->n_errors > 0 || (refusal->is_composed && finding->severity == GGUF_WARNING) ||
        finding->rule == GGUF_RULE_COMPOSITION)
        fs_print_finding(stderr, refusal->path, finding);
}

static int refuse(const char *path, const struct gguf_report *report)
{
    fs_print_remedy(stderr, path, &report->first_error);
    if (report->n_errors > 1) {
        gguf_print_safe_format(stderr, "ggufs: %s: %zu more error%s; to see all: ggufs --check ",
                               path, report->n_errors - 1, report->n_errors == 2 ? "" : "s");
        gguf_print_shell_word(stderr, path);
        fputc('\n', stderr);
    }
    return gguf_exit_status(report->first_error.code);
}

/* Parse the projector among the files to show: the tree shows it as a part of the model. */
static void take_projector(struct fs_input *input, struct gguf_model **projector,
                           struct gguf_report *report)
{
    for (size_t i = 0; i < input->n_extras; i++) {
        struct fs_extra *extra = &input->extras[i];
        struct gguf_opened_file opened = {.file = extra->file};
        struct gguf_files files = {.list = &opened, .count = 1};
        struct gguf_report own = {0};

        if (strcmp(extra->name, "mmproj.gguf") != 0)
            continue;
        if (gguf_parse_files(&files, NULL, projector, &own) < 0)
            gguf_warning(report, GGUF_RULE_NOT_A_MODEL, GGUF_NO_PLACE,
                         "its projector mmproj.gguf cannot be read: %s", own.first_error.message);
        free(extra->name);
        *extra = input->extras[--input->n_extras];
        return;
    }
}

int fs_make_tree_of(const struct fs_options *options, struct fs_input *input,
                    const struct fs_findings *findings, struct fs_tree **tree,
                    struct gguf_report *report)
{
    struct fs_tree_options tree_options = {.split = options->split,
                                           .hf_shard_bytes = options->hf_shard_bytes,
                                           .dtype = options->dtype,
                                           .export = options->export,
                                           .findings = findings};
    struct gguf_model *model;
    int result = fs_parse_input(options, input, &model, report);

    *tree = NULL;
    if (result < 0)
        return result;
    result = gguf_edits_apply(&options->edits, &model, report);
    if (result == 0 && options->edits.surgery.n_steps > 0)
        gguf_check_tensors(model, report);
    if (result == 0) {
        take_projector(input, &tree_options.projector, report);
        tree_options.extras = input->extras;
        tree_options.n_extras = input->n_extras;
        input->extras = NULL; /* the tree's */
        input->n_extras = 0;
        result = fs_tree_make(model, &tree_options, tree, report);
    }
    if (result < 0)
        gguf_close(model);
    return result;
}

int fs_make_tree(const struct fs_options *options, struct fs_input *input, struct fs_tree **tree)
{
    struct refusal refusal = {.path = input->path,
                              .is_composed = options->edits.surgery.n_steps > 0};
    struct gguf_report report = {.each = print_first, .user = &refusal};

    if (fs_make_tree_of(options, input, &refusal.findings, tree, &report) < 0)
        return refuse(input->path, &report);
    return EX_OK;
}

void fs_close_tree(struct fs_tree *tree)
{
    struct gguf_model *model = (struct gguf_model *)(uintptr_t)tree->model;

    fs_tree_free(tree);
    gguf_close(model);
}

int fs_run_for_models(const struct fs_options *options,
                      int (*run)(const struct fs_options *options, struct fs_input *input))
{
    struct fs_input *inputs;
    int status = fs_open_inputs(options, NULL, &inputs);

    if (status != EX_OK)
        return status;
    if (fs_confine(options, &(struct gguf_confinement){.threads = true}) != EX_OK)
        status = EX_OSERR;
    else
        for (int i = 0; i < options->n_models; i++) {
            const int one = run(options, &inputs[i]);

            status = status == EX_OK ? one : status;
        }
    fs_close_inputs(options, inputs);
    return status;
}

/* Return true, and print the guess, if it names something in the tree. */
static bool suggest(const struct fs_tree *tree, const char *model, const char *path,
                    const char *guess)
{
    struct fs_selection selection;
    bool is_there;

    if (fs_selection_begin(&selection, tree) < 0)
        return false;
    is_there = *guess != '\0' && fs_selection_add(&selection, guess) > 0;
    fs_selection_end(&selection);
    if (is_there)
        fs_print_error("%s: the tree has no %s; did you mean %s?", model, path, guess);
    return is_there;
}

int fs_refuse_path(const struct fs_tree *tree, const char *model, const char *path)
{
    /* The folders of keys and tensors in the tree. */
    static const char *const forms[] = {"tensors/%s", "metadata/%s.json", "metadata/%s"};
    const char *reason = strcmp(path, "model.gguf") == 0    ? tree->facts->translation.refusal
                         : strcmp(path, "ollama.gguf") == 0 ? tree->facts->no_ollama
                                                            : NULL;

    if (reason) {
        fs_print_error("%s: the tree has no %s: %s", model, path, reason);
        return EX_NOINPUT;
    }

    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        bool is_suggested;
        char *guess;

        if (asprintf(&guess, forms[i], path) < 0)
            break;
        is_suggested = suggest(tree, model, path, guess);
        free(guess);
        if (is_suggested)
            return EX_NOINPUT;
    }
    /* A path that begins with the mount point. */
    for (const char *slash = path; (slash = strchr(slash, '/')); slash++)
        if (suggest(tree, model, path, slash + 1))
            return EX_NOINPUT;
    fs_print_error("%s: the tree has no %s; to list all: ggufs --list MODEL", model, path);
    return EX_NOINPUT;
}
