#include "tests/unit/gguf/model_file.h"

#include "gguf/faults.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

const struct model_encoding model_encodings[MODEL_N_ENCODINGS] = {
    {1, false, 4, "GGUF v1"},
    {2, false, 8, "GGUF v2"},
    {3, false, 8, "GGUF v3"},
    {3, true, 8, "GGUF v3"},
};

void model_file_begin_test(void)
{
    /* Criterion runs each test in a process with its own handlers, so main() cannot do this. */
    cr_assert_eq(gguf_faults_catch(), 0);
}

struct model_bytes model_file_finish(struct gguf_writer *w)
{
    struct model_bytes bytes;

    cr_assert_eq(gguf_writer_finish(w, &bytes.data, &bytes.size_bytes), 0);
    return bytes;
}

int model_file_create(const void *bytes, size_t size_bytes)
{
    const int descriptor = memfd_create("model", MFD_CLOEXEC);

    cr_assert_geq(descriptor, 0);
    for (size_t done = 0; done < size_bytes;) {
        const ssize_t n = write(descriptor, (const char *)bytes + done, size_bytes - done);

        cr_assert_gt(n, 0);
        done += (size_t)n;
    }
    return descriptor;
}

void model_file_restore(int descriptor, struct model_bytes bytes, const struct gguf_model *model)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT},
                                      gguf_file_modified(&model->files[0])};

    cr_assert_eq(pwrite(descriptor, bytes.data, bytes.size_bytes, 0), (ssize_t)bytes.size_bytes);
    cr_assert_eq(futimens(descriptor, times), 0);
}

int model_file_open_descriptor_with(int descriptor, const struct gguf_open_options *options,
                                    struct gguf_model **model, struct gguf_report *report)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    return gguf_open_with(path, options, model, report);
}

int model_file_open_descriptor(int descriptor, struct gguf_model **model,
                               struct gguf_report *report)
{
    return model_file_open_descriptor_with(descriptor, NULL, model, report);
}

int model_file_open(const void *bytes, size_t size_bytes, struct gguf_model **model,
                    struct gguf_report *report)
{
    const int descriptor = model_file_create(bytes, size_bytes);
    const int result = model_file_open_descriptor(descriptor, model, report);

    close(descriptor);
    return result;
}

struct gguf_model *model_file_accept(const void *bytes, size_t size_bytes)
{
    struct gguf_report report = {0};
    struct gguf_model *model;
    const int result = model_file_open(bytes, size_bytes, &model, &report);

    cr_assert_eq(result, 0, "a valid file was refused: %s", report.first_error.message);
    cr_assert_eq(report.n_errors, 0);
    cr_assert_not_null(model);
    return model;
}

struct gguf_model *model_file_make(struct gguf_writer *w)
{
    struct model_bytes bytes = model_file_finish(w);
    struct gguf_model *model = model_file_accept(bytes.data, bytes.size_bytes);

    free(bytes.data);
    return model;
}

static void count_notes(void *user, const struct gguf_finding *finding)
{
    struct model_notes *notes = user;

    if (finding->severity == GGUF_NOTE) {
        notes->count++;
        notes->last = *finding;
    }
}

struct gguf_report model_file_report(struct model_notes *notes)
{
    *notes = (struct model_notes){0};
    return (struct gguf_report){.each = count_notes, .user = notes};
}

