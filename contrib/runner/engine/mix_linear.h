/* One product instead of attention: layers of pruned models (DeciLM, Nemotron). */
#ifndef GGUFS_RUNNER_MIX_LINEAR_H
#define GGUFS_RUNNER_MIX_LINEAR_H

#include "contrib/runner/engine/mixer.h"

extern const struct run_mixer_ops run_linear_mixer;

#endif
