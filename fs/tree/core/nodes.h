/*
 * The nodes of a tree: directories, files and symbolic links, without their contents. Add all
 * nodes, seal the list, then look names up. A sealed list never changes, so any thread may read it.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fs_view;

/* An index in the list; the root is 0. */
typedef uint32_t fs_node_index;
#define FS_ROOT    0u
#define FS_NO_NODE UINT32_MAX

enum fs_node_kind { FS_DIRECTORY, FS_FILE, FS_LINK };

/* The size of a file whose size was never requested. */
#define FS_SIZE_UNKNOWN UINT64_MAX

/* A tree has about a dozen nodes per tensor, so nodes are small. */
struct fs_node {
    const char *name;           /* a safe file name of at most 255 bytes */
    const struct fs_view *view; /* its row; NULL for directories that no row describes */
    const void *subject;        /* the key, tensor or shard that it shows; NULL: the model */
    fs_node_index parent;
    uint32_t n_children; /* of a directory, else 0 */
    enum fs_node_kind kind;
    union {
        _Atomic uint64_t size_bytes; /* of a file */
        const char *target;          /* of a link */
        struct {                     /* of a directory */
            uint32_t n_folders;      /* directories among the children */
            uint32_t first_child;    /* index in `children`, which are sorted by name; set by
                                        fs_nodes_seal() */
        };
    };
};

struct fs_text_block;

struct fs_nodes {
    struct fs_node *list;
    uint32_t count;
    size_t room;
    fs_node_index *children;
    struct fs_text_block *texts; /* copies of names and targets */
};

/* Start with the root directory. Returns 0 or -ENOMEM. Call fs_nodes_free() in any case. */
int fs_nodes_begin(struct fs_nodes *nodes);
void fs_nodes_free(struct fs_nodes *nodes);

/*
 * Add a node to a directory. With `copy_name`, the list keeps a copy of the name, otherwise the
 * name must outlive it. Returns 0, -ENOMEM, or -EOVERFLOW beyond 2^31 nodes. *index is only set on
 * success.
 */
int fs_nodes_add(struct fs_nodes *nodes, fs_node_index parent, enum fs_node_kind kind,
                 const char *name, bool copy_name, fs_node_index *index);

/* Set the target of a link. It is copied. Returns 0 or -ENOMEM. */
int fs_nodes_set_target(struct fs_nodes *nodes, fs_node_index link, const char *target);

static inline bool fs_node_is_directory(const struct fs_node *node)
{
    return node->kind == FS_DIRECTORY;
}

/*
 * Sort the children. Returns 0, -ENOMEM, or -EEXIST if a directory has two nodes of the same name;
 * their indices are then in twins[0] and twins[1].
 */
int fs_nodes_seal(struct fs_nodes *nodes, fs_node_index twins[2]);

/* Return the child called `name`, or FS_NO_NODE if it is missing or the node is not a directory. */
fs_node_index fs_nodes_find(const struct fs_nodes *nodes, fs_node_index directory,
                            const char *name);
