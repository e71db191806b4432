#include "fs/tree/tree.h"

#include "fs/tree/core/paths.h"
#include "fs/tree/hf/hf_checkpoint.h"
#include "fs/tree/hf/vocabulary.h"
#include "fs/tree/views/view_files.h"
#include "gguf/loader_checks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fs_findings_add(void *findings, const struct gguf_finding *finding)
{
    struct fs_findings *all = findings;

    if (all->n_findings++ == 0)
        snprintf(all->first, sizeof all->first, "%s", finding->message);
}

static int fail(const struct fs_tree *tree, int code, const fs_node_index twins[2],
                struct gguf_report *report)
{
    const struct fs_node *first = fs_tree_node(tree, twins[0]);
    const struct fs_node *second = fs_tree_node(tree, twins[1]);
    const struct fs_subjects *subjects;

    if (code != -EEXIST)
        return gguf_error(report, GGUF_RULE_MEMORY, code, GGUF_NO_PLACE, "cannot make the tree: %s",
                          strerror(-code));
    subjects =
        first->view && second->view ? fs_path_subjects(tree->table, first->view->path) : NULL;
    if (!subjects || !subjects->name ||
        fs_path_subjects(tree->table, second->view->path) != subjects)
        return gguf_error(report, GGUF_RULE_FILE_NAMES, code, GGUF_NO_PLACE,
                          "two files of the tree are called %s",
                          gguf_quote((struct gguf_string){first->name, strlen(first->name)}).text);
    return gguf_error(report, GGUF_RULE_FILE_NAMES, code, GGUF_NO_PLACE,
                      "the names %s and %s give the same file name",
                      gguf_quote(subjects->name(first->subject)).text,
                      gguf_quote(subjects->name(second->subject)).text);
}

static int plan_split(struct fs_facts *facts, const struct fs_split *split,
                      struct gguf_report *report)
{
    const struct fs_part *part = &facts->parts[FS_PART_MODEL];
    const char *obstacle =
        part->model ? fs_model_gguf_obstacle(part->model) : facts->translation.refusal;
    int result;

    if (obstacle)
        return gguf_error(report, GGUF_RULE_SPLIT, -EINVAL, GGUF_NO_PLACE, "cannot be split: %s",
                          obstacle);
    result =
        fs_split_plan(part->model, part->export.choice, split, &facts->shards, &facts->n_shards);
    if (result == -E2BIG)
        gguf_error(report, GGUF_RULE_SPLIT, result, GGUF_NO_PLACE,
                   "cannot be split into files of %" PRIu64 " bytes: there would be over %u",
                   split->limit_bytes, GGUF_MAX_SHARDS);
    return result;
}

/* A tree, and what its views know. */
struct whole {
    struct fs_tree tree; /* must come first */
    struct fs_facts facts;
};

/* Find out what the GGUF files of the tree hold. */
static int plan_parts(const struct gguf_model *model, enum fs_export_choice choice,
                      struct fs_facts *facts, struct gguf_report *report)
{
    struct gguf_translation *translation = &facts->translation;
    int result = gguf_translate(model, translation, report);
    const struct gguf_model *main = translation->text ? translation->text : translation->projector;

    if (result < 0)
        return result;
    if (!translation->refusal)
        facts->parts[FS_PART_MODEL].model = main ? main : model;
    facts->parts[FS_PART_PROJECTOR].model =
        facts->projector ? facts->projector : translation->projector;
    if (gguf_is_translated(translation))
        facts->parts[FS_PART_ORIGINAL].model = model;
    if (facts->projector && facts->parts[FS_PART_MODEL].model)
        result = gguf_join_for_ollama(facts->parts[FS_PART_MODEL].model, facts->projector,
                                      &facts->joined, &facts->no_ollama, report);
    facts->parts[FS_PART_OLLAMA].model = facts->joined;
    for (size_t i = 0; i < FS_N_PARTS; i++)
        if (facts->parts[i].model)
            fs_export_plan(facts->parts[i].model,
                           i == FS_PART_PROJECTOR  ? FS_EXPORT_LOADABLE
                           : i == FS_PART_ORIGINAL ? FS_EXPORT_STORED
                                                   : choice,
                           &facts->parts[i].export);
    return result;
}

static int find_facts(struct whole *made, const struct fs_tree_options *options,
                      struct gguf_report *report)
{
    const struct gguf_model *model = made->tree.model;
    struct fs_facts *facts = &made->facts;
    int result;

    facts->dtype = options->dtype;
    facts->projector = options->projector;
    result = plan_parts(model, options->export, facts, report);
    if (result < 0)
        return result;
    gguf_check_vocabulary(model, report);
    gguf_check_shape_keys(model, report);
    facts->statistics = fs_statistics_cache_make(model);
    result = facts->statistics ? gguf_find_orig_shapes(model, &facts->shapes, report) : -ENOMEM;
    if (result == 0)
        result = fs_vocabulary_make(model, &facts->vocabulary);
    if (result == 0 && (options->split.limit_bytes > 0 || options->split.count > 0))
        result = plan_split(facts, &options->split, report);
    return result < 0 ? result : fs_hf_make(&made->tree, options->hf_shard_bytes, &facts->hf);
}

int fs_tree_make(const struct gguf_model *model, const struct fs_tree_options *options,
                 struct fs_tree **tree, struct gguf_report *report)
{
    static const struct fs_tree_options none;
    struct whole *made = calloc(1, sizeof *made);
    fs_node_index twins[2] = {0};
    int result;

    *tree = NULL;
    if (!made) {
        if (options)
            fs_extras_free(options->extras, options->n_extras);
        return gguf_system_error(report, -ENOMEM, GGUF_NO_PLACE);
    }
    made->facts.extras = options ? options->extras : NULL;
    made->facts.n_extras = options ? options->n_extras : 0;
    made->tree.model = model;
    made->tree.facts = &made->facts;
    made->tree.table = &fs_views;
    fs_open_images_begin(&made->tree.images);
    result = find_facts(made, options ? options : &none, report);
    if (result == 0)
        result = fs_tree_begin(&made->tree, twins);
    if (result < 0) {
        if (report->n_errors == 0)
            fail(&made->tree, result, twins, report);
        fs_tree_free(&made->tree);
        return result;
    }
    if (options && options->findings)
        made->facts.findings = *options->findings;
    *tree = &made->tree;
    return 0;
}

void fs_extras_free(struct fs_extra *extras, size_t n_extras)
{
    for (size_t i = 0; i < n_extras; i++) {
        gguf_file_close(&extras[i].file);
        free(extras[i].name);
    }
    free(extras);
}

void fs_tree_free(struct fs_tree *tree)
{
    struct fs_facts *facts = tree ? (struct fs_facts *)(uintptr_t)tree->facts : NULL;

    if (!tree)
        return;
    fs_tree_end(tree);
    fs_statistics_cache_free(facts->statistics);
    free(facts->shards);
    fs_vocabulary_free(facts->vocabulary);
    fs_extras_free(facts->extras, facts->n_extras);
    free(facts->shapes);
    fs_hf_free(facts->hf);
    gguf_translation_end(&facts->translation);
    gguf_close(facts->joined);
    free(facts->no_ollama);
    gguf_close(facts->projector);
    free(tree);
}
