/*
 * The descriptor of -o notify_fd=N, a pipe to the program that runs ggufs: it gets the byte 's'
 * when the tree can be read, or 'f' if it cannot be mounted, as from squashfuse.
 */
#ifndef GGUFS_FS_READY_DESCRIPTOR_H
#define GGUFS_FS_READY_DESCRIPTOR_H

/*
 * Use a copy of a descriptor from now on, which programs that the process starts do not get.
 * Returns 0 or a negative errno; -EBADF if it is not open for writing.
 */
int fs_ready_open(int descriptor);

/* Return the copy, or -1 if there is none. */
int fs_ready_descriptor(void);

/* Write the byte, if the descriptor is open, and close it. A reader that has gone is no error. */
void fs_ready_succeed(void);
void fs_ready_fail(void);

void fs_ready_close(void);

#endif
