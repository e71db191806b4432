/*
 * Findings: errors, warnings and notes about a model file, each with its rule and its place.
 *
 * A parser continues after a finding where it can, so that `ggufs --check` reports all at once. An
 * error makes the file unusable. After a warning, what is read may not be what the model's maker
 * meant; a note is harmless.
 */
#pragma once

#include "gguf/rules.h"
#include "gguf/support/strings.h"

#include <stddef.h>
#include <stdint.h>

enum gguf_severity { GGUF_ERROR, GGUF_WARNING, GGUF_NOTE };

/* The subject of a finding. */
enum gguf_thing { GGUF_WHOLE_FILE, GGUF_PART, GGUF_A_KEY, GGUF_A_TENSOR };

/* The offset of a finding that has no place in the file. */
#define GGUF_NO_OFFSET UINT64_MAX

/*
 * The place of a finding. The message of the finding begins with the thing. Names need be valid
 * only until the finding has been reported.
 */
struct gguf_place {
    enum gguf_thing thing;
    struct gguf_string name; /* of a key or tensor, any bytes; of a part of the file: "header" */
    uint64_t file_offset;    /* in bytes from the start of the file, or GGUF_NO_OFFSET */
};

/* Return a place that adds no thing to the message. */
static inline struct gguf_place gguf_at(uint64_t file_offset)
{
    return (struct gguf_place){.thing = GGUF_WHOLE_FILE, .file_offset = file_offset};
}

/* Return the place of a part of the file; `name` begins the message. */
static inline struct gguf_place gguf_at_part(const char *name, uint64_t file_offset)
{
    return (struct gguf_place){GGUF_PART, gguf_string_of(name), file_offset};
}

static inline struct gguf_place gguf_at_key(struct gguf_string name, uint64_t file_offset)
{
    return (struct gguf_place){GGUF_A_KEY, name, file_offset};
}

static inline struct gguf_place gguf_at_tensor(struct gguf_string name, uint64_t file_offset)
{
    return (struct gguf_place){GGUF_A_TENSOR, name, file_offset};
}

/* Return the place with another offset. */
static inline struct gguf_place gguf_moved(struct gguf_place place, uint64_t file_offset)
{
    place.file_offset = file_offset;
    return place;
}

/* The place of findings about the file as a whole. */
#define GGUF_NO_PLACE gguf_at(GGUF_NO_OFFSET)

struct gguf_finding {
    enum gguf_severity severity;
    enum gguf_rule rule;
    enum gguf_thing thing;
    struct gguf_string name; /* of the key or tensor; valid during `each`, else empty */
    const char *path;     /* of its file; valid during `each`; NULL: the file that the user named */
    int code;             /* negative errno; 0 for warnings and notes */
    uint64_t file_offset; /* in bytes from the start of the file, or GGUF_NO_OFFSET */
    char message[768];    /* one line, printable, names quoted by gguf_quote() */
};

struct gguf_report {
    /* Called for every finding, in the order of their discovery; may be NULL. */
    void (*each)(void *user, const struct gguf_finding *finding);
    void *user;
    /* The file of the findings to come; NULL: the one that the user named. */
    const char *path;
    /* A loader, GGUF_LOADER_…: its refusals are errors. 0: none. */
    unsigned loader;

    size_t n_errors;
    struct gguf_finding first_error; /* valid if n_errors > 0, without its path and name */
};

/*
 * Add a finding. Returns `code`, which is 0 unless it is an error, so that a parser can write
 * `return gguf_error(...)`.
 */
int gguf_add_finding(struct gguf_report *report, enum gguf_severity severity, enum gguf_rule rule,
                     int code, struct gguf_place place, const char *format, ...)
    __attribute__((format(printf, 6, 7)));
#define gguf_error(report, rule, code, place, ...)                                                 \
    gguf_add_finding(report, GGUF_ERROR, rule, code, place, __VA_ARGS__)
#define gguf_warning(report, rule, place, ...)                                                     \
    gguf_add_finding(report, GGUF_WARNING, rule, 0, place, __VA_ARGS__)
#define gguf_note(report, rule, place, ...)                                                        \
    gguf_add_finding(report, GGUF_NOTE, rule, 0, place, __VA_ARGS__)

/* Add an error that has no other text than its code's, strerror(-code). Returns `code`. */
int gguf_system_error(struct gguf_report *report, int code, struct gguf_place place);
