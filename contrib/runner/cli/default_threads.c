#include "contrib/runner/cli/default_threads.h"

#include "contrib/runner/compute/thread_pool.h"

#include <ctype.h>
#include <limits.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Read a file below `root` as fscanf(3) does, from the first line on that fits. */
__attribute__((format(scanf, 3, 4))) static int scan(const char *root, const char *name,
                                                     const char *format, ...)
{
    char path[2 * PATH_MAX];
    va_list arguments;
    FILE *file;
    int n = 0;

    snprintf(path, sizeof path, "%s/%s", root, name);
    file = fopen(path, "re");
    if (!file)
        return 0;
    do {
        va_start(arguments, format);
        n = vfscanf(file, format, arguments);
        va_end(arguments);
    } while (n == 0 && fscanf(file, "%*[^\n]") != EOF && getc(file) != EOF);
    fclose(file);
    return n;
}

/* Return the lowest number among the CPUs that share a core with `cpu`. */
static unsigned first_sibling(const char *root, unsigned cpu)
{
    char name[100];
    unsigned first;

    snprintf(name, sizeof name, "sys/devices/system/cpu/cpu%u/topology/thread_siblings_list", cpu);
    return scan(root, name, "%u", &first) == 1 && first < CPU_SETSIZE ? first : cpu;
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

/*
 * Return the smallest number of CPUs, rounded up, that this process's control group and those above
 * it may use on average; UINT_MAX: no limit.
 */
static unsigned smallest_limit(const char *root)
{
    char group[PATH_MAX], name[PATH_MAX + 32];
    unsigned smallest = UINT_MAX;
    char *end;

    if (scan(root, "proc/self/cgroup", "0::%4095[^\n]", group) != 1)
        return UINT_MAX;
    for (end = group + strlen(group); end; end = strrchr(group, '/')) {
        unsigned long quota, period; /* microseconds */

        *end = '\0';
        snprintf(name, sizeof name, "sys/fs/cgroup%s/cpu.max", group);
        if (scan(root, name, "%lu %lu", &quota, &period) == 2 && period > 0 &&
            quota / period < smallest)
            smallest = (unsigned)(quota / period + (quota % period != 0));
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
