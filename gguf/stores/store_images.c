/*
 * Stores of images, manifests with layers: Ollama's, Docker Model Runner's and OCI image layouts.
 *
 *   Ollama  manifests/HOST/NAMESPACE/MODEL/TAG           blobs/sha256-HEX
 *   OCI     index.json, blobs/ALGORITHM/HEX              blobs/ALGORITHM/HEX
 *   Docker  models.json, manifests/sha256/HEX            blobs/sha256/HEX
 */
#include "gguf/stores/store_parts.h"
#include "gguf/support/shard_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define OLLAMA "application/vnd.ollama.image."
#define DOCKER "application/vnd.docker.ai."
#define CNCF   "application/vnd.cncf.model.weight.v1."
#define HUB    "registry.ollama.ai/"

/* Files of layers that are no files of a model's directory. */
#define MODEL   "model.gguf"
#define TENSORS "tensors"
#define PACKED  "packed"

#define BAD_DIGEST                                                                                 \
    "its manifest has the digest \"%.100s\", which is not \"sha256:\" and 64 hexadecimal digits"

static const struct {
    const char *media_type, *file;
} layer_types[] = {
    {OLLAMA "model", MODEL},
    {OLLAMA "projector", "mmproj.gguf"},
    {OLLAMA "adapter", "adapter.gguf"},
    {OLLAMA "draft", "draft.gguf"},
    {OLLAMA "template", "template"},
    {OLLAMA "prompt", "template"},
    {OLLAMA "system", "system"},
    {OLLAMA "params", "params.json"},
    {OLLAMA "messages", "messages"},
    {OLLAMA "license", "license"},
    {OLLAMA "tensor", TENSORS},
    {DOCKER "gguf.v3", MODEL},
    {DOCKER "mmproj", "mmproj.gguf"},
    {DOCKER "chat.template.jinja", "template.jinja"},
    {DOCKER "license", "license"},
    {DOCKER "safetensors", TENSORS},
    {CNCF "gguf", MODEL},
    {CNCF "safetensors", TENSORS},
    {CNCF "raw", MODEL},
    {CNCF "tar", MODEL},
    {CNCF "tar+gzip", PACKED},
    {CNCF "tar+zstd", PACKED},
    {"application/vnd.oci.image.layer.v1.tar", MODEL},
    {"application/vnd.oci.image.layer.v1.tar+gzip", PACKED},
    {"application/vnd.oci.image.layer.v1.tar+zstd", PACKED},
    {"application/vnd.docker.image.rootfs.diff.tar.gzip", PACKED},
};

/* Return the name of a layer's file that annotations give, or "". */
static const char *annotated_name(const cJSON *layer)
{
    return gguf_store_string(cJSON_GetObjectItemCaseSensitive(layer, "annotations"),
                             "org.cncf.model.filepath");
}

/* Return the file in the model's directory that a layer is, or "". */
static const char *file_of(const cJSON *layer)
{
    const char *type = gguf_store_string(layer, "mediaType"), *name = annotated_name(layer);
    const char *file = "";

    for (size_t i = 0; i < sizeof layer_types / sizeof *layer_types; i++)
        if (strcmp(layer_types[i].media_type, type) == 0)
            file = layer_types[i].file;
    if (strcmp(file, MODEL) != 0)
        return file;
    return strcasestr(name, "mmproj")     ? "mmproj.gguf"
           : strstr(name, ".safetensors") ? TENSORS
                                          : file;
}

/* Return the path of a blob, or NULL with EINVAL for a digest of another form. */
static char *blob_path(const struct gguf_store_search *search, const char *digest, char separator,
                       const char *folder)
{
    const bool is_long = gguf_text_starts_with(digest, "sha512");
    const size_t n_digits = is_long ? 128 : 64;

    if ((!is_long && !gguf_text_starts_with(digest, "sha256")) ||
        (digest[6] != ':' && digest[6] != '-') || strlen(digest) != 7 + n_digits ||
        strspn(digest + 7, "0123456789abcdefABCDEF") != n_digits) {
        errno = EINVAL;
        return NULL;
    }
    return gguf_text("%s/%s/%.6s%c%s", search->root, folder, digest, separator, digest + 7);
}

