/* The table of mixers. */
#ifndef GGUFS_RUNNER_MIXER_TABLE_H
#define GGUFS_RUNNER_MIXER_TABLE_H

#include "contrib/runner/engine/mixer.h"

/* Choose and load the mixers of layer place->index. loader->prefix names the layer. */
void run_mixers_load(struct run_loader *loader, const struct run_mixer_place *place,
                     struct run_mixers *mixers);

#endif
