#include "gguf/support/shard_names.h"

#include <ctype.h>
#include <string.h>

/* End of a shard's name, with digits for 'N'. */
static const char shard_ending[] = "-NNNNN-of-NNNNN.gguf";

static bool is_shard(const char *path)
{
    const size_t length = strlen(path), ending = strlen(shard_ending);

    if (length < ending)
        return false;
    for (size_t i = 0; i < ending; i++) {
        const char c = path[length - ending + i];

        if (shard_ending[i] == 'N' ? !isdigit((unsigned char)c) : c != shard_ending[i])
            return false;
    }
    return true;
}

bool gguf_are_shards_of_one_model(const char *a, const char *b)
{
    const size_t length = strlen(a);
    const size_t number = length - strlen(shard_ending) + 1; /* where its digits start */

    return is_shard(a) && is_shard(b) && strlen(b) == length && strncmp(a, b, number) == 0 &&
           strcmp(a + number + 5, b + number + 5) == 0;
}
