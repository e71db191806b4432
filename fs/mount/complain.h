/* Error messages about paths. */
#ifndef GGUFS_FS_COMPLAIN_H
#define GGUFS_FS_COMPLAIN_H

/*
 * Print "ggufs: PATH: " and the message to stderr, with control characters escaped. If `command` is
 * not NULL, append ": COMMAND PATH", a remedy, with the path quoted for a shell.
 */
void fs_complain(const char *path, const char *command, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