/* Make a model of its layers: shards in the order of their names or, without names, of layers. */
static void join_layers(struct gguf_store_search *search, struct gguf_listed_model *model,
                        struct gguf_listed_model *layers)
{
    struct gguf_listed_file *files = layers->extras;
    const size_t n = layers->n_extras;

    if (n > 1 && files[0].name[0] != '\0')
        qsort(files, n, sizeof *files, gguf_compare_names);
    model->shards = calloc(n, sizeof *model->shards);
    for (size_t i = 0; i < n && model->shards; i++) {
        if (files[i].name[0] != '\0' && i > 0 &&
            !gguf_are_shards_of_one_model(files[0].name, files[i].name))
            gguf_listed_model_refuse(model,
                                     "holds several models, %s and %s; name the file itself: %s",
                                     files[0].name, files[i].name, files[0].path);
        gguf_store_check_file(search, model, &files[i].path);
        if (files[i].path)
            model->shards[model->n_shards++] = strdup(files[i].path);
    }
    model->path = model->n_shards > 0 ? strdup(model->shards[0]) : NULL;
    if (!model->path)
        search->found->error = -ENOMEM;
}

/* Add the files of an image's layers to a model without a path, or say why it has no model. */
static void add_layers(struct gguf_store_search *search, struct gguf_listed_model *model,
                       const cJSON *manifest, char separator)
{
    struct gguf_listed_model layers = {0};
    size_t n_tensors = 0;
    char *packed = NULL; /* the path of a compressed layer */
    const cJSON *layer;

    cJSON_ArrayForEach(layer, cJSON_GetObjectItemCaseSensitive(manifest, "layers"))
    {
        const char *file = file_of(layer), *digest = gguf_store_string(layer, "digest");
        const bool is_tensor = strcmp(file, TENSORS) == 0;
        char *path;

        n_tensors += is_tensor;
        if (file[0] == '\0' || is_tensor)
            continue;
        path = blob_path(search, digest, separator, "blobs");
        if (!path && errno == EINVAL) {
            gguf_listed_model_refuse(model, BAD_DIGEST, digest);
        } else if (strcmp(file, PACKED) == 0) {
            free(packed);
            packed = path;
        } else if (strcmp(file, MODEL) != 0) {
            gguf_store_add_extra(search, model, file, path);
        } else {
            if (separator == '-') /* Ollama takes the last one */
                gguf_listed_model_free(&layers);
            gguf_model_list_add_file(search->found, &layers, annotated_name(layer), path);
        }
    }
    if (layers.n_extras > 0)
        join_layers(search, model, &layers);
    else if (packed)
        gguf_listed_model_refuse(model,
                                 "is in a compressed layer, which cannot be read in place; unpack "
                                 "it: tar -xf %s",
                                 packed);
    else if (n_tensors > 0)
        gguf_listed_model_refuse(model,
                                 "is a model in safetensors, %zu file%s, not GGUF, which ggufs "
                                 "does not read",
                                 n_tensors, n_tensors == 1 ? "" : "s");
    else
        gguf_listed_model_refuse(model, "has no model file: it runs on its maker's servers, or is "
                                        "not a model");
    free(packed);
    gguf_listed_model_free(&layers);
}

void gguf_image_load(struct gguf_store_search *search, const struct gguf_listed_model *entry)
{
    const char separator = search->kind->key == gguf_ollama_key ? '-' : '/';
    struct gguf_listed_model *model = gguf_store_begin(search, entry);
    cJSON *manifest = gguf_store_read_json(search->access, strdup(entry->path));

    if (!manifest)
        gguf_store_refuse_manifest(model, entry->path, errno);
    else if (model)
        add_layers(search, model, manifest, separator);
    cJSON_Delete(manifest);
}

/* ---- Ollama ---- */

/* Return the name as `ollama list` shows it. */
char *gguf_ollama_key(const char *name)
{
    const char *scheme = strstr(name, "://");

    if (scheme)
        name = scheme + 3;
    if (strncasecmp(name, HUB, strlen(HUB)) == 0)
        name += strlen(HUB);
    if (strncasecmp(name, "library/", 8) == 0)
        name += 8;
    return strdup(name);
}

