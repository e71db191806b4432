/* Escapes in texts of the command line, for -e. */
#pragma once

/*
 * Replace \n, \r, \t, \\, \', \" and \xNN in `text`, in place, as llama.cpp does. Other escapes,
 * and \x00, which would end the text, stay as they are.
 */
void run_unescape(char *text);
