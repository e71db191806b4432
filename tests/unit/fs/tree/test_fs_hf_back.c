/*
 * The way back: the tensors of a checkpoint become the tensors of the GGUF file again, by the same
 * namings and orders. Names of every row; contents of the fixtures' models.
 */
#include <criterion/criterion.h>
#include <dirent.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/tree/hf/hf_tensors.h"
#include "tests/unit/gguf/model_file.h"
#include "tests/unit/gguf/way_back.h"

TestSuite(fs_hf_back, .init = model_file_begin_test);

static struct gguf_string string_of(const char *text)
{
    return (struct gguf_string){text, strlen(text)};
}

/* The name of each rename leads back to it, or to an earlier one for the same name elsewhere. */
Test(fs_hf_back, names_of_every_row)
{
    const struct gguf_name_match match = {.layer = 12, .expert = 3, .suffix = ".weight"};
    const struct fs_hf_row *row;

    for (size_t n = 0; (row = fs_hf_row_at(n)); n++) {
        struct gguf_names names;

        cr_assert_eq(gguf_names_read(row->naming, &names), 0);
        for (size_t i = 0; i < names.count; i++) {
            const struct gguf_rename *rename = &names.list[i];
            char name[GGUF_NAME_BYTES], again[GGUF_NAME_BYTES];
            const struct gguf_rename *found;
            struct gguf_name_match back;

            if (!rename->other)
                continue;
            cr_assert(gguf_tensor_name_expand(rename->other, &match, name));
            found = way_back_rename(&names, string_of(name), &back);
            cr_assert(found, "%s: %s", row->class_name, name);
            cr_expect(gguf_tensor_name_expand(found->other, &back, again));
            cr_expect_str_eq(again, name);
            cr_expect(!strchr(rename->other, '%') || back.layer == match.layer);
            cr_expect(!strchr(rename->other, '#') || back.expert == match.expert);
        }
        gguf_names_free(&names);
    }
}

/* ---- contents ---- */

/* A tensor of the file, its elements, and the elements that came back. */
struct kept {
    const struct gguf_tensor *tensor;
    float *stored, *back;
    uint64_t n_back;
};

struct conversion {
    const struct gguf_model *model;
    struct fs_hf_model hf;
    const struct fs_hf_row *row;
    const struct gguf_names *names;
    struct kept *kept; /* in the order of the model's tensors */
};

static struct kept *find(const struct conversion *conversion, const char *pattern,
                         const struct gguf_name_match *match)
{
    char name[GGUF_NAME_BYTES];

    cr_assert(gguf_tensor_name_expand(pattern, match, name));
    for (uint64_t i = 0; i < conversion->model->n_tensors; i++) {
        if (gguf_string_equals(conversion->model->tensors[i].name, name))
            return &conversion->kept[i];
    }
    cr_assert(false, "%s: no tensor %s", conversion->row->class_name, name);
    return NULL;
}

static struct gguf_order_sizes sizes_of(const struct fs_hf_model *hf, uint64_t layer)
{
    const uint64_t n_v = fs_hf_number(hf, "ssm.time_step_rank", 0);

    return (struct gguf_order_sizes){
        .n_head = fs_hf_n_head(hf, layer),
        .n_head_kv = fs_hf_n_head_kv(hf, layer),
        .n_rot = fs_hf_number(hf, "rope.dimension_count", 0),
        .n_k = fs_hf_number(hf, "ssm.group_count", 0),
        .width_k = fs_hf_number(hf, "ssm.state_size", 0),
        .n_v = n_v,
        .width_v = n_v > 0 ? fs_hf_number(hf, "ssm.inner_size", 0) / n_v : 0,
    };
}

static struct way_back_sizes more_sizes_of(const struct fs_hf_model *hf)
{
    return (struct way_back_sizes){
        .n_expert = fs_hf_number(hf, "expert_count", 0),
        .width_key = fs_hf_number(hf, "attention.key_length_mla", 0) -
                     fs_hf_number(hf, "rope.dimension_count", 0),
        .width_value = fs_hf_number(hf, "attention.value_length_mla", 0),
    };
}

