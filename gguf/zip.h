/*
 * The directory of a ZIP file, which is at its end. It says where the members lie; nothing is
 * unpacked. Format: PKWARE, APPNOTE.TXT 6.3.10, sections 4.3.7 (local header), 4.3.12 (directory),
 * 4.3.14 to 4.3.16 (ends of the directory) and 4.5.3 (ZIP64).
 *
 * libzip does not give the offset of a member's data in the file.
 */
#pragma once

#include "gguf/cursor.h"

/* Limit of a directory. A llamafile's has some kilobytes. */
#define GGUF_MAX_ZIP_DIRECTORY_BYTES ((uint64_t)16 << 20)

struct gguf_zip {
    uint8_t *directory; /* a copy; owned */
    uint64_t directory_offset;
    uint64_t n_members;
    uint64_t base_offset; /* of the ZIP file in the file; programs may be prepended to it */
    struct gguf_cursor cursor;
    uint64_t n_read;
};

enum gguf_zip_packing { GGUF_ZIP_STORED, GGUF_ZIP_COMPRESSED, GGUF_ZIP_ENCRYPTED };

struct gguf_zip_member {
    struct gguf_string name; /* in the directory */
    uint64_t entry_offset;   /* of its entry in the directory, for messages */
    enum gguf_zip_packing packing;
    uint64_t header_offset; /* of its local header in the file */
    uint64_t size_bytes;    /* of its data as they are in the file */
};

/*
 * Copy the directory of the ZIP file that ends where the source does. Returns 1, 0 if there is not
 * one, or a negative errno with the reason in `report`. Call gguf_zip_close() in every case.
 */
int gguf_zip_open(const struct gguf_source *source, struct gguf_zip *zip,
                  struct gguf_report *report);
void gguf_zip_close(struct gguf_zip *zip);

/*
 * Read the next entry of the directory. Returns 1, 0 after the last, or a negative errno with the
 * reason in `report`.
 */
int gguf_zip_next(struct gguf_zip *zip, struct gguf_zip_member *member, struct gguf_report *report);

/*
 * Find the data of a member in the file, by its local header. Returns 0, or a negative errno with
 * the reason in `report`.
 */
int gguf_zip_find_data(const struct gguf_source *source, const struct gguf_zip_member *member,
                       uint64_t *offset, struct gguf_report *report);
