/* Files from before GGUF: containers, families, keys, GGUF names of tensors, and errors. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gguf/legacy/families.h"
#include "gguf/legacy/old_reading.h"
#include "gguf/legacy/rwkv_tensors.h"
#include "tests/unit/gguf/old_file.h"
#include "tests/unit/fs/tree_file.h"

TestSuite(gguf_old, .init = model_file_begin_test);

static int open_with(const struct model_bytes *bytes, const struct gguf_open_options *options,
                     struct gguf_model **model, struct gguf_report *report)
{
    const int descriptor = model_file_create(bytes->data, bytes->size_bytes);
    const int result = model_file_open_descriptor_with(descriptor, options, model, report);

    close(descriptor);
    return result;
}

static void keep_finding(void *user, const struct gguf_finding *finding)
{
    *(struct gguf_finding *)user = *finding;
}

static struct gguf_model *make_model(const struct old_file *file)
{
    struct model_bytes bytes = old_file_make(file);
    struct gguf_model *model = model_file_accept(bytes.data, bytes.size_bytes);

    free(bytes.data);
    return model;
}

static uint64_t number_of(const struct gguf_model *model, const char *key)
{
    const struct gguf_key *found = gguf_find_key(model, key);

    cr_assert_not_null(found, "no key %s in %s", key, model->format);
    return found->value.u64;
}

static void expect_text(const struct gguf_model *model, const char *key, const char *text)
{
    const struct gguf_key *found = gguf_find_key(model, key);

    cr_assert_not_null(found, "no key %s in %s", key, model->format);
    cr_expect(gguf_string_equals(found->value.string, text), "%s of %s", key, model->format);
}

/* Check the numbers that nearly all families have, by the suffix of the key. */
static void expect_numbers(const struct gguf_model *model, const char *architecture)
{
    static const struct {
        const char *key;
        uint64_t number;
    } expected[] = {
        {"block_count", OLD_FILE_LAYERS},
        {"embedding_length", OLD_FILE_WIDTH},
        {"attention.head_count", OLD_FILE_HEADS},
        {"vocab_size", 6},
    };

    for (size_t i = 0; i < COUNT(expected); i++) {
        char key[100];

        snprintf(key, sizeof key, "%s.%s", architecture, expected[i].key);
        cr_expect_eq(number_of(model, key), expected[i].number, "%s", key);
    }
}

Test(gguf_old, families_are_recognised)
{
    const struct old_file *file;

    for (size_t i = 0; (file = old_file_at(i)); i++) {
        const struct gguf_family *family = gguf_family_by_name(file->family);
        struct gguf_model *model = make_model(file);
        const char *format = strrchr(model->format, ' ');

        cr_expect_str_eq(format + 1, file->family);
        expect_text(model, "general.architecture", family->architecture);
        if (strcmp(file->family, "whisper") != 0 && strcmp(file->family, "silero-vad") != 0)
            expect_numbers(model, family->architecture);
        cr_expect_eq(model->n_tensors == 0, file->without_tensors);
        gguf_close(model);
    }
}

Test(gguf_old, eras)
{
    static const struct {
        struct old_file file;
        uint32_t era;
    } rows[] = {
        {{"lmgg", 0, "llama", 2, 2, 20, false, 0, 0}, 0},
        {{"fmgg", 1, "llama", 2, 2, 20, false, 0, 0}, 0},
        {{"tjgg", 1, "llama", 2, 2, 20, false, 0, 0}, 0},
        {{"tjgg", 2, "llama", 2, 2, 20, false, 0, 0}, 1},
        {{"tjgg", 3, "llama", 2, 2, 18, false, 0, 0}, 2},
        {{"lmgg", 0, "gpt-2", 2, 2, 20, false, 0, 0}, 0},
        {{"lmgg", 0, "gpt-2", 1002, 2, 20, false, 0, 0}, 1},
        {{"lmgg", 0, "gpt-2", 2002, 2, 18, false, 0, 0}, 2},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct gguf_model *model = make_model(&rows[i].file);

        cr_expect_eq(model->tensors[0].type, dequant_type_of_era(2, rows[i].era), "row %zu", i);
        cr_expect_eq(number_of(model, "general.quantization_version"), rows[i].era);
        cr_expect_eq(number_of(model, "general.file_type"), 2u);
        gguf_close(model);
    }
}

