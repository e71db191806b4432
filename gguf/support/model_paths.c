#include "gguf/support/model_paths.h"

#include "gguf/support/strings.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* Return what follows the address of Hugging Face in a path, or NULL. */
static const char *after_hub(const char *path)
{
    static const char *const hubs[] = {"hf.co/", "huggingface.co/", "hf://",
                                       "hf:",    "https://hf.co/",  "https://huggingface.co/"};
    const size_t length = strcspn(path, ":");
    const char *slash = strchr(path, '/');

    for (size_t i = 0; i < sizeof hubs / sizeof *hubs; i++)
        if (gguf_text_starts_with(path, hubs[i]))
            return path + strlen(hubs[i]);
    /* "TheBloke/Llama-2-7B-GGUF": a repository as the hub has them; or with ":Q8_0" */
    return slash && slash > path && !strchr(slash + 1, '/') && path[0] != '.' && length > 5 &&
                   strncasecmp(path + length - 5, "-gguf", 5) == 0
               ? path
               : NULL;
}

/* Return true if a shell takes these bytes as they are, and there are not too many. */
static bool is_plain(const char *text, size_t length)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._/-";

    return length > 0 && length < 110 && text[0] != '-' && strspn(text, plain) >= length;
}

/* USER/REPOSITORY; /FILE, /resolve/REVISION/FILE or :QUANTIZATION after it; and ?PARAMETERS. */
static void advise_hub(const char *name, char remedy[GGUF_REMEDY_BYTES])
{
    const size_t user = strcspn(name, "/");
    const size_t length = name[user] == '/' ? user + 1 + strcspn(name + user + 1, "/:?") : 0;
    const bool is_known = is_plain(name, length);
    const char *rest = name + length, *file = "FILE.gguf", *before = "", *after = "";
    size_t n = strlen(file);

    if (gguf_text_starts_with(rest, "/resolve/") || gguf_text_starts_with(rest, "/blob/")) {
        rest = strchr(rest + 1, '/') + 1;
        rest += strcspn(rest, "/");
    } else if (rest[0] != ':' && !strstr(rest, ".gguf")) {
        rest = ""; /* a page: "/tree/main" */
    }
    if (is_known && rest[0] != '\0' && is_plain(rest + 1, strcspn(rest + 1, "?"))) {
        file = rest + 1;
        n = strcspn(file, "?");
        before = rest[0] == ':' ? "--include '*" : "";
        after = rest[0] == ':' ? "*.gguf'" : "";
    }
    snprintf(remedy, GGUF_REMEDY_BYTES,
             "download it first: hf download %.*s %s%.*s%s --local-dir .",
             is_known ? (int)length : INT_MAX, is_known ? name : "USER/REPOSITORY", before, (int)n,
             file, after);
}

bool gguf_remote_remedy(const char *path, char remedy[GGUF_REMEDY_BYTES])
{
    const char *name = after_hub(path), *colon = strchr(path, ':');
    bool is_quotable = strlen(path) < GGUF_REMEDY_BYTES - 50;

    for (const char *c = path; *c != '\0'; c++)
        is_quotable &= *c > ' ' && *c < 0x7f && *c != '\'' && *c != '\\';
    if (name)
        advise_hub(name, remedy);
    else if (colon && colon > path && colon[1] != '\0' && path[0] != '/' && path[0] != '.' &&
             (!strchr(colon, '/') || strncasecmp(path, "ollama://", 9) == 0))
        /* "llama3.2:3b", "library/llama3.2:3b", "ollama://llama3.2" */
        snprintf(remedy, GGUF_REMEDY_BYTES, "a model of ollama is named ollama:%s",
                 is_plain(path, (size_t)(colon - path)) && strncasecmp(path, "ollama:", 7) != 0
                     ? path
                     : "NAME:TAG");
    else if (strstr(path, "://")) /* quoted for a shell, or without the URL if it cannot be */
        snprintf(remedy, GGUF_REMEDY_BYTES, "download the file first%s%s%s",
                 is_quotable ? ": curl -L -O '" : "", is_quotable ? path : "",
                 is_quotable ? "'" : "");
    else
        return false;
    return true;
}

char *gguf_absolute_path(const char *path)
{
    char *folder, *absolute;

    if (path[0] == '/')
        return strdup(path);
    while (path[0] == '.' && path[1] == '/')
        path += 1 + strspn(path + 1, "/");
    path += strcmp(path, ".") == 0;
    folder = getcwd(NULL, 0);
    if (!folder)
        return NULL;
    if (asprintf(&absolute, "%s/%s", strcmp(folder, "/") == 0 ? "" : folder, path) < 0)
        absolute = NULL;
    free(folder);
    return absolute;
}
