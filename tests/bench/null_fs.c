/*
 * The null file system: the fastest possible mount, and so the upper limit for ggufs in the bench.
 * It is ggufs itself (same tree, options, replies to open, threads and sandbox), linked with
 * --wrap=fs_requests, and answers every read from one buffer of noise. Later changes of ggufs
 * therefore apply to it too, except for work that ggufs adds to reads.
 */
#include "fs/mount/requests.h"
#include "fs/mount/server.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

/* Larger than any request, and aligned to a huge page like the reply buffers of ggufs. */
#define NOISE_BYTES ((size_t)2 << 20)

static _Alignas(NOISE_BYTES) uint8_t noise[NOISE_BYTES];

extern const struct fuse_lowlevel_ops __real_fs_requests;
struct fuse_lowlevel_ops __wrap_fs_requests;

static void on_read(fuse_req_t request, fuse_ino_t inode, size_t size, off_t offset,
                    struct fuse_file_info *info)
{
    const struct fs_server *server = fuse_req_userdata(request);
    uint64_t left_bytes;

    if (fs_tree_size(server->shown.tree, (fs_node_index)(inode - FUSE_ROOT_ID), NULL, &left_bytes) <
            0 ||
        size > NOISE_BYTES) {
        fuse_reply_err(request, EIO);
        return;
    }
    left_bytes -= (uint64_t)offset < left_bytes ? (uint64_t)offset : left_bytes;
    fuse_reply_buf(request, (const char *)noise, size < left_bytes ? size : (size_t)left_bytes);
}

/* xorshift64 (Marsaglia 2003). */
static void make_noise(void)
{
    uint64_t state = 0x9e3779b97f4a7c15;

    madvise(noise, NOISE_BYTES, MADV_HUGEPAGE);

    for (size_t i = 0; i < NOISE_BYTES; i += sizeof state) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        memcpy(noise + i, &state, sizeof state);
    }
}

/* Runs before main(), which belongs to ggufs. */
__attribute__((constructor)) static void replace_read(void)
{
    make_noise();
    __wrap_fs_requests = __real_fs_requests;
    __wrap_fs_requests.read = on_read;
}