Test(gguf_old, mel_filters_of_whisper)
{
    struct old_file file = {"lmgg", 0, "whisper", 1, 1, 64, true, 0, 0};
    struct gguf_model *model = make_model(&file);
    const struct gguf_key *values = gguf_find_key(model, "whisper.mel_filters.values");
    struct gguf_cursor cursor;

    cr_expect_eq(number_of(model, "whisper.mel_filters.n_mel"), 3u);
    cr_expect_eq(number_of(model, "whisper.mel_filters.n_fft"), 2u);
    cr_assert_not_null(values);
    cr_assert_eq(values->value.array.n_elements, 6u);
    cursor = gguf_array_begin(&values->value.array);
    for (unsigned i = 0; i < 6; i++) {
        struct gguf_value value;

        gguf_array_next(&cursor, GGUF_FLOAT32, &value);
        cr_expect_eq(value.f32, 0.25f * (float)i);
    }
    gguf_close(model);
}

/* A key that follows from the shape of a tensor needs the tensor. */
Test(gguf_old, a_vocabulary_has_no_keys_of_shapes)
{
    struct old_file file = *old_file_at(0);
    struct gguf_model *model;

    file.without_tensors = true;
    model = make_model(&file);
    cr_expect_null(gguf_find_key(model, "llama.attention.head_count_kv"));
    cr_expect_null(gguf_find_key(model, "llama.feed_forward_length"));
    gguf_close(model);
}

Test(gguf_old, shapes_and_constants_of_llama)
{
    struct gguf_model *model = make_model(old_file_at(0));

    cr_expect_eq(number_of(model, "llama.attention.head_count_kv"),
                 OLD_FILE_KV_ROWS / (OLD_FILE_WIDTH / OLD_FILE_HEADS));
    cr_expect_eq(number_of(model, "llama.feed_forward_length"), OLD_FILE_FORWARD_ROWS);
    cr_expect_eq(number_of(model, "llama.rope.dimension_count"), OLD_FILE_WIDTH / OLD_FILE_HEADS);
    cr_expect_eq(number_of(model, "llama.n_mult"), 8u);
    cr_expect_eq(number_of(model, "llama.context_length"), 2048u);
    cr_expect_eq(model->alignment_bytes, GGUF_DEFAULT_ALIGNMENT);
    gguf_close(model);
}

Test(gguf_old, file_types_unknown_in_gguf)
{
    const struct old_file file = {"tjgg", 1, "llama", 5, 4, 20, false, 0, 0};
    struct gguf_model *model = make_model(&file);

    cr_expect_null(gguf_find_key(model, "general.file_type"));
    cr_expect_eq(number_of(model, "llama.ftype"), 5u);
    cr_expect_eq(model->tensors[0].type->block_elements, 16u);
    gguf_close(model);
}

Test(gguf_old, vocabularies_are_written_as_in_gguf)
{
    struct gguf_model *model = make_model(old_file_at(1));
    struct fs_tree *tree = tree_file_make_tree(model);

    tree_file_expect(tree, "metadata/tokenizer.ggml.tokens.json",
                     "[\"<unk>\",\"<s>\",\"</s>\",\"<0x01>\",\"\xe2\x96\x81"
                     "a\",\"\\udcff\xe2\x96\x81"
                     "b\"]\n");
    tree_file_expect(tree, "metadata/tokenizer.ggml.token_type.json", "[2,3,3,6,1,1]\n");
    tree_file_expect(tree, "metadata/tokenizer.ggml.scores.json",
                     "[-0.0,-0.5,-1.0,-1.5,-2.0,-2.5]\n");
    fs_tree_free(tree);
    gguf_close(model);

    model = make_model(&(struct old_file){"lmgg", 0, "gpt-2", 2002, 2, 18, false, 0, 0});
    tree = tree_file_make_tree(model);
    tree_file_expect(tree, "metadata/tokenizer.ggml.tokens.json",
                     "[\"\",\"<s>\",\"</s>\",\"\xc4\x81\",\"\xc4\xa0"
                     "a\",\"\xc3\xbf\xc4\xa0"
                     "b\"]\n");
    cr_expect_null(gguf_find_key(model, "tokenizer.ggml.scores"));
    fs_tree_free(tree);
    gguf_close(model);
}

