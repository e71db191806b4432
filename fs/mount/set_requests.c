#include "fs/mount/set_requests.h"

#include "fs/mount/inodes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The entries of a folder when it was opened. */
struct listing {
    fuse_ino_t inode;
    size_t n;
    uint32_t *ids; /* owned */
};

/*
 * So long the kernel may remember the attributes of a folder, which it needs for each path through
 * it. Nothing but the time of the last change can be old.
 */
#define FOLDER_SECONDS 1.0

static fuse_ino_t inode_of(uint32_t id)
{
    return ((fuse_ino_t)id << 32) + FUSE_ROOT_ID;
}

/* Describe a folder or model. Its name is not cached, for it can be of another one at any time. */
static int describe(const struct fs_server *server, uint32_t id, struct fs_set_entry *entry,
                    struct fuse_entry_param *param)
{
    static const struct fs_node folder = {.kind = FS_DIRECTORY};
    const int result = fs_model_set_describe(server->set, id, entry);

    if (result == 0)
        *param = (struct fuse_entry_param){.ino = inode_of(id),
                                           .generation = entry->generation,
                                           .attr_timeout = entry->is_lasting  ? FS_FOREVER
                                                           : entry->is_folder ? FOLDER_SECONDS
                                                                              : 0,
                                           .attr = {.st_ino = inode_of(id),
                                                    .st_mode = fs_mode_of(server, &folder),
                                                    .st_nlink = 1, /* not known */
                                                    .st_uid = server->options->uid,
                                                    .st_gid = server->options->gid,
                                                    .st_atim = entry->modified,
                                                    .st_mtim = entry->modified,
                                                    .st_ctim = entry->modified}};
    return result;
}

bool fs_set_lookup(fuse_req_t request, fuse_ino_t parent, const char *name)
{
    struct fs_server *server = fs_server_of(request);
    const uint32_t folder = fs_id_of_inode(parent);
    const bool is_inside = strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
    const bool is_file = folder == FS_MODELS_ROOT && fs_is_root_file(name);
    struct fuse_entry_param param = {0};
    struct fs_set_entry entry;
    uint32_t id;
    int result;

    if (!fs_is_set_entry(server, parent))
        return false;
    if (is_file) /* of the root's tree, as of now */
        result = fs_model_set_refresh(server->set);
    else
        result = fs_model_set_describe(server->set, folder, &entry);
    if (result == 0 && (is_file || (!entry.is_folder && is_inside)))
        return false;
    if (result == 0)
        result = fs_model_set_find(server->set, folder, name, &id);
    if (result == 0)
        result = describe(server, id, &entry, &param);
    if (result < 0)
        fuse_reply_err(request, -result);
    else
        fuse_reply_entry(request, &param);
    return true;
}

bool fs_set_getattr(fuse_req_t request, fuse_ino_t inode)
{
    const struct fs_server *server = fs_server_of(request);
    struct fuse_entry_param param;
    struct fs_set_entry entry;
    int result;

    if (!fs_is_set_entry(server, inode))
        return false;
    result = describe(server, fs_id_of_inode(inode), &entry, &param);
    if (result < 0)
        fuse_reply_err(request, -result);
    else
        fuse_reply_attr(request, &param.attr, param.attr_timeout);
    return true;
}

bool fs_set_opendir(fuse_req_t request, fuse_ino_t inode, struct fuse_file_info *info)
{
    const struct fs_server *server = fs_server_of(request);
    struct listing *listing;
    struct fs_set_entry entry;
    int result;

    info->fh = 0;
    if (!fs_is_set_entry(server, inode) ||
        (fs_model_set_describe(server->set, fs_id_of_inode(inode), &entry) == 0 &&
         !entry.is_folder))
        return false;
    listing = calloc(1, sizeof *listing);
    result = listing
                 ? fs_model_set_list(server->set, fs_id_of_inode(inode), &listing->ids, &listing->n)
                 : -ENOMEM;
    if (result < 0) {
        free(listing);
        fuse_reply_err(request, -result);
        return true;
    }
    listing->inode = inode;
    info->fh = (uintptr_t)listing;
    if (fuse_reply_open(request, info) == -ENOENT) { /* there will be no releasedir */
        free(listing->ids);
        free(listing);
    }
    return true;
}

bool fs_is_set_folder(const struct fuse_file_info *info)
{
    return info->fh != 0;
}

size_t fs_set_add_entry(fuse_req_t request, const struct fuse_file_info *info, off_t *position,
                        bool plus, char *out, size_t room)
{
    const struct listing *listing = (const struct listing *)(uintptr_t)info->fh;
    const off_t n_names = listing->inode == FUSE_ROOT_ID ? 2 + FS_N_ROOT_FILES : 2;
    const off_t end = n_names + (off_t)listing->n;
    struct fuse_entry_param param = {0};
    struct fs_set_entry entry;
    const char *name = entry.name;

    while (*position >= n_names && *position < end &&
           describe(fs_server_of(request), listing->ids[*position - n_names], &entry, &param) < 0)
        ++*position;
    if (*position >= end)
        return 0;
    if (*position < n_names) {
        name = *position >= 2 ? fs_root_files[*position - 2] : *position == 1 ? ".." : ".";
        param.attr.st_ino = *position < 2 ? listing->inode : (ino_t)*position;
        param.attr.st_mode = *position < 2 ? S_IFDIR : S_IFREG;
    }
    if (plus)
        return fuse_add_direntry_plus(request, out, room, name, &param, *position + 1);
    return fuse_add_direntry(request, out, room, name, &param.attr, *position + 1);
}

void fs_set_on_releasedir(fuse_req_t request, fuse_ino_t inode, struct fuse_file_info *info)
{
    struct listing *listing = (struct listing *)(uintptr_t)info->fh;

    if (listing)
        free(listing->ids);
    free(listing);
    fuse_reply_err(request, 0);
}
