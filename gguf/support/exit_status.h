/* Exit statuses of the programs, as sysexits.h names them. */
#ifndef GGUFS_GGUF_EXIT_STATUS_H
#define GGUFS_GGUF_EXIT_STATUS_H

/*
 * Return the exit status for `code`, a negative errno from any folder, or EX_OK for 0. Errors that
 * have no row are faults of the model file: EX_DATAERR.
 */
int gguf_exit_status(int code);

/*
 * Report that writing to stdout failed with `code`, a negative errno. Prints "PROGRAM: cannot write
 * to standard output: REASON" to stderr and returns EX_IOERR. If the reader of a pipe has gone
 * (-EPIPE), prints nothing and returns 128 + SIGPIPE, as shells report a program that died of the
 * signal.
 */
int gguf_fail_stdout(const char *program, int code);

/*
 * Flush stdout. Returns `status` if everything that was written to it has arrived, else reports as
 * gguf_fail_stdout() does. Call it as the last step of every command that prints to stdout.
 */
int gguf_finish_stdout(const char *program, int status);

#endif
