#include "fs/tree/figure_kernels.h"

#include "dequant/kernels.h"

#define SLOT(set, name)  .name = fs_##set##_##name,
#define ROW(set, unused) [DEQUANT_SET_##set] = {FS_FIGURE_KERNELS(SLOT, set)},

const struct fs_figure_kernels fs_figure_kernel_sets[DEQUANT_SETS] = {
    ROW(scalar, ) DEQUANT_VECTOR_SETS(ROW, )};

const struct fs_figure_kernels *fs_figure_kernels(void)
{
    return &fs_figure_kernel_sets[dequant_chosen_kernels() - dequant_kernel_set_at(0)];
}
