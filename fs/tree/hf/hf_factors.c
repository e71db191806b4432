#include "fs/tree/hf/hf_factors.h"

#include "gguf/elements.h"
#include "fs/tree/output/shortest.h"

static const char *const names[FS_HF_N_FACTORS] = {"rope_freqs.weight", "rope_factors_short.weight",
                                                   "rope_factors_long.weight"};

void fs_hf_factors_begin(struct fs_hf_all_factors *all)
{
    pthread_mutex_init(&all->lock, NULL);
}

void fs_hf_factors_end(struct fs_hf_all_factors *all)
{
    pthread_mutex_destroy(&all->lock);
}

int fs_hf_factors_read(const struct fs_hf_model *hf, struct fs_hf_all_factors *all)
{
    int result = 0;

    pthread_mutex_lock(&all->lock);
    for (size_t i = 0; result == 0 && !all->are_read && i < FS_HF_N_FACTORS; i++) {
        struct fs_hf_factors *list = &all->lists[i];

        if (list->tensor)
            result = gguf_elements_read(
                &(struct gguf_elements){.model = hf->model,
                                        .tensor = list->tensor,
                                        .type = dequant_type_by_id(DEQUANT_F32)},
                0, (size_t)list->tensor->n_elements * sizeof *list->values, (char *)list->values);
    }
    all->are_read = result == 0;
    pthread_mutex_unlock(&all->lock);
    return result;
}

void fs_hf_factors_find(const struct fs_hf_model *hf, struct fs_hf_all_factors *all)
{
    for (size_t i = 0; i < FS_HF_N_FACTORS; i++) {
        const struct gguf_tensor *tensor = fs_hf_tensor(hf, names[i]);

        if (tensor && tensor->n_elements <= FS_HF_MAX_FACTORS && tensor->type &&
            dequant_is_decodable(tensor->type))
            all->lists[i].tensor = tensor;
    }
}

const struct fs_hf_factors *fs_hf_factors_of(const struct fs_hf_all_factors *all,
                                             const struct gguf_tensor *tensor)
{
    for (size_t i = 0; i < FS_HF_N_FACTORS; i++) {
        if (all->lists[i].tensor == tensor)
            return &all->lists[i];
    }
    return NULL;
}

size_t fs_hf_factors_text_bytes(const struct fs_hf_all_factors *all)
{
    size_t n_bytes = 512; /* the members whose values or presence depend on factors */

    for (size_t i = 0; i < FS_HF_N_FACTORS; i++) {
        /* rope_parameters and rope_scaling have each list, rope_freqs.weight twice. */
        if (all->lists[i].tensor)
            n_bytes += 4 * (size_t)all->lists[i].tensor->n_elements * (FS_NUMBER_BYTES + 2);
    }
    return n_bytes;
}
