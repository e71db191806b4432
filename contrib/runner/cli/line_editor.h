/* Lines that a person types at a terminal: editing, history and pasted lines, by libedit. */
#pragma once

#include "gguf/support/arrays.h"

struct run_line_editor;

/*
 * Begin to edit lines of stdin, shown on stderr. Reads the description of the terminal, so call it
 * before the process is confined, and once only. Returns NULL if these are no terminals or libedit
 * cannot begin.
 */
struct run_line_editor *run_line_editor_open(void);
void run_line_editor_close(struct run_line_editor *editor);

/*
 * Read a line into `line`, UTF-8 without its end. A line that ends with a backslash goes on with
 * the next one, and pasted text may have several. Ctrl-C clears a line that was begun. Returns 0,
 * -ENODATA at the end of the input, -EINTR after Ctrl-C in an empty line, or -ENOMEM.
 */
int run_line_editor_read(struct run_line_editor *editor, struct gguf_buffer *line);

/*
 * Read a line of stdin, a terminal or not, without an editor. Returns 0, -ENODATA at the end of the
 * input, -EINTR after Ctrl-C, or -ENOMEM.
 */
int run_plain_line_read(struct gguf_buffer *line);
