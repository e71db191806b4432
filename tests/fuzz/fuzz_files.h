/* Reads files of a tree in several ways, which must agree with each other and with the model. */
#pragma once

#include "fs/tree/tree.h"
#include "tests/fuzz/fuzz_check.h"

/* Bytes to read per input. */
#define FUZZ_BUDGET_BYTES (256u << 10)

/* Check a file. *budget is the number of bytes that may still be read; it is reduced. */
void fuzz_check_file(struct fs_tree *tree, fs_node_index index, struct fuzz_random *random,
                     uint64_t *budget);
