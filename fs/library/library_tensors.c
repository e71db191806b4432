#include "fs/library/library.h"

#include "dequant/kernels.h"
#include "gguf/elements.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- types ---- */

#define MAX_TYPES 256

static struct ggufs_type types[MAX_TYPES]; /* in the order of dequant_type_at() */
static pthread_once_t begun = PTHREAD_ONCE_INIT;
static locale_t c_locale;

static bool can_encode(const struct dequant_type *type)
{
    return type->id == DEQUANT_F32 || type->encode[DEQUANT_SET_scalar];
}

static void begin(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", NULL);
    (void)dequant_choose_kernels(NULL); /* the reference is always supported */
    assert(dequant_row_count() <= MAX_TYPES);
    for (size_t i = 0; i < dequant_row_count(); i++) {
        const struct dequant_type *type = dequant_type_at(i);

        types[i] = (struct ggufs_type){.id = type->id,
                                       .name = type->name,
                                       .program = type->program,
                                       .block_elements = type->block_elements,
                                       .block_bytes = type->block_bytes,
                                       .row_header_bytes = type->row_header_bytes,
                                       .interleave_rows = type->interleave_rows,
                                       .tail_bytes = type->tail_bytes,
                                       .can_decode = dequant_is_decodable(type),
                                       .can_encode = can_encode(type),
                                       .is_in_ggml = type->is_in_ggml};
    }
}

void fs_library_begin(void)
{
    pthread_once(&begun, begin);
}

locale_t fs_library_enter(void)
{
    fs_library_begin();
    return uselocale(c_locale); /* if it could not be made, nothing changes */
}

const struct ggufs_type *ggufs_type_at(uint32_t index)
{
    fs_library_begin();
    return index < dequant_row_count() ? &types[index] : NULL;
}

const struct ggufs_type *ggufs_find_type(const char *name)
{
    const struct ggufs_type *type = NULL;

    for (uint32_t i = 0; (type = ggufs_type_at(i)) && strcasecmp(type->name, name) != 0; i++)
        ;
    return type;
}

static const struct ggufs_type *find_row(const struct dequant_type *wanted)
{
    for (size_t i = 0; wanted && i < dequant_row_count(); i++)
        if (dequant_type_at(i) == wanted)
            return &types[i];
    return NULL; /* also for a layout that the file does not tell */
}

static const struct dequant_type *row_of(const struct ggufs_type *type)
{
    return dequant_type_at((size_t)(type - types));
}

int ggufs_rows_bytes(const struct ggufs_type *type, uint64_t row_elements, uint64_t n_rows,
                     uint64_t *n_bytes)
{
    return dequant_rows_bytes(row_of(type), row_elements, n_rows, n_bytes);
}

/* Check the arguments of decoding and encoding, and get the number of elements. */
static int check_rows(const struct ggufs_type *type, bool can, uint64_t row_elements,
                      uint64_t n_rows, uint64_t *n_elements)
{
    uint64_t n_bytes;
    const int result = can ? ggufs_rows_bytes(type, row_elements, n_rows, &n_bytes) : -ENOTSUP;

    *n_elements = 0;
    if (result == 0 && (__builtin_mul_overflow(row_elements, n_rows, n_elements) ||
                        *n_elements > SIZE_MAX / sizeof(float)))
        return -EOVERFLOW;
    return result;
}

int ggufs_decode(const struct ggufs_type *type, const void *stored, uint64_t row_elements,
                 uint64_t n_rows, float *out)
{
    uint64_t n;
    const int result = check_rows(type, type->can_decode, row_elements, n_rows, &n);

    if (result == 0 && n > 0)
        dequant_decode_elements(row_of(type), (struct dequant_shape){row_elements, n}, stored, 0, n,
                                out);
    return result;
}

int ggufs_encode(const struct ggufs_type *type, const float *values, uint64_t row_elements,
                 uint64_t n_rows, void *out)
{
    const struct gguf_elements of = {.type = row_of(type)};
    uint64_t n;
    const int result = check_rows(type, type->can_encode, row_elements, n_rows, &n);

    if (result < 0 || n == 0)
        return result;
    if (of.type->id == DEQUANT_F32)
        memcpy(out, values, (size_t)n * sizeof *values);
    else
        dequant_encode(of.type, values, out, (size_t)n);
    return 0;
}

/* ---- tensors ---- */