Test(gguf_old, links_with_gguf_names)
{
    struct gguf_model *model = make_model(old_file_at(0));
    struct fs_tree *tree = tree_file_make_tree(model);
    const fs_node_index link = tree_file_find(tree, "tensors/blk.1.attn_k.weight");
    fs_node_index followed;
    struct tree_file info = tree_file_read(tree, "tensors/layers.1.attention.wk.weight/info");

    cr_assert_neq(link, FS_NO_NODE);
    cr_expect_str_eq(tree->nodes.list[link].target, "layers.1.attention.wk.weight");
    cr_expect_eq(fs_tree_find(tree, "tensors/blk.1.attn_k.weight/info", &followed), 0);
    cr_expect_eq(followed, tree_file_find(tree, "tensors/layers.1.attention.wk.weight/info"));
    cr_expect_eq(fs_tree_find(tree, "tensors/blk.1.attn_k.weight", &followed), 0);
    cr_expect_eq(followed, tree_file_find(tree, "tensors/layers.1.attention.wk.weight"));
    cr_expect_not_null(strstr(info.bytes, "\"gguf_name\":\"blk.1.attn_k.weight\""));
    cr_expect_not_null(strstr(info.bytes, "\"era\":0"));
    free(info.bytes);
    /* This tensor has the same name in GGUF, so it gets no link. */
    cr_expect_eq(tree->nodes.list[tree_file_find(tree, "tensors/output.weight")].kind,
                 FS_DIRECTORY);
    fs_tree_free(tree);
    gguf_close(model);
}

Test(gguf_old, name_rules)
{
    struct gguf_name_rule rules[GGUF_MAX_NAME_RULES];
    const size_t n_rules = gguf_name_rules_read(gguf_family_by_name("llama")->names, rules);
    static const struct {
        const char *name;
        bool matches;
    } rows[] = {
        {"layers.0.ffn_norm.weight", true},
        {"layers.11.ffn_norm.weight", true},
        {"layers.12.ffn_norm.weight", false},
        {"layers.01.ffn_norm.weight", false},
        {"layers..ffn_norm.weight", false},
        {"layers.-1.ffn_norm.weight", false},
        {"layers.0.ffn_norm.weigh", false},
        {"layers.0.ffn_norm.weights", false},
        {"layers.", false},
        {"", false},
        {"norm.weight", true},
        {"layers.99999999999999999999.ffn_norm.weight", false},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct gguf_string name = {rows[i].name, strlen(rows[i].name)};
        uint32_t layer;
        bool matches = false;

        for (size_t k = 0; k < n_rules; k++)
            matches |= gguf_matches_rule(rules[k].old_name, name, 12, 0, &layer);
        cr_expect_eq(matches, rows[i].matches, "%s", rows[i].name);
    }
}

Test(gguf_old, a_family_can_be_forced)
{
    struct model_bytes bytes =
        old_file_make(&(struct old_file){"lmgg", 0, "gpt-2", 2002, 2, 18, false, 0, 0});
    struct gguf_report report = {0};
    struct gguf_model *model;

    cr_assert_eq(
        open_with(&bytes, &(struct gguf_open_options){.family = "starcoder"}, &model, &report), 0);
    expect_text(model, "general.architecture", "starcoder");
    gguf_close(model);

    cr_expect_lt(open_with(&bytes, &(struct gguf_open_options){.family = "bloom"}, &model, &report),
                 0);
    report = (struct gguf_report){0};
    cr_expect_eq(
        open_with(&bytes, &(struct gguf_open_options){.family = "nothing"}, &model, &report),
        -EINVAL);
    cr_expect_str_eq(report.first_error.message, "family \"nothing\" is unknown");
    free(bytes.data);
}

Test(gguf_old, errors_name_the_family_that_fits_best)
{
    struct model_bytes bytes = old_file_make(old_file_at(0));
    struct model_notes notes;
    struct gguf_report report = model_file_report(&notes);
    struct gguf_model *model;

    cr_expect_eq(model_file_open(bytes.data, bytes.size_bytes - 1, &model, &report), -ENODATA);
    cr_expect_eq(report.n_errors, 1u);
    cr_expect_not_null(strstr(report.first_error.message, "best llama: tensor"), "%s",
                       report.first_error.message);
    cr_expect_not_null(strstr(report.first_error.message, "unfinished download"));
    cr_expect_eq(notes.count, 0u);
    free(bytes.data);
}

static void expect_refused(const char *bytes, size_t size_bytes, const char *says)
{
    struct gguf_report report = {0};
    struct gguf_model *model;

    cr_expect_lt(model_file_open(bytes, size_bytes, &model, &report), 0);
    cr_expect_null(model);
    cr_expect_not_null(strstr(report.first_error.message, says), "no \"%s\" in: %s", says,
                       report.first_error.message);
}

