#include "fs/command/remote_names.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* "llama3.2:3b" or "library/llama3.2:3b": a name and a tag as ollama has them. */
static bool is_name_with_tag(const char *path)
{
    const char *colon = strchr(path, ':');

    return colon && colon > path && colon[1] != '\0' && !strchr(colon, '/') && path[0] != '/' &&
           path[0] != '.';
}

const char *fs_remote_remedy(const char *path)
{
    static const char *const hubs[] = {"hf.co/", "huggingface.co/", "hf://", "https://hf.co/",
                                       "https://huggingface.co/"};

    for (size_t i = 0; i < sizeof hubs / sizeof *hubs; i++) {
        if (starts_with(path, hubs[i]))
            return "download it first, for instance with: huggingface-cli download USER/REPOSITORY "
                   "FILE.gguf --local-dir .";
    }
    if (starts_with(path, "ollama:") || is_name_with_tag(path))
        return "for a model of ollama, the FROM line of \"ollama show --modelfile NAME\" has the "
               "path of its file";
    if (strstr(path, "://"))
        return "download it first, for instance with: curl -L -O URL";
    return NULL;
}
