#include "gguf/rules.h"

#include <assert.h>

#define DOWNLOAD_AGAIN "Download it again, and compare its SHA256 with its page's."
#define DAMAGED                                                                                    \
    DOWNLOAD_AGAIN " If they are equal, convert the original checkpoint, and tell the publisher."
#define TOO_LARGE                                                                                  \
    "No real model comes near the limits: get the file from a publisher whom you trust. If the "   \
    "model is real, report it to ggufs."

static const struct gguf_rule_text texts[GGUF_N_RULES] = {
    [GGUF_RULE_OPEN] = {"cannot-open", "The system does not open the file.",
                        "Check the path, and your right to read the file with ls -l."},
    [GGUF_RULE_READ] = {"cannot-read",
                        "The system cannot read a part of the file: its disk fails, or another "
                        "program is changing it.",
                        "Check the kernel's log for errors of the disk, copy the file to another "
                        "disk, and check the copy."},
    [GGUF_RULE_MEMORY] = {"out-of-memory", "The system refused memory.",
                          "Close other programs, or raise the limit of the shell (ulimit -v) or "
                          "of the container."},
    [GGUF_RULE_NOT_A_FILE] = {"not-a-file", "The path does not name a regular file.",
                              "Name the model file itself; the message says how to find it.",
                              .is_in_message = true},
    [GGUF_RULE_RANGE] = {"range",
                         "The file does not have the bytes that -o offset= and -o size= "
                         "name.",
                         "Correct the numbers: they count bytes from the start of the file."},

    [GGUF_RULE_EMPTY_FILE] = {"empty-file", "The file has no bytes.", DOWNLOAD_AGAIN},
    [GGUF_RULE_NOT_DOWNLOADED] = {"not-downloaded",
                                  "The file is what a download left instead of the model, such as "
                                  "a Git LFS pointer, a web page or zeros.",
                                  "Download the file itself: with git lfs pull in a repository, "
                                  "with hf download, or by the link for downloads on "
                                  "the model's page."},
    [GGUF_RULE_NOT_CONVERTED] = {"not-converted",
                                 "The file is a checkpoint in another format than GGUF.",
                                 "Convert it with llama.cpp's convert_hf_to_gguf.py, or look for a "
                                 "GGUF file of the model."},
    [GGUF_RULE_PACKED] = {"packed",
                          "The model is compressed or in an archive, so it cannot be "
                          "read in place.",
                          "Unpack it first, with the program that the message names."},
    [GGUF_RULE_NOT_A_MODEL] = {"not-a-model", "The file is of a kind that ggufs does not read.",
                               "Check that this is the file you mean, with file(1). If it is a "
                               "model, report its program and its first bytes to ggufs; if it is "
                               "inside a larger file, name its place with -o offset=."},

    [GGUF_RULE_ZIP] =
        {"zip", "The directory of the ZIP file is missing, or contradicts itself or the file.",
         DOWNLOAD_AGAIN " If they are equal, unpack the model with unzip -o or 7z "
                        "and name the unpacked file."},
    [GGUF_RULE_SEVERAL_MODELS] = {"several-models",
                                  "The ZIP file or tar archive holds several models.",
                                  "Choose one with the -o offset= and size= that the notes give."},

    [GGUF_RULE_VERSION] = {"version", "The version of the format is unknown.",
                           DOWNLOAD_AGAIN " If they are equal, use a newer ggufs."},
    [GGUF_RULE_TRUNCATED_METADATA] = {"truncated-metadata",
                                      "The file ends before its metadata does, or a length in the "
                                      "metadata is wrong.",
                                      "If the download is still running, mount with -o partial "
                                      "when the metadata is complete. Otherwise: " DAMAGED},
    [GGUF_RULE_METADATA_LIMIT] = {"metadata-limit", "The metadata is larger than ggufs accepts.",
                                  TOO_LARGE},
    [GGUF_RULE_METADATA_HOLES] = {"metadata-holes",
                                  "The metadata consists of holes of a sparse file, whose bytes "
                                  "were never written.",
                                  DOWNLOAD_AGAIN " If they are equal, fill the holes: cp "
                                                 "--sparse=never makes a copy without."},
    [GGUF_RULE_NAME_LENGTH] = {"name-length", "A name is longer than GGUF allows.", DAMAGED},
    [GGUF_RULE_VALUE_TYPE] = {"value-type", "The type of a metadata value is unknown.", DAMAGED},
    [GGUF_RULE_VALUE] = {"value", "A metadata value is none of those that its type has.", DAMAGED},
    [GGUF_RULE_DUPLICATE_KEY] = {"duplicate-key", "A metadata key is there more than once.",
                                 "Equal values do no harm. With different ones, programs disagree "
                                 "on which they read: convert the original checkpoint again, and "
                                 "report the file to its publisher.",
                                 .refused_by = GGUF_ALL_LOADERS},
    [GGUF_RULE_ALIGNMENT] = {"alignment",
                             "The alignment of the tensor data is no number that GGUF allows, so "
                             "the data cannot be found.",
                             DAMAGED},
    [GGUF_RULE_VOCABULARY] = {"vocabulary", "The lists of the tokenizer differ in length.",
                              "Programs may give tokens the wrong score or type. Convert the "
                              "original checkpoint again, or correct the list with --set.",
                              .refused_by = GGUF_ALL_LOADERS},
    [GGUF_RULE_TOKEN_ID] =
        {"token-id", "The id of a special token is not in the vocabulary.",
         "Programs ignore the key and use a default, or refuse the file. Correct "
         "the key with --set, or remove it with --unset."},
    [GGUF_RULE_CHAT_TEMPLATE] =
        {"chat-template", "A chat template does not compile.",
         "Give ggufs-run another with --chat-template, or set tokenizer.chat_template with --set."},
    [GGUF_RULE_TEMPLATE_INTERNALS] =
        {"template-internals", "A chat template reads internals of Python.",
         "It may attack programs that run templates in Python. Take another template with --set."},
    [GGUF_RULE_TEMPLATE_WORDS] = {"template-words", "A chat template looks for words in messages.",
                                  "It may steer answers: read the template."},
    [GGUF_RULE_TEMPLATE_URL] = {"template-url", "A chat template names a website.",
                                "Make sure that the model should read the address."},
    [GGUF_RULE_TEMPLATE_BOS] = {"template-bos",
                                "A chat template writes the BOS token, and the tokenizer adds it.",
                                "Encode prompts without adding it, as ggufs-run does."},
    [GGUF_RULE_TEMPLATE_TOKENS] =
        {"template-tokens", "A chat template writes a control token that the vocabulary lacks.",
         "The model reads it as text, and may not end its turns. Take the template of the "
         "model's publisher with --set."},
    [GGUF_RULE_TEMPLATE_TURNS] =
        {"template-turns", "A chat template changes earlier turns when one is added.",
         "Programs must read the whole conversation again for each answer."},
    [GGUF_RULE_SHAPE_KEYS] =
        {"shape-keys",
         "The number of layers or heads in the metadata does not fit the "
         "tensors.",
         "Programs refuse the model, or run a part of it. Correct the key with "
         "--set, or convert the original checkpoint again.",
         .refused_by = GGUF_ALL_LOADERS},
    [GGUF_RULE_NEEDED_KEYS] =
        {"needed-keys",
         "A key that models of the architecture have is missing, or of another type.",
         "Programs refuse the model, or run another one. Set the key with --set, or "
         "convert the original checkpoint again.",
         .refused_by = GGUF_ALL_LOADERS},
    [GGUF_RULE_ORIGINAL_SHAPE] = {"original-shape",
                                  "A key with the shape that a tensor had before it was converted "
                                  "is ignored, because it fits no tensor.",
                                  "The tensor has the shape of its GGUF file. To have the original "
                                  "one, convert the model again, or correct the key with --set."},

    [GGUF_RULE_TENSOR_LIST] = {"tensor-list",
                               "The tensors are not those of the architecture, or not of its "
                               "shapes. Programs refuse the model.",
                               DAMAGED, .refused_by = GGUF_ALL_LOADERS},
    [GGUF_RULE_FUSED] = {"fused",
                         "The file is laid out as Ollama wants it: it holds more than the text "
                         "model, or names and keys of its own.",
                         "Run it with Ollama or ggufs-run, or give llama.cpp model.gguf and "
                         "mmproj.gguf of its tree: ggufs --cat model.gguf FILE.",
                         .refused_by = GGUF_LOADER_LLAMA | GGUF_LOADER_IK},
    [GGUF_RULE_LOADER] = {"loader", "The program that --for names does not load such a file.",
                          "Write it anew with ggufs --cat model.gguf, or convert the model again."},

    [GGUF_RULE_DUPLICATE_TENSOR] = {"duplicate-tensor",
                                    "Two tensors have one name, so programs disagree on which "
                                    "they read.",
                                    DAMAGED},
    [GGUF_RULE_DIMENSIONS] = {"dimensions",
                              "The dimensions of a tensor are more, or larger, than a tensor can "
                              "have.",
                              DAMAGED},
    [GGUF_RULE_UNKNOWN_TYPE] = {"unknown-type",
                                "Tensors have a type that ggufs does not know: their bytes can be "
                                "read, their values cannot.",
                                "Use a newer ggufs, or requantize the file with the program that "
                                "wrote it. If the program is public, report it and the type's "
                                "number to ggufs.",
                                .refused_by = GGUF_ALL_LOADERS},
    [GGUF_RULE_ROTATED_WEIGHTS] = {"rotated-weights",
                                   "The weights are multiplied by a Hadamard matrix. A program "
                                   "that does not know this runs the model and prints nonsense.",
                                   "Run the model with the program that its publisher names, such "
                                   "as PrismML's fork of llama.cpp."},
    [GGUF_RULE_SHARED_TYPE] = {"shared-type",
                               "Several programs gave one number to tensor types of their own, "
                               "and the sizes of the tensors decide between them.",
                               "If the file is of another program, or of another time, than the "
                               "type that is read: name the type with -o type=ID:NAME, or the old "
                               "types of ik_llama.cpp with -o ik=old."},
    [GGUF_RULE_ROW_LENGTH] = {"row-length",
                              "The rows of a tensor cannot be divided into the blocks of its type.",
                              DAMAGED " A fork of llama.cpp may use the type's number for another "
                                      "type; then its own program can requantize the file."},
    [GGUF_RULE_TENSOR_OFFSET] = {"tensor-offset",
                                 "The place of a tensor's data is not aligned, or too large for "
                                 "any file.",
                                 DAMAGED},
    [GGUF_RULE_OVERLAP] = {"overlap", "The data of two tensors lies in the same bytes.",
                           DAMAGED " A fork of llama.cpp may use the type's number for a shorter "
                                   "type; then its own program can requantize the file."},
    [GGUF_RULE_TRUNCATED_DATA] = {"truncated-data",
                                  "The file ends before the data of its tensors does.",
                                  DOWNLOAD_AGAIN " Until then, -o partial mounts what is there."},
    [GGUF_RULE_INCOMPLETE_DATA] = {"incomplete-data",
                                   "With -o partial: data is not there yet, so it was not checked.",
                                   "Check the file again when it is complete."},
    [GGUF_RULE_UNUSED_BYTES] = {"unused-bytes", "Bytes of the file belong to no tensor.",
                                "They do no harm. If the file should not have them, compare its "
                                "SHA256 with its page's."},
    [GGUF_RULE_ZEROS] =
        {"zeros",
         "All values of tensors are 0, as where a download reserved space that it has "
         "not filled.",
         DOWNLOAD_AGAIN " If they are equal, the zeros belong to the model."},
    [GGUF_RULE_NOT_FINITE] = {"not-finite",
                              "Values are NaN or infinite, which makes the output of the whole "
                              "model NaN.",
                              DOWNLOAD_AGAIN " If they are equal, the model was quantized wrongly "
                                             "or overflowed in F16: quantize it again from the "
                                             "original checkpoint, in BF16 or F32."},

    [GGUF_RULE_SHARD_KEYS] = {"shard-keys",
                              "The keys that say which shard of a model the file is are wrong.",
                              DAMAGED " llama.cpp's llama-gguf-split makes correct shards."},
    [GGUF_RULE_SHARD_NAME] = {"shard-name",
                              "The name of the file and its keys split.no and split.count "
                              "disagree, or it is a part of an old model without the name of one.",
                              "Give the file the name that it was published with: "
                              "NAME-00001-of-00003.gguf for the first of three shards; NAME.bin, "
                              "NAME.bin.1 and so on for parts."},
    [GGUF_RULE_SHARD_MISSING] = {"shard-missing",
                                 "A shard of the model, or a part of an old one, is not there.",
                                 "Download all of them into one folder; the message names the path "
                                 "of the missing one."},
    [GGUF_RULE_SHARD_MISMATCH] =
        {"shard-mismatch",
         "The shards, or the parts of an old model, do not belong together: "
         "one is of another model or another version.",
         "Download all of one model again, into an empty folder."},
    [GGUF_RULE_SHARD_METADATA] = {"shard-metadata",
                                  "A shard other than the first has metadata, which is ignored.",
                                  "This does no harm if the first shard has all keys."},

    [GGUF_RULE_FAMILY] = {"family",
                          "The file is from before GGUF, and fits none of the model families of "
                          "that time.",
                          DOWNLOAD_AGAIN " If they are equal, name the family with -o family=, "
                                         "or report the file to ggufs."},
    [GGUF_RULE_HYPERPARAMETER] = {"hyperparameter",
                                  "A number at the start of a file from before GGUF cannot be "
                                  "that of a real model.",
                                  "If the model is of another family, name it with -o family=. "
                                  "Otherwise the file is damaged. " DOWNLOAD_AGAIN},
    [GGUF_RULE_OLD_TYPE] = {"old-type",
                            "The type of a tensor is unknown in files from before GGUF.",
                            "If the model is of another family, name it with -o family=. "
                            "Otherwise convert the original checkpoint to GGUF."},
    [GGUF_RULE_ERA] = {"era",
                       "The file does not record which of three block layouts its quantized "
                       "tensors have, so their values cannot be read.",
                       "Name the layout with -o era=0, 1 or 2: the one for which --stats shows "
                       "values around 0 in all tensors."},
    [GGUF_RULE_TENSORS_MISSING] = {"tensors-missing",
                                   "A file from before GGUF lacks tensors that its architecture "
                                   "has.",
                                   DOWNLOAD_AGAIN " If they are equal, name another family with "
                                                  "-o family=."},

    [GGUF_RULE_EDIT] = {"edit", "An edit of the metadata cannot be made.",
                        "Correct the value of --set, --unset or --edits; ggufs(1), EDITS, gives "
                        "their form."},
    [GGUF_RULE_COMPOSITION] = {"composition",
                               "The tensors cannot be put together as the options say, or a key "
                               "was changed to go with them.",
                               "Correct the option that the message is about; ggufs(1), TENSORS, "
                               "gives their forms. --set changes a key afterwards."},
    [GGUF_RULE_SPLIT] = {"split", "The model cannot be divided as -o split= says.",
                         "Choose a larger size, or mount without -o split=."},
    [GGUF_RULE_FILE_NAMES] = {"file-names", "Two files of the tree would have one name.",
                              "Report the file to ggufs. Editing one of the keys with --unset "
                              "may help."},
};

const struct gguf_rule_text *gguf_rule_text(enum gguf_rule rule)
{
    assert(rule < GGUF_N_RULES);
    return &texts[rule];
}
