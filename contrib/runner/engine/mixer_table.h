/* The table of mixers. Mixers that only the table knows are declared here. */
#pragma once

#include "contrib/runner/engine/mixer.h"

extern const struct run_mixer_ops run_linear_mixer, run_rwkv4_mixer, run_rwkv6_mixer,
    run_rwkv7_mixer, run_short_mixer, run_kimi_delta_mixer, run_delta_net_mixer, run_mamba_mixer,
    run_mamba2_mixer;

/* Choose and load the mixers of layer place->index. loader->prefix names the layer. */
void run_mixers_load(struct run_loader *loader, const struct run_mixer_place *place,
                     struct run_mixers *mixers);
