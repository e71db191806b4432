#include "fs/library/library.h"

#include "gguf/support/strings.h"

#include <stdlib.h>
#include <string.h>

/* Keys and tensors begin with their name. */
static struct gguf_string name_of(const void *thing)
{
    const struct ggufs_string *name = thing;

    return (struct gguf_string){name->data, name->length_bytes};
}

static int compare(const void *a, const void *b)
{
    return gguf_string_compare(name_of(*(const void *const *)a), name_of(*(const void *const *)b));
}

void fs_library_sort(const void *list, size_t n, size_t stride_bytes, const void **sorted)
{
    for (size_t i = 0; i < n; i++)
        sorted[i] = (const char *)list + i * stride_bytes;
    if (n > 0)
        qsort(sorted, n, sizeof *sorted, compare);
}

const void *fs_library_find(const void *const *sorted, size_t n, const char *name)
{
    const struct ggufs_string wanted = {name, strlen(name)};
    const void *const key = &wanted;
    const void *const *found = n > 0 ? bsearch(&key, sorted, n, sizeof *sorted, compare) : NULL;

    return found ? *found : NULL;
}
