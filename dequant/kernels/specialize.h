/*
 * Macros for code that is fast only if its arguments and indices are constants. Builds with
 * sanitizers neither force inlining nor unroll: compiling all copies would take minutes.
 */
#pragma once

/*
 * INLINE, before a function: copy it to each call, where constant arguments select its code.
 * UNROLL, before a loop: unroll all of it, so that elements of arrays become registers.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define INLINE static inline
#define UNROLL
#else
#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")
#endif
