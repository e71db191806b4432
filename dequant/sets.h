/*
 * The kernel sets of this architecture: "scalar", which runs on every CPU, then the vector sets,
 * from the plainest to the best. For each set, the sources in dequant/kernels/ are compiled once
 * more, with DEQUANT_SET as the set's name (KERNEL_SETS in the Makefile); for "scalar", the
 * sources of decoders.
 */
#pragma once

/* Expands DO(set, name) for every vector set. */
#if defined(__x86_64__)
#define DEQUANT_VECTOR_SETS(DO, name) DO(avx2, name) DO(avx512, name)
#elif defined(__aarch64__)
#define DEQUANT_VECTOR_SETS(DO, name) DO(neon, name)
#else
#define DEQUANT_VECTOR_SETS(DO, name)
#endif

#define DEQUANT_SET_NUMBER(set, unused) DEQUANT_SET_##set,

/* Indices of the slots in a row of the type table. */
enum {
    DEQUANT_SET_scalar,
    DEQUANT_VECTOR_SETS(DEQUANT_SET_NUMBER, ) DEQUANT_SETS /* their number */
};
