/*
 * ZIP files with one stored member, made in memory, and the offsets of their fields.
 * tests/mount/tree/test_ranges.py makes its files with Python's zipfile.
 */
#pragma once

#include "tests/unit/gguf/model_file.h"

#define ZIP_FILE_NAME "m.gguf" /* of the member */

/* Sizes of records, with the member's name. */
enum {
    ZIP_NAME_BYTES = sizeof ZIP_FILE_NAME - 1,
    ZIP_LOCAL_BYTES = 30 + ZIP_NAME_BYTES,
    ZIP_ENTRY_BYTES = 46 + ZIP_NAME_BYTES,
    ZIP_EXTRA64_BYTES = 4 + 3 * 8, /* follows the entry */
    ZIP_END64_BYTES = 56,
    ZIP_LOCATOR64_BYTES = 20,
    ZIP_END_BYTES = 22
};

/*
 * Return n_before bytes of 'x', then a ZIP file that contains the model. Its offsets count from its
 * own start. `is_zip64`: sizes and offsets are in ZIP64 records. The caller frees the bytes. Aborts
 * if memory is short.
 */
struct model_bytes zip_file_make(struct model_bytes model, size_t n_before, bool is_zip64);
