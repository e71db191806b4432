#include "fs/command/tensor_choice.h"

#include "fs/command/terminal.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

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

static bool fits_any(const char *pattern, const struct gguf_model *const *models)
{
    for (; *models; models++) {
        for (uint64_t i = 0; i < (*models)->n_tensors; i++) {
            const struct gguf_tensor *tensor = &(*models)->tensors[i];

            if (fits(pattern, tensor->name) || fits(pattern, gguf_name_of(tensor)))
                return true;
        }
    }
    return false;
}

int fs_check_patterns(const char *const *patterns, int n_patterns,
                      const struct gguf_model *const *models, const char *what)
{
    for (int i = 0; i < n_patterns; i++) {
        char *wider = NULL;

        if (fits_any(patterns[i], models))
            continue;
        if (asprintf(&wider, "*%s*", patterns[i]) >= 0 && fits_any(wider, models))
            fs_print_error("%s: no tensor fits %s; did you mean '%s'?", what, patterns[i], wider);
        else
            fs_print_error("%s: no tensor fits %s; to list all: ggufs --list MODEL tensors", what,
                           patterns[i]);
        free(wider);
        return EX_NOINPUT;
    }
    return EX_OK;
}
