#include "fs/tree/data/statistics_kernels.h"

#include "dequant/kernels.h"

#define SLOT(set, name)  .name = fs_##set##_##name,
#define ROW(set, unused) [DEQUANT_SET_##set] = {FS_STATISTICS_KERNELS(SLOT, set)},

const struct fs_statistics_kernels fs_statistics_kernel_sets[DEQUANT_SETS] = {
    ROW(scalar, ) DEQUANT_VECTOR_SETS(ROW, )};

const struct fs_statistics_kernels *fs_statistics_kernels(void)
{
    return &fs_statistics_kernel_sets[dequant_chosen_kernels() - dequant_kernel_set_at(0)];
}
