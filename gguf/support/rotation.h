/* Keys of models whose weights are stored rotated. */
#ifndef GGUFS_GGUF_ROTATION_H
#define GGUFS_GGUF_ROTATION_H

/*
 * Prefix of the keys that describe the Hadamard transform of the weights. A program must transform
 * the activations as well, or its results are wrong. Source: PrismML's fork of llama.cpp, pull
 * request 121.
 */
#define GGUF_ROTATION_KEYS "prism.hadamard."

#endif
