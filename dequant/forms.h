/* How the integers of each type are multiplied, see dequant/products.h. */
#ifndef GGUFS_DEQUANT_FORMS_H
#define GGUFS_DEQUANT_FORMS_H

#include <stdbool.h>
#include <stdint.h>

struct dequant_form {
    uint16_t span_elements;  /* that share d: 16, 32 or 256 */
    uint16_t group_elements; /* that share s: 16 or 32; equal to the span without integer scales */
    uint8_t zero;            /* z; 128 if `greatest` is over 127: own integers are signed bytes */
    uint8_t greatest;        /* q is at most that */
    bool has_mins;           /* t and m are there */
};

/* By the name of the block struct. */
#define DEQUANT_FORM_q4_0                                                                          \
    {                                                                                              \
        32, 32, 8, 15, false                                                                       \
    }
#define DEQUANT_FORM_q4_1                                                                          \
    {                                                                                              \
        32, 32, 0, 15, true                                                                        \
    }
#define DEQUANT_FORM_q5_0                                                                          \
    {                                                                                              \
        32, 32, 16, 31, false                                                                      \
    }
#define DEQUANT_FORM_q5_1                                                                          \
    {                                                                                              \
        32, 32, 0, 31, true                                                                        \
    }
#define DEQUANT_FORM_q8_0                                                                          \
    {                                                                                              \
        32, 32, 128, 255, false                                                                    \
    }
#define DEQUANT_FORM_q2_k                                                                          \
    {                                                                                              \
        256, 16, 0, 3, true                                                                        \
    }
#define DEQUANT_FORM_q3_k                                                                          \
    {                                                                                              \
        256, 16, 4, 7, false                                                                       \
    }
#define DEQUANT_FORM_q4_k                                                                          \
    {                                                                                              \
        256, 32, 0, 15, true                                                                       \
    }
#define DEQUANT_FORM_q5_k                                                                          \
    {                                                                                              \
        256, 32, 0, 31, true                                                                       \
    }
#define DEQUANT_FORM_q6_k                                                                          \
    {                                                                                              \
        256, 16, 32, 63, false                                                                     \
    }
#define DEQUANT_FORM_iq2_xxs                                                                       \
    {                                                                                              \
        256, 32, 43, 86, false                                                                     \
    }
#define DEQUANT_FORM_iq2_xs                                                                        \
    {                                                                                              \
        256, 16, 43, 86, false                                                                     \
    }
#define DEQUANT_FORM_iq2_s                                                                         \
    {                                                                                              \
        256, 16, 43, 86, false                                                                     \
    }
#define DEQUANT_FORM_iq3_xxs                                                                       \
    {                                                                                              \
        256, 32, 31, 62, false                                                                     \
    }
#define DEQUANT_FORM_iq3_s                                                                         \
    {                                                                                              \
        256, 32, 15, 30, false                                                                     \
    }
#define DEQUANT_FORM_iq1_s                                                                         \
    {                                                                                              \
        256, 32, 9, 18, false                                                                      \
    }
#define DEQUANT_FORM_iq1_m                                                                         \
    {                                                                                              \
        256, 16, 9, 18, false                                                                      \
    }
#define DEQUANT_FORM_iq4_nl                                                                        \
    {                                                                                              \
        32, 32, 128, 255, false                                                                    \
    }
#define DEQUANT_FORM_iq4_xs                                                                        \
    {                                                                                              \
        256, 32, 128, 255, false                                                                   \
    }
#define DEQUANT_FORM_tq1_0                                                                         \
    {                                                                                              \
        256, 32, 1, 2, false                                                                       \
    }
#define DEQUANT_FORM_tq2_0                                                                         \
    {                                                                                              \
        256, 32, 1, 3, false                                                                       \
    }
#define DEQUANT_FORM_mxfp4                                                                         \
    {                                                                                              \
        32, 32, 12, 24, false                                                                      \
    }
#define DEQUANT_FORM_nvfp4                                                                         \
    {                                                                                              \
        16, 16, 12, 24, false                                                                      \
    }
#define DEQUANT_FORM_q1_0                                                                          \
    {                                                                                              \
        32, 32, 1, 2, false                                                                        \
    }
#define DEQUANT_FORM_q2_0                                                                          \
    {                                                                                              \
        32, 32, 1, 3, false                                                                        \
    }

#endif
