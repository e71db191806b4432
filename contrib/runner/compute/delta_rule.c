#include "contrib/runner/compute/delta_rule.h"

#include "contrib/runner/compute/run_kernels.h"
#include "contrib/runner/compute/thread_pool.h"

#include <math.h>

/* The columns of a state are independent; BLOCK of them are computed together. */
enum { BLOCK = 64 };

/* Elements of states in a piece of work. */
#define PIECE_ELEMENTS 16384

struct call {
    const struct run_delta_rule *rule;
    const struct run_delta_rows *rows;
    size_t n, n_blocks; /* tokens, and blocks of a head */
    float *out;
};

static void pass_block(void *context, size_t block)
{
    const struct call *call = context;
    const size_t head = block / call->n_blocks, first = block % call->n_blocks * BLOCK;
    const struct run_delta_rule *rule = call->rule;
    const struct run_delta_rows *rows = call->rows;
    const size_t width_k = rule->width_k, width_v = rule->width_v;
    const size_t width = width_v - first < BLOCK ? width_v - first : BLOCK;
    const size_t head_k =
        rule->keys_take_turns ? head % rule->n_heads_k : head / (rule->n_heads / rule->n_heads_k);
    float *columns = rule->state + head * width_k * width_v + first;

    for (size_t token = 0; token < call->n; token++) {
        const size_t at = token * rows->stride, row = token * rule->n_heads + head;

        const struct run_delta_token input = {
            .n_rows = width_k,
            .q = rows->q + at + head_k * width_k,
            .k = rows->k + at + head_k * width_k,
            .v = rows->v + at + head * width_v + first,
            .decay = rows->decay + row * rule->n_decays,
            .decay_stride = rule->n_decays > 1,
            .beta = rows->beta[row],
        };

        run_kernels()->delta_step(columns, width_v, width, &input,
                                  call->out + row * width_v + first);
    }
}

void run_delta_rule(struct run_delta_rule *rule, const struct run_delta_rows *rows, size_t n,
                    float *out)
{
    struct call call = {rule, rows, n, (rule->width_v + BLOCK - 1) / BLOCK, out};

    run_parallel_for_each(rule->n_heads * call.n_blocks,
                          run_grain(PIECE_ELEMENTS, n * rule->width_k * BLOCK), pass_block, &call);
}

void run_l2_norm(float *x, size_t n, size_t n_heads, size_t width, size_t stride, float epsilon)
{
    for (size_t i = 0; i < n * n_heads; i++) {
        float *vector = x + i / n_heads * stride + i % n_heads * width;
        double sum = 0;
        float scale;

        for (size_t j = 0; j < width; j++)
            sum += (double)vector[j] * (double)vector[j];
        scale = (float)(1 / sqrt(sum + (double)epsilon));
        for (size_t j = 0; j < width; j++)
            vector[j] *= scale;
    }
}
