/* Tensors of a layer that are one in other files: rows of each, one after the other. */
#pragma once

#include "gguf/compose.h"

enum gguf_fusion_id {
    GGUF_FUSION_GATE_UP_EXPS,
    GGUF_FUSION_QKV,
    GGUF_FUSION_FFN_GATE_UP,
    GGUF_N_USER_FUSIONS, /* kinds of --fuse and --unfuse */
    GGUF_FUSION_VISION_QKV = GGUF_N_USER_FUSIONS,
    GGUF_FUSION_MTP_GATE, /* experts of layers that predict further tokens */
    GGUF_FUSION_MTP_UP,
    GGUF_FUSION_MTP_DOWN,
    GGUF_FUSION_RWKV, /* of files of rwkv.cpp */
    GGUF_N_FUSIONS
};

/* Return the name of a kind of --fuse, a gguf_fusion_id, or NULL after the last. */
const char *gguf_fusion_name(size_t id);

enum gguf_fuse_mode {
    GGUF_FUSE_ALL,   /* parts that lack others, or differ from them, are an error */
    GGUF_FUSE_EQUAL, /* … stay as they are */
    GGUF_FUSE_ANY,   /* the same, but parts that differ in type become F32 */
    GGUF_FUSE_F32,   /* all become F32 */
};

/*
 * Join the parts of all layers. The whole takes the place of the first. Returns false if there are
 * no parts.
 */
bool gguf_fuse(struct gguf_composition *made, enum gguf_fusion_id id, enum gguf_fuse_mode mode);

/* Divide the wholes of all layers. Returns false if there are none. */
bool gguf_unfuse(struct gguf_composition *made, enum gguf_fusion_id id);
