#include "contrib/runner/cli/json_writer.h"

#include "contrib/runner/chat/answer.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool follows_member;

static void put_name(const char *name)
{
    if (follows_member)
        putchar(',');
    follows_member = true;
    if (!name)
        return;
    run_json_print_string(stdout, name, strlen(name));
    putchar(':');
}

void run_json_begin(const char *name)
{
    put_name(name);
    putchar('{');
    follows_member = false;
}

void run_json_end(void)
{
    putchar('}');
    follows_member = true;
}

void run_json_string(const char *name, const char *bytes, size_t length)
{
    put_name(name);
    run_json_print_string(stdout, bytes, length);
}

void run_json_number(const char *name, double number)
{
    char digits[32] = "null";

    /* Use the fewest digits that read back to the same value. */
    for (int precision = 15; isfinite(number) && precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, number);
        if (strtod(digits, NULL) == number)
            break;
    }
    put_name(name);
    fputs(digits, stdout);
}

void run_json_integer(const char *name, uint64_t number)
{
    put_name(name);
    printf("%" PRIu64, number);
}

void run_json_ids(const char *name, const struct run_ids *ids)
{
    put_name(name);
    putchar('[');
    for (size_t i = 0; i < ids->n; i++)
        printf(i > 0 ? ",%" PRId32 : "%" PRId32, ids->list[i]);
    putchar(']');
}
