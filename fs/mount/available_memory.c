#include "fs/mount/available_memory.h"

#include "gguf/support/strings.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Return the number after `label` in a text file, or UINT64_MAX if there is none. */
static uint64_t read_number(const char *path, const char *label)
{
    FILE *file = fopen(path, "re");
    uint64_t number = UINT64_MAX;
    char line[256];

    while (file && fgets(line, sizeof line, file)) {
        if (gguf_text_starts_with(line, label) &&
            sscanf(line + strlen(label), "%" SCNu64, &number) == 1)
            break;
    }
    if (file)
        fclose(file);
    return number;
}

/*
 * Return the lowest limit of a control group and its ancestors. `group` is its path under `root`,
 * which is changed; `name` is the file with the limit.
 */
static uint64_t lowest_limit(const char *root, char *group, const char *name)
{
    uint64_t lowest = UINT64_MAX;
    char *slash;

    do {
        char *path;

        slash = strrchr(group, '/');
        if (asprintf(&path, "%s%s/%s", root, group, name) < 0)
            break;
        const uint64_t limit = read_number(path, "");

        free(path);
        if (limit < lowest)
            lowest = limit;
        if (slash)
            *slash = '\0';
    } while (slash);
    return lowest;
}

/* Return the limit of the control group in a line of /proc/self/cgroup; see cgroups(7). */
static uint64_t limit_of_line(char *line)
{
    char *controllers = strchr(line, ':');
    char *group = controllers ? strchr(controllers + 1, ':') : NULL;

    if (!group)
        return UINT64_MAX;
    *group++ = '\0';
    group[strcspn(group, "\n")] = '\0';
    if (strcmp(controllers, ":") == 0) /* version 2 */
        return lowest_limit("/sys/fs/cgroup", group, "memory.max");
    if (strcmp(controllers, ":memory") == 0)
        return lowest_limit("/sys/fs/cgroup/memory", group, "memory.limit_in_bytes");
    return UINT64_MAX;
}

uint64_t fs_available_memory(void)
{
    const uint64_t kib = read_number("/proc/meminfo", "MemAvailable:");
    uint64_t available = kib > UINT64_MAX / 1024 ? UINT64_MAX : kib * 1024;
    FILE *file = fopen("/proc/self/cgroup", "re");
    char *line = NULL;
    size_t room = 0;

    while (file && getline(&line, &room, file) > 0) {
        const uint64_t limit = limit_of_line(line);

        if (limit < available)
            available = limit;
    }
    free(line);
    if (file)
        fclose(file);
    return available;
}
