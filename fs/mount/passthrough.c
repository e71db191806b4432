#include "fs/mount/passthrough.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

/* The header of Linux 6.1, which Debian 12 has, lacks these. */
#ifndef FUSE_PASSTHROUGH
#define FUSE_PASSTHROUGH  (1ull << 37)
#define FOPEN_PASSTHROUGH (1u << 7)
#endif

/* The model file lies on a file system that is not stacked on another one itself. */
#define MAX_STACK_DEPTH 1u
/* Member max_stack_depth of struct fuse_init_out. */
#define STACK_DEPTH_OFFSET (offsetof(struct fuse_init_out, flags2) + sizeof(uint32_t))

void fs_passthrough_request(struct fuse_init_out *answer)
{
    const uint32_t depth = MAX_STACK_DEPTH;

    answer->flags2 |= FUSE_PASSTHROUGH >> 32;
    memcpy((char *)answer + STACK_DEPTH_OFFSET, &depth, sizeof depth);
}

int32_t fs_passthrough_register(int fuse_descriptor, int file)
{
    struct fs_registration registration = {.file = file};
    const int id = ioctl(fuse_descriptor, FS_PASSTHROUGH_REGISTER, &registration);

    return id >= 0 ? id : -errno;
}

const char *fs_passthrough_obstacle(int error)
{
    switch (error) {
    case -EPERM:
        return "it needs root and CAP_SYS_ADMIN outside of containers";
    case -ELOOP:
        return "the model lies on a file system that is stacked on another one";
    default:
        return "the kernel does not have it; it needs Linux 6.9";
    }
}

bool fs_passthrough_fits(const struct fs_server *server, const struct fs_image *image)
{
    const struct gguf_model *model = server->tree->model;
    const struct gguf_source *source;
    uint64_t offset;

    return server->passthrough_id > 0 && fs_image_is_of_source(image, &source, &offset) &&
           source == &model->files[model->named_file] && offset == 0 &&
           image->size_bytes == source->size_bytes;
}

int fs_passthrough_reply_open(fuse_req_t request, uint64_t handle, int32_t id, bool direct)
{
    /* libfuse 3.14 has no member for the id, which takes the place of the padding. */
    struct fuse_open_out answer = {.fh = handle,
                                   .open_flags = FOPEN_PASSTHROUGH | FOPEN_NOFLUSH |
                                                 (direct ? FOPEN_DIRECT_IO : 0)};
    const struct iovec part = {&answer, sizeof answer};

    static_assert(sizeof answer == 16, "struct fuse_open_out");
    memcpy((char *)&answer + sizeof answer - sizeof id, &id, sizeof id);
    return fuse_reply_iov(request, &part, 1);
}