static float changed(enum gguf_change change, float value)
{
    return change == GGUF_PLUS_ONE ? value + 1 : change == GGUF_MINUS_EXP ? -expf(value) : value;
}

/* Put the elements of a segment where they are in GGUF; `first` is an expert's first element. */
static void put_back(const struct gguf_order_segment *segment, enum gguf_change change,
                     const float *elements, struct kept *kept, uint64_t first)
{
    uint64_t n = 1;

    for (unsigned i = 0; i < segment->n_axes; i++)
        n *= segment->axes[i].size;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t here = first + segment->here, there = segment->there, rest = i;

        for (unsigned k = segment->n_axes; k-- > 0; rest /= segment->axes[k].size) {
            here += rest % segment->axes[k].size * segment->axes[k].here;
            there += rest % segment->axes[k].size * segment->axes[k].there;
        }
        cr_assert_lt(here, kept->tensor->n_elements);
        kept->back[here] = changed(change, elements[there]);
    }
    kept->n_back += n;
}

/* Read a tensor of the checkpoint. Returns its elements. */
static float *read_tensor(const struct conversion *conversion, const struct fs_hf_tensor *tensor,
                          struct gguf_order_shape *shape)
{
    struct fs_hf_arranged arranged = {.n_pieces = 1};
    float *elements = NULL;
    uint64_t n = 0;

    for (uint64_t i = 0; i < arranged.n_pieces; i++) {
        struct fs_arranged *made;
        uint64_t size;

        cr_assert_eq(fs_hf_tensor_arrange(&conversion->hf, tensor, i, &arranged), 0);
        cr_assert_eq(fs_arranged_make(&arranged.piece, dequant_type_by_id(DEQUANT_F32), &made), 0);
        size = fs_arranged_size(made);
        elements = realloc(elements, n + size + 1);
        cr_assert(elements);
        cr_assert_eq(
            fs_arranged_read(conversion->model, made, 0, (size_t)size, (char *)elements + n), 0);
        fs_arranged_free(made);
        n += size;
    }
    shape->n_dims = arranged.n_dims;
    for (unsigned i = 0; i < arranged.n_dims; i++)
        shape->size[i] = arranged.shape[i];
    return elements;
}

static void convert_back(struct conversion *conversion, const struct fs_hf_tensor *tensor)
{
    const struct gguf_order_sizes sizes = sizes_of(&conversion->hf, tensor->match.layer);
    const struct way_back_sizes more = more_sizes_of(&conversion->hf);
    char name[GGUF_NAME_BYTES];
    struct gguf_order_shape there;
    struct gguf_name_match match;
    struct gguf_placement placement;
    const struct gguf_rename *rename;
    float *elements;

    if (!tensor->tensor)
        return; /* from a key */
    fs_hf_tensor_write_name(tensor, name);
    rename = way_back_rename(conversion->names, string_of(name), &match);
    cr_assert(rename, "%s", name);
    elements = read_tensor(conversion, tensor, &there);
    cr_assert_eq(way_back_placement(rename->order, &sizes, &more, &there, &placement), 0, "%s: %s",
                 conversion->row->class_name, name);
    for (unsigned i = 0; i < placement.n_segments; i++) {
        const struct gguf_order_segment *segment = &placement.segments[i];
        struct kept *kept =
            find(conversion, segment->tensor == 0 ? rename->name : rename->with, &match);
        uint64_t first = 0;

        if (tensor->is_part)
            first = kept->tensor->n_elements / kept->tensor->ne[kept->tensor->n_dims - 1] *
                    match.expert;
        put_back(segment, rename->change, elements, kept, first);
    }
    free(elements);
}

static void keep(const struct gguf_model *model, const struct gguf_tensor *tensor,
                 struct kept *kept)
{
    const size_t n_bytes = (size_t)tensor->n_elements * sizeof(float);

