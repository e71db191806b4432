/* The identity of a tree, for file handles that outlive the process, and the extended attributes.
 */
#include "fs/tree/identity.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gguf/edits.h"
#include "tests/unit/fs/tree_file.h"
#include "tests/unit/gguf/model_file.h"

TestSuite(fs_identity, .init = model_file_begin_test);

/* Open the file, set or unset a key, and return the identity of the tree. */
static uint64_t identity_with(int descriptor, const char *set, const char *unset)
{
    struct gguf_report report = {0};
    struct gguf_edits edits = {0};
    struct gguf_model *model;
    struct fs_tree *tree;
    uint64_t identity;

    cr_assert_eq(model_file_open_descriptor(descriptor, &model, &report), 0);
    if (set)
        cr_assert_eq(gguf_edits_set(&edits, set, &report), 0, "%s", set);
    if (unset)
        cr_assert_eq(gguf_edits_unset(&edits, unset, &report), 0);
    cr_assert_eq(gguf_edits_apply(&edits, &model, &report), 0, "%s", report.first_error.message);
    tree = tree_file_make_tree(model);
    identity = fs_tree_identity(tree, 7);
    fs_tree_free(tree);
    gguf_edits_free(&edits);
    gguf_close(model);
    return identity;
}

/* Return a file with three keys and a tensor whose data begin with `first`. */
static int make_file(const char *name, char first)
{
    struct gguf_writer *w = gguf_writer_open(3, false);
    const char data[8] = {first};
    struct model_bytes bytes;
    int descriptor;

    gguf_writer_add_string(w, "general.name", name);
    gguf_writer_add_u32(w, "a", 1);
    gguf_writer_add_u32(w, "b", 1);
    gguf_writer_add_tensor(w, "t", 1, 1, (uint64_t[]){2}, 0, data, sizeof data);
    bytes = model_file_finish(w);
    descriptor = model_file_create(bytes.data, bytes.size_bytes);
    free(bytes.data);
    return descriptor;
}

Test(fs_identity, edits_change_it)
{
    static const struct {
        const char *set, *unset;
    } edits[] = {{NULL, NULL},
                 {"general.name=str:x", NULL},
                 {"general.name=str:y", NULL},
                 {"a=u32:2", NULL},
                 {"a=u32:3", NULL},
                 {"c=u32:2", NULL},
                 {"d=u32:2", NULL},
                 {"c=arr[u32]:[1,2]", NULL},
                 {"c=arr[u32]:[1,3]", NULL},
                 {NULL, "a"},
                 {NULL, "b"}};
    uint64_t identities[COUNT(edits)];
    const int descriptor = make_file("name", 0);

    for (size_t i = 0; i < COUNT(edits); i++) {
        identities[i] = identity_with(descriptor, edits[i].set, edits[i].unset);
        cr_expect_eq(identities[i], identity_with(descriptor, edits[i].set, edits[i].unset));
        for (size_t j = 0; j < i; j++)
            cr_expect_neq(identities[i], identities[j], "edits %zu and %zu", i, j);
    }
    close(descriptor);
}

Test(fs_identity, another_file_changes_it)
{
    const int first = make_file("name", 0), other_name = make_file("none", 0);
    const uint64_t identity = identity_with(first, NULL, NULL);
    const struct timespec times[] = {{.tv_sec = 5, .tv_nsec = 6}, {.tv_sec = 5, .tv_nsec = 6}};
    const struct timespec later[][2] = {{times[0], {.tv_sec = 5, .tv_nsec = 7}},
                                        {times[0], {.tv_sec = 6, .tv_nsec = 6}}};
    uint64_t at_times;

    cr_expect_neq(identity, identity_with(other_name, NULL, NULL));
    cr_assert_eq(futimens(first, times), 0);
    cr_assert_eq(futimens(other_name, times), 0);
    at_times = identity_with(first, NULL, NULL);
    cr_expect_neq(at_times, identity);
    cr_expect_neq(at_times, identity_with(other_name, NULL, NULL)); /* by the header alone */
    for (size_t i = 0; i < COUNT(later); i++) {
        cr_assert_eq(futimens(first, later[i]), 0);
        cr_expect_neq(at_times, identity_with(first, NULL, NULL));
    }
    cr_assert_eq(ftruncate(first, lseek(first, 0, SEEK_END) + 32), 0);
    cr_assert_eq(futimens(first, times), 0);
    cr_expect_neq(at_times, identity_with(first, NULL, NULL));
    close(first);
    close(other_name);
}
