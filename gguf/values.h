/*
 * Metadata values. Numbers are in the host's byte order. Arrays are kept as in the file, in memory
 * of the model, and read element by element.
 */
#pragma once

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

/* How deep arrays may nest; 1 is an array of plain values. */
#define GGUF_MAX_ARRAY_DEPTH 8

/* Elements, one after the other in `data`. */
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
        struct gguf_string string; /* points into memory of the model */
        struct gguf_array array;   /* points into memory of the model */
    };
};

/* Return the name in the specification, in lower case ("uint8"), or NULL if the type is unknown. */
const char *gguf_value_type_name(uint32_t type);

/* Return the bytes of a value of the type; 0 for strings and arrays, whose size varies. */
unsigned gguf_value_type_bytes(enum gguf_value_type type);

static inline bool gguf_value_type_is_integer(enum gguf_value_type type)
{
    return type != GGUF_BOOL && type != GGUF_FLOAT32 && type != GGUF_FLOAT64 &&
           type != GGUF_STRING && type != GGUF_ARRAY;
}

/* Return true if the value is an integer, signed or not. */
static inline bool gguf_value_is_integer(const struct gguf_value *value)
{
    return gguf_value_type_is_integer(value->type);
}

/*
 * Read and check one value of a known type, including all nested values. Returns 0, or a negative
 * errno with the reason in the cursor's report.
 */
int gguf_value_read(struct gguf_cursor *cursor, enum gguf_value_type type,
                    struct gguf_value *value);

/* Set *number to a number, or to 1 or 0 for a bool. Returns false for other values. */
bool gguf_value_to_double(const struct gguf_value *value, double *number);

static inline struct gguf_value gguf_value_of_text(const char *text)
{
    return (struct gguf_value){.type = GGUF_STRING, .string = gguf_string_of(text)};
}

/* Return an array of n numbers or bools at `data`, in the order of bytes of the host and of GGUF.
 */
static inline struct gguf_value gguf_value_of_numbers(enum gguf_value_type type, const void *data,
                                                      uint64_t n)
{
    return (struct gguf_value){
        .type = GGUF_ARRAY,
        .array = {type, n, data, n * gguf_value_type_bytes(type), .encoding = {.length_bytes = 8}}};
}

/* Return true if both have the same type and the same bits. */
bool gguf_value_equals(const struct gguf_value *a, const struct gguf_value *b);

/*
 * Read the elements of an array in order: get a cursor from gguf_array_begin(), then call
 * gguf_array_next() n_elements times.
 */
struct gguf_cursor gguf_array_begin(const struct gguf_array *array);
void gguf_array_next(struct gguf_cursor *cursor, enum gguf_value_type element_type,
                     struct gguf_value *element);

/*
 * Return the value for a layer: element `layer` of an array of numbers or bools, the last one if it
 * is shorter, or else the value itself.
 */
struct gguf_value gguf_value_of_layer(const struct gguf_value *value, uint64_t layer);