Test(gguf_old, versions)
{
    expect_refused("fmgg", 4, "the version");
    expect_refused("fmgg\2\0\0\0", 8, "ggmf version 2 is unknown");
    expect_refused("tjgg\0\0\0\0", 8, "ggjt version 0 is unknown");
    expect_refused("tjgg\4\0\0\0", 8, "ggjt version 4 is unknown");
    expect_refused("fmgg\x66\0\0\0", 8, "ggmf version 102 is unknown");
}

Test(gguf_old, a_gguf_name_that_is_taken_is_refused)
{
    struct model_bytes bytes = old_file_make(old_file_at(0));
    char *name = memmem(bytes.data, bytes.size_bytes, "norm.weight", 11);
    static const char taken[] = "\2\0\0\0\x12\0\0\0\2\0\0\0\x20\0\0\0\1\0\0\0output_norm.weight";
    const size_t extra = sizeof taken - 1 + 20;

    cr_assert_not_null(name);
    bytes.data = realloc(bytes.data, bytes.size_bytes + extra);
    memset(bytes.data + bytes.size_bytes, 0, extra);
    memcpy(bytes.data + bytes.size_bytes, taken, sizeof taken - 1);
    expect_refused((const char *)bytes.data, bytes.size_bytes + extra,
                   "its name in GGUF files, \"output_norm.weight\", belongs to another tensor");
    free(bytes.data);
}

/* ---- rwkv.cpp ---- */

Test(gguf_old, rwkv_architectures)
{
    static const struct {
        const char *name, *architecture;
        uint32_t version, minor_version;
    } rows[] = {{"4", "rwkv", 4, 0},
                {"5.1", "rwkv", 5, 1},
                {"5.2", "rwkv", 5, 2},
                {"6", "rwkv6", 6, 0},
                {"7", "rwkv7", 7, 0}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct model_bytes bytes = old_file_make_rwkv(101, rows[i].name, 8, 24);
        struct gguf_model *model = model_file_accept(bytes.data, bytes.size_bytes);
        char key[64];

        expect_text(model, "general.architecture", rows[i].architecture);
        snprintf(key, sizeof key, "%s.architecture_version", rows[i].architecture);
        cr_expect_eq(number_of(model, key), rows[i].version);
        snprintf(key, sizeof key, "%s.architecture_minor_version", rows[i].architecture);
        cr_expect_eq(gguf_find_key(model, key) != NULL, rows[i].minor_version > 0);
        snprintf(key, sizeof key, "%s.feed_forward_length", rows[i].architecture);
        cr_expect_eq(number_of(model, key), OLD_FILE_FORWARD_ROWS);
        cr_expect_eq(number_of(model, "general.file_type"), 9u);
        cr_expect_eq(model->tensors[0].type, dequant_type_by_id(7));
        cr_expect_not_null(gguf_tensor_named(model, "blk.1.time_mix_key.weight"));
        gguf_close(model);
        free(bytes.data);
    }
}

static void expect_converted(const struct gguf_model *converted, const char *name, uint32_t n_dims,
                             const uint64_t *ne, const struct gguf_model *stored, const char *first)
{
    const struct gguf_tensor *tensor = gguf_tensor_named(converted, name), *from = NULL;
    char bytes[2];

    cr_assert_not_null(tensor, "%s", name);
    for (uint64_t i = 0; i < stored->n_tensors; i++) {
        if (gguf_string_equals(stored->tensors[i].name, first))
            from = &stored->tensors[i];
    }
    cr_assert_not_null(from, "%s", first);
    cr_expect_eq(tensor->n_dims, n_dims, "%s", name);
    cr_expect_arr_eq(tensor->ne, ne, n_dims * sizeof *ne, "%s", name);
    cr_assert_eq(
        gguf_file_read(&converted->files[tensor->file_index], tensor->file_offset, 1, &bytes[0]),
        0);
    cr_assert_eq(gguf_file_read(&stored->files[0], from->file_offset, 1, &bytes[1]), 0);
    cr_expect_eq(bytes[0], bytes[1]);
}

static struct gguf_model *convert_rwkv(const struct gguf_model *model)
{
    struct gguf_report report = {0};
    struct gguf_model *converted;

