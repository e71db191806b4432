/* Memory between two inaccessible pages. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct fenced {
    uint8_t *data;
    size_t n_bytes;
};

/* Map at least n_bytes. Ends the program with a message on failure. */
static inline struct fenced make_fenced(size_t n_bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t inner = (n_bytes + page - 1) / page * page;
    uint8_t *all = mmap(NULL, inner + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (all == MAP_FAILED || mprotect(all + page, inner, PROT_READ | PROT_WRITE) != 0) {
        perror("mmap");
        exit(1);
    }
    return (struct fenced){all + page, inner};
}
