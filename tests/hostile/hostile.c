#include "tests/hostile/hostile.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct hostile_table *const tables[] = {
    &hostile_header_table,      &hostile_keys_table,          &hostile_tensors_table,
    &hostile_many_errors_table, &hostile_names_table,         &hostile_clashes_table,
    &hostile_odd_table,         &hostile_shards_table,        &hostile_no_shards_table,
    &hostile_limits_table,      &hostile_within_limits_table, &hostile_zip_table,
    &hostile_types_table,
};

const struct hostile_row *hostile_row_at(size_t number, size_t *n_errors)
{
    for (size_t i = 0; i < COUNT(tables); i++) {
        *n_errors = tables[i]->n_errors;
        if (number < tables[i]->n_rows)
            return &tables[i]->rows[number];
        number -= tables[i]->n_rows;
    }
    return NULL;
}

void hostile_file_name(const struct hostile_row *row, char name[HOSTILE_NAME_BYTES])
{
    snprintf(name, HOSTILE_NAME_BYTES, "%02u-%.60s.gguf", row->class_number, row->breaks);
    for (char *c = name; *c != '\0'; c++) {
        if (!isalnum((unsigned char)*c) && !strchr("-^+.", *c))
            *c = '-';
    }
}

struct model_bytes hostile_finish(struct gguf_writer *w)
{
    struct model_bytes bytes = {0};

    if (gguf_writer_finish(w, &bytes.data, &bytes.size_bytes) != 0)
        abort();
    return bytes;
}

struct gguf_writer *hostile_open(void)
{
    return gguf_writer_open(3, false);
}
