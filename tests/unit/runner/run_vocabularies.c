#include "tests/unit/runner/run_vocabularies.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/gguf/model_file.h"
#include "tests/unit/runner/run_tree_files.h"
#include "tests/unit/fs/tree_file.h"

int vocabulary_open(const char *metadata, struct run_tokenizer **tokenizer,
                    struct run_failure *failure)
{
    struct run_tree tree;
    struct run_files files;
    int code;

    run_files_make(&files);
    run_files_metadata(&files, metadata);
    tree = run_files_open(&files);
    code = run_tokenizer_open(tree.metadata, tokenizer, failure);
    run_tree_close(&tree);
    run_files_remove(&files);
    return code;
}

struct run_tokenizer *vocabulary_accept(const char *metadata)
{
    struct run_failure failure = {0};
    struct run_tokenizer *tokenizer;

    cr_assert_eq(vocabulary_open(metadata, &tokenizer, &failure), 0, "%s", failure.text);
    return tokenizer;
}

static const char *fixture_path(const char *name)
{
    static char path[4096];
    const char *root = getenv("GGUFS_FIXTURES");

    snprintf(path, sizeof path, "%s/tokenizers/%s", root ? root : "../shared/fixtures", name);
    return path;
}

char *vocabulary_fixture_file(const char *name, size_t *length)
{
    FILE *file = fopen(fixture_path(name), "rb");
    char *text;
    long end;

    if (!file)
        return NULL;
    cr_assert_eq(fseek(file, 0, SEEK_END), 0);
    end = ftell(file);
    cr_assert_geq(end, 0);
    rewind(file);
    *length = (size_t)end;
    text = calloc(*length + 1, 1);
    cr_assert_not_null(text);
    cr_assert_eq(fread(text, 1, *length, file), *length, "%s", name);
    fclose(file);
    return text;
}

struct run_tokenizer *vocabulary_fixture(const char *name)
{
    struct gguf_report report = {0};
    struct run_tokenizer *tokenizer;
    struct gguf_model *model;
    struct tree_file file;
    struct fs_tree *tree;

    if (gguf_open(fixture_path(name), &model, &report) < 0) {
        fprintf(stderr, "SKIPPED: no %s (set GGUFS_FIXTURES to the fixtures folder)\n",
                fixture_path(name));
        return NULL;
    }
    tree = tree_file_make_tree(model);
    file = tree_file_read(tree, "metadata.json");
    tokenizer = vocabulary_accept(file.bytes);
    free(file.bytes);
    fs_tree_free(tree);
    gguf_close(model);
    return tokenizer;
}

static char *text_of_ids(const struct run_ids *ids)
{
    char *text = calloc(ids->n + 1, 12);
    size_t at = 0;

    cr_assert_not_null(text);
    for (size_t i = 0; i < ids->n; i++)
        at += (size_t)sprintf(text + at, i > 0 ? " %d" : "%d", ids->list[i]);
    return text;
}

static void encode(const struct run_tokenizer *tokenizer, const char *text, size_t length,
                   unsigned flags, struct run_ids *ids)
{
    struct run_failure failure = {0};
    /* exact size, for sanitizers */
    char *copy = malloc(length > 0 ? length : 1);

    cr_assert_not_null(copy);
    memcpy(copy, text, length);
    cr_assert_eq(run_tokenizer_encode(tokenizer, copy, length, flags, ids, &failure), 0, "%s",
                 failure.text);
    free(copy);
}

void vocabulary_expect_ids(const struct run_tokenizer *tokenizer, const char *text, size_t length,
                           unsigned flags, const char *ids)
{
    struct run_ids list = {0};
    char *own;

    encode(tokenizer, text, length, flags, &list);
    own = text_of_ids(&list);
    cr_expect_str_eq(own, ids, "\"%s\" gives ids \"%s\", expected \"%s\"", text, own, ids);
    free(own);
    run_ids_free(&list);
}

bool vocabulary_is_kept(const struct run_tokenizer *tokenizer, const char *text, size_t length)
{
    struct run_ids ids = {0};
    bool is_first = true, is_kept = true;
    size_t at = 0;

    encode(tokenizer, text, length, 0, &ids);
    for (size_t i = 0; is_kept && i < ids.n; i++) {
        size_t n;
        const char *piece = run_tokenizer_piece(tokenizer, ids.list[i], &n);

        if (is_first && tokenizer->is_space_added && n > 0 && *piece == ' ') {
            piece++;
            n--;
        }
        is_first = false;
        is_kept = n <= length - at && memcmp(text + at, piece, n) == 0;
        at += n;
    }
    run_ids_free(&ids);
    return is_kept && at == length;
}

void vocabulary_expect(const struct run_tokenizer *tokenizer, const char *text, unsigned flags,
                       const char *ids)
{
    vocabulary_expect_ids(tokenizer, text, strlen(text), flags, ids);
    cr_expect(vocabulary_is_kept(tokenizer, text, strlen(text)),
              "the pieces of \"%s\" are not the text", text);
}
