/* Keys of models whose weights are stored rotated. */
#ifndef GGUFS_GGUF_ROTATION_H
#define GGUFS_GGUF_ROTATION_H

/*
 * How the keys begin that say by which Hadamard transform the weights were multiplied. A program
 * must transform the activations as well, or its results are wrong. Source: PrismML's fork of
 * llama.cpp, pull request 121.
 */
#define GGUF_ROTATION_KEYS "prism.hadamard."

#endif
