#include "gguf/stores/store_parts.h"
#include "gguf/support/strings.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A manifest of 2,000 layers has 500 KB; Ollama's image models have more. */
#define MAX_JSON_BYTES ((off_t)16 << 20)

int gguf_store_fail(const struct gguf_store_search *search, int code, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(search->reason, GGUF_STORE_REASON_BYTES, format, args);
    va_end(args);
    for (char *c = search->reason; *c != '\0'; c++)
        if ((unsigned char)*c < ' ' || (unsigned char)*c >= 0x7f)
            *c = '?';
    return code;
}

int gguf_store_list(const struct gguf_store_search *search, int code, const char *text,
                    const char *list)
{
    char names[GGUF_STORE_REASON_BYTES - 300] = "";
    size_t length = 0;

    for (const char *at = list; at && *at != '\0';) {
        const size_t n = strcspn(at, "\n");

        if (length + n + sizeof ", ..." >= sizeof names) {
            snprintf(names + length, sizeof names - length, ", ...");
            break;
        }
        length += (size_t)snprintf(names + length, sizeof names - length, "%s%.*s",
                                   length > 0 ? ", " : "", (int)n, at);
        at += n + (at[n] == '\n');
    }
    return gguf_store_fail(search, code, "%s%s", text, names[0] != '\0' ? names : "nothing");
}

char *gguf_store_path(const char *format, ...)
{
    va_list args;
    char *path;

    va_start(args, format);
    if (vasprintf(&path, format, args) < 0)
        path = NULL;
    va_end(args);
    return path;
}

char *gguf_store_root(const struct gguf_store_place *places)
{
    for (; places->variable; places++) {
        const char *value = getenv(places->variable);

        if (value && value[0] != '\0')
            return gguf_store_path("%s%s", value, places->end);
    }
    return NULL;
}

char *gguf_store_read(const char *path)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat status;
    char *text = NULL;
    ssize_t n = -1;

    if (fd < 0)
        return NULL;
    if (fstat(fd, &status) == 0) {
        errno = !S_ISREG(status.st_mode) ? EINVAL : status.st_size > MAX_JSON_BYTES ? EFBIG : 0;
        text = errno == 0 ? malloc((size_t)status.st_size + 1) : NULL;
        n = text ? pread(fd, text, (size_t)status.st_size, 0) : -1;
    }
    if (n >= 0)
        text[n] = '\0';
    else if (text)
        free(text), text = NULL;
    close(fd);
    return text;
}

const char *gguf_store_string(const cJSON *object, const char *name)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));

    return text ? text : "";
}

char *gguf_store_names(const char *folder, bool (*fits)(const char *name))
{
    struct dirent **entries;
    const int n_entries = scandir(folder, &entries, NULL, alphasort);
    char *list = NULL;
    size_t size;
    FILE *out = n_entries >= 0 ? open_memstream(&list, &size) : NULL;

    for (int i = 0; i < n_entries; i++) {
        if (out && entries[i]->d_name[0] != '.' && (!fits || fits(entries[i]->d_name)))
            fprintf(out, "%s\n", entries[i]->d_name);
        free(entries[i]);
    }
    if (n_entries >= 0)
        free(entries);
    if (out)
        fclose(out);
    return list;
}

int gguf_store_find(const char *name, char **path, char reason[GGUF_STORE_REASON_BYTES])
{
    static const struct {
        const char *prefix;
        gguf_store_finder *find;
    } stores[] = {{"ollama:", gguf_ollama_find},
                  {"hf:", gguf_hub_find},
                  {"llamacpp:", gguf_llama_cache_find},
                  {"lmstudio:", gguf_lm_studio_find}};
    const struct gguf_store_search search = {path, reason};

    *path = NULL;
    reason[0] = '\0';
    for (size_t i = 0; i < sizeof stores / sizeof *stores; i++)
        if (gguf_text_starts_with(name, stores[i].prefix) &&
            strncmp(name + strlen(stores[i].prefix), "//", 2) != 0) { /* not an URL */
            const int result = stores[i].find(&search, name + strlen(stores[i].prefix));

            if (result < 0) {
                free(*path);
                *path = NULL;
            }
            return result;
        }
    return 1;
}
