#include "fs/command/tensor_choice.h"

#include <fnmatch.h>
#include <string.h>

static bool fits(const char *pattern, struct gguf_string name)
{
    static const char folder[] = "tensors/";
    char file_name[FS_NAME_BYTES];

    if (strncmp(pattern, folder, sizeof folder - 1) == 0)
        pattern += sizeof folder - 1;
    /* Names are compared as the tree shows them. */
    fs_name_escape(name, "", file_name);
    return fnmatch(pattern, file_name, 0) == 0 || strcmp(pattern, file_name) == 0;
}

bool fs_is_tensor_chosen(const char *const *patterns, int n_patterns, struct gguf_string name)
{
    for (int i = 0; i < n_patterns; i++)
        if (fits(patterns[i], name))
            return true;
    return n_patterns == 0;
}

const char *fs_unused_pattern(const char *const *patterns, int n_patterns,
                              const struct gguf_model *model)
{
    for (int i = 0; i < n_patterns; i++) {
        bool is_used = false;

        for (uint64_t j = 0; !is_used && j < model->n_tensors; j++)
            is_used = fits(patterns[i], model->tensors[j].name) ||
                      fits(patterns[i], gguf_name_of(&model->tensors[j]));
        if (!is_used)
            return patterns[i];
    }
    return NULL;
}
