/* Metadata values. Their numbers are in the host's byte order; arrays are read element by element.
 */
#ifndef GGUFS_GGUF_VALUES_H
#define GGUFS_GGUF_VALUES_H

#include "gguf/cursor.h"

#include <stdbool.h>
#include <stdint.h>

/* The ids of the GGUF specification. */
enum gguf_value_type {
    GGUF_UINT8,
    GGUF_INT8,
    GGUF_UINT16,
    GGUF_INT16,
    GGUF_UINT32,
    GGUF_INT32,
    GGUF_FLOAT32,
    GGUF_BOOL,
    GGUF_STRING,
    GGUF_ARRAY,
    GGUF_UINT64,
    GGUF_INT64,
    GGUF_FLOAT64,
    GGUF_N_VALUE_TYPES
};

/* How deep arrays may lie in arrays; 1 is an array of plain values. */
#define GGUF_MAX_ARRAY_DEPTH 8

/* Elements that lie one behind the other in `data`. */
struct gguf_array {
    enum gguf_value_type element_type;
    uint64_t n_elements;
    const uint8_t *data;
    uint64_t size_bytes;
    struct gguf_encoding encoding;
};

struct gguf_value {
    enum gguf_value_type type;
    union {
        uint64_t u64; /* UINT8 to UINT64 */
        int64_t i64;  /* INT8 to INT64 */
        float f32;
        double f64;
        bool boolean;
        struct gguf_string string; /* points into the file */
        struct gguf_array array;   /* points into the file */
    };
};

/* The name in the specification, in small letters: "uint8" … "float64"; NULL if unknown. */
const char *gguf_value_type_name(uint32_t type);

/* The bytes of a value of that type; 0 for strings and arrays, whose size varies. */
unsigned gguf_value_type_bytes(enum gguf_value_type type);

/*
 * Reads one value of a known type; what `value` says of an array's inside is checked too.
 * `place` names the value in errors ("key \"a.b\""). Returns 0, or a negative errno with the reason
 * in `report`; file offsets count from the cursor's start.
 */
int gguf_value_read(struct gguf_cursor *cursor, enum gguf_value_type type, const char *place,
                    struct gguf_value *value, struct gguf_report *report);

/* Whether both have the same type and the same bits. Reads arrays and strings without a guard. */
bool gguf_value_equals(const struct gguf_value *a, const struct gguf_value *b);

/*
 * The array's elements in order: start with a cursor from gguf_array_begin() and call
 * gguf_array_next() n_elements times. It returns 0, or -EIO if the file was changed since it was
 * checked and the elements no longer fit.
 */
struct gguf_cursor gguf_array_begin(const struct gguf_array *array);
int gguf_array_next(struct gguf_cursor *cursor, enum gguf_value_type element_type,
                    struct gguf_value *element);

#endif
