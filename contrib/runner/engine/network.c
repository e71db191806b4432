#include "contrib/runner/engine/network.h"

#include <errno.h>
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

void run_network_load(struct run_loader *loader, const struct run_hparams *hparams, uint64_t n,
                      uint64_t width, const char *end, struct run_network *network)
{
    const struct run_architecture *row = hparams->architecture;
    char name[NAME_BYTES];
    uint64_t n_ff, n_up;

    n_ff = run_load_n_elements(loader, name_of("down", end, ".weight", name)) / n / width;
    network->n_ff = n_ff;
    network->activation = row->feed_forward.activation;
    run_load_linears(loader, name_of("down", end, "", name), n_ff, width, n, &network->down);
    run_load_norm_if(loader, name_of("sub_norm", end, "", name), row->norms.kind,
                     hparams->norm_epsilon, n_ff, &network->sub_norm);
    if (run_loader_has(loader, name_of("gate_up", end, ".weight", name))) {
        run_load_linears(loader, name_of("gate_up", end, "", name), width, 2 * n_ff, n,
                         &network->gate_up);
        return;
    }
    if (run_loader_has(loader, name_of("gate", end, ".weight", name)))
        run_load_linears(loader, name_of("gate", end, "", name), width, n_ff, n, &network->gate);
    n_up = run_load_n_rows(loader, name_of("up", end, ".weight", name)) / n;
    /* Without a separate gate, `up` may have the gate's rows too. */
    if (!network->gate.weight.data && n_up == 2 * n_ff && n_up > 0)
        run_load_linears(loader, name_of("up", end, "", name), width, n_up, n, &network->gate_up);
    else
        run_load_linears(loader, name_of("up", end, "", name), width, n_ff, n, &network->up);
}

/* Splits rows of gate and up. */
static void split(const float *both, size_t n, size_t n_ff, float *gate, float *up)
{
    for (size_t i = 0; i < n; i++, both += 2 * n_ff) {
        memcpy(gate + i * n_ff, both, n_ff * sizeof *gate);
        memcpy(up + i * n_ff, both + n_ff, n_ff * sizeof *up);
    }
}

static void activate_gated(const struct run_network *network, float *gate, const float *up,
                           size_t n)
{
    if (network->sparsity != 0)
        run_gaussian_top_k(network->sparsity, gate, n, network->n_ff);
    if (network->clamp > 0)
        run_activate_gated_clamped(network->activation, network->clamp, gate, up,
                                   n * network->n_ff);
    else
        run_activate_gated(network->activation, gate, up, n * network->n_ff);
}

uint64_t run_network_bytes(const struct run_network *network)
{
    const struct run_linear *linears[] = {&network->gate, &network->up, &network->down,
                                          &network->gate_up};
    uint64_t n_bytes = 0;

    for (size_t i = 0; i < sizeof linears / sizeof *linears; i++)
        if (linears[i]->weight.data)
            n_bytes += run_tensor_bytes(&linears[i]->weight);
    return n_bytes;
}

int run_network_apply(const struct run_network *network, const struct run_pass *pass,
                      uint64_t matrix, const float *x, size_t n, float *out)
{
    const struct run_scratch_mark mark = run_scratch_mark(pass->scratch);
    const size_t n_ff = network->n_ff;
    const bool is_fused = network->gate_up.weight.data;
    float *up = run_scratch_take(pass->scratch, n * n_ff);
    float *gate = run_scratch_take(pass->scratch, n * n_ff);
    float *both = is_fused ? run_scratch_take(pass->scratch, 2 * n * n_ff) : NULL;

    if (!up || !gate || (is_fused && !both))
        return -ENOMEM;
    if (is_fused) {
        run_linear_apply(&network->gate_up, matrix, x, n, both);
        split(both, n, n_ff, gate, up);
    } else {
        const struct run_linear_to list[] = {{&network->up, up}, {&network->gate, gate}};

        run_linears_apply(list, 2, matrix, x, n);
    }
    if (is_fused || network->gate.weight.data) {
        activate_gated(network, gate, up, n);
        up = gate;
    } else {
        run_activate(network->activation, network->xielu, up, n * n_ff);
    }
    run_norm_apply(&network->sub_norm, up, n, n_ff, up);
    run_linear_apply(&network->down, matrix, up, n, out);
    run_scratch_release(pass->scratch, mark);
    return 0;
}
