/* The table of tensor types in ggufs(5). Runs from the root of the repository. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "dequant/types.h"

/* Write the last column of the table. */
static void describe_layout(const struct dequant_type *type, size_t room, char *text)
{
    char row_header[32] = "", rows[32] = "";

    if (type->row_header_bytes > 0)
        snprintf(row_header, sizeof row_header, "row header %u%s", type->row_header_bytes,
                 type->interleave_rows > 1 ? ", " : "");
    if (type->interleave_rows > 1)
        snprintf(rows, sizeof rows, "%u rows together", type->interleave_rows);
    if (type->tail_bytes > 0)
        snprintf(rows, sizeof rows, "tail %u", type->tail_bytes);
    if (type->rows_bytes)
        snprintf(rows, sizeof rows, "no blocks");
    snprintf(text, room, "%s%s%s%s%s", row_header, rows,
             !dequant_is_decodable(type) && rows[0] ? ", " : "",
             dequant_is_decodable(type) ? "" : "no values",
             dequant_is_decodable(type) && !row_header[0] && !rows[0] ? "blocks" : "");
}

/* Each row of the type table has its line, in the order of ids and of their readings. */
Test(dequant_manual, lists_every_type)
{
    FILE *file = fopen("ggufs.5", "r");
    char line[300], expected[300], layout[80];
    const struct dequant_type *type;

    cr_assert_not_null(file, "no ggufs.5: is this the root of the repository?");
    while (fgets(line, sizeof line, file) &&
           strncmp(line, ".It Sy id Ta Sy name Ta Sy elements", 35))
        ;
    for (uint32_t id = 0; id < 1000; id++) {
        for (size_t i = 0; (type = dequant_candidate_at(id, i)); i++) {
            describe_layout(type, sizeof layout, layout);
            snprintf(expected, sizeof expected, ".It %u Ta %s Ta %u Ta %u Ta %s%s%s Ta %s\n", id,
                     type->name, type->block_elements, type->block_bytes, type->program,
                     type->until ? " before " : "", type->until ? type->until : "", layout);
            cr_assert_not_null(fgets(line, sizeof line, file), "the table ends before %s",
                               type->name);
            cr_expect_str_eq(line, expected);
        }
    }
    cr_assert_not_null(fgets(line, sizeof line, file));
    cr_expect_str_eq(line, ".El\n");
    fclose(file);
}
