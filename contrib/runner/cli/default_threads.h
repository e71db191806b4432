/* The number of threads without -t. */
#ifndef GGUFS_RUNNER_DEFAULT_THREADS_H
#define GGUFS_RUNNER_DEFAULT_THREADS_H

/*
 * Return OMP_NUM_THREADS of the environment, or else the number of physical cores that this process
 * may use: those of its CPU affinity, but no more than the CPU limit of its control groups
 * (version 2) rounded up. `root` is the directory that contains sys/ and proc/, "" outside of
 * tests. At least 1, at most RUN_MAX_THREADS. What cannot be read does not limit the number.
 */
unsigned run_default_threads(const char *root);

#endif
