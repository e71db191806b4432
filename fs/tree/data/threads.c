#include "fs/tree/data/threads.h"

#include "gguf/support/thread_start.h"

#include <stdlib.h>

#ifdef _OPENMP
#include <omp.h>
#else
#define omp_get_max_threads() 1 /* as in the fuzzers, which are compiled without */
#endif

int fs_thread_count(uint64_t n_items)
{
    const int most = omp_get_max_threads();

    return n_items < (uint64_t)most ? (int)n_items : most;
}

void fs_run_threads(int n_threads, void *(*run)(void *user), void *user)
{
    const size_t n_helpers = n_threads > 1 ? (size_t)n_threads - 1 : 0;
    pthread_t *helpers = n_helpers > 0 ? calloc(n_helpers, sizeof *helpers) : NULL;
    size_t n = 0;

    while (helpers && n < n_helpers && gguf_thread_start(&helpers[n], run, user) == 0)
        n++;
    run(user);
    while (n > 0)
        pthread_join(helpers[--n], NULL);
    free(helpers);
}
