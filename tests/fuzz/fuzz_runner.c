/*
 * Target: the runner on a hostile tree. It must refuse the tree with a message, or run it and
 * compute the same logits for every batch size.
 *
 * The input is text. The first line is the metadata, a JSON object. Each further line is a tensor,
 * "NAME VALUES INFO". VALUES is a letter: small values (s), any bits (r) or zeros (z); the size of
 * the raw file in bytes may follow it. INFO is the JSON object of the tensor in tensors.json, or
 * numbers from which one is made: type and dimensions. The tree lies in memory and is kept between
 * inputs, because most inputs change little of it.
 */
#include "contrib/runner/engine/engine.h"
#include "contrib/runner/tokenizer/tokenizer.h"
#include "contrib/runner/tokenizer/tokenizer_kinds.h"
#include "contrib/runner/tree/weights.h"
#include "dequant/kernels.h"
#include "dequant/types.h"
#include "tests/fuzz/fuzz_check.h"
#include "gguf/support/exit_status.h"
#include "tests/unit/runner/metadata_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MAX_TENSORS = 96,
    MAX_LINE_BYTES = 512,
    MAX_NAME_BYTES = 80,
    MAX_RAW_BYTES = 1 << 16,
    MAX_SUM_BYTES = 1 << 18, /* for the raw files of a tree; further tensors are left out */
    MAX_METADATA_BYTES = 1 << 20,
    N_TOKENS = 6,
};

struct tensor {
    char name[MAX_NAME_BYTES];
    char info[MAX_LINE_BYTES];
    char values;
    size_t n_bytes;
    bool is_wanted;
};

/* The files on disk. */
static struct tensor tensors[MAX_TENSORS];
static size_t n_tensors;
static int root = -1;
static char root_path[64];

static void remove_tensor(const struct tensor *tensor)
{
    char path[MAX_NAME_BYTES + 32];

    snprintf(path, sizeof path, "tensors/%s/raw", tensor->name);
    unlinkat(root, path, 0);
    snprintf(path, sizeof path, "tensors/%s", tensor->name);
    FUZZ_CHECK(unlinkat(root, path, AT_REMOVEDIR) == 0, "%s: %s", path, strerror(errno));
}

static void remove_root(void)
{
    for (size_t i = 0; i < n_tensors; i++)
        remove_tensor(&tensors[i]);
    unlinkat(root, "metadata.json", 0);
    unlinkat(root, "tensors.json", 0);
    unlinkat(root, "tensors", AT_REMOVEDIR);
    rmdir(root_path);
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    return remove(path);
}

