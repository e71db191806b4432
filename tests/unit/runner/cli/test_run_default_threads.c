/* The number of threads without -t, from CPU affinity, cores and control groups. */
#include "contrib/runner/cli/default_threads.h"
#include "contrib/runner/compute/thread_pool.h"

#include <criterion/criterion.h>

#include <ftw.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* In place of the system's files. */
static char root[] = "/tmp/ggufs-test-XXXXXX";
static unsigned n_cpus, cpus[2]; /* the first of those that this process may use */

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    return remove(path);
}

/* Write a file below the root, and make its directories. */
static void write_file(const char *name, const char *text)
{
    char path[PATH_MAX];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", root, name);
    for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    file = fopen(path, "w");
    cr_assert_not_null(file, "%s", path);
    fputs(text, file);
    fclose(file);
}

/* Let this process run on two CPUs, or on one if it has only one. */
static void setup(void)
{
    cpu_set_t all, used;

    unsetenv("OMP_NUM_THREADS");
    cr_assert_not_null(mkdtemp(root));
    cr_assert_eq(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&used);
    for (unsigned cpu = 0; cpu < CPU_SETSIZE && n_cpus < 2; cpu++) {
        if (CPU_ISSET(cpu, &all)) {
            CPU_SET(cpu, &used);
            cpus[n_cpus++] = cpu;
        }
    }
    cr_assert_eq(sched_setaffinity(0, sizeof used, &used), 0);
}

static void teardown(void)
{
    nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

TestSuite(run_default_threads, .init = setup, .fini = teardown);

static void write_siblings(unsigned cpu, const char *list)
{
    char name[100];

    snprintf(name, sizeof name, "sys/devices/system/cpu/cpu%u/topology/thread_siblings_list", cpu);
    write_file(name, list);
}

Test(run_default_threads, all_cpus_without_information)
{
    cr_expect_eq(run_default_threads(root), n_cpus);
    cr_expect_leq(run_default_threads(""), n_cpus);
}

Test(run_default_threads, threads_of_a_core_count_once)
{
    char list[40];

    snprintf(list, sizeof list, "%u,%u\n", cpus[0], cpus[n_cpus - 1]);
    write_siblings(cpus[0], list);
    write_siblings(cpus[n_cpus - 1], list);
    cr_expect_eq(run_default_threads(root), 1);
    snprintf(list, sizeof list, "%u-%u\n", cpus[n_cpus - 1], cpus[n_cpus - 1] + 1);
    write_siblings(cpus[n_cpus - 1], list);
    cr_expect_eq(run_default_threads(root), n_cpus);
}

Test(run_default_threads, affinity)
{
    cpu_set_t one;

    CPU_ZERO(&one);
    CPU_SET(cpus[n_cpus - 1], &one);
    cr_assert_eq(sched_setaffinity(0, sizeof one, &one), 0);
    cr_expect_eq(run_default_threads(root), 1);
    cr_expect_eq(run_default_threads(""), 1);
}

Test(run_default_threads, limits_of_control_groups)
{
    static const struct {
        const char *limit;
        unsigned n;
    } cases[] = {
        {"100000 100000\n", 1},
        {"30000 100000\n", 1},
        {"0 100000\n", 1},
        {"100001 100000\n", 2},
        {"max 100000\n", 2},
        {"900000 100000\n", 2},
        {"\n", 2},
        {"100000 0\n", 2},
        {"99999999999999999999 1\n", 2},
    };

    write_file("proc/self/cgroup", "1:net_cls:/\n0::/a/b\n");
    cr_expect_eq(run_default_threads(root), n_cpus);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static const char *const groups[] = {"", "/a", "/a/b"};

        for (size_t j = 0; j < 3; j++) {
            char name[100];

            snprintf(name, sizeof name, "sys/fs/cgroup%s/cpu.max", groups[j]);
            write_file(name, cases[i].limit);
            cr_expect_eq(run_default_threads(root), cases[i].n < n_cpus ? cases[i].n : n_cpus,
                         "%s in %s", cases[i].limit, name);
            write_file(name, "max 100000\n");
        }
    }
}

Test(run_default_threads, environment)
{
    static const struct {
        const char *value;
        unsigned n;
    } cases[] = {{"3", 3}, {"7,2", 7}, {"100000", RUN_MAX_THREADS}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        setenv("OMP_NUM_THREADS", cases[i].value, 1);
        cr_expect_eq(run_default_threads(root), cases[i].n, "%s", cases[i].value);
    }
    setenv("OMP_NUM_THREADS", "many", 1);
    cr_expect_eq(run_default_threads(root), n_cpus);
    setenv("OMP_NUM_THREADS", "0", 1);
    cr_expect_eq(run_default_threads(root), n_cpus);
}
