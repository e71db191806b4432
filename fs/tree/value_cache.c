#include "fs/tree/value_cache.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

int fs_value_cache_begin(struct fs_value_cache *cache, const struct gguf_model *model)
{
    cache->model = model;
    cache->texts = calloc(model->n_keys + 1, sizeof *cache->texts);
    return cache->texts ? 0 : -ENOMEM;
}

void fs_value_cache_free(struct fs_value_cache *cache)
{
    for (uint64_t i = 0; cache->texts && i < cache->model->n_keys; i++) {
        for (size_t form = 0; form < FS_N_VALUE_FORMS; form++)
            fs_value_text_free(atomic_load(&cache->texts[i][form]));
    }
    free(cache->texts);
}

int fs_value_cache_get(struct fs_value_cache *cache, const struct gguf_key *key,
                       enum fs_value_form form, const struct fs_value_text **text)
{
    _Atomic(struct fs_value_text *) *slot = &cache->texts[key - cache->model->keys][form];
    struct fs_value_text *there = atomic_load_explicit(slot, memory_order_acquire);
    struct fs_value_text *made;
    int result;

    if (!there) {
        result = fs_value_text_make(&key->value, form, &made);
        if (result < 0)
            return result;
        /* Whoever comes first; both have made the same. */
        if (atomic_compare_exchange_strong(slot, &there, made))
            there = made;
        else
            fs_value_text_free(made);
    }
    *text = there;
    return 0;
}

static int write_piece(const struct gguf_model *model, const void *subject, struct fs_text *text)
{
    const struct fs_value_piece *piece = subject;

    (void)model;
    return fs_value_piece_write(piece, text);
}

int fs_value_cache_add(struct fs_value_cache *cache, const struct gguf_key *key,
                       enum fs_value_form form, struct fs_image *image)
{
    const struct fs_value_text *text;
    int result = fs_value_cache_get(cache, key, form, &text);

    for (size_t i = 0; result == 0 && i < text->n_pieces; i++)
        result = fs_image_add_text(image, write_piece, &text->pieces[i], text->pieces[i].length,
                                   FS_PIECE_BYTES);
    return result;
}
