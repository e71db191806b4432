#include "gguf/support/remote_names.h"

#include "gguf/support/strings.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

/* Return true for "llama3.2:3b" or "library/llama3.2:3b": a name and a tag, as ollama has them. */
static bool is_name_with_tag(const char *path)
{
    const char *colon = strchr(path, ':');

    return colon && colon > path && colon[1] != '\0' && !strchr(colon, '/') && path[0] != '/' &&
           path[0] != '.';
}

/* "TheBloke/Llama-2-7B-GGUF": a repository of GGUF files as Hugging Face has them. */
static bool is_repository(const char *path)
{
    const char *slash = strchr(path, '/');
    const size_t length = strlen(path);

    return slash && slash > path && !strchr(slash + 1, '/') && path[0] != '.' && length > 5 &&
           strcasecmp(path + length - 5, "-gguf") == 0;
}

const char *gguf_remote_remedy(const char *path)
{
    static const char *const hubs[] = {"hf.co/", "huggingface.co/", "hf://", "https://hf.co/",
                                       "https://huggingface.co/"};

    bool is_on_hub = is_repository(path);

    for (size_t i = 0; i < sizeof hubs / sizeof *hubs; i++)
        is_on_hub |= gguf_text_starts_with(path, hubs[i]);
    if (is_on_hub)
        return "download it first, for instance with: huggingface-cli download USER/REPOSITORY "
               "FILE.gguf --local-dir .";
    if (gguf_text_starts_with(path, "ollama:") || is_name_with_tag(path))
        return "for a model of ollama, the FROM line of \"ollama show --modelfile NAME\" has the "
               "path of its file";
    if (strstr(path, "://"))
        return "download it first, for instance with: curl -L -O URL";
    return NULL;
}
