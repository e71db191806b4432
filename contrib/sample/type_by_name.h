/*
 * Finds a row of the type table by ggml's name for the type, so that the programs of this folder
 * need no list of type ids.
 */
#ifndef GGUFS_CONTRIB_TYPE_BY_NAME_H
#define GGUFS_CONTRIB_TYPE_BY_NAME_H

#include "dequant/types.h"

#include <assert.h>
#include <string.h>

/* Return the row of the type `name`, which must be in the table. */
static inline const struct dequant_type *type_by_name(const char *name)
{
    const struct dequant_type *found = NULL;
    for (size_t i = 0; i < dequant_type_count() && !found; i++) {
        if (strcmp(dequant_type_at(i)->name, name) == 0)
            found = dequant_type_at(i);
    }
    assert(found);
    return found;
}

#endif
