#include "contrib/runner/engine/rope_factors.h"

#include <stdio.h>

const float *run_load_rope_factors(struct run_loader *loader, const struct run_hparams *hparams,
                                   bool is_long, uint32_t n_rot)
{
    static const char *const places[] = {"", "blk.0."};
    const char *name = is_long ? "rope_factors_long.weight" : "rope_factors_short.weight";

    for (size_t i = 0; i < 2; i++) {
        snprintf(loader->prefix, sizeof loader->prefix, "%s", places[i]);
        if (run_loader_has(loader, "rope_freqs.weight"))
            name = "rope_freqs.weight";
        if (run_loader_has(loader, name)) {
            const uint32_t n_windowed = hparams->n_rot_windowed / 2;
            const bool is_wider = run_load_n_elements(loader, name) == n_windowed;

            return run_load_vector(loader, name,
                                   is_wider && n_windowed > n_rot / 2 ? n_windowed : n_rot / 2);
        }
    }
    return NULL;
}
