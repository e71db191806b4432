/* The number of threads without -t. */
#pragma once

/*
 * Return OMP_NUM_THREADS of the environment, or else the number of physical cores that this process
 * may use by its CPU affinity, limited by the CPU limit of its control groups (version 2), rounded
 * up. `root` is the directory that contains sys/ and proc/, "" outside of tests. The result is 1 to
 * RUN_MAX_THREADS. A limit that cannot be read is ignored.
 */
unsigned run_default_threads(const char *root);
