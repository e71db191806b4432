#include "contrib/runner/cli/default_threads.h"

#include "contrib/runner/compute/thread_pool.h"
#include "gguf/support/strings.h"

#include <ctype.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Read the first line of a file that starts with `start`. Stores the rest of it. */
static bool read_line(const char *path, const char *start, char *rest, size_t rest_bytes)
{
    FILE *file = fopen(path, "re");
    char line[PATH_MAX];
    bool is_found = false;

    while (file && !is_found && fgets(line, sizeof line, file))
        is_found = gguf_text_starts_with(line, start);
    if (file)
        fclose(file);
    if (!is_found)
        return false;
    line[strcspn(line, "\n")] = '\0';
    snprintf(rest, rest_bytes, "%s", line + strlen(start));
    return true;
}

/* Return the lowest number among the CPUs that share a core with `cpu`. */
static unsigned first_sibling(const char *root, unsigned cpu)
{
    char path[PATH_MAX], list[64];
    unsigned first;

    snprintf(path, sizeof path, "%s/sys/devices/system/cpu/cpu%u/topology/thread_siblings_list",
             root, cpu);
    return read_line(path, "", list, sizeof list) && sscanf(list, "%u", &first) == 1 &&
                   first < CPU_SETSIZE
               ? first
               : cpu;
}

/* Return the number of cores with a CPU on which this process may run, or of those online. */
static unsigned count_cores(const char *root)
{
    cpu_set_t usable, first_siblings;

    CPU_ZERO(&first_siblings);
    if (sched_getaffinity(0, sizeof usable, &usable) != 0)
        return (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &usable))
            CPU_SET(first_sibling(root, cpu), &first_siblings);
    return (unsigned)CPU_COUNT(&first_siblings);
}

/* Return the CPUs that a control group may use on average, rounded up; UINT_MAX: no limit. */
static unsigned group_limit(const char *root, const char *group)
{
    char path[2 * PATH_MAX], limit[64];
    unsigned long quota, period; /* microseconds */

    snprintf(path, sizeof path, "%s/sys/fs/cgroup%s/cpu.max", root, group);
    if (!read_line(path, "", limit, sizeof limit) ||
        sscanf(limit, "%lu %lu", &quota, &period) != 2 || period == 0 ||
        quota / period >= RUN_MAX_THREADS)
        return UINT_MAX;
    return (unsigned)(quota / period + (quota % period != 0));
}

/* Return the smallest limit of this process's control group and those above it. */
static unsigned smallest_limit(const char *root)
{
    char path[PATH_MAX], group[PATH_MAX];
    unsigned smallest = UINT_MAX;
    char *end;

    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    if (!read_line(path, "0::", group, sizeof group))
        return UINT_MAX;
    for (end = group + strlen(group); end; end = strrchr(group, '/')) {
        unsigned limit;

        *end = '\0';
        limit = group_limit(root, group);
        smallest = limit < smallest ? limit : smallest;
    }
    return smallest;
}

static unsigned clamp(unsigned long n)
{
    return n > RUN_MAX_THREADS ? RUN_MAX_THREADS : n > 0 ? (unsigned)n : 1;
}

unsigned run_default_threads(const char *root)
{
    const char *wanted = getenv("OMP_NUM_THREADS");
    const unsigned long n_wanted =
        wanted && isdigit((unsigned char)*wanted) ? strtoul(wanted, NULL, 10) : 0;
    unsigned n_cores, limit;

    if (n_wanted > 0)
        return clamp(n_wanted);
    n_cores = count_cores(root);
    limit = smallest_limit(root);
    return clamp(limit < n_cores ? limit : n_cores);
}
