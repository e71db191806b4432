#include "fs/mount/mount_table.h"

#include "gguf/support/grow.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Undo the escapes of the table: a backslash and three octal digits. */
static void unescape(char *text)
{
    char *end = text;

    for (; *text != '\0'; text++) {
        unsigned octal;

        if (*text == '\\' && strspn(text + 1, "01234567") >= 3 &&
            sscanf(text + 1, "%3o", &octal) == 1) {
            *end++ = (char)octal;
            text += 3;
        } else {
            *end++ = *text;
        }
    }
    *end = '\0';
}

/*
 * Parse a line, which becomes the entry's: "36 35 0:42 /root /path options ... - type source
 * options", see proc_pid_mountinfo(5). Returns 0 or -EINVAL.
 */
static int parse(char *line, struct fs_mount_entry *entry)
{
    char *separator = strstr(line, " - ");
    char *rest = NULL, *fields[5];

    if (!separator || sscanf(line, "%*s %*s %u:%u", &entry->major, &entry->minor) != 2)
        return -EINVAL;
    *separator = '\0';
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        fields[i] = strtok_r(i == 0 ? line : NULL, " ", &rest);
        if (!fields[i])
            return -EINVAL;
    }
    entry->line = line;
    entry->path = fields[4];
    unescape(fields[4]);
    entry->type = strtok_r(separator + strlen(" - "), " ", &rest);
    if (!entry->type || !rest)
        return -EINVAL;
    entry->source = rest; /* may be empty */
    rest[strcspn(rest, " ")] = '\0';
    unescape(rest);
    return 0;
}

/* Append the line's mount. Returns 0, after which the line is the table's, or a negative errno. */
static int add(struct fs_mount_table *table, size_t *room, char *line)
{
    struct fs_mount_entry *list =
        gguf_grow(table->list, room, table->count + 1, sizeof *table->list);
    int result;

    if (!list)
        return -ENOMEM;
    table->list = list;
    result = parse(line, &list[table->count]);
    if (result == 0)
        table->count++;
    return result;
}

int fs_mount_table_read(struct fs_mount_table *table)
{
    FILE *file = fopen("/proc/self/mountinfo", "re");
    size_t room = 0, line_room = 0;
    char *line = NULL;
    int result = 0;

    *table = (struct fs_mount_table){0};
    if (!file)
        return -errno;
    while (result == 0 && getline(&line, &line_room, file) > 0) {
        result = add(table, &room, line);
        if (result == 0)
            line = NULL;
    }
    free(line);
    fclose(file);
    return result;
}

void fs_mount_table_free(struct fs_mount_table *table)
{
    for (size_t i = 0; i < table->count; i++)
        free(table->list[i].line);
    free(table->list);
    *table = (struct fs_mount_table){0};
}

const struct fs_mount_entry *fs_mount_table_find(const struct fs_mount_table *table,
                                                 const char *path)
{
    for (size_t i = table->count; i > 0; i--) {
        if (strcmp(table->list[i - 1].path, path) == 0)
            return &table->list[i - 1];
    }
    return NULL;
}
