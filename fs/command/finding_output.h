/* Output of findings, as text for people and as JSON for programs. */
#pragma once

#include "gguf/report.h"

#include <stdio.h>

/*
 * Print a finding on a line: "ggufs: " on stderr, the path of its file, its byte offset if it has
 * one, its message, and its rule in brackets. `path` is the file that the user named; it is printed
 * if the finding names no other.
 */
void fs_print_finding(FILE *stream, const char *path, const struct gguf_finding *finding);

/* Print on a line what the finding's rule means and what can be done. */
void fs_print_remedy(FILE *stream, const char *path, const struct gguf_finding *finding);

/* Print to stdout that a model has no errors. `text` says what it is. */
void fs_print_ok(const char *path, const char *text);

/* The same as JSON, an object on a line. All have the same members; see ggufs(5), OUTPUT
 * OF COMMANDS. */
void fs_print_finding_json(const char *path, const struct gguf_finding *finding);
void fs_print_ok_json(const char *path, const char *text);
