#include "gguf/support/model_paths.h"

#include "gguf/support/strings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* Return true for "llama3.2:3b" or "library/llama3.2:3b": a name and a tag, as ollama has them. */
static bool is_name_with_tag(const char *path)
{
    const char *colon = strchr(path, ':');

    return colon && colon > path && colon[1] != '\0' && !strchr(colon, '/') && path[0] != '/' &&
           path[0] != '.';
}

/* "TheBloke/Llama-2-7B-GGUF": a repository of GGUF files as Hugging Face has them; or with ":Q8_0".
 */
static bool is_repository(const char *path)
{
    const char *slash = strchr(path, '/');
    const size_t length = strcspn(path, ":");

    return slash && slash > path && !strchr(slash + 1, '/') && path[0] != '.' && length > 5 &&
           strncasecmp(path + length - 5, "-gguf", 5) == 0;
}

/* Return what follows the address of Hugging Face in a path, or NULL. */
static const char *after_hub(const char *path)
{
    static const char *const hubs[] = {"hf.co/", "huggingface.co/", "hf://",
                                       "hf:",    "https://hf.co/",  "https://huggingface.co/"};

    for (size_t i = 0; i < sizeof hubs / sizeof *hubs; i++)
        if (gguf_text_starts_with(path, hubs[i]))
            return path + strlen(hubs[i]);
    if (is_repository(path))
        return path;
    return NULL;
}

/* Return true if a shell takes these bytes as they are. */
static bool is_plain(const char *text, size_t length)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._/-";

    return length > 0 && text[0] != '-' && strspn(text, plain) >= length;
}

/* USER/REPOSITORY; /FILE, /resolve/REVISION/FILE or :QUANTIZATION after it; and ?PARAMETERS. */
static void advise_hub(const char *name, char remedy[GGUF_REMEDY_BYTES])
{
    const size_t user = strcspn(name, "/");
    const size_t length =
        user + (name[user] == '/') + strcspn(name + user + (name[user] == '/'), "/:?");
    const char *rest = name + length, *file = "FILE.gguf";
    size_t file_length = strlen(file), n;

    if (name[user] != '/' || !is_plain(name, length) || length > 120) {
        snprintf(remedy, GGUF_REMEDY_BYTES,
                 "download it first: hf download USER/REPOSITORY FILE.gguf --local-dir .");
        return;
    }
    if (rest[0] == ':' && is_plain(rest + 1, strlen(rest + 1)) && strlen(rest) < 60) {
        snprintf(remedy, GGUF_REMEDY_BYTES,
                 "download it first: hf download %.*s --include '*%s*.gguf' --local-dir .",
                 (int)length, name, rest + 1);
        return;
    }
    if (gguf_text_starts_with(rest, "/resolve/") || gguf_text_starts_with(rest, "/blob/")) {
        const char *revision = strchr(rest + 1, '/') + 1;

        rest = revision + strcspn(revision, "/");
    } else if (!strstr(rest, ".gguf")) {
        rest = ""; /* a page: "/tree/main" */
    }
    n = rest[0] == '/' ? strcspn(rest + 1, "?") : 0;
    if (is_plain(rest + 1, n) && n < 120) {
        file = rest + 1;
        file_length = n;
    }
    snprintf(remedy, GGUF_REMEDY_BYTES, "download it first: hf download %.*s %.*s --local-dir .",
             (int)length, name, (int)file_length, file);
}

/* A URL of another site, quoted for a shell, or without the URL if it cannot be quoted. */
static void advise_url(const char *url, char remedy[GGUF_REMEDY_BYTES])
{
    bool is_quotable = strlen(url) < GGUF_REMEDY_BYTES - 50;

    for (const char *c = url; *c != '\0'; c++)
        is_quotable &= *c > ' ' && *c < 0x7f && *c != '\'' && *c != '\\';
    snprintf(remedy, GGUF_REMEDY_BYTES, "download the file first%s%s%s",
             is_quotable ? ": curl -L -O '" : "", is_quotable ? url : "", is_quotable ? "'" : "");
}

bool gguf_remote_remedy(const char *path, char remedy[GGUF_REMEDY_BYTES])
{
    const char *name = *path != '\0' ? after_hub(path) : NULL;

    if (name)
        advise_hub(name, remedy);
    else if (is_name_with_tag(path))
        snprintf(remedy, GGUF_REMEDY_BYTES, "a model of ollama is named ollama:%s",
                 is_plain(path, strcspn(path, ":")) && strncasecmp(path, "ollama:", 7) != 0
                     ? path
                     : "NAME:TAG");
    else if (strstr(path, "://"))
        advise_url(path, remedy);
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
    folder = getcwd(NULL, 0);
    if (!folder)
        return NULL;
    if (asprintf(&absolute, "%s/%s", strcmp(folder, "/") == 0 ? "" : folder, path) < 0)
        absolute = NULL;
    free(folder);
    return absolute;
}
