#include "fs/tree/views/view_files.h"

#include "fs/tree/core/paths.h"
#include "fs/tree/data/threads.h"
#include "fs/tree/facts/facts.h"
#include "fs/tree/core/tree_core.h"
#include "gguf/support/arrays.h"

#include <nettle/base16.h>
#include <nettle/sha2.h>

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Bytes hashed at a time: they stay in the processor's cache between copying and hashing. */
#define MAX_LINE_BYTES (2 * FS_PATH_BYTES + 2 * SHA256_DIGEST_SIZE + 4)
#define CHUNK_BYTES    ((size_t)128 << 10)

struct line {
    uint64_t end; /* in bytes from the start of the file */
    fs_node_index node;
    unsigned generation; /* of the model, before the checksum was computed */
    bool is_known;
    bool is_being_hashed;
    uint8_t checksum[SHA256_DIGEST_SIZE];
};

/* How far a file has been hashed. All zero: not at all. */
struct progress {
    uint64_t done_bytes;
    unsigned generation;
    struct sha256_ctx context;
};

struct fs_checksums {
    const struct fs_tree *tree;
    size_t n_lines;
    struct line *lines;

    pthread_mutex_t lock;   /* protects the lines, without `end` and `node` */
    pthread_cond_t changed; /* a file was hashed, or hashing it was given up */
    /*
     * Hashing a whole model can take minutes, so a reader that is interrupted and tries again goes
     * on where it was. Each is used by the thread that has its line's is_being_hashed.
     */
    struct progress parts[FS_N_PARTS];
};

/* ---- lines ---- */

static bool is_summed(const struct fs_node *node)
{
    return node->view && node->view->is_summed;
}

/*
 * Write the line of a node. For a name with a backslash, sha256sum(1) has another at the start of
 * the line and two for each in the name. It escapes line breaks, too, but no name in the tree has
 * one: see fs/tree/core/names.h.
 */
static void write_line(const struct fs_tree *tree, fs_node_index index,
                       const uint8_t checksum[SHA256_DIGEST_SIZE], struct fs_sink *sink)
{
    const struct fs_node *node = fs_tree_node(tree, index);
    char digits[BASE16_ENCODE_LENGTH(SHA256_DIGEST_SIZE)];
    char path[FS_PATH_BYTES];

    fs_path_expand(tree, node->view->path, strlen(node->view->path), node->subject, path);
    base16_encode_update(digits, SHA256_DIGEST_SIZE, checksum);
    if (strchr(path, '\\'))
        fs_sink_literal(sink, "\\");
    fs_sink_write(sink, digits, sizeof digits);
    fs_sink_literal(sink, "  ");
    for (const char *at = path; *at != '\0'; at++) {
        if (*at == '\\')
            fs_sink_literal(sink, "\\");
        fs_sink_write(sink, at, 1);
    }
    fs_sink_literal(sink, "\n");
}

/* Return where the line ends that begins at `start`. */
static uint64_t end_of_line(const struct fs_tree *tree, fs_node_index node, uint64_t start)
{
    const uint8_t any[SHA256_DIGEST_SIZE] = {0};
    struct fs_sink sink = fs_sink_that_counts();

    write_line(tree, node, any, &sink);
    return start + sink.position;
}

static uint64_t length_of(const struct fs_checksums *checksums)
{
    return checksums->n_lines > 0 ? checksums->lines[checksums->n_lines - 1].end : 0;
}

/* Add the lines of files of tensors, or of files of the whole model. */
static void add_lines(struct fs_checksums *checksums, bool of_tensors)
{
    const struct fs_tree *tree = checksums->tree;

    for (fs_node_index i = 0; i < tree->nodes.count; i++) {
        const uint64_t start = length_of(checksums);

        if (is_summed(fs_tree_node(tree, i)) && !fs_tree_node(tree, i)->subject != of_tensors)
            checksums->lines[checksums->n_lines++] =
                (struct line){.end = end_of_line(tree, i, start), .node = i};
    }
}

static void free_checksums(struct fs_segment *segment)
{
    struct fs_checksums *checksums = (struct fs_checksums *)(uintptr_t)segment->of;

    pthread_cond_destroy(&checksums->changed);
    pthread_mutex_destroy(&checksums->lock);
    free(checksums->lines);
    free(checksums);
}

/* ---- hashing ---- */