    *kept = (struct kept){
        .tensor = tensor, .stored = calloc(1, n_bytes + 1), .back = calloc(1, n_bytes + 1)};
    cr_assert(kept->stored && kept->back);
    cr_assert_eq(gguf_elements_read(
                     &(struct gguf_elements){
                         .model = model, .tensor = tensor, .type = dequant_type_by_id(DEQUANT_F32)},
                     0, n_bytes, (char *)kept->stored),
                 0);
}

/* Compare what came back, which is exact unless a function changed the values. */
static void compare(const struct conversion *conversion, const struct kept *kept)
{
    const struct gguf_string name = kept->tensor->name;
    struct gguf_name_match match;
    const struct gguf_rename *rename = gguf_rename_of(conversion->names, name, &match);
    const float limit = rename && rename->change != GGUF_UNCHANGED ? 1e-6f : 0;
    uint64_t n_wrong = 0;

    /* config.json holds frequencies. */
    if (kept->n_back == 0 && (!rename || !rename->other) &&
        gguf_string_equals(name, "rope_freqs.weight"))
        return;
    cr_expect_eq(kept->n_back, kept->tensor->n_elements, "%s: %.*s: %lu elements",
                 conversion->row->class_name, (int)name.length_bytes, name.data, kept->n_back);
    for (uint64_t i = 0; i < kept->tensor->n_elements; i++)
        n_wrong +=
            !(fabsf(kept->back[i] - kept->stored[i]) <= limit * fmaxf(1, fabsf(kept->stored[i])));
    cr_expect_eq(n_wrong, 0u, "%s: %.*s", conversion->row->class_name, (int)name.length_bytes,
                 name.data);
}

static bool check_model(const struct gguf_model *model)
{
    struct conversion conversion = {.model = model};
    struct fs_hf_lines unused = {0}, obstacles = {0};
    struct fs_hf_tensors tensors = {0};

    cr_assert_eq(fs_hf_model_make(model, &conversion.hf), 0);
    conversion.row = fs_hf_row_of(&conversion.hf);
    if (conversion.row) {
        cr_assert_eq(
            fs_hf_tensors_find(&conversion.hf, conversion.row, &tensors, &unused, &obstacles), 0);
        cr_assert_eq(obstacles.text.length + unused.text.length, 0u, "%s%s", unused.text.bytes,
                     obstacles.text.bytes);
        conversion.names = &tensors.names;
        conversion.kept = calloc((size_t)model->n_tensors, sizeof *conversion.kept);
        cr_assert(conversion.kept);
        for (uint64_t i = 0; i < model->n_tensors; i++)
            keep(model, &model->tensors[i], &conversion.kept[i]);
        for (size_t i = 0; i < tensors.count; i++)
            convert_back(&conversion, &tensors.list[i]);
        for (uint64_t i = 0; i < model->n_tensors; i++) {
            compare(&conversion, &conversion.kept[i]);
            free(conversion.kept[i].stored);
            free(conversion.kept[i].back);
        }
        free(conversion.kept);
    }
    fs_hf_tensors_free(&tensors);
    fs_hf_model_free(&conversion.hf);
    return conversion.row;
}

Test(fs_hf_back, contents_of_the_fixtures)
{
    const char *root = getenv("GGUFS_FIXTURES");
    char folder[4096], path[8192];
    struct dirent *entry;
    DIR *directory;
    size_t n_models = 0;

    snprintf(folder, sizeof folder, "%s/archs", root ? root : "../shared/fixtures");
    directory = opendir(folder);
    if (!directory) {
        fprintf(stderr, "SKIPPED: no %s (set GGUFS_FIXTURES to the fixtures folder)\n", folder);
        cr_skip_test("no fixtures");
    }
    while ((entry = readdir(directory))) {
        struct gguf_report report = {0};
        struct gguf_model *model;

        if (!strstr(entry->d_name, ".gguf"))
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        cr_assert_eq(gguf_open(path, &model, &report), 0, "%s", path);
        n_models += check_model(model);
        gguf_close(model);
    }
    closedir(directory);
    cr_expect_geq(n_models, 39u);
}
