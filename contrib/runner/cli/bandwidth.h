/* The read bandwidth of the machine's memory, which limits how fast weights can be read. */
#ifndef GGUFS_RUNNER_BANDWIDTH_H
#define GGUFS_RUNNER_BANDWIDTH_H

/*
 * Return the bytes per second at which n_threads threads read a buffer that no cache can hold: the
 * best of several passes. Needs memory for the buffer while it runs. Returns NaN if there is no
 * memory or no thread.
 */
double run_measure_bandwidth(unsigned n_threads);

#endif