static struct ggufs_tensor describe(const struct gguf_tensor *tensor,
                                    const struct gguf_shape *original)
{
    struct ggufs_tensor made = {.name = {tensor->name.data, tensor->name.length_bytes},
                                .type = find_row(tensor->type),
                                .type_id = tensor->type_id,
                                .n_dims = tensor->n_dims,
                                .n_elements = tensor->n_elements,
                                .size_bytes =
                                    tensor->type ? tensor->size_bytes : tensor->extent_bytes,
                                .file_offset = tensor->file_offset,
                                .file_index = tensor->file_index,
                                .is_big_endian = tensor->big_endian};

    if (original && original->n_dims > 0)
        made.n_dims = original->n_dims;
    for (uint32_t i = 0; i < GGUFS_MAX_DIMS; i++)
        made.shape[i] = i >= made.n_dims                   ? 1
                        : original && original->n_dims > 0 ? original->dims[i]
                                                           : tensor->ne[made.n_dims - 1 - i];
    return made;
}

int fs_library_make_tensors(struct ggufs_model *model)
{
    const struct gguf_model *from = model->model;
    const size_t n = (size_t)from->n_tensors;
    struct gguf_report report = {0}; /* making the tree reports it again */
    struct gguf_shape *shapes;

    model->tensors = calloc(n + 1, sizeof *model->tensors);
    model->tensors_by_name = gguf_tensors_by_name(from);
    if (!model->tensors || !model->tensors_by_name ||
        gguf_find_orig_shapes(from, &shapes, &report) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        model->tensors[i] = describe(&from->tensors[i], shapes ? &shapes[i] : NULL);
    free(shapes);
    return 0;
}

const struct ggufs_tensor *ggufs_tensor_at(const struct ggufs_model *model, uint64_t index)
{
    return index < model->info.n_tensors ? &model->tensors[index] : NULL;
}

const struct ggufs_tensor *ggufs_find_tensor(const struct ggufs_model *model, const char *name)
{
    const struct gguf_string text = {name, strlen(name)};
    const struct gguf_tensor *tensor =
        gguf_find_tensor(model->tensors_by_name, model->info.n_tensors, text);

    return tensor ? &model->tensors[tensor - model->model->tensors] : NULL;
}

static const struct gguf_tensor *stored_of(const struct ggufs_model *model,
                                           const struct ggufs_tensor *tensor)
{
    return &model->model->tensors[tensor - model->tensors];
}

/* Return -EAGAIN instead of -EIO if the file has not grown so far. */
static int explain(const struct ggufs_model *model, const struct ggufs_tensor *tensor, int result)
{
    const struct gguf_source *source = &model->model->files[tensor->file_index].source;

    if (result == -EIO && source->is_growing &&
        !gguf_source_has(source, tensor->file_offset, tensor->size_bytes))
        return -EAGAIN;
    return result;
}

static const struct dequant_type *type_to_read(const struct gguf_tensor *tensor,
                                               enum ggufs_format format)
{
    switch (format) {
    case GGUFS_F32:
        return dequant_type_by_id(DEQUANT_F32);
    case GGUFS_F16:
        return dequant_type_by_id(DEQUANT_F16);
    case GGUFS_BF16:
        return dequant_type_by_id(DEQUANT_BF16);
    case GGUFS_STORED:
        return tensor->type;
    }
    return NULL;
}

int ggufs_read(const struct ggufs_model *model, const struct ggufs_tensor *tensor,
               enum ggufs_format format, uint64_t first, uint64_t n, void *out)
{
    const struct gguf_tensor *stored = stored_of(model, tensor);
    const struct gguf_elements of = {
        .model = model->model, .tensor = stored, .type = type_to_read(stored, format)};

    if (first > tensor->n_elements || n > tensor->n_elements - first)
        return -ERANGE;
    if (!stored->type || (!dequant_is_decodable(stored->type) && format != GGUFS_STORED))
        return -ENOTSUP;
    if (!of.type || first % of.type->block_elements != 0 || n % of.type->block_elements != 0 ||
        (format == GGUFS_STORED && dequant_has_row_layout(of.type)))
        return -EINVAL;
    if (n == 0)
        return 0;
    return explain(model, tensor,
                   gguf_elements_read(&of, first / of.type->block_elements * of.type->block_bytes,
                                      (size_t)(n / of.type->block_elements * of.type->block_bytes),
                                      out));
}

int ggufs_read_stored(const struct ggufs_model *model, const struct ggufs_tensor *tensor,
                      uint64_t offset, size_t n_bytes, void *out)
{
    if (offset > tensor->size_bytes || n_bytes > tensor->size_bytes - offset)
        return -ERANGE;
    if (n_bytes == 0)
        return 0;
    return explain(model, tensor,
                   gguf_file_read(&model->model->files[tensor->file_index],
                                  tensor->file_offset + offset, n_bytes, out));
}
