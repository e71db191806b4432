#include "contrib/runner/compute/run_kernels.h"

#include "dequant/kernels.h"

#define SLOT(set, name)  .name = run_##set##_##name,
#define ROW(set, unused) [DEQUANT_SET_##set] = {RUN_KERNELS(SLOT, set)},

const struct run_kernels run_kernel_sets[DEQUANT_SETS] = {ROW(scalar, ) DEQUANT_VECTOR_SETS(ROW, )};

const struct run_kernels *run_kernels(void)
{
    return &run_kernel_sets[dequant_chosen_kernels() - dequant_kernel_set_at(0)];
}