/* Remove the trees of processes that were killed. */
static void sweep(const char *folder)
{
    DIR *directory = opendir(folder);
    struct dirent *entry;
    char path[300];
    int pid;

    while (directory && (entry = readdir(directory))) {
        if (sscanf(entry->d_name, "ggufs-fuzz-%d", &pid) != 1 || kill(pid, 0) == 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    }
    if (directory)
        closedir(directory);
}

static void make_root(void)
{
    const char *folder = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";

    sweep(folder);
    snprintf(root_path, sizeof root_path, "%s/ggufs-fuzz-%d", folder, (int)getpid());
    FUZZ_CHECK(mkdir(root_path, 0700) == 0, "%s: %s", root_path, strerror(errno));
    root = open(root_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    FUZZ_CHECK(root >= 0 && mkdirat(root, "tensors", 0700) == 0, "%s: %s", root_path,
               strerror(errno));
    atexit(remove_root);
}

static void write_file(const char *path, const void *bytes, size_t n_bytes)
{
    const int fd = openat(root, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    FUZZ_CHECK(fd >= 0 && write(fd, bytes, n_bytes) == (ssize_t)n_bytes, "%s: %s", path,
               strerror(errno));
    close(fd);
}

static void write_raw(const struct tensor *tensor)
{
    static uint8_t bytes[MAX_RAW_BYTES];
    struct fuzz_random random =
        fuzz_random_seed((const uint8_t *)tensor->name, strlen(tensor->name));
    char path[MAX_NAME_BYTES + 32];

    for (size_t i = 0; i < tensor->n_bytes; i++) {
        bytes[i] = (uint8_t)fuzz_random_below(&random, 256);
        if (tensor->values == 'z')
            bytes[i] = 0;
        /* Limit the exponents of halves and floats: the values stay below one. */
        else if (tensor->values != 'r' && i % 2 == 1)
            bytes[i] = (bytes[i] & 0x83) | 0x2c;
        if (tensor->values == 's' && i % 4 == 3)
            bytes[i] = (bytes[i] & 0x80) | 0x3d;
    }
    snprintf(path, sizeof path, "tensors/%s/raw", tensor->name);
    write_file(path, bytes, tensor->n_bytes);
}

static void write_tensor(const struct tensor *tensor)
{
    char path[MAX_NAME_BYTES + 32];

    snprintf(path, sizeof path, "tensors/%s", tensor->name);
    FUZZ_CHECK(mkdirat(root, path, 0700) == 0 || errno == EEXIST, "%s: %s", path, strerror(errno));
    write_raw(tensor);
}

/* Make the info from numbers like "0 16 4" and compute the size of the raw file. */
static void make_info(const char *numbers, struct tensor *tensor)
{
    unsigned long long n[5] = {0, 1, 1, 1, 1};
    const int n_read =
        sscanf(numbers, "%llu %llu %llu %llu %llu", &n[0], &n[1], &n[2], &n[3], &n[4]);
    const struct dequant_type *type = dequant_type_by_id((uint32_t)n[0]);
    double n_bytes = type ? (double)type->block_bytes / type->block_elements : 0;
    int length =
        snprintf(tensor->info, sizeof tensor->info, "{\"ggml_type\": %llu, \"ne\": [", n[0]);

    for (int i = 1; i < 5; i++) {
        n_bytes *= (double)n[i];
        if (i < n_read)
            length += snprintf(tensor->info + length, sizeof tensor->info - (size_t)length,
                               "%s%llu", i > 1 ? ", " : "", n[i]);
    }
    snprintf(tensor->info + length, sizeof tensor->info - (size_t)length, "]}");
    tensor->n_bytes = n_bytes <= MAX_RAW_BYTES ? (size_t)n_bytes : MAX_RAW_BYTES;
}

/* Return false if the line does not describe a tensor. */
static bool read_line(const char *line, struct tensor *tensor)
{
    const size_t name_length = strcspn(line, " ");
    const char *rest = line + name_length;
    size_t n_digits;

    memset(tensor, 0, sizeof *tensor);
    if (name_length == 0 || name_length >= MAX_NAME_BYTES || line[0] == '.' || line[0] == '>' ||
        memchr(line, '/', name_length) || rest[0] == '\0' || rest[1] == '\0')
        return false;
    memcpy(tensor->name, line, name_length);
    tensor->values = rest[1];
    n_digits = strspn(rest + 2, "0123456789");
    if (rest[2 + n_digits] != ' ')
        return false;
    if (rest[3 + n_digits] == '{')
        snprintf(tensor->info, sizeof tensor->info, "%s", rest + 3 + n_digits);
    else
        make_info(rest + 3 + n_digits, tensor);
    if (n_digits > 0) {
        const unsigned long n_bytes = strtoul(rest + 2, NULL, 10);

        tensor->n_bytes = n_bytes < MAX_RAW_BYTES ? n_bytes : MAX_RAW_BYTES;
    }
    return true;
}

static struct tensor *find(const char *name)
{
    for (size_t i = 0; i < n_tensors; i++)
        if (strcmp(tensors[i].name, name) == 0)
            return &tensors[i];
    return NULL;
}

/* Write the files of a tensor, unless they exist with the same contents. */
static void put(const struct tensor *wanted)
{
    struct tensor *there = find(wanted->name);
    const bool is_same = there && strcmp(there->info, wanted->info) == 0 &&
                         there->values == wanted->values && there->n_bytes == wanted->n_bytes;

    if (!there && n_tensors == MAX_TENSORS)
        return;
    if (!there)
        there = &tensors[n_tensors++];
    *there = *wanted;
    there->is_wanted = true;
    if (!is_same)
        write_tensor(there);
}

static void remove_unwanted(void)
{
    size_t n_left = 0;

    for (size_t i = 0; i < n_tensors; i++) {
        if (tensors[i].is_wanted)
            tensors[n_left++] = tensors[i];
        else
            remove_tensor(&tensors[i]);
    }
    n_tensors = n_left;
}

/* Write tensors.json: the tensors with their infos. */
static void write_list(void)
{
    static char list[MAX_TENSORS * (MAX_NAME_BYTES + MAX_LINE_BYTES + 16) + 3] = "[";
    size_t length = 1;

    for (size_t i = 0; i < n_tensors; i++)
        length += (size_t)snprintf(list + length, sizeof list - length, "%s{\"name\":\"%s\",%s",
                                   i > 0 ? "," : "", tensors[i].name,
                                   tensors[i].info + (tensors[i].info[0] == '{'));
    length += (size_t)snprintf(list + length, sizeof list - length, "]\n");
    write_file("tensors.json", list, length);
}

/* Most inputs have the metadata of the input before, which need not be written again. */
static void write_metadata(const char *text, size_t length)
{
    static char last[MAX_METADATA_BYTES];
    static size_t last_length = SIZE_MAX;

    if (length > sizeof last)
        length = sizeof last;
    if (length == last_length && memcmp(text, last, length) == 0)
        return;
    metadata_file_write(root, text, length);
    memcpy(last, text, length);
    last_length = length;
}

static void make_tree(const char *text, size_t size)
{
    const char *end = memchr(text, '\n', size);
    size_t at = end ? (size_t)(end - text) : size, sum_bytes = 0;

    write_metadata(text, at);
    /*
     * The first pass removes tensors that are no longer wanted, so that there is room for new ones.
     */
    for (size_t i = 0; i < n_tensors; i++)
        tensors[i].is_wanted = false;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t from = at + 1; from < size;) {
            const char *line_end = memchr(text + from, '\n', size - from);
            const size_t length = line_end ? (size_t)(line_end - text) - from : size - from;
            char line[MAX_LINE_BYTES] = "";
            struct tensor tensor, *there;

            if (length < sizeof line)
                memcpy(line, text + from, length);
            from += length + 1;
            if (!read_line(line, &tensor))
                continue;
            there = find(tensor.name);
            if (pass == 0 && there)
                there->is_wanted = true;
            if (pass == 0 || sum_bytes + tensor.n_bytes > MAX_SUM_BYTES)
                continue;
            sum_bytes += tensor.n_bytes;
            put(&tensor);
        }
        if (pass == 0)
            remove_unwanted();
    }
}

static float *feed(struct run_engine *engine, const int32_t *tokens, size_t n, size_t batch)
{
    const size_t n_vocab = run_engine_counts(engine).n_vocab;
    float *logits = fuzz_alloc(n * n_vocab * sizeof *logits);
    struct run_failure failure;

    run_engine_reset(engine);
    for (size_t i = 0; i < n; i += batch) {
        const size_t left = n - i < batch ? n - i : batch;
        const int code = run_engine_feed(engine, tokens + i, left, RUN_LOGITS_ALL,
                                         logits + i * n_vocab, &failure);

        FUZZ_CHECK(code == 0 || code == -EDOM, "tokens are refused: %s", failure.text);
    }
    FUZZ_CHECK(run_engine_counts(engine).n_past == n, "the number of tokens fed is wrong");
    return logits;
}

static void check_refusals(struct run_engine *engine)
{
    const uint32_t n_vocab = run_engine_counts(engine).n_vocab;
    struct run_failure failure;
    int32_t token = -1;

    run_engine_reset(engine);
    FUZZ_CHECK(run_engine_feed(engine, &token, 1, RUN_LOGITS_NONE, NULL, &failure) == -EINVAL,
               "token id -1 is accepted");
    token = (int32_t)n_vocab;
    FUZZ_CHECK(run_engine_feed(engine, &token, 1, RUN_LOGITS_NONE, NULL, &failure) == -EINVAL,
               "token id %u is accepted", n_vocab);
    FUZZ_CHECK(run_engine_counts(engine).n_past == 0, "a refused token is counted");
}

static void run_model(struct run_engine *engine, struct fuzz_random random)
{
    const size_t n_vocab = run_engine_counts(engine).n_vocab,
                 n_context = run_engine_counts(engine).n_context;
    const size_t n = n_context < N_TOKENS ? n_context : N_TOKENS;
    int32_t tokens[N_TOKENS];
    float *together, *apart;

    FUZZ_CHECK(n_vocab > 0 && n_context > 0, "the vocabulary or the context is empty");
    for (size_t i = 0; i < n; i++)
        tokens[i] = (int32_t)fuzz_random_below(&random, n_vocab);
    together = feed(engine, tokens, n, n);
    apart = feed(engine, tokens, n, 1 + fuzz_random_below(&random, 2));
    for (size_t i = 0; i < n * n_vocab; i++)
        FUZZ_CHECK(memcmp(&together[i], &apart[i], sizeof *apart) == 0 ||
                       (together[i] != together[i] && apart[i] != apart[i]),
                   "logit %zu is %g in one batch, %g in several", i, (double)together[i],
                   (double)apart[i]);
    free(together);
    free(apart);
    check_refusals(engine);
}

/* Show all tokens, one by one. */
static void show(const struct run_tokenizer *tokenizer, const struct run_ids *ids)
{
    struct run_utf8_stream stream = {0};
    struct gguf_buffer out = {0};
    size_t length;

    for (size_t i = 0; i < ids->n; i++) {
        FUZZ_CHECK(ids->list[i] >= 0 && (size_t)ids->list[i] < tokenizer->vocabulary.n,
                   "token %zu: id %d, but the vocabulary has %u", i, ids->list[i],
                   tokenizer->vocabulary.n);
        FUZZ_CHECK(run_tokenizer_piece(tokenizer, ids->list[i], &length), "a token has no piece");
        out.length = 0;
        FUZZ_CHECK(run_tokenizer_show(tokenizer, ids->list[i], i % 2, &stream, &out) == 0 &&
                       fuzz_is_utf8(out.bytes, out.length),
                   "token %zu is not shown as UTF-8", i);
    }
    out.length = 0;
    FUZZ_CHECK(run_utf8_end(&stream, &out) == 0 && fuzz_is_utf8(out.bytes, out.length),
               "the end of the stream is not shown as UTF-8");
    gguf_buffer_free(&out);
}

static void tokenize(const struct run_tokenizer *tokenizer, const char *text, size_t length)
{
    struct run_failure failure = {0};
    struct run_ids ids = {0}, again = {0};

    for (unsigned flags = 0; flags < 4; flags++) {
        const int code = run_tokenizer_encode(tokenizer, text, length, flags, &ids, &failure);

        FUZZ_CHECK(code == 0 || failure.text[0] != '\0',
                   "a text is refused without an error message");
        FUZZ_CHECK(run_tokenizer_encode(tokenizer, text, length, flags, &again, &failure) == code &&
                       (code < 0 || (ids.n == again.n &&
                                     (ids.n == 0 || memcmp(ids.list, again.list,
                                                           ids.n * sizeof *ids.list) == 0))),
                   "encoding a text twice gives different ids");
        if (code == 0)
            show(tokenizer, &ids);
        run_ids_free(&ids);
        run_ids_free(&again);
    }
}

static void use_tokenizer(const struct run_metadata *metadata, const char *input, size_t size)
{
    static const char usual[] = "Once upon  a time,\n\n\tthere\x27s 123456 \xc3\xa9\xe4\xbd\xa0"
                                "\xf0\x9f\x98\x80 \xff<s></s>\xe2\x96\x81 ";
    struct run_failure failure = {0};
    struct run_tokenizer *tokenizer;
    const int code = run_tokenizer_open(metadata, &tokenizer, &failure);
    const char *mark = memmem(input, size, "\n>", 2);

    FUZZ_CHECK((code == 0) == (tokenizer != NULL), "code %d does not match the tokenizer returned",
               code);
    FUZZ_CHECK(code == 0 || failure.text[0] != '\0',
               "a vocabulary is refused without an error message");
    if (!tokenizer)
        return;
    for (int32_t id = -2; id < 12; id++) {
        size_t length = 0;

        run_tokenizer_piece(tokenizer, id, &length);
        run_tokenizer_is_hidden(tokenizer, id);
        run_tokenizer_is_end(tokenizer, id);
    }
    run_vocabulary_find(&tokenizer->vocabulary, "<s>", strlen("<s>"));
    tokenize(tokenizer, usual, sizeof usual - 1);
    if (mark) {
        const size_t length = (size_t)(input + size - mark) - 2;
        char *text = fuzz_alloc(length); /* exact size, for the sanitizer */

        memcpy(text, mark + 2, length);
        tokenize(tokenizer, text, length);
        free(text);
    }
    run_tokenizer_close(tokenizer);
}

static const uint32_t cache_types[] = {DEQUANT_F32, DEQUANT_F16, DEQUANT_Q8_0};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_random random = fuzz_random_seed(data, size);
    const struct run_engine_options options = {
        .n_context = (uint32_t)fuzz_random_below(&random, 2) * 5,
        .n_batch = (uint32_t)fuzz_random_below(&random, 2) * 4,
        .cache_type = cache_types[fuzz_random_below(&random, 3)],
    };
    struct run_failure failure = {0};
    struct run_engine *engine;
    struct run_tree tree;
    int code;

    if (root < 0) {
        make_root();
        dequant_choose_kernels(NULL);
    }
    make_tree((const char *)data, size);
    write_list();
    if (run_tree_open(root_path, &tree, &failure) < 0) {
        FUZZ_CHECK(failure.text[0] != '\0', "a tree is refused without an error message");
        return 0;
    }
    use_tokenizer(tree.metadata, (const char *)data, size);
    code = run_engine_open(tree.metadata, tree.weights, &options, &engine, &failure);
    FUZZ_CHECK((code == 0) == (engine != NULL), "code %d does not match the engine returned", code);
    FUZZ_CHECK(code == 0 || (failure.text[0] != '\0' && gguf_exit_status(code) != 0),
               "a model is refused without an error message or exit status");
    FUZZ_CHECK(code != -ENOMEM, "a small model runs out of memory: %s", failure.text);
    if (engine)
        run_model(engine, random);
    run_engine_close(engine);
    run_tree_close(&tree);
    return 0;
}
