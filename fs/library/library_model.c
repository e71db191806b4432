#include "fs/library/library.h"

#include "fs/tree/model_check.h"
#include "gguf/faults.h"
#include "gguf/files.h"
#include "gguf/stores/model_list.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *ggufs_version(void)
{
    return GGUFS_VERSION;
}

/* ---- faults ---- */

static pthread_once_t faults_caught = PTHREAD_ONCE_INIT;
static atomic_int faults_result = -EPERM; /* 0 once the handler is there */

static void catch_faults(void)
{
    atomic_store(&faults_result, gguf_faults_catch());
}

int ggufs_catch_faults(void)
{
    pthread_once(&faults_caught, catch_faults);
    return atomic_load(&faults_result);
}

bool fs_library_catches_faults(void)
{
    return atomic_load(&faults_result) == 0;
}

/* ---- opening ---- */

/* Open the files of the model that `name` stands for, and the model in them. */
static int open_files(const char *name, const struct fs_library_options *options,
                      struct gguf_model **model, struct gguf_report *report)
{
    struct gguf_open_options open = options->open;
    char reason[GGUF_LIST_REASON_BYTES];
    struct gguf_listed_model listed;
    int result = gguf_find_model(name, open.partial, &listed, reason);

    if (result < 0)
        return gguf_error(report, GGUF_RULE_NOT_A_FILE, result, GGUF_NO_PLACE, "%s", reason);
    open.shards = listed.shards;
    open.n_shards = listed.n_shards;
    result = gguf_open_with(listed.path, &open, model, report);
    gguf_listed_model_free(&listed);
    return result;
}

static int parse_options(const char *text, struct fs_library_options *options, char **words,
                         struct gguf_report *report)
{
    const int result = fs_library_options_parse(text, options, words, report);

    options->open.unmapped = !options->mapped;
    return result;
}

/* Hears the findings of an opening. */
struct opening {
    struct fs_findings *findings;
    struct ggufs_error *error;
};

static const struct gguf_rule_text *rule_of(const struct gguf_finding *finding)
{
    return finding->rule == FS_NO_RULE ? NULL : gguf_rule_text(finding->rule);
}

static void hear(void *user, const struct gguf_finding *finding)
{
    struct opening *opening = user;
    struct ggufs_error *error = opening->error;
    const struct gguf_rule_text *rule = rule_of(finding);

    fs_findings_add(opening->findings, finding);
    if (finding->severity != GGUF_ERROR || error->code != 0)
        return;
    *error = (struct ggufs_error){.code = finding->code,
                                  .offset = finding->file_offset,
                                  .rule = rule ? rule->name : NULL,
                                  .remedy = rule && !rule->is_in_message ? rule->remedy : NULL};
    snprintf(error->message, sizeof error->message, "%s%s%s", finding->path ? finding->path : "",
             finding->path ? ": " : "", finding->message);
}

static void describe(struct ggufs_model *model)
{
    const struct gguf_model *from = model->model;

    model->info = (struct ggufs_info){.format = from->format,
                                      .n_keys = from->n_keys,
                                      .n_tensors = from->n_tensors,
                                      .alignment_bytes = from->alignment_bytes,
                                      .n_files = from->n_files,
                                      .is_big_endian = from->big_endian};
}

static int open_model(const char *path, const char *options, struct ggufs_model **model,
                      struct ggufs_error *why)
{
    struct ggufs_model *made = calloc(1, sizeof *made);
    struct opening opening = {made ? &made->findings : NULL, why};
    struct gguf_report report = {.each = hear, .user = &opening};
    int result;

    *model = NULL;
    *why = (struct ggufs_error){.code = 0};
    if (!made) {
        *why = (struct ggufs_error){
            .code = -ENOMEM, .offset = GGUFS_NO_OFFSET, .rule = "memory", .message = "no memory"};
        return -ENOMEM;
    }
    pthread_mutex_init(&made->tree_lock, NULL);
    made->options.tree.findings = &made->findings;
    result = parse_options(options, &made->options, &made->option_words, &report);
    if (result == 0)
        result = open_files(path, &made->options, &made->model, &report);
    if (result == 0) {
        describe(made);
        result = fs_library_make_keys(made);
    }
    if (result == 0)
        result = fs_library_make_tensors(made);
    if (result == 0) {
        *model = made;
        return 0;
    }
    if (why->code == 0)
        gguf_system_error(&report, result, GGUF_NO_PLACE);
    ggufs_close(made);
    return result;
}

int ggufs_open(const char *path, const char *options, struct ggufs_model **model,
               struct ggufs_error *error)
{
    struct ggufs_error own;
    const locale_t before = fs_library_enter();
    const int result = open_model(path, options, model, error ? error : &own);

    uselocale(before);
    return result;
}

void ggufs_close(struct ggufs_model *model)
{
    if (!model)
        return;
    fs_tree_free(atomic_load(&model->tree));
    fs_library_free_keys(model);
    free((void *)model->tensors_by_name);
    free(model->tensors);
    gguf_close(model->model);
    free(model->option_words);
    pthread_mutex_destroy(&model->tree_lock);
    free(model);
}

/* ---- checking ---- */

struct listener {
    void (*each)(void *user, const struct ggufs_finding *finding);
    void *user;
};

static void pass_on(void *user, const struct gguf_finding *finding)
{
    const struct listener *listener = user;

    const struct gguf_rule_text *rule = rule_of(finding);
    const struct ggufs_string name = {finding->name.data, finding->name.length_bytes}, none = {0};

    listener->each(listener->user,
                   &(struct ggufs_finding){.severity = (enum ggufs_severity)finding->severity,
                                           .offset = finding->file_offset,
                                           .path = finding->path,
                                           .tensor = finding->thing == GGUF_A_TENSOR ? name : none,
                                           .key = finding->thing == GGUF_A_KEY ? name : none,
                                           .message = finding->message,
                                           .rule = rule ? rule->name : NULL,
                                           .explanation = rule ? rule->explanation : NULL,
                                           .remedy = rule ? rule->remedy : NULL});
}

int ggufs_check(const char *path, const char *options,
                void (*each)(void *user, const struct ggufs_finding *finding), void *user)
{
    struct listener listener = {each, user};
    struct gguf_report report = {.each = pass_on, .user = &listener};
    struct fs_library_options parsed = {0};
    struct gguf_model *model = NULL;
    char *words;
    const locale_t before = fs_library_enter();
    int result = parse_options(options, &parsed, &words, &report);

    if (result == 0)
        result = open_files(path, &parsed, &model, &report);
    if (result == 0) {
        fs_check_model(model, &report);
        gguf_close(model);
    }
    free(words);
    uselocale(before);
    return report.n_errors > 0 ? report.first_error.code : result;
}

/* ---- facts ---- */

const struct ggufs_info *ggufs_get_info(const struct ggufs_model *model)
{
    return &model->info;
}

const char *ggufs_file_path(const struct ggufs_model *model, uint32_t index)
{
    return index < model->info.n_files ? model->model->files[index].source.path : NULL;
}

int ggufs_recheck(const struct ggufs_model *model)
{
    int result = 0;

    for (uint32_t i = 0; result == 0 && i < model->info.n_files; i++) {
        const struct gguf_source *source = &model->model->files[i].source;

        result =
            gguf_file_check(&model->model->files[i], source->is_growing ? 0 : source->size_bytes);
    }
    return result;
}
