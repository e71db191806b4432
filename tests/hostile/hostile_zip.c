/* Models inside ZIP files whose fields contradict the file. */
#include "tests/hostile/hostile.h"
#include "tests/unit/gguf/zip_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Offsets in the files: without ZIP64 records, and with them. */
enum {
    MODEL_BYTES = 128,
    ENTRY = ZIP_LOCAL_BYTES + MODEL_BYTES,
    END = ENTRY + ZIP_ENTRY_BYTES,
    EXTRA64 = ENTRY + ZIP_ENTRY_BYTES,
    END64 = EXTRA64 + ZIP_EXTRA64_BYTES,
    N_BEFORE = 100, /* in files where bytes precede the ZIP file */
};

static struct model_bytes make(size_t n_before, bool is_zip64)
{
    struct gguf_writer *w = hostile_open();
    struct model_bytes model, zip;

    gguf_writer_add_tensor(w, "t", 1, 1, (uint64_t[]){64}, 24, NULL, 64);
    model = hostile_finish(w);
    if (model.size_bytes != MODEL_BYTES)
        abort();
    zip = zip_file_make(model, n_before, is_zip64);
    free(model.data);
    return zip;
}

static void put(struct model_bytes zip, size_t offset, size_t n_bytes, uint64_t number)
{
    for (size_t i = 0; i < n_bytes; i++)
        zip.data[offset + i] = (unsigned char)(number >> 8 * i);
}

/* Define a function that returns a ZIP file with a number of that width at `offset`. */
#define DEFINE(name, n_before, is_zip64, offset, n_bytes)                                          \
    static struct model_bytes name(uint64_t number)                                                \
    {                                                                                              \
        const struct model_bytes zip = make(n_before, is_zip64);                                   \
                                                                                                   \
        put(zip, (n_before) + (offset), n_bytes, number);                                          \
        return zip;                                                                                \
    }

DEFINE(local_signature, 0, false, 0, 4)
DEFINE(local_name_length, 0, false, 26, 2)
DEFINE(entry_signature, 0, false, ENTRY, 4)
DEFINE(flags, 0, false, ENTRY + 8, 2)
DEFINE(method, 0, false, ENTRY + 10, 2)
DEFINE(packed_size, 0, false, ENTRY + 20, 4)
DEFINE(unpacked_size, 0, false, ENTRY + 24, 4)
DEFINE(name_length, 0, false, ENTRY + 28, 2)
DEFINE(extra_length, 0, false, ENTRY + 30, 2)
DEFINE(header_offset, 0, false, ENTRY + 42, 4)
DEFINE(count, 0, false, END + 10, 2)
DEFINE(directory_size, 0, false, END + 12, 4)
DEFINE(directory_offset, 0, false, END + 16, 4)
DEFINE(extra64_id, 0, true, EXTRA64, 2)
DEFINE(header_offset64, 0, true, EXTRA64 + 20, 8)
DEFINE(header_offset64_after_bytes, N_BEFORE, true, EXTRA64 + 20, 8)
DEFINE(end64_signature, 0, true, END64, 4)
DEFINE(count64, 0, true, END64 + 32, 8)
DEFINE(directory_size64, 0, true, END64 + 40, 8)
DEFINE(directory_offset64, 0, true, END64 + 48, 8)

/* Both sizes of the member are `number`. */
static struct model_bytes sizes(uint64_t number)
{
    const struct model_bytes zip = make(0, false);

    put(zip, ENTRY + 20, 4, number);
    put(zip, ENTRY + 24, 4, number);
    return zip;
}

static struct model_bytes sizes64(uint64_t number)
{
    const struct model_bytes zip = make(0, true);

    put(zip, EXTRA64 + 4, 8, number);
    put(zip, EXTRA64 + 12, 8, number);
    return zip;
}

/* The directory takes the whole file but its end record. */
static struct model_bytes large_directory(uint64_t n_bytes)
{
    struct model_bytes zip = make(0, false);
    unsigned char *data = realloc(zip.data, n_bytes + ZIP_END_BYTES);

