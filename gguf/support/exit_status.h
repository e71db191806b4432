/* Exit statuses of the programs, as sysexits.h names them. */
#ifndef GGUFS_GGUF_EXIT_STATUS_H
#define GGUFS_GGUF_EXIT_STATUS_H

/*
 * Return the exit status for `code`, a negative errno from any folder, or EX_OK for 0. Errors that
 * have no row are faults of the model file: EX_DATAERR.
 */
int gguf_exit_status(int code);

/*
 * Flush stdout and report whether everything written to it has arrived. Prints "PROGRAM: cannot
 * write to standard output: REASON" to stderr and returns EX_IOERR if not, else returns `status`.
 * Call it as the last step of every command that prints to stdout.
 */
int gguf_finish_stdout(const char *program, int status);

#endif