/* A read of lines `first` to `end`. */
struct request {
    struct fs_checksums *checksums;
    const struct fs_interrupt *interrupt;
    unsigned generation; /* of the model, when the read began */
    size_t first, end;
    atomic_size_t n_taken; /* lines */
    int result;            /* the first error; protected by the checksums' lock */
};

static bool is_of_model(const struct fs_checksums *checksums, size_t i)
{
    return !fs_tree_node(checksums->tree, checksums->lines[i].node)->subject;
}

/* Call with the lock held. */
static bool is_up_to_date(const struct request *request, size_t i)
{
    const struct line *line = &request->checksums->lines[i];

    return line->is_known && line->generation >= request->generation;
}

/* Return an error if the request has failed or is withdrawn. Call with the lock held. */
static int check_wanted(const struct request *request)
{
    if (request->result == 0 && fs_is_interrupted(request->interrupt))
        return -EINTR;
    return request->result;
}

static int hash_image(const struct request *request, const struct fs_image *image,
                      struct progress *progress)
{
    char *chunk = malloc(CHUNK_BYTES);
    int result = chunk ? 0 : -ENOMEM;

    if (progress->done_bytes == 0 || progress->generation != request->generation) {
        *progress = (struct progress){.generation = request->generation};
        sha256_init(&progress->context);
    }
    while (result == 0 && progress->done_bytes < image->size_bytes) {
        const ssize_t n = fs_image_read(image, progress->done_bytes, CHUNK_BYTES, chunk);

        if (n < 0) {
            result = (int)n;
            break;
        }
        sha256_update(&progress->context, (size_t)n, (const uint8_t *)chunk);
        progress->done_bytes += (uint64_t)n;
        pthread_mutex_lock(&request->checksums->lock);
        if (request->interrupt && request->interrupt->advance)
            request->interrupt->advance(request->interrupt->user, (uint64_t)n);
        if (progress->done_bytes < image->size_bytes)
            result = check_wanted(request);
        pthread_mutex_unlock(&request->checksums->lock);
    }
    free(chunk);
    return result;
}

/* Hash the file of a line, by the view that also serves its readers. */
static int hash_file(const struct request *request, size_t i, uint8_t checksum[SHA256_DIGEST_SIZE])
{
    struct fs_checksums *checksums = request->checksums;
    const struct fs_node *node = fs_tree_node(checksums->tree, checksums->lines[i].node);
    struct progress of_tensor = {0};
    struct progress *progress =
        is_of_model(checksums, i) ? &checksums->parts[node->view->part] : &of_tensor;
    struct fs_image image;
    int result;

    fs_image_begin(&image, checksums->tree->model);
    result = node->view->build(checksums->tree, node, NULL, &image);
    if (result == 0)
        result = hash_image(request, &image, progress);
    if (result == 0) {
        sha256_digest(&progress->context, SHA256_DIGEST_SIZE, checksum);
        progress->done_bytes = 0;
    }
    fs_image_free(&image);
    return result;
}

/* Bring a line up to date; while another request is doing that, wait. */
static void hash_line(struct request *request, size_t i)
{
    struct fs_checksums *checksums = request->checksums;
    struct line *line = &checksums->lines[i];
    uint8_t checksum[SHA256_DIGEST_SIZE];
    int result;

    pthread_mutex_lock(&checksums->lock);
    result = check_wanted(request);
    while (result == 0 && !is_up_to_date(request, i)) {
        if (line->is_being_hashed) {
            result = fs_wait_for_change(&checksums->changed, &checksums->lock, request->interrupt);
            continue;
        }
        line->is_being_hashed = true;
        pthread_mutex_unlock(&checksums->lock);
        result = hash_file(request, i, checksum);
        pthread_mutex_lock(&checksums->lock);
        line->is_being_hashed = false;
        if (result == 0) {
            memcpy(line->checksum, checksum, sizeof checksum);
            line->generation = request->generation;
            line->is_known = true;
        }
        pthread_cond_broadcast(&checksums->changed);
    }
    if (request->result == 0)
        request->result = result;
    pthread_mutex_unlock(&checksums->lock);
}

/*
 * Return the number of threads for a request. The whole model is hashed by one thread, which takes
 * as long as all tensors by one other. These two stay side by side, since the one ahead waits for
 * the disk and the other finds its bytes in memory: a model larger than memory is read once.
 */
