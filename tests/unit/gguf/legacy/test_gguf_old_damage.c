/* Files from before GGUF, cut at every length and with any byte changed; odd tensors of RWKV. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/tree/facts/facts.h"
#include "gguf/legacy/families.h"
#include "gguf/legacy/rwkv_tensors.h"
#include "tests/unit/fs/tree_file.h"
#include "tests/unit/gguf/old_file.h"

TestSuite(gguf_old_damage, .init = model_file_begin_test);

/*
 * Check cuts. A file cut after its vocabulary is accepted if the family has vocabulary-only
 * files.
 */
static void check_cuts(const struct model_bytes *bytes, size_t complete_at)
{
    for (size_t size_bytes = 0, next; size_bytes < bytes->size_bytes; size_bytes = next) {
        struct gguf_report report = {0};
        struct gguf_model *model;
        const int result = model_file_open(bytes->data, size_bytes, &model, &report);

        cr_assert_eq(result == 0, size_bytes == complete_at, "%zu of %zu bytes: %s", size_bytes,
                     bytes->size_bytes, report.first_error.message);
        cr_assert_eq(result == 0, model != NULL);
        cr_assert_eq(report.n_errors, result < 0 ? 1u : 0u);
        gguf_close(model);
        next = model_file_next_damage(size_bytes);
        if (size_bytes < complete_at && next > complete_at)
            next = complete_at;
    }
}

/* Change bytes. Accepted tensors lie within the file, and a refusal reports an error. */
static void check_changes(struct model_bytes *bytes)
{
    static const unsigned char changes[] = {0x01, 0x08, 0x80, 0xff};

    for (size_t at = 0; at < bytes->size_bytes; at = model_file_next_damage(at)) {
        const unsigned char before = bytes->data[at];

        for (size_t i = 0; i < COUNT(changes); i++) {
            struct gguf_report report = {0};
            struct gguf_model *model;
            int result;

            bytes->data[at] = before ^ changes[i];
            result = model_file_open(bytes->data, bytes->size_bytes, &model, &report);
            cr_assert_eq(result == 0, model != NULL);
            cr_assert_eq(result == 0, report.n_errors == 0);
            for (uint64_t j = 0; model && j < model->n_tensors; j++) {
                const struct gguf_tensor *tensor = &model->tensors[j];

                cr_assert_leq(tensor->file_offset, bytes->size_bytes);
                cr_assert_leq(tensor->size_bytes, bytes->size_bytes - tensor->file_offset);
            }
            gguf_close(model);
        }
        bytes->data[at] = before;
    }
}

Test(gguf_old_damage, cut_at_every_length)
{
    const struct old_file *file;

    for (size_t i = 0; (file = old_file_at(i)); i++) {
        struct model_bytes bytes = old_file_make(file);

        check_cuts(&bytes, gguf_family_by_name(file->family)->has_vocabulary_files
                               ? old_file_tensors_offset(file)
                               : SIZE_MAX);
        free(bytes.data);
    }
}

Test(gguf_old_damage, any_byte_changed)
{
    const struct old_file *file;

    for (size_t i = 0; (file = old_file_at(i)); i++) {
        struct model_bytes bytes = old_file_make(file);

        check_changes(&bytes);
        free(bytes.data);
    }
}

Test(gguf_old_damage, rwkv)
{
    static const char *const architectures[] = {"4", "5.1", "5.2", "6", "7"};

    for (size_t i = 0; i < COUNT(architectures); i++) {
        struct model_bytes bytes = old_file_make_rwkv(101, architectures[i], 2, 18);

        check_cuts(&bytes, SIZE_MAX);
        check_changes(&bytes);
        free(bytes.data);
    }
}

/* Vectors of different types are not joined: the GGUF file has them one by one. */
Test(gguf_old_damage, rwkv_tensors_that_cannot_be_joined)
{
    static const char name[] = "blocks.0.att.time_maa_g";
    static const uint32_t f32[] = {0, 16, 1}; /* type and dimensions; as many bytes as 32 F16 */
    struct model_bytes bytes = old_file_make_rwkv(101, "6", 1, 64);
    uint8_t *at = memmem(bytes.data, bytes.size_bytes, name, sizeof name - 1);
    struct gguf_report report = {0};
    struct gguf_model *model, *made;

    cr_assert_not_null(at);
    memcpy(at - sizeof f32, f32, sizeof f32);
    model = model_file_accept(bytes.data, bytes.size_bytes);
    cr_assert_eq(gguf_rwkv_convert(model, &made, &report), 0);
    cr_expect_eq(made->n_tensors, model->n_tensors - 4 * (OLD_FILE_LAYERS - 1));
    gguf_close(made);
    gguf_close(model);
    free(bytes.data);
}

/* A tensor with the name of a converted one would be in the GGUF file twice. */
Test(gguf_old_damage, a_name_of_llama_cpp_that_is_taken)
{
    static const char taken[] = "\1\0\0\0\x1b\0\0\0\0\0\0\0\0\0\0\0blk.0.time_mix_first.weight";
    struct model_bytes bytes = old_file_make_rwkv(101, "6", 8, 24);
    const size_t more = sizeof taken - 1;
    struct gguf_model *model;
    struct fs_tree *tree;

    bytes.data = realloc(bytes.data, bytes.size_bytes + more);
    memcpy(bytes.data + bytes.size_bytes, taken, more);
    model = model_file_accept(bytes.data, bytes.size_bytes + more);
    tree = tree_file_make_tree(model);
    cr_expect_eq(tree_file_find(tree, "model.gguf"), FS_NO_NODE);
    cr_expect_neq(tree_file_find(tree, "model.unsupported.txt"), FS_NO_NODE);
    cr_expect(strstr(tree->facts->translation.refusal, "blk.0.time_mix_first.weight"));
    fs_tree_free(tree);
    gguf_close(model);
    free(bytes.data);
}
