#include "fs/tree/hf/hf_rows.h"

static const struct fs_hf_row *const tables[] = {
    fs_hf_rows_dense,  fs_hf_rows_gemma,     fs_hf_rows_gpt,    fs_hf_rows_experts,
    fs_hf_rows_latent, fs_hf_rows_recurrent, fs_hf_rows_hybrid,
};

const struct fs_hf_row *fs_hf_row_at(size_t index)
{
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        for (const struct fs_hf_row *row = tables[i]; row->architecture; row++) {
            if (index-- == 0)
                return row;
        }
    }
    return NULL;
}

const struct fs_hf_row *fs_hf_row_of(const struct fs_hf_model *hf)
{
    const struct fs_hf_row *row;

    for (size_t i = 0; (row = fs_hf_row_at(i)); i++) {
        if (gguf_string_equals(hf->architecture, row->architecture) &&
            (!row->applies || row->applies(hf)))
            return row;
    }
    return NULL;
}
