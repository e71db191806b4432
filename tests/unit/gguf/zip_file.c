#include "tests/unit/gguf/zip_file.h"

#include <stdlib.h>
#include <string.h>

static unsigned char *put(unsigned char *to, uint64_t number, unsigned width_bytes)
{
    for (unsigned i = 0; i < width_bytes; i++)
        *to++ = (unsigned char)(number >> 8 * i);
    return to;
}

static unsigned char *put_name(unsigned char *to)
{
    memcpy(to, ZIP_FILE_NAME, ZIP_NAME_BYTES);
    return to + ZIP_NAME_BYTES;
}

static unsigned char *put_local(unsigned char *to, uint64_t size_bytes)
{
    to = put(to, 0x04034b50, 4);
    memset(to, 0, 14);
    to = put(to + 14, size_bytes, 4);
    to = put(to, size_bytes, 4);
    to = put(to, ZIP_NAME_BYTES, 2);
    return put_name(put(to, 0, 2));
}

static unsigned char *put_entry(unsigned char *to, uint64_t size_bytes, bool is_zip64)
{
    const uint64_t in_zip64 = 0xffffffff;

    to = put(to, 0x02014b50, 4);
    memset(to, 0, 16);
    to = put(to + 16, is_zip64 ? in_zip64 : size_bytes, 4);
    to = put(to, is_zip64 ? in_zip64 : size_bytes, 4);
    to = put(to, ZIP_NAME_BYTES, 2);
    to = put(to, is_zip64 ? ZIP_EXTRA64_BYTES : 0, 2);
    memset(to, 0, 10);
    to = put_name(put(to + 10, is_zip64 ? in_zip64 : 0, 4));
    if (!is_zip64)
        return to;
    to = put(to, 1, 2);
    to = put(to, ZIP_EXTRA64_BYTES - 4, 2);
    to = put(to, size_bytes, 8);
    to = put(to, size_bytes, 8);
    return put(to, 0, 8);
}

/* The ZIP64 end record and its locator. */
static unsigned char *put_end64(unsigned char *to, uint64_t directory_bytes, uint64_t offset)
{
    to = put(to, 0x06064b50, 4);
    to = put(to, ZIP_END64_BYTES - 12, 8);
    memset(to, 0, 12);
    to = put(to + 12, 1, 8);
    to = put(to, 1, 8);
    to = put(to, directory_bytes, 8);
    to = put(to, offset, 8);
    to = put(to, 0x07064b50, 4);
    to = put(to, 0, 4);
    to = put(to, offset + directory_bytes, 8);
    return put(to, 1, 4);
}

static unsigned char *put_end(unsigned char *to, uint64_t directory_bytes, uint64_t offset,
                              bool is_zip64)
{
    to = put(to, 0x06054b50, 4);
    to = put(to, 0, 4);
    to = put(to, is_zip64 ? 0xffff : 1, 2);
    to = put(to, is_zip64 ? 0xffff : 1, 2);
    to = put(to, is_zip64 ? 0xffffffff : directory_bytes, 4);
    to = put(to, is_zip64 ? 0xffffffff : offset, 4);
    return put(to, 0, 2);
}

struct model_bytes zip_file_make(struct model_bytes model, size_t n_before, bool is_zip64)
{
    const uint64_t directory_bytes = ZIP_ENTRY_BYTES + (is_zip64 ? ZIP_EXTRA64_BYTES : 0);
    const uint64_t directory_offset = ZIP_LOCAL_BYTES + model.size_bytes;
    const size_t most_bytes = n_before + model.size_bytes + 512;
    struct model_bytes zip = {.data = malloc(most_bytes)};
    unsigned char *to = zip.data;

    if (!to)
        abort();
    memset(to, 'x', n_before);
    to = put_local(to + n_before, model.size_bytes);
    memcpy(to, model.data, model.size_bytes);
    to = put_entry(to + model.size_bytes, model.size_bytes, is_zip64);
    if (is_zip64)
        to = put_end64(to, directory_bytes, directory_offset);
    to = put_end(to, directory_bytes, directory_offset, is_zip64);
    zip.size_bytes = (size_t)(to - zip.data);
    return zip;
}
