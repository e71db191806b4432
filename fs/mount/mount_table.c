#include "fs/mount/mount_table.h"

#include "gguf/support/arrays.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* End the word at *rest, step over it, and undo its escapes: a backslash and three octal digits. */
static const char *next_word(char **rest)
{
    char *word = strsep(rest, " \n"), *end = word;

    for (const char *at = word; at && (*end = *at) != '\0'; at++, end++) {
        if (*at == '\\' && strspn(at + 1, "01234567") >= 3) {
            *end = (char)((at[1] - '0') << 6 | (at[2] - '0') << 3 | (at[3] - '0'));
            at += 3;
        }
    }
    return word;
}

/*
 * Parse a line of proc_pid_mountinfo(5): "36 35 0:42 /root /path options ... - type source
 * options". Returns 0 or -EINVAL.
 */
static int parse(char *line, struct fs_mount_entry *entry)
{
    char *rest = strstr(line, " - "), *path = line;

    if (!rest || sscanf(line, "%*s %*s %u:%u", &entry->major, &entry->minor) != 2)
        return -EINVAL;
    for (size_t i = 0; i < 4; i++) {
        path = strchr(path, ' ');
        if (!path++)
            return -EINVAL;
    }
    rest += strlen(" - ");
    entry->line = line;
    entry->path = next_word(&path);
    entry->type = next_word(&rest);
    entry->source = next_word(&rest); /* may be empty */
    return entry->source ? 0 : -EINVAL;
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
        result = gguf_reserve(&table->list, &room, table->count + 1, sizeof *table->list);
        if (result == 0)
            result = parse(line, &table->list[table->count]);
        if (result == 0) {
            table->count++;
            line = NULL;
        }
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