static void add_keys(struct gguf_writer *w)
{
    static const char *const tokens[] = {"<s>", "", "a \"quoted\" word", "\xe2\x96\x81the",
                                         "\xff\xfe"};

    gguf_writer_add_string(w, "general.architecture", "llama");
    gguf_writer_add_u8(w, "u8", 255);
    gguf_writer_add_i8(w, "i8", -128);
    gguf_writer_add_u16(w, "u16", 65535);
    gguf_writer_add_i16(w, "i16", -32768);
    gguf_writer_add_u32(w, "u32", 4294967295);
    gguf_writer_add_i32(w, "i32", INT32_MIN);
    gguf_writer_add_f32(w, "f32", 0.1f);
    gguf_writer_add_bool(w, "bool", true);
    gguf_writer_add_u64(w, "u64", UINT64_MAX);
    gguf_writer_add_i64(w, "i64", INT64_MIN);
    gguf_writer_add_f64(w, "f64", 0.1);
    gguf_writer_add_strings(w, "tokens", tokens, COUNT(tokens));
    gguf_writer_add_array(w, "bools", GGUF_WRITER_BOOL, 3);
    for (int i = 0; i < 3; i++)
        gguf_writer_bool(w, i == 1);
    gguf_writer_add_array(w, "nothing", GGUF_WRITER_F64, 0);
    gguf_writer_add_array(w, "nested", GGUF_WRITER_ARRAY, 2);
    gguf_writer_array(w, GGUF_WRITER_U16, 3);
    for (uint16_t i = 0; i < 3; i++)
        gguf_writer_u16(w, (uint16_t)(1000 * i));
    gguf_writer_array(w, GGUF_WRITER_STRING, 1);
    gguf_writer_string(w, "in an array", 11);
    gguf_writer_add_string(w, "a/b %.\x01", "a name that must be escaped");
}

static void add_tensor(struct gguf_writer *w, const char *name, uint32_t type_id, uint32_t n_dims,
                       const uint64_t *ne)
{
    const struct dequant_type *type = dequant_type_by_id(type_id);
    uint64_t state = type_id;
    size_t n_elements = 1, size_bytes;
    unsigned char *data;

    cr_assert_not_null(type);
    for (uint32_t i = 0; i < n_dims; i++)
        n_elements *= ne[i];
    size_bytes = n_elements / type->block_elements * type->block_bytes;
    data = malloc(size_bytes + 1);
    cr_assert_not_null(data);
    for (size_t i = 0; i < size_bytes; i++)
        data[i] = (unsigned char)(model_file_random(&state) >> 32 & 0x3f);
    gguf_writer_add_tensor(w, name, strlen(name), n_dims, ne, type_id, data, size_bytes);
    free(data);
}

struct model_bytes model_file_rich(const struct model_encoding *encoding)
{
    struct gguf_writer *w = gguf_writer_open(encoding->version, encoding->big_endian);

    add_keys(w);
    add_tensor(w, "token_embd.weight", 8, 2, (uint64_t[]){64, 3}); /* Q8_0 */
    add_tensor(w, "scalar", 0, 0, NULL);                           /* F32 */
    add_tensor(w, "blk.0.attn_q.weight", 12, 1, (uint64_t[]){512});
    add_tensor(w, "a/b", 1, 4, (uint64_t[]){2, 3, 1, 2}); /* F16 */
    add_tensor(w, "empty", 0, 2, (uint64_t[]){3, 0});
    add_tensor(w, "..", 27, 3, (uint64_t[]){1, 2, 3}); /* I64 */
    add_tensor(w, "removed", 37, 1, (uint64_t[]){32}); /* IQ4_NL_4_8 */
    add_tensor(w, "iq", 17, 2, (uint64_t[]){256, 2});  /* IQ2_XS */
    gguf_writer_add_tensor(w, "unknown", 7, 1, (uint64_t[]){5}, 999, NULL, 5);
    return model_file_finish(w);
}

struct gguf_model *model_file_rich_model(size_t encoding)
{
    struct model_bytes bytes = model_file_rich(&model_encodings[encoding]);
    struct gguf_model *model = model_file_accept(bytes.data, bytes.size_bytes);

    free(bytes.data);
    return model;
}

/* SplitMix64 (https://prng.di.unimi.it/splitmix64.c). */
size_t model_file_next_damage(size_t at)
{
    return at + (at < 256 || getenv("GGUFS_THOROUGH") ? 1 : 17);
}

uint64_t model_file_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}
