/* Exit statuses of the programs, as sysexits.h names them, and their standard files. */
#pragma once

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

/*
 * Open /dev/null as each of the descriptors 0, 1 and 2 that the caller closed, so that no file that
 * ggufs opens gets one of these numbers. A stdout that was closed stays one that cannot be written:
 * output to it is lost, which gguf_finish_stdout() reports. Call it first in main(). Returns 0 or a
 * negative errno.
 */
int gguf_fill_standard_files(void);