/* A manifest is manifests/HOST/NAMESPACE/MODEL/TAG. */
static bool visit_manifest(void *user, const struct gguf_thing *thing)
{
    struct gguf_store_search *search = user;
    int depth = 0;

    if (!thing->entry || !gguf_is_safe(thing->entry->name))
        return false;
    for (const char *c = thing->below; *c != '\0'; c++)
        depth += *c == '/';
    if (depth < 3)
        return thing->entry->is_folder;
    *strrchr(thing->below, '/') = ':';
    if (!thing->entry->is_folder)
        gguf_model_list_add(&search->index, gguf_ollama_key(thing->below), strdup(thing->path));
    return false;
}

int gguf_ollama_index(struct gguf_store_search *search)
{
    char *path = gguf_text("%s/manifests", search->root);
    const int result = gguf_walk(search->access, &search->index, path, visit_manifest, search);

    free(path);
    return result;
}

/* ---- OCI image layouts ---- */

/* Add an entry for the manifest with a digest. Takes the name, which may be NULL. */
static void add_entry(struct gguf_store_search *search, char *name, const char *digest,
                      const char *folder)
{
    char *path = blob_path(search, digest, '/', folder);
    struct gguf_listed_model *entry = gguf_model_list_add(&search->index, name, path);

    if (!path)
        gguf_listed_model_refuse(entry, BAD_DIGEST, digest);
}

/* Indexes can name each other, and themselves: no sum is checked. */
enum { MAX_INDEXES = 256, MAX_INDEX_DEPTH = 4 };

/* Add the manifests of an index. Takes the path of its file. `outer`: of an index in an index. */
static int add_index(struct gguf_store_search *search, char *path, const char *outer, int depth)
{
    cJSON *json = gguf_store_read_json(search->access, path);
    const int error = errno;
    const cJSON *row;
    int result;

    cJSON_ArrayForEach(row, cJSON_GetObjectItemCaseSensitive(json, "manifests"))
    {
        const char *digest = gguf_store_string(row, "digest");
        const char *reference =
            gguf_store_string(cJSON_GetObjectItemCaseSensitive(row, "annotations"),
                              "org.opencontainers.image.ref.name");
        char *name, *file;

        if (search->index.error < 0)
            break;
        name = gguf_text("%s%s%s", outer, outer[0] != '\0' ? "/" : "",
                         gguf_is_safe(reference) ? reference : digest);
        file = depth < MAX_INDEX_DEPTH && strstr(gguf_store_string(row, "mediaType"), ".index.")
                   ? blob_path(search, digest, '/', "blobs")
                   : NULL;

        if (!file || !name) {
            add_entry(search, name, digest, "blobs");
            free(file);
            continue;
        }
        if (++search->n_indexes > MAX_INDEXES) {
            search->index.error = -E2BIG;
            free(name);
            free(file);
            break;
        }
        result = add_index(search, file, name, depth + 1);
        if (result < 0)
            gguf_listed_model_refuse(gguf_model_list_add(&search->index, strdup(name), NULL),
                                     "its index cannot be read: %s", strerror(-result));
        free(name);
    }
    cJSON_Delete(json);
    return json ? 0 : -error;
}

int gguf_oci_index(struct gguf_store_search *search)
{
    return add_index(search, gguf_text("%s/index.json", search->root), "", 0);
}

/* ---- Docker Model Runner ---- */

#define DOCKER_HUB "docker.io/"

char *gguf_docker_key(const char *name)
{
    if (gguf_text_starts_with(name, DOCKER_HUB))
        name += strlen(DOCKER_HUB);
    return gguf_text("%s%s", strchr(name, '/') || name[0] == '\0' ? "" : "ai/", name);
}

int gguf_docker_index(struct gguf_store_search *search)
{
    cJSON *json = gguf_store_read_json(search->access, gguf_text("%s/models.json", search->root));
    const int error = errno;
    const cJSON *row, *tag;

    cJSON_ArrayForEach(row, cJSON_GetObjectItemCaseSensitive(json, "models"))
    {
        cJSON_ArrayForEach(tag, cJSON_GetObjectItemCaseSensitive(row, "tags"))
        {
            if (cJSON_IsString(tag) && gguf_is_safe(tag->valuestring))
                add_entry(search, gguf_store_add_tag(gguf_docker_key(tag->valuestring)),
                          gguf_store_string(row, "id"), "manifests");
        }
    }
    cJSON_Delete(json);
    return json ? 0 : -error;
}
