/* The standard descriptors of a process: stdin, stdout and stderr. */
#ifndef GGUFS_GGUF_STANDARD_FILES_H
#define GGUFS_GGUF_STANDARD_FILES_H

/*
 * Open /dev/null as each of the descriptors 0, 1 and 2 that the caller closed, so that no file that
 * ggufs opens gets one of these numbers. A stdout that was closed stays one that cannot be written:
 * output to it is lost, which gguf_finish_stdout() reports. Call it first in main(). Returns 0 or a
 * negative errno.
 */
int gguf_fill_standard_files(void);

#endif
