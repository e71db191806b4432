/* Escapes in texts of the command line, for -e. */
#ifndef GGUFS_RUNNER_ESCAPES_H
#define GGUFS_RUNNER_ESCAPES_H

/*
 * Replace \n, \r, \t, \\, \', \" and \xNN in `text`, in place, as llama.cpp does. Other escapes,
 * and \x00, which would end the text, stay as they are.
 */
void run_unescape(char *text);

#endif
