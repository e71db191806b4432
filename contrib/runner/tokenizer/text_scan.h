/*
 * A part of a text that patterns look at.
 */
#ifndef GGUFS_RUNNER_TEXT_SCAN_H
#define GGUFS_RUNNER_TEXT_SCAN_H

#include "contrib/runner/tokenizer/characters.h"

/* Where it ends, and what was last found out about it: a long run is measured once. */
struct run_scan {
    const char *text;
    size_t end;
    size_t run_start, run_end; /* characters of the class `run_class` */
    size_t run_mark;           /* RUN_SPACE: behind the last line end in it */
    unsigned run_class;
};

static inline struct run_character run_scan_look(const struct run_scan *scan, size_t at)
{
    return run_character_at(scan->text, scan->end, at);
}

/* Measures the run of that class at `at`, unless it was measured before. */
void run_scan_measure(struct run_scan *scan, size_t at, unsigned class);

#endif
