#include "fs/tree/views/placeholders.h"

#include "fs/tree/facts/chat_template.h"
#include "fs/tree/hf/hf_checkpoint.h"
#include "fs/tree/facts/split.h"
#include "fs/tree/facts/facts.h"
#include "fs/tree/core/tree_core.h"
#include "gguf/models/tensor_names.h"

#include <string.h>

static struct fs_subject_list list_model(const struct fs_tree *tree)
{
    return (struct fs_subject_list){.n = 1};
}

/* Define the list of an array, whose length is `n_items`. */
#define DEFINE_LIST(name, array, n_items)                                                          \
    static struct fs_subject_list list_##name(const struct fs_tree *tree)                          \
    {                                                                                              \
        return (struct fs_subject_list){(array), (n_items), sizeof *(array)};                      \
    }

DEFINE_LIST(keys, tree->model->keys, tree->model->n_keys)
DEFINE_LIST(tensors, tree->model->tensors, tree->model->n_tensors)
DEFINE_LIST(shards, tree->facts->shards, tree->facts->n_shards)
DEFINE_LIST(weights, tree->facts->hf->shards,
            fs_hf_is_supported(tree, NULL) ? tree->facts->hf->n_shards : 0)
DEFINE_LIST(extras, tree->facts->extras, tree->facts->n_extras)

static struct gguf_string name_of_key(const void *subject)
{
    return ((const struct gguf_key *)subject)->name;
}

static struct gguf_string name_of_tensor(const void *subject)
{
    return ((const struct gguf_tensor *)subject)->name;
}

static struct gguf_string name_of_extra(const void *subject)
{
    const struct fs_extra *extra = subject;

    return (struct gguf_string){extra->name, strlen(extra->name)};
}

static const struct fs_subjects the_model = {list_model, NULL};
static const struct fs_subjects keys = {list_keys, name_of_key};
static const struct fs_subjects tensors = {list_tensors, name_of_tensor};
static const struct fs_subjects shards = {list_shards, NULL};
static const struct fs_subjects weights = {list_weights, NULL};
static const struct fs_subjects extras = {list_extras, name_of_extra};

const struct fs_subjects *const fs_subjects[] = {&the_model, &keys,   &tensors, &shards,
                                                 &weights,   &extras, NULL};

/* Return "chat_template.NAME", the name of the key without its first component. */
static struct gguf_string chat_template_of(const void *subject)
{
    const struct gguf_string name = name_of_key(subject);
    const size_t length = sizeof "tokenizer." - 1;

    return (struct gguf_string){name.data + length, name.length_bytes - length};
}

static struct gguf_string gguf_name_alone(const void *subject)
{
    return ((const struct gguf_tensor *)subject)->gguf_name;
}

static struct gguf_string layer_of(const void *subject)
{
    struct gguf_string layer = {0}, rest;

    gguf_tensor_name_split(gguf_name_of(subject), &layer, &rest);
    return layer;
}

static struct gguf_string rest_of(const void *subject)
{
    struct gguf_string layer, rest = {0};

    gguf_tensor_name_split(gguf_name_of(subject), &layer, &rest);
    return rest;
}

static void write_shard(const struct fs_tree *tree, const void *subject, const char *suffix,
                        char file_name[FS_NAME_BYTES])
{
    fs_split_name(tree->model, subject, suffix, file_name);
}

static void write_weights(const struct fs_tree *tree, const void *subject, const char *suffix,
                          char file_name[FS_NAME_BYTES])
{
    fs_hf_shard_name(tree->facts->hf, subject, suffix, file_name);
}

const struct fs_placeholder fs_placeholders[FS_N_PLACEHOLDERS] = {
    {"<extra>", &extras, .name = name_of_extra},
    {"<key>", &keys, .name = name_of_key},
    /* A key tokenizer.chat_template.NAME: "chat_template.NAME", and NAME alone. */
    {"<chat_template>", &keys, .name = chat_template_of},
    {"<template_name>", &keys, .name = fs_chat_template_name},
    {"<tensor>", &tensors, .name = name_of_tensor},
    {"<gguf_name>", &tensors, .name = gguf_name_alone}, /* only in formats older than GGUF */
    /* A tensor blk.LAYER.REST. */
    {"<layer>", &tensors, .name = layer_of},
    {"<rest>", &tensors, .name = rest_of},
    {"<shard>", &shards, .write = write_shard},
    {"<weights>", &weights, .write = write_weights}, /* a file of weights in hf/ */
};
