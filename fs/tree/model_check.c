#include "fs/tree/model_check.h"

#include "fs/tree/templates.h"
#include "fs/tree/tree.h"
#include "gguf/key_checks.h"
#include "gguf/loader_checks.h"

void fs_check_model(const struct gguf_model *model, struct gguf_report *report)
{
    struct fs_tree *tree;

    gguf_check_needed_keys(model, report);
    gguf_check_tensors(model, report);
    if (report->loader != 0)
        gguf_check_loader(model, report);
    fs_check_templates(model, report);
    if (fs_tree_make(model, NULL, &tree, report) == 0)
        fs_tree_free(tree);
}
