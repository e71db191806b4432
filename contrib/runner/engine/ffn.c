#include "contrib/runner/engine/ffn.h"

#include <stdio.h>
#include <string.h>

enum { NAME_BYTES = 64 };

/* Write the name ffn_WHAT END WEIGHT. */
static const char *name_of(const char *what, const char *end, const char *weight,
                           char name[NAME_BYTES])
{
    snprintf(name, NAME_BYTES, "ffn_%s%s%s", what, end, weight);
    return name;
}

void run_ffn_load(struct run_loader *loader, const struct run_hparams *hparams, uint64_t n,
                  uint64_t width, const char *end, struct run_ffn *ffn)
{
    char name[NAME_BYTES];
    uint64_t n_ff, n_up;

    n_ff = run_load_n_elements(loader, name_of("down", end, ".weight", name)) / n / width;
    ffn->n_ff = n_ff;
    ffn->activation = hparams->architecture->activation;
    run_load_linears(loader, name_of("down", end, "", name), n_ff, width, n, &ffn->down);
    run_load_norm_if(loader, name_of("sub_norm", end, "", name), hparams->norm_kind,
                     hparams->norm_epsilon, n_ff, &ffn->sub_norm);
    if (run_loader_has(loader, name_of("gate_up", end, ".weight", name))) {
        run_load_linears(loader, name_of("gate_up", end, "", name), width, 2 * n_ff, n,
                         &ffn->gate_up);
        return;
    }
    if (run_loader_has(loader, name_of("gate", end, ".weight", name)))
        run_load_linears(loader, name_of("gate", end, "", name), width, n_ff, n, &ffn->gate);
    n_up = run_load_n_rows(loader, name_of("up", end, ".weight", name)) / n;
    /* Without a separate gate, `up` may have the gate's rows too. */
    if (!ffn->gate.weight.data && n_up == 2 * n_ff && n_up > 0)
        run_load_linears(loader, name_of("up", end, "", name), width, n_up, n, &ffn->gate_up);
    else
        run_load_linears(loader, name_of("up", end, "", name), width, n_ff, n, &ffn->up);
}

/* Splits rows of gate and up. */
static void split(const float *both, size_t n, size_t n_ff, float *gate, float *up)
{
    for (size_t i = 0; i < n; i++, both += 2 * n_ff) {
        memcpy(gate + i * n_ff, both, n_ff * sizeof *gate);
        memcpy(up + i * n_ff, both + n_ff, n_ff * sizeof *up);
    }
}

static void activate_gated(const struct run_ffn *ffn, float *gate, const float *up, size_t n)
{
    if (ffn->sparsity != 0)
        run_gaussian_top_k(ffn->sparsity, gate, n, ffn->n_ff);
    if (ffn->clamp > 0)
        run_activate_gated_clamped(ffn->activation, ffn->clamp, gate, up, n * ffn->n_ff);
    else
        run_activate_gated(ffn->activation, gate, up, n * ffn->n_ff);
}

void run_ffn_apply(const struct run_ffn *ffn, const struct run_pass *pass, uint64_t matrix,
                   const float *x, size_t n, float *out)
{
    const struct run_scratch_mark mark = run_scratch_mark(pass->scratch);
    const size_t n_ff = ffn->n_ff;
    const bool is_fused = ffn->gate_up.weight.data;
    float *up = run_scratch_take(pass->scratch, n * n_ff);
    float *gate = run_scratch_take(pass->scratch, n * n_ff);
    float *both = is_fused ? run_scratch_take(pass->scratch, 2 * n * n_ff) : NULL;

    if (is_fused) {
        run_linear_apply(&ffn->gate_up, matrix, x, n, both);
        split(both, n, n_ff, gate, up);
    } else {
        const struct run_linear_to list[] = {{&ffn->up, up}, {&ffn->gate, gate}};

        run_linears_apply(list, 2, matrix, x, n);
    }
    if (is_fused || ffn->gate.weight.data) {
        activate_gated(ffn, gate, up, n);
        up = gate;
    } else {
        run_activate(ffn->activation, ffn->xielu, up, n * n_ff);
    }
    run_norm_apply(&ffn->sub_norm, up, n, n_ff, up);
    run_linear_apply(&ffn->down, matrix, up, n, out);
    run_scratch_release(pass->scratch, mark);
}
