/* The names of the kernels of the set that is compiled, DEQUANT_SET. */
#pragma once

#include "contrib/runner/compute/run_kernels.h"

#define RUN_JOIN2(set, name) run_##set##_##name
#define RUN_JOIN(set, name)  RUN_JOIN2(set, name)
#define RUN_KERNEL(name)     RUN_JOIN(DEQUANT_SET, name)
