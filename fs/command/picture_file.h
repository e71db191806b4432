/* The file that a picture is drawn to. */
#ifndef GGUFS_FS_PICTURE_FILE_H
#define GGUFS_FS_PICTURE_FILE_H

#include "fs/command/model_input.h"

#include <stdio.h>

struct fs_picture_file {
    const char *path; /* as named by the user */
    FILE *stream;     /* to draw to */
    int directory;    /* of the file; -1: the stream is the file itself, for instance a pipe */
    char *name, *partial_name; /* in the directory; owned */
};

/*
 * Open a temporary file beside `path`, which stays as it is until fs_picture_file_finish(). Call it
 * before fs_confine(), whose confinement fs_picture_file_allow() extends. Refuses to replace an
 * input or a file that is no SVG, and prints to stderr why it fails. Returns an exit status; after
 * EX_OK, end with fs_picture_file_end().
 */
int fs_picture_file_begin(struct fs_picture_file *picture, const char *path,
                          const struct fs_input *inputs, int n_inputs);

/* Keep the rights to rename and to remove the temporary file. */
void fs_picture_file_allow(const struct fs_picture_file *picture,
                           struct gguf_confinement *confinement);

/* Put what was drawn in place of the file. Prints to stderr if it fails. Returns an exit status. */
int fs_picture_file_finish(struct fs_picture_file *picture);

/* Remove the temporary file unless it has been put in place, and close all. */
void fs_picture_file_end(struct fs_picture_file *picture);

#endif
