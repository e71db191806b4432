/* Ollama's store: manifests/HOST/NAMESPACE/MODEL/TAG, and blobs/sha256-DIGEST. */
#include "gguf/stores/store_parts.h"
#include "gguf/support/strings.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Where the service of Ollama's installer keeps its models. */
#define SERVICE "/usr/share/ollama/.ollama/models"
#define IMAGE   "application/vnd.ollama.image."

/* The parts of a name. Ollama's limits: a host of 350 bytes, the others of 80. */
struct parts {
    char host[351], namespace[81], model[81], tag[81];
};

/* Return true if the bytes are letters, digits, '_' or, after the first, '-', '.' or a port. */
static bool is_part(const char *text)
{
    if (!isalnum((unsigned char)text[0]) && text[0] != '_')
        return false;
    for (const char *c = text; *c != '\0'; c++)
        if (!isalnum((unsigned char)*c) && !strchr("_-.:", *c))
            return false;
    return true;
}

/* Cut the last part off, which a slash precedes. Returns false if it is too long. */
static bool take_part(char *name, char *out, size_t room, const char *missing)
{
    char *slash = strrchr(name, '/');
    const char *part = slash ? slash + 1 : name;

    if (name[0] == '\0')
        part = missing;
    if (strlen(part) >= room)
        return false;
    memmove(out, part, strlen(part) + 1);
    *(slash ? slash : name) = '\0';
    return true;
}

static bool split(const char *name, struct parts *parts)
{
    char copy[640];
    char *colon;

    if (gguf_text_starts_with(name, "http://"))
        name += strlen("http://");
    if (strlen(name) >= sizeof copy)
        return false;
    strcpy(copy, name);
    colon = strrchr(copy, ':');
    strcpy(parts->tag, "latest");
    if (colon && !strchr(colon, '/')) {
        if (strlen(colon + 1) >= sizeof parts->tag)
            return false;
        strcpy(parts->tag, colon + 1);
        *colon = '\0';
    }
    return copy[0] != '\0' && take_part(copy, parts->model, sizeof parts->model, "") &&
           take_part(copy, parts->namespace, sizeof parts->namespace, "library") &&
           take_part(copy, parts->host, sizeof parts->host, "registry.ollama.ai") &&
           copy[0] == '\0' && is_part(parts->tag) && is_part(parts->model) &&
           is_part(parts->namespace) && is_part(parts->host);
}

/* Return the root of the store that exists, or the first one. */
static char *find_root(void)
{
    static const struct gguf_store_place set[] = {{"OLLAMA_MODELS", ""}, {NULL, NULL}};
    static const struct gguf_store_place places[] = {{"HOME", "/.ollama/models"}, {NULL, NULL}};
    char *root = gguf_store_root(set);

    if (root)
        return root;
    root = gguf_store_root(places);
    if ((!root || access(root, F_OK) < 0) && access(SERVICE, F_OK) == 0) {
        free(root);
        root = strdup(SERVICE);
    }
    return root ? root : strdup(SERVICE);
}

/* Return true for "sha256:" or "sha256-" and 64 hexadecimal digits. */
static bool is_digest(const char *digest)
{
    return gguf_text_starts_with(digest, "sha256") && (digest[6] == ':' || digest[6] == '-') &&
           strlen(digest) == 71 && strspn(digest + 7, "0123456789abcdefABCDEF") == 64;
}

static int find_blob(const struct gguf_store_search *search, const char *root, const char *digest)
{
    char *partial = NULL;
    int result = 0;

    if (!is_digest(digest))
        return gguf_store_fail(search, -EINVAL,
                               "its manifest has the digest \"%.100s\", which is "
                               "not \"sha256:\" and 64 hexadecimal digits",
                               digest);
    *search->path = gguf_store_path("%s/blobs/sha256-%s", root, digest + 7);
    partial = gguf_store_path("%s/blobs/sha256-%s-partial", root, digest + 7);
    if (!*search->path || !partial)
        result = gguf_store_fail(search, -ENOMEM, "%s", strerror(ENOMEM));
    else if (access(*search->path, F_OK) < 0)
        result = gguf_store_fail(search, -ENOENT, "its file %s %s; run ollama pull", *search->path,
                                 access(partial, F_OK) == 0 ? "has not been downloaded completely"
                                                            : "is missing");
    free(partial);
    return result;
}

static int find_layer(const struct gguf_store_search *search, const char *root,
                      const cJSON *manifest)
{
    const char *digest = NULL;
    bool has_tensors = false;
    const cJSON *layer;

    cJSON_ArrayForEach(layer, cJSON_GetObjectItemCaseSensitive(manifest, "layers"))
    {
        const char *type = gguf_store_string(layer, "mediaType");

        has_tensors |= strcmp(type, IMAGE "tensor") == 0;
        if (strcmp(type, IMAGE "model") == 0)
            digest = gguf_store_string(layer, "digest");
    }
    if (digest)
        return find_blob(search, root, digest);
    return gguf_store_fail(search, -EINVAL, "%s",
                           has_tensors
                               ? "is a model in safetensors files, which ggufs does not read"
                               : "has no model file: it runs on Ollama's servers");
}

/* Say which tags or models there are. */
static int refuse_name(const struct gguf_store_search *search, const char *root,
                       const struct parts *parts)
{
    char *folder =
        gguf_store_path("%s/manifests/%s/%s/%s", root, parts->host, parts->namespace, parts->model);
    const bool has_model = folder && access(folder, F_OK) == 0;
    char *text, *list = NULL;
    int result;

    if (folder && !has_model)
        *strrchr(folder, '/') = '\0';
    text = has_model ? gguf_store_path("has no tag \"%s\"; its tags: ", parts->tag)
                     : gguf_store_path("the store %s has no such model; in %s/%s it has: ", root,
                                       parts->host, parts->namespace);
    if (folder && text)
        list = gguf_store_names(folder, NULL);
    result = text ? gguf_store_list(search, -ENOENT, text, list)
                  : gguf_store_fail(search, -ENOMEM, "%s", strerror(ENOMEM));
    free(list);
    free(text);
    free(folder);
    return result;
}

int gguf_ollama_find(const struct gguf_store_search *search, const char *name)
{
    struct parts parts;
    char *root, *path, *text;
    cJSON *manifest;
    int result;

    if (!split(name, &parts))
        return gguf_store_fail(search, -ENOENT, "%s",
                               "is not a name of the form [HOST/][NAMESPACE/]MODEL[:TAG]; ollama "
                               "list shows the names");
    root = find_root();
    path = gguf_store_path("%s/manifests/%s/%s/%s/%s", root ? root : "", parts.host,
                           parts.namespace, parts.model, parts.tag);
    text = root && path ? gguf_store_read(path) : NULL;
    if (text) {
        manifest = cJSON_Parse(text);
        result = manifest ? find_layer(search, root, manifest)
                          : gguf_store_fail(search, -EINVAL,
                                            "its manifest %s is not JSON; run ollama pull", path);
        cJSON_Delete(manifest);
    } else if (errno == ENOENT || errno == ENOTDIR) {
        result = refuse_name(search, root ? root : "", &parts);
    } else if (errno == EINVAL) {
        result = gguf_store_fail(search, -EINVAL, "its manifest %s is not a regular file", path);
    } else {
        result = gguf_store_fail(search, -errno, "%s: %s", path ? path : "", strerror(errno));
    }
    free(text);
    free(path);
    free(root);
    return result;
}