    cr_assert_not_null(model->rwkv_rules);
    cr_assert_eq(gguf_rwkv_convert(model, &converted, &report), 0, "%s",
                 report.first_error.message);
    return converted;
}

/* Names and shapes of llama.cpp. tests/mount/tree/test_legacy.py compares those in real files. */
Test(gguf_old, rwkv_tensors_of_llama_cpp)
{
    static const uint64_t width[] = {32, 1}, stacked[] = {32, 1, 1, 5};
    struct model_bytes bytes = old_file_make_rwkv(101, "6", 8, 24);
    struct gguf_model *model = model_file_accept(bytes.data, bytes.size_bytes);
    struct gguf_model *made = convert_rwkv(model);

    cr_expect_eq(made->n_tensors, model->n_tensors - 4 * OLD_FILE_LAYERS);
    expect_converted(made, "blk.1.time_mix_first.weight", 1, width, model,
                     "blocks.1.att.time_faaaa");
    expect_converted(made, "blk.1.time_mix_decay.weight", 1, width, model,
                     "blocks.1.att.time_decay");
    expect_converted(made, "blk.1.time_mix_lerp_fused.weight", 4, stacked, model,
                     "blocks.1.att.time_maa_w");
    expect_converted(made, "blk.1.time_mix_lerp_x.weight", 2, width, model,
                     "blocks.1.att.time_maa_x");
    expect_text(model, "tokenizer.ggml.model", "no_vocab");
    gguf_close(made);
    gguf_close(model);
    free(bytes.data);

    bytes = old_file_make_rwkv(101, "7", 8, 24);
    model = model_file_accept(bytes.data, bytes.size_bytes);
    made = convert_rwkv(model);
    cr_expect_eq(made->n_tensors, model->n_tensors + 3);
    expect_converted(made, "blk.0.time_mix_v1.weight", 2, width, model, "blocks.0.att.a1");
    expect_converted(made, "blk.0.time_mix_a1.weight", 2, width, model, "blocks.0.att.a1");
    expect_converted(made, "blk.1.time_mix_r_k.weight", 1, width, model, "blocks.1.att.r_k");
    gguf_close(made);
    gguf_close(model);
    free(bytes.data);

    bytes = old_file_make_rwkv(101, "5.2", 8, 24);
    model = model_file_accept(bytes.data, bytes.size_bytes);
    cr_expect_null(model->rwkv_rules);
    cr_expect_null(gguf_find_key(model, "tokenizer.ggml.model"));
    gguf_close(model);
    free(bytes.data);
}

Test(gguf_old, rwkv_100_decodes_only_unambiguous_types)
{
    static const struct {
        uint32_t type, block_bytes, ggml_type;
        bool is_certain;
    } rows[] = {{0, 128, 0, true}, {1, 64, 1, true},  {2, 20, 2, false}, {3, 24, 3, false},
                {7, 22, 6, false}, {8, 24, 7, false}, {9, 36, 8, true}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct model_bytes bytes = old_file_make_rwkv(100, "4", rows[i].type, rows[i].block_bytes);
        struct gguf_model *model = model_file_accept(bytes.data, bytes.size_bytes);
        struct fs_tree *tree = tree_file_make_tree(model);
        struct gguf_finding last = {.rule = GGUF_N_RULES};
        struct gguf_report report = {.each = keep_finding, .user = &last};

        cr_expect_neq(tree_file_find(tree, "tensors/emb.weight/raw"), FS_NO_NODE);
        cr_expect_eq(tree_file_find(tree, "tensors/emb.weight/f32") != FS_NO_NODE,
                     rows[i].is_certain, "type %u", rows[i].type);
        if (rows[i].is_certain)
            cr_expect_eq(model->tensors[0].type, dequant_type_of_era(rows[i].ggml_type, 0));
        fs_tree_free(tree);
        gguf_close(model);
        cr_assert_eq(open_with(&bytes, NULL, &model, &report), 0);
        cr_expect_eq(last.rule, rows[i].is_certain ? GGUF_N_RULES : GGUF_RULE_ERA);
        gguf_close(model);
        report = (struct gguf_report){0};
        for (int era = 0; era < 2; era++) {
            cr_assert_eq(
                open_with(&bytes, &(struct gguf_open_options){.era = 1 + era}, &model, &report), 0);
            cr_expect_eq(model->tensors[0].type,
                         dequant_type_of_era(rows[i].ggml_type, (uint32_t)era));
            gguf_close(model);
        }
        free(bytes.data);
    }
}
