#include "fs/tree/number_formats.h"

#include "dequant/kernels.h"

#include <math.h>
#include <string.h>

/* Indexed by format: the type of the tensors that are stored so if they are little-endian. */
static const uint32_t type_ids[] = {
    [FS_F32] = DEQUANT_F32,
    [FS_F16] = DEQUANT_F16,
    [FS_BF16] = DEQUANT_BF16,
};

const struct dequant_type *fs_format_type(enum fs_format format)
{
    return dequant_type_by_id(type_ids[format]);
}

const char *fs_format_name(enum fs_format format)
{
    return fs_format_type(format)->name;
}

bool fs_is_stored_as(const struct gguf_tensor *tensor, const struct fs_conversion *conversion)
{
    return tensor->type->id == type_ids[conversion->format] && !tensor->big_endian &&
           conversion->map == FS_UNCHANGED;
}

static void apply_map(const struct fs_conversion *conversion, float *values, size_t n)
{
    switch (conversion->map) {
    case FS_UNCHANGED:
        break;
    case FS_ADD:
        for (size_t i = 0; i < n; i++)
            values[i] += conversion->constant;
        break;
    case FS_LOG_OF_NEGATED:
        for (size_t i = 0; i < n; i++)
            values[i] = (float)log(-(double)values[i]);
        break;
    }
}

void fs_convert(const struct fs_conversion *conversion, float *values, void *out, size_t n)
{
    apply_map(conversion, values, n);
    if (conversion->format == FS_F32)
        memcpy(out, values, n * sizeof *values);
    else
        dequant_encode(fs_format_type(conversion->format), values, out, n);
}
