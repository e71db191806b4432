#include "tests/hostile/bad.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct bad_table *const tables[] = {
    &bad_header_table,    &bad_keys_table,    &bad_tensors_table,       &bad_many_errors_table,
    &bad_names_table,     &bad_clashes_table, &bad_odd_table,           &bad_shards_table,
    &bad_no_shards_table, &bad_limits_table,  &bad_within_limits_table,
};

const struct bad_row *bad_row_at(size_t number, size_t *n_errors)
{
    for (size_t i = 0; i < COUNT(tables); i++) {
        *n_errors = tables[i]->n_errors;
        if (number < tables[i]->n_rows)
            return &tables[i]->rows[number];
        number -= tables[i]->n_rows;
    }
    return NULL;
}

void bad_file_name(const struct bad_row *row, char name[BAD_NAME_BYTES])
{
    snprintf(name, BAD_NAME_BYTES, "%02u-%.60s.gguf", row->class_number, row->breaks);
    for (char *c = name; *c != '\0'; c++) {
        if (!isalnum((unsigned char)*c) && !strchr("-^+.", *c))
            *c = '-';
    }
}

struct model_bytes bad_finish(struct gguf_writer *w)
{
    struct model_bytes bytes = {0};

    if (gguf_writer_finish(w, &bytes.data, &bytes.size_bytes) != 0)
        abort();
    return bytes;
}

struct gguf_writer *bad_open(void)
{
    return gguf_writer_open(3, false);
}
