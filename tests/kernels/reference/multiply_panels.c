/* Quantization and multiplication as dequant/forms.h defines them. */
#include "dequant/slots.h"
#include "tests/kernels/reference/panel_reference.h"

#include <math.h>
#include <string.h>

static void quantize_block(const float *x, size_t n, int8_t *q, float *scale)
{
    float greatest = 0, factor;
    bool is_finite = true;

    for (size_t i = 0; i < n; i++) {
        is_finite = is_finite && isfinite(x[i]);
        greatest = fmaxf(greatest, fabsf(x[i]));
    }
    *scale = is_finite ? greatest / 127 : NAN;
    memset(q, 0, n);
    if (!is_finite)
        return;
    if (greatest < DEQUANT_LEAST_MAGNITUDE) {
        *scale = 0;
        return;
    }
    factor = 127 / greatest;
    for (size_t i = 0; i < n; i++)
        q[i] = (int8_t)rintf(x[i] * factor);
}

void reference_quantize(const float *x, size_t block_elements, struct dequant_activations *out)
{
    const size_t scales_of_block = block_elements / 32;

    for (size_t i = 0; i < DEQUANT_PANEL_ELEMENTS / block_elements; i++) {
        float *scales = out->scales + i * scales_of_block;

        quantize_block(x + i * block_elements, block_elements, out->q + i * block_elements, scales);
        for (size_t j = 1; j < scales_of_block; j++)
            scales[j] = scales[0];
    }
    for (size_t i = 0; i < DEQUANT_PANEL_ELEMENTS / 16; i++) {
        int sum = 0;

        for (size_t j = 0; j < 16; j++)
            sum += out->q[16 * i + j];
        out->sums_16[i] = (int16_t)sum;
    }
    for (size_t i = 0; i < DEQUANT_PANEL_ELEMENTS / 32; i++)
        out->sums_32[i] = (int16_t)(out->sums_16[2 * i] + out->sums_16[2 * i + 1]);
}

/* The sum of q * qx over a group, of row r. */
static int32_t sum_group(const struct dequant_panel *panel, const struct dequant_activations *x,
                         size_t r, size_t first, size_t n)
{
    int32_t sum = 0;

    for (size_t i = first; i < first + n; i++)
        sum += panel->q[i / 4][r][i % 4] * x->q[i];
    return sum;
}

static float multiply_scaled(const struct dequant_form *form, const struct dequant_panel *panel,
                             const struct dequant_activations *x, size_t r, float sum)
{
    const size_t n = form->group_elements, in_part = DEQUANT_SCALED_ELEMENTS / n;
    const int16_t *x_sums = n == 16 ? x->sums_16 : x->sums_32;

    float scaled = 0, least = 0;

    for (size_t part = 0; part < DEQUANT_PANEL_ELEMENTS / DEQUANT_SCALED_ELEMENTS; part++) {
        const float x_scale = x->scales[part * DEQUANT_SCALED_ELEMENTS / 32];
        int32_t products = 0, mins = 0;

        for (size_t g = part * in_part; g < (part + 1) * in_part; g++) {
            products += panel->scales[g][r][0] * sum_group(panel, x, r, g * n, n);
            if (form->has_mins || form->zero > 0)
                mins += panel->mins[g / 2][r][g % 2] * x_sums[g];
        }
        if (form->zero > 0)
            products -= mins;
        scaled = fmaf(x_scale, (float)products, scaled);
        least = fmaf(x_scale, (float)mins, least);
    }
    sum = fmaf(panel->d[0][r], scaled, sum);
    return form->has_mins ? fmaf(panel->m[0][r], least, sum) : sum;
}

static float multiply_spans(const struct dequant_form *form, const struct dequant_panel *panel,
                            const struct dequant_activations *x, size_t r, float sum)
{
    const size_t n = form->span_elements;
    const int16_t *x_sums = n == 16 ? x->sums_16 : x->sums_32;

    for (size_t i = 0; i < DEQUANT_PANEL_ELEMENTS / n; i++) {
        const int32_t products = sum_group(panel, x, r, i * n, n) - form->zero * x_sums[i];
        const float x_scale = x->scales[i * n / 32];

        sum = fmaf(panel->d[i][r] * x_scale, (float)products, sum);
        if (form->has_mins)
            sum = fmaf(panel->m[i][r] * x_scale, (float)x_sums[i], sum);
    }
    return sum;
}

void reference_multiply(const struct dequant_form *form, const struct dequant_panel *panel,
                        const struct dequant_activations *x, size_t n_columns,
                        float sums[][DEQUANT_PANEL_ROWS])
{
    for (size_t c = 0; c < n_columns; c++) {
        for (size_t r = 0; r < DEQUANT_PANEL_ROWS; r++)
            sums[c][r] = form->span_elements == DEQUANT_PANEL_ELEMENTS
                             ? multiply_scaled(form, panel, &x[c], r, sums[c][r])
                             : multiply_spans(form, panel, &x[c], r, sums[c][r]);
    }
}
