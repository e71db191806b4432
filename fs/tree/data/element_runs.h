/* Reads equally spaced runs of elements of a tensor, for example parts of its rows. */
#pragma once

#include "gguf/elements.h"

#include <stddef.h>
#include <stdint.h>

/* n_runs runs of `width` elements each; run i begins at element first + i * pitch. */
struct fs_element_runs {
    uint64_t first;
    uint64_t pitch; /* at least `width` */
    size_t n_runs;
    size_t n_next; /* runs that follow and are read next: the CPU is asked to load them */
    size_t width;
};

/*
 * Write all elements of the runs to `out`, one run after the other. Runs in blocks of up to 1024
 * elements are read together if the pitch is a number of blocks. Errors and *end_offset: see
 * gguf_elements_read_unchecked().
 */
int fs_element_runs_read(const struct gguf_elements *of, const struct fs_element_runs *runs,
                         char *out, uint64_t *end_offset);
