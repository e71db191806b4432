#include "fs/tree/model_check.h"

#include "fs/tree/tree.h"
#include "gguf/loader_checks.h"
#include "gguf/translate/translate.h"

static void check_content(const struct gguf_model *model, struct gguf_report *report)
{
    gguf_check_needed_keys(model, report);
    gguf_check_tensors(model, report);
    if (report->loader != 0)
        gguf_check_loader(model, report);
}

/* Say that the file is laid out for Ollama, and whether llama.cpp loads its model.gguf. */
static void warn_of_layout(const struct gguf_translation *translation, struct gguf_report *report)
{
    struct gguf_report of_text = {.loader = GGUF_LOADER_LLAMA};

    if (translation->refusal) {
        gguf_warning(report, GGUF_RULE_FUSED, GGUF_NO_PLACE, "there is no model.gguf of it: %s",
                     translation->refusal);
        return;
    }
    if (translation->text)
        check_content(translation->text, &of_text);
    gguf_warning(report, GGUF_RULE_FUSED, GGUF_NO_PLACE,
                 "it is laid out for Ollama; llama.cpp %s model.gguf%s of its tree%s%s",
                 of_text.n_errors > 0 ? "refuses, too," : "loads",
                 translation->projector && translation->text ? " and mmproj.gguf" : "",
                 of_text.n_errors > 0 ? ": " : "", of_text.first_error.message);
}

void fs_check_model(const struct gguf_model *model, struct gguf_report *report)
{
    const bool is_for_ollama = report->loader == GGUF_LOADER_OLLAMA;
    struct gguf_translation translation;
    struct fs_tree *tree;

    if (gguf_translate(model, &translation, report) < 0)
        return;
    /* Ollama translates the file when it loads it. */
    check_content(is_for_ollama && translation.text ? translation.text : model, report);
    if (gguf_is_translated(&translation))
        warn_of_layout(&translation, report);
    gguf_translation_end(&translation);
    fs_check_templates(model, report);
    if (fs_tree_make(model, NULL, &tree, report) == 0)
        fs_tree_free(tree);
}
