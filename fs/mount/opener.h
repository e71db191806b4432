/*
 * A process that opens files for the confined server of many models. It opens for reading only, in
 * the folders and the files that were named when it started, and passes the descriptors. It parses
 * nothing but the names in folders. It ends with the server.
 */
#pragma once

#include "gguf/stores/model_list.h"

#include <pthread.h>
#include <stdbool.h>

struct fs_opener {
    int socket;
    pthread_mutex_t lock;            /* of a request and its answer */
    struct gguf_store_access access; /* to be used in the server */
};

/*
 * Start the process, before the server is confined. `roots` are absolute paths of folders and
 * files, ended by NULL; links do not lead out of a folder. Nothing on `mountpoint` is opened, which
 * the caller will serve. Prints an error to stderr. Returns an exit status.
 */
int fs_opener_start(struct fs_opener *opener, const char *const *roots, const char *mountpoint,
                    bool sandbox);
