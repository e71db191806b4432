/* The parts of the table of architectures. Only the files of the table include it. */
#ifndef GGUFS_RUNNER_ARCHITECTURE_ROWS_H
#define GGUFS_RUNNER_ARCHITECTURE_ROWS_H

#include "contrib/runner/engine/architectures.h"

/* Each ends with a row without a name. */
extern const struct run_architecture run_dense_rows[], run_expert_rows[], run_recurrent_rows[];

#endif