static int thread_count(const struct request *request)
{
    const size_t last = request->end - 1;
    size_t n_needed = 0;
    bool needs_model;
    int n_threads;

    pthread_mutex_lock(&request->checksums->lock);
    for (size_t i = request->first; i < request->end; i++)
        n_needed += !is_up_to_date(request, i);
    needs_model = is_of_model(request->checksums, last) && !is_up_to_date(request, last);
    pthread_mutex_unlock(&request->checksums->lock);
    n_threads = fs_thread_count(n_needed);
    return needs_model && n_threads > 2 ? 2 : n_threads;
}

/* Hash lines that no other thread has taken, the last one first, which may be the whole model. */
static void *hash_untaken(void *user)
{
    struct request *request = user;
    const size_t n_lines = request->end - request->first;

    for (size_t i; (i = atomic_fetch_add(&request->n_taken, 1)) < n_lines;)
        hash_line(request, i == 0 ? request->end - 1 : request->first + i - 1);
    return NULL;
}

/* ---- reading ---- */

/* Return the line that has the byte at `offset`. */
static size_t line_at(const struct fs_checksums *checksums, uint64_t offset)
{
    return gguf_find_end(&checksums->lines->end, checksums->n_lines, sizeof *checksums->lines,
                         offset);
}

/* Copy the part of a line that lies in bytes `offset` to `offset + length` of the file. */
static void copy_line(const struct fs_checksums *checksums, size_t i, uint64_t offset,
                      size_t length, char *out)
{
    const struct line *line = &checksums->lines[i];
    const uint64_t start = i > 0 ? checksums->lines[i - 1].end : 0;
    const uint64_t from = start > offset ? start : offset;
    const uint64_t to = line->end < offset + length ? line->end : offset + length;
    char text[MAX_LINE_BYTES];
    struct fs_sink sink = {.to = sizeof text, .out = text};

    write_line(checksums->tree, line->node, line->checksum, &sink);
    memcpy(out + (from - offset), text + (from - start), (size_t)(to - from));
}

static int read_checksums(const struct fs_image *image, const struct fs_segment *segment,
                          uint64_t offset, size_t length, const struct fs_interrupt *interrupt,
                          char *out)
{
    struct fs_checksums *checksums = (struct fs_checksums *)(uintptr_t)segment->of;
    const struct gguf_model *models[] = {checksums->tree->model, checksums->tree->facts->projector};
    struct request request = {.checksums = checksums, .interrupt = interrupt};

    for (size_t i = 0; i < 2 && models[i]; i++) {
        const int result = gguf_model_check(models[i]);

        if (result < 0)
            return result;
        request.generation += gguf_model_generation(models[i]);
    }
    request.first = line_at(checksums, offset);
    request.end = line_at(checksums, offset + length - 1) + 1;
    fs_run_threads(thread_count(&request), hash_untaken, &request);
    if (request.result < 0)
        return request.result;
    pthread_mutex_lock(&checksums->lock);
    for (size_t i = request.first; i < request.end; i++)
        copy_line(checksums, i, offset, length, out);
    pthread_mutex_unlock(&checksums->lock);
    return 0;
}

/* ---- the file ---- */

static const struct fs_segment_ops segment_ops = {
    .read = read_checksums, .free = free_checksums, .is_slow = true};

int fs_checksums_build(const struct fs_tree *tree, const struct fs_node *node,
                       const struct fs_interrupt *interrupt, struct fs_image *image)
{
    struct fs_checksums *checksums = calloc(1, sizeof *checksums);
    size_t n_lines = 0;

    (void)node, (void)interrupt;
    for (fs_node_index i = 0; i < tree->nodes.count; i++)
        n_lines += is_summed(fs_tree_node(tree, i));
    if (checksums)
        checksums->lines = calloc(n_lines + 1, sizeof *checksums->lines);
    if (!checksums || !checksums->lines) {
        free(checksums);
        return -ENOMEM;
    }
    checksums->tree = tree;
    pthread_mutex_init(&checksums->lock, NULL);
    pthread_cond_init(&checksums->changed, NULL);
    add_lines(checksums, true);
    add_lines(checksums, false);
    return fs_image_add(image, (struct fs_segment){.ops = &segment_ops, .of = checksums},
                        length_of(checksums));
}
