#include "tests/unit/refusal.h"

#include <criterion/criterion.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void refusal_expect(const struct refusal *row)
{
    struct model_bytes bytes = row->build(row->argument);
    struct gguf_report report = {0};
    struct gguf_model *model = NULL;
    const int result = model_file_open(bytes.data, bytes.size_bytes, &model, &report);

    cr_expect_eq(result, row->code, "%s: got %d", row->breaks, result);
    cr_expect_null(model, "%s: accepted", row->breaks);
    cr_expect_eq(report.n_errors, 1, "%s: %zu errors", row->breaks, report.n_errors);
    cr_expect_eq(report.first_error.code, row->code, "%s", row->breaks);
    cr_expect_eq(report.first_error.file_offset, row->file_offset,
                 "%s: at %" PRIu64 " instead of %" PRIu64, row->breaks,
                 report.first_error.file_offset, row->file_offset);
    for (size_t i = 0; i < COUNT(row->says) && row->says[i]; i++)
        cr_expect_not_null(strstr(report.first_error.message, row->says[i]), "%s: no \"%s\" in: %s",
                           row->breaks, row->says[i], report.first_error.message);
    gguf_close(model);
    free(bytes.data);
}
