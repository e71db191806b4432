/*
 * The rules that findings about a model file come from. Each has a name that never changes, for
 * programs, an explanation and a remedy.
 *
 * To add a rule: a row here, and its entry in ggufs.5.
 */
#pragma once

#include <stdbool.h>

/* Programs that load models, as bits. */
enum {
    GGUF_LOADER_LLAMA = 1,  /* llama.cpp */
    GGUF_LOADER_OLLAMA = 2, /* Ollama, whose llama.cpp also takes older files of its own */
    GGUF_LOADER_IK = 4,     /* ik_llama.cpp */
};
#define GGUF_ALL_LOADERS (GGUF_LOADER_LLAMA | GGUF_LOADER_OLLAMA | GGUF_LOADER_IK)

#define GGUF_DOWNLOAD_AGAIN "Download it again, and compare its SHA256 with its page's."
#define GGUF_DAMAGED                                                                               \
    GGUF_DOWNLOAD_AGAIN                                                                            \
    " If they are equal, convert the original checkpoint, and tell the publisher."

/* The id of each rule, its name, the loaders that refuse a file for it, explanation and remedy. */
#define GGUF_RULES(RULE)                                                                           \
    /* the file and the system */                                                                  \
    RULE(OPEN, "cannot-open", 0, "The system does not open the file.",                             \
         "Check the path, and your right to read the file with ls -l.")                            \
    RULE(READ, "cannot-read", 0,                                                                   \
         "The system cannot read a part of the file: its disk fails, or another program is "       \
         "changing it.",                                                                           \
         "Check the kernel's log for errors of the disk, copy the file to another disk, and "      \
         "check the copy.")                                                                        \
    RULE(MEMORY, "out-of-memory", 0, "The system refused memory.",                                 \
         "Close other programs, or raise the limit of the shell (ulimit -v) or of the container.") \
    RULE(NOT_A_FILE, "not-a-file", 0, "The path does not name a regular file.",                    \
         "Name the model file itself; the message says how to find it.")                           \
    RULE(RANGE, "range", 0, "The file does not have the bytes that -o offset= and -o size= name.", \
         "Correct the numbers: they count bytes from the start of the file.")                      \
    /* files that are not GGUF */                                                                  \
    RULE(EMPTY_FILE, "empty-file", 0, "The file has no bytes.", GGUF_DOWNLOAD_AGAIN)               \
    RULE(NOT_DOWNLOADED, "not-downloaded", 0,                                                      \
         "The file is what a download left instead of the model, such as a Git LFS pointer, a "    \
         "web page or zeros.",                                                                     \
         "Download the file itself: with git lfs pull in a repository, with hf download, or by "   \
         "the link for downloads on the model's page.")                                            \
    RULE(NOT_CONVERTED, "not-converted", 0,                                                        \
         "The file is a checkpoint in another format than GGUF.",                                  \
         "Convert it with llama.cpp's convert_hf_to_gguf.py, or look for a GGUF file of the "      \
         "model.")                                                                                 \
    RULE(PACKED, "packed", 0,                                                                      \
         "The model is compressed or in an archive, so it cannot be read in place.",               \
         "Unpack it first, with the program that the message names.")                              \
    RULE(NOT_A_MODEL, "not-a-model", 0, "The file is of a kind that ggufs does not read.",         \
         "Check that this is the file you mean, with file(1). If it is a model, report its "       \
         "program and its first bytes to ggufs; if it is inside a larger file, name its place "    \
         "with -o offset=.")                                                                       \
    /* ZIP files */                                                                                \
    RULE(ZIP, "zip", 0,                                                                            \
         "The directory of the ZIP file is missing, or contradicts itself or the file.",           \
         GGUF_DOWNLOAD_AGAIN                                                                       \
         " If they are equal, unpack the model with unzip -o or 7z and name the unpacked file.")   \
    RULE(SEVERAL_MODELS, "several-models", 0, "The ZIP file or tar archive holds several models.", \
         "Choose one with the -o offset= and size= that the notes give.")                          \
    /* metadata */                                                                                 \
    RULE(VERSION, "version", 0, "The version of the format is unknown.",                           \
         GGUF_DOWNLOAD_AGAIN " If they are equal, use a newer ggufs.")                             \
    RULE(TRUNCATED_METADATA, "truncated-metadata", 0,                                              \
         "The file ends before its metadata does, or a length in the metadata is wrong.",          \
         "If the download is still running, mount with -o partial when the metadata is complete. " \
         "Otherwise: " GGUF_DAMAGED)                                                               \
    RULE(METADATA_LIMIT, "metadata-limit", 0, "The metadata is larger than ggufs accepts.",        \
         "No real model comes near the limits: get the file from a publisher whom you trust. If "  \
         "the model is real, report it to ggufs.")                                                 \
    RULE(METADATA_HOLES, "metadata-holes", 0,                                                      \
         "The metadata consists of holes of a sparse file, whose bytes were never written.",       \
         GGUF_DOWNLOAD_AGAIN                                                                       \
         " If they are equal, fill the holes: cp --sparse=never makes a copy without.")            \
    RULE(NAME_LENGTH, "name-length", 0, "A name is longer than GGUF allows.", GGUF_DAMAGED)        \
    RULE(VALUE_TYPE, "value-type", 0, "The type of a metadata value is unknown.", GGUF_DAMAGED)    \
    RULE(VALUE, "value", 0, "A metadata value is outside the values of its type.", GGUF_DAMAGED)   \
    RULE(DUPLICATE_KEY, "duplicate-key", GGUF_ALL_LOADERS,                                         \
         "A metadata key is there more than once.",                                                \
         "Equal values do no harm. With different ones, programs disagree on which they read: "    \
         "convert the original checkpoint again, and report the file to its publisher.")           \
    RULE(ALIGNMENT, "alignment", 0,                                                                \
         "The alignment of the tensor data is no number that GGUF allows, so the data cannot be "  \
         "found.",                                                                                 \
         GGUF_DAMAGED)                                                                             \
    RULE(VOCABULARY, "vocabulary", GGUF_ALL_LOADERS,                                               \
         "The lists of the tokenizer differ in length.",                                           \
         "Programs may give tokens the wrong score or type. Convert the original checkpoint "      \
         "again, or correct the list with --set.")                                                 \
    RULE(TOKEN_ID, "token-id", 0, "The id of a special token is not in the vocabulary.",           \
         "Programs ignore the key and use a default, or refuse the file. Correct the key with "    \
         "--set, or remove it with --unset.")                                                      \
    RULE(                                                                                          \
        CHAT_TEMPLATE, "chat-template", 0, "A chat template does not compile.",                    \
        "Give ggufs-run another with --chat-template, or set tokenizer.chat_template with --set.") \
    RULE(TEMPLATE_INTERNALS, "template-internals", 0,                                              \
         "A chat template reads internals of Python.",                                             \
         "It may attack programs that run templates in Python. Take another template with --set.") \
    RULE(TEMPLATE_WORDS, "template-words", 0, "A chat template looks for words in messages.",      \
         "It may steer answers: read the template.")                                               \
    RULE(TEMPLATE_URL, "template-url", 0, "A chat template names a website.",                      \
         "Make sure that the model should read the address.")                                      \
    RULE(TEMPLATE_BOS, "template-bos", 0,                                                          \
         "A chat template writes the BOS token, and the tokenizer adds it.",                       \
         "Encode prompts without adding it, as ggufs-run does.")                                   \
    RULE(TEMPLATE_TOKENS, "template-tokens", 0,                                                    \
         "A chat template writes a control token that the vocabulary lacks.",                      \
         "The model reads it as text, and may not end its turns. Take the template of the "        \
         "model's publisher with --set.")                                                          \
    RULE(TEMPLATE_TURNS, "template-turns", 0,                                                      \
         "A chat template changes earlier turns when one is added.",                               \
         "Programs must read the whole conversation again for each answer.")                       \
    RULE(SHAPE_KEYS, "shape-keys", GGUF_ALL_LOADERS,                                               \
         "The number of layers or heads in the metadata does not fit the tensors.",                \
         "Programs refuse the model, or run a part of it. Correct the key with --set, or convert " \
         "the original checkpoint again.")                                                         \
    RULE(NEEDED_KEYS, "needed-keys", GGUF_ALL_LOADERS,                                             \
         "A key that models of the architecture have is missing, or of another type.",             \
         "Programs refuse the model, or run another one. Set the key with --set, or convert the "  \
         "original checkpoint again.")                                                             \
    RULE(ORIGINAL_SHAPE, "original-shape", 0,                                                      \
         "A key with the shape that a tensor had before it was converted is ignored, because it "  \
         "fits no tensor.",                                                                        \
         "The tensor has the shape of its GGUF file. To have the original one, convert the model " \
         "again, or correct the key with --set.")                                                  \
    RULE(TENSOR_LIST, "tensor-list", GGUF_ALL_LOADERS,                                             \
         "Tensors do not fit the architecture, by name or by shape. Programs refuse "              \
         "the model.",                                                                             \
         GGUF_DAMAGED)                                                                             \
    RULE(FUSED, "fused", GGUF_LOADER_LLAMA | GGUF_LOADER_IK,                                       \
         "The file is laid out as Ollama wants it: it holds more than the text model, or names "   \
         "and keys of its own.",                                                                   \
         "Run it with Ollama or ggufs-run, or give llama.cpp model.gguf and mmproj.gguf of its "   \
         "tree: ggufs --cat model.gguf FILE.")                                                     \
    RULE(LOADER, "loader", 0, "The program that --for names does not load such a file.",           \
         "Write it anew with ggufs --cat model.gguf, or convert the model again.")                 \
    /* tensors */                                                                                  \
    RULE(DUPLICATE_TENSOR, "duplicate-tensor", 0,                                                  \
         "Two tensors have one name, so programs disagree on which they read.", GGUF_DAMAGED)      \
    RULE(DIMENSIONS, "dimensions", 0,                                                              \
         "The dimensions of a tensor are more, or larger, than a tensor can have.", GGUF_DAMAGED)  \
    RULE(UNKNOWN_TYPE, "unknown-type", GGUF_ALL_LOADERS,                                           \
         "Tensors have a type that ggufs does not know: their bytes can be read, their values "    \
         "cannot.",                                                                                \
         "Use a newer ggufs, or requantize the file with the program that wrote it. If the "       \
         "program is public, report it and the type's number to ggufs.")                           \
    RULE(ROTATED_WEIGHTS, "rotated-weights", 0,                                                    \
         "The weights are multiplied by a Hadamard matrix. A program that does not know this "     \
         "runs the model and prints nonsense.",                                                    \
         "Run the model with the program that its publisher names, such as PrismML's fork of "     \
         "llama.cpp.")                                                                             \
    RULE(SHARED_TYPE, "shared-type", 0,                                                            \
         "Several programs gave one number to tensor types of their own, and the sizes of the "    \
         "tensors decide between them.",                                                           \
         "If the file is of another program, or of another time, than the type that is read: "     \
         "name the type with -o type=ID:NAME, or the old types of ik_llama.cpp with -o ik=old.")   \
    RULE(ROW_LENGTH, "row-length", 0,                                                              \
         "The rows of a tensor cannot be divided into the blocks of its type.",                    \
         GGUF_DAMAGED " A fork of llama.cpp may use the type's number for another type; then its " \
                      "own program can requantize the file.")                                      \
    RULE(TENSOR_OFFSET, "tensor-offset", 0,                                                        \
         "The place of a tensor's data is not aligned, or too large for any file.", GGUF_DAMAGED)  \
    RULE(OVERLAP, "overlap", 0, "The data of two tensors lies in the same bytes.",                 \
         GGUF_DAMAGED " A fork of llama.cpp may use the type's number for a shorter type; then "   \
                      "its own program can requantize the file.")                                  \
    RULE(TRUNCATED_DATA, "truncated-data", 0,                                                      \
         "The file ends before the data of its tensors does.",                                     \
         GGUF_DOWNLOAD_AGAIN " Until then, -o partial mounts what is there.")                      \
    RULE(INCOMPLETE_DATA, "incomplete-data", 0,                                                    \
         "With -o partial: data is not there yet, so it was not checked.",                         \
         "Check the file again when it is complete.")                                              \
    RULE(UNUSED_BYTES, "unused-bytes", 0, "Bytes of the file belong to no tensor.",                \
         "They do no harm. If the file should not have them, compare its SHA256 with its page's.") \
    RULE(                                                                                          \
        ZEROS, "zeros", 0,                                                                         \
        "All values of tensors are 0, as where a download reserved space that it has not filled.", \
        GGUF_DOWNLOAD_AGAIN " If they are equal, the zeros belong to the model.")                  \
    RULE(NOT_FINITE, "not-finite", 0,                                                              \
         "Values are NaN or infinite, which makes the output of the whole model NaN.",             \
         GGUF_DOWNLOAD_AGAIN                                                                       \
         " If they are equal, the model was quantized wrongly or overflowed in F16: quantize it "  \
         "again from the original checkpoint, in BF16 or F32.")                                    \
    /* split models */                                                                             \
    RULE(SHARD_KEYS, "shard-keys", 0,                                                              \
         "The keys that say which shard of a model the file is are wrong.",                        \
         GGUF_DAMAGED " llama.cpp's llama-gguf-split makes correct shards.")                       \
    RULE(SHARD_NAME, "shard-name", 0,                                                              \
         "The name of the file and its keys split.no and split.count disagree, or it is a part "   \
         "of an old model without the name of one.",                                               \
         "Give the file the name that it was published with: NAME-00001-of-00003.gguf for the "    \
         "first of three shards; NAME.bin, NAME.bin.1 and so on for parts.")                       \
    RULE(SHARD_MISSING, "shard-missing", 0,                                                        \
         "A shard of the model, or a part of an old one, is not there.",                           \
         "Download all of them into one folder; the message names the path of the missing one.")   \
    RULE(SHARD_MISMATCH, "shard-mismatch", 0,                                                      \
         "The shards, or the parts of an old model, do not belong together: one is of another "    \
         "model or another version.",                                                              \
         "Download all of one model again, into an empty folder.")                                 \
    RULE(SHARD_METADATA, "shard-metadata", 0,                                                      \
         "A shard other than the first has metadata, which is ignored.",                           \
         "This does no harm if the first shard has all keys.")                                     \
    /* files from before GGUF */                                                                   \
    RULE(FAMILY, "family", 0,                                                                      \
         "The file is from before GGUF, and fits none of the model families of that time.",        \
         GGUF_DOWNLOAD_AGAIN                                                                       \
         " If they are equal, name the family with -o family=, or report the file to ggufs.")      \
    RULE(HYPERPARAMETER, "hyperparameter", 0,                                                      \
         "A number at the start of a file from before GGUF cannot be that of a real model.",       \
         "If the model is of another family, name it with -o family=. Otherwise the file is "      \
         "damaged. " GGUF_DOWNLOAD_AGAIN)                                                          \
    RULE(OLD_TYPE, "old-type", 0, "The type of a tensor is unknown in files from before GGUF.",    \
         "If the model is of another family, name it with -o family=. Otherwise convert the "      \
         "original checkpoint to GGUF.")                                                           \
    RULE(ERA, "era", 0,                                                                            \
         "The file does not record which of three block layouts its quantized tensors have, so "   \
         "their values cannot be read.",                                                           \
         "Name the layout with -o era=0, 1 or 2: the one for which --stats shows values around 0 " \
         "in all tensors.")                                                                        \
    RULE(TENSORS_MISSING, "tensors-missing", 0,                                                    \
         "A file from before GGUF lacks tensors that its architecture has.",                       \
         GGUF_DOWNLOAD_AGAIN " If they are equal, name another family with -o family=.")           \
    /* what the user asks for */                                                                   \
    RULE(EDIT, "edit", 0, "An edit of the metadata cannot be made.",                               \
         "Correct the value of --set, --unset or --edits; ggufs(1), EDITS, gives their form.")     \
    RULE(COMPOSITION, "composition", 0,                                                            \
         "The tensors cannot be put together as the options say, or a key was changed to go with " \
         "them.",                                                                                  \
         "Correct the option that the message is about; ggufs(1), TENSORS, gives their forms. "    \
         "--set changes a key afterwards.")                                                        \
    RULE(SPLIT, "split", 0, "The model cannot be divided as -o split= says.",                      \
         "Choose a larger size, or mount without -o split=.")                                      \
    RULE(FILE_NAMES, "file-names", 0, "Two files of the tree would have one name.",                \
         "Report the file to ggufs. Editing one of the keys with --unset may help.")

#define GGUF_RULE_ID(id, ...) GGUF_RULE_##id,
enum gguf_rule { GGUF_RULES(GGUF_RULE_ID) GGUF_N_RULES };

struct gguf_rule_text {
    const char *name;        /* lower-case words with hyphens */
    const char *explanation; /* one sentence: what the finding means */
    const char *remedy;      /* sentences: what a person can do */
    bool is_in_message;      /* the message has a remedy of its own, so this one is not printed */
    unsigned refused_by;     /* loaders for which a warning or a note of the rule is an error */
};

/* Return the texts of a rule. */
const struct gguf_rule_text *gguf_rule_text(enum gguf_rule rule);