    if (!data)
        abort();
    memmove(data + n_bytes, data + END, ZIP_END_BYTES);
    memset(data + END, 0, n_bytes - END);
    zip.data = data;
    zip.size_bytes = n_bytes + ZIP_END_BYTES;
    put(zip, n_bytes + 12, 4, n_bytes);
    put(zip, n_bytes + 16, 4, 0);
    return zip;
}

static const struct hostile_row rows[] = {
    {26, "no local header", local_signature, 7, -EINVAL, 0, {"\"m.gguf\"", "00000007", "04034b50"}},
    {26,
     "a local name past the end",
     local_name_length,
     65535,
     -EINVAL,
     ENTRY,
     {"\"m.gguf\"", "128 bytes from byte 65565", "ends at 238"}},
    {26,
     "no entry",
     entry_signature,
     7,
     -EINVAL,
     ENTRY,
     {"ZIP directory", "no entry for member 1 of 1"}},
    {26, "encrypted", flags, 1, -EINVAL, ENTRY, {"\"m.gguf\" is encrypted", "unzip"}},
    {26, "compressed", method, 8, -EINVAL, ENTRY, {"\"m.gguf\" is compressed", "unzip"}},
    {26, "other packed size", packed_size, 7, -EINVAL, ENTRY, {"7 bytes in the file", "128 unp"}},
    {26, "size in ZIP64", unpacked_size, UINT32_MAX, -EINVAL, ENTRY, {"\"m.gguf\"", "ZIP64"}},
    {26, "a name past the directory", name_length, 7, -EINVAL, ENTRY, {"member 1 of 1 ends"}},
    {26, "an extra past the directory", extra_length, 1, -EINVAL, ENTRY, {"member 1 of 1 ends"}},
    {26,
     "a member past the end",
     header_offset,
     209,
     -EINVAL,
     ENTRY,
     {"\"m.gguf\"", "at byte 209", "ends at 238"}},
    {26, "a member elsewhere", header_offset, 1, -EINVAL, 1, {"\"m.gguf\"", "04034b50"}},
    {26, "a size of 2^31-1", sizes, INT32_MAX, -EINVAL, ENTRY, {"2147483647 bytes from byte 36"}},
    {26, "5 members", count, 5, -EINVAL, END, {"5 members", "52 bytes"}},
    {26, "0 members", count, 0, -EINVAL, GGUF_NO_OFFSET, {"0 members"}},
    {26, "a directory of 2^32-2", directory_size, UINT32_MAX - 1, -EINVAL, END, {"4294967294 by"}},
    {26, "a directory at its end", directory_offset, END, -EINVAL, END, {"byte 216", "52 bytes"}},
    {26,
     "a directory over the limit",
     large_directory,
     P(24) + 1,
     -E2BIG,
     P(24) + 1,
     {"16777217 bytes", "limit is 16777216"}},
    {26, "no ZIP64 field", extra64_id, 2, -EINVAL, ENTRY, {"\"m.gguf\"", "ZIP64 field"}},
    {26,
     "a member at 2^64-1",
     header_offset64,
     UINT64_MAX,
     -EINVAL,
     ENTRY,
     {"1844674407370955161"}},
    {26,
     "a member past 2^64",
     header_offset64_after_bytes,
     UINT64_MAX,
     -EOVERFLOW,
     N_BEFORE + ENTRY,
     {"18446744073709551615", "byte 100", "2^64"}},
    {26, "a size of 2^64-1", sizes64, UINT64_MAX, -EINVAL, ENTRY, {"18446744073709551615 bytes"}},
    {26, "no ZIP64 end", end64_signature, 7, -EINVAL, END64, {"ZIP64 end", "00000007"}},
    {26, "2^64-1 members", count64, UINT64_MAX, -EINVAL, END64, {"18446744073709551615 members"}},
    {26, "a directory of 2^64-1", directory_size64, UINT64_MAX, -EINVAL, END64, {"551615 bytes"}},
    {26, "a directory at 2^64-1", directory_offset64, UINT64_MAX, -EINVAL, END64, {"byte 184467"}},
};

const struct hostile_table hostile_zip_table = {rows, COUNT(rows), 1};
