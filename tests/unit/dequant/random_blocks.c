#include "tests/unit/dequant/random_blocks.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct expectation expectations[] = {
    /* id, era, name, block elements, block bytes, scales and their offset, values, swapped */
    {0, 2, "F32", 1, 4, NO_SCALE, 0, 0x78e375c30a1a5093, 0x1a3959099de43447},
    {1, 2, "F16", 1, 2, NO_SCALE, 0, 0x7750f88b8d257fd9, 0x19bb7402b0f06c65},
    {2, 2, "Q4_0", 32, 18, F16_SCALE, 0, 0x87f67c07873e24a0, 0xce587df2c3f81127},
    {3, 2, "Q4_1", 32, 20, TWO_F16_SCALES, 0, 0xbf258e07876edefa, 0x15b6adb90b18ad58},
    {6, 2, "Q5_0", 32, 22, F16_SCALE, 0, 0x8e376ef7c718cd00, 0x97eb26796ffee4b1},
    {7, 2, "Q5_1", 32, 24, TWO_F16_SCALES, 0, 0x57edff16d6c969fe, 0xffc5738194ff418c},
    {8, 2, "Q8_0", 32, 34, F16_SCALE, 0, 0xf9ff9c9d4b150fc6, 0x343d3a03f51f0a85},
    {9, 2, "Q8_1", 32, 36, TWO_F16_SCALES, 0, 0xae99efd46efac839, 0xb2226204e87667f9},
    {10, 2, "Q2_K", 256, 84, TWO_F16_SCALES, 80, 0xe064bf7437f02d35, 0x44d6c69daddf0f89},
    {11, 2, "Q3_K", 256, 110, F16_SCALE, 108, 0x5434fe27c118e1e0, 0xfafa773c36c769c0},
    {12, 2, "Q4_K", 256, 144, TWO_F16_SCALES, 0, 0xc750fa9317102a62, 0x53a42af86eae2df2},
    {13, 2, "Q5_K", 256, 176, TWO_F16_SCALES, 0, 0x167e15a7bc4ce356, 0xbefc3d860dd0c9a0},
    {14, 2, "Q6_K", 256, 210, F16_SCALE, 208, 0xddb2c88f8e4ed207, 0x07ad8109205e58bc},
    {15, 2, "Q8_K", 256, 292, F32_SCALE, 0, 0x96a18bdd9ec5abb2, 0xda8905bdc5261f30},
    {16, 2, "IQ2_XXS", 256, 66, F16_SCALE, 0, 0xbb10903f36c46d8c, 0xa19754b98b550ceb},
    {17, 2, "IQ2_XS", 256, 74, F16_SCALE, 0, 0x961dd81fafaad967, 0x4a7c21cb9d717852},
    {18, 2, "IQ3_XXS", 256, 98, F16_SCALE, 0, 0x75e99a0b7e1258d5, 0xddfcba28cffc4665},
    {19, 2, "IQ1_S", 256, 50, F16_SCALE, 0, 0xa3487b3015567a86, 0x36a1faa5779b2f74},
    {20, 2, "IQ4_NL", 32, 18, F16_SCALE, 0, 0xa0e445330d267a96, 0xdddaba1e46b40b52},
    {21, 2, "IQ3_S", 256, 110, F16_SCALE, 0, 0xbc5b5fa46376662c, 0xd193845554523a05},
    {22, 2, "IQ2_S", 256, 82, F16_SCALE, 0, 0x83f9dabc00813693, 0x886f67ca0acbbd84},
    {23, 2, "IQ4_XS", 256, 136, F16_SCALE, 0, 0x1a3a16adad7bc6a9, 0xe9bdf01b51129a94},
    {24, 2, "I8", 1, 1, NO_SCALE, 0, 0x6900b67cb87d2f7f, 0x8cc294badc5af63b},
    {25, 2, "I16", 1, 2, NO_SCALE, 0, 0x36bc92f4591cbf29, 0x728416c60231816d},
    {26, 2, "I32", 1, 4, NO_SCALE, 0, 0x1f35f6bf23ea70b1, 0x2332336ead0b0273},
    {27, 2, "I64", 1, 8, NO_SCALE, 0, 0x2901a5c560895a4c, 0x21a23d8e1ebd0269},
    {28, 2, "F64", 1, 8, NO_SCALE, 0, 0x9f12d36da2394fd7, 0xc43475af1bfff60e},
    {29, 2, "IQ1_M", 256, 56, SPLIT_F16_SCALE, 48, 0x7dc3470ebc20b0b5, 0x9bfcf01cd3b40935},
    {30, 2, "BF16", 1, 2, NO_SCALE, 0, 0x7876e54b6f8717c0, 0x81e25c46ae2065da},
    {31, 2, "Q4_0_4_4", 32, 18, F16_SCALE, 0, 0xb11940b95dc5b67b, 0x335e2fb07a6851a8},
    {32, 2, "Q4_0_4_8", 32, 18, F16_SCALE, 0, 0xd3fb32b7461152fa, 0x2d422af80e22488b},
    {33, 2, "Q4_0_8_8", 32, 18, F16_SCALE, 0, 0x666f133f6725325d, 0x88da833685e0807b},
    {34, 2, "TQ1_0", 256, 54, F16_SCALE, 52, 0x24dca35f65720703, 0xb23e933cfd43c61b},
    {35, 2, "TQ2_0", 256, 66, F16_SCALE, 64, 0x2ef75a9456e1c14d, 0xe80f30146ea59ba9},
    {36, 2, "I2_S", 128, 32, NO_SCALE, 0, 0x416499df86aa22e5, 0x592dc173cbd61ddb},
    {37, 2, "IQ4_NL_4_8", 32, 18, NO_SCALE, 0, 0, 0},
    {38, 2, "IQ4_NL_8_8", 32, 18, NO_SCALE, 0, 0, 0},
    {39, 2, "MXFP4", 32, 17, NO_SCALE, 0, 0x4c761edd528e6164, 0xbbbab932fde1561e},
    {40, 2, "NVFP4", 64, 36, NO_SCALE, 0, 0xb60f8e177ef0699c, 0x974b2b1cb5431d1e},
    {41, 2, "Q1_0", 128, 18, F16_SCALE, 0, 0x7a7f330a50ca18a5, 0x91ca4b4f57dd9b89},
    {42, 2, "Q2_0", 64, 18, F16_SCALE, 0, 0x2a44a334544769aa, 0x44f328a2d812371f},

    {133, 2, "Q6_0", 32, 26, F16_SCALE, 0, 0x756cf743d800b3ce, 0x9b2147e33deae920},
    {134, 2, "IQ1_BN", 64, 13, NO_SCALE, 0, 0xb05906ac4a9eefd7, 0x77ef516d9bd26c47},
    {135, 2, "IQ2_BN", 64, 16, NO_SCALE, 0, 0x95004a7077fed0ae, 0x2b60bc28b8828d43},
    {137, 2, "IQ2_K", 256, 76, F16_SCALE, 0, 0x9de87556731a9b55, 0x6e7d4b4fe8a96113},
    {138, 2, "IQ3_K", 256, 110, F16_SCALE, 0, 0x757b1e28e3e7fe04, 0xd09e3ef1c0548715},
    {139, 2, "IQ4_K", 256, 144, F16_SCALE, 0, 0x5e6c8500460871f8, 0x7244eb0efcd60677},
    {140, 2, "IQ5_K", 256, 176, F16_SCALE, 0, 0xde5b06c8273e7207, 0xaa63a11b28e0f203},
    {141, 2, "IQ6_K", 256, 212, F16_SCALE, 0, 0x5cd2c13ea17331bc, 0x0c002ee92bb2b828},
    {142, 2, "PQ2_0", 128, 34, F16_SCALE, 0, 0xa381810e5f703a77, 0x8f9d3219cf8ca23e},
    {143, 2, "PTQ1_0", 128, 28, F16_SCALE, 26, 0x51366fcfbfba0436, 0x49587abf5bbc35cd},
    {144, 2, "IQ4_KS", 256, 136, NO_SCALE, 0, 0x418d5ff6a129805e, 0xf3a385492c79cd7a},
    {145, 2, "IQ2_KS", 256, 70, NO_SCALE, 0, 0x9c9631abe3a69daa, 0xe66d9f0f9f995aef},
    {146, 2, "IQ4_KSS", 256, 128, NO_SCALE, 0, 0x9d399e9b96bfe5d3, 0x90b51842219818c6},
    {151, 2, "Q8_KV", 32, 32, NO_SCALE, 0, 0xf44627c030dcc8fc, 0x69e64d509b84cba1},
    {152, 2, "IQ5_KS", 256, 168, NO_SCALE, 0, 0xb6ba1a4d6cdc3c45, 0x8add24012d49be61},
    {153, 2, "IQ2_KT", 256, 68, NO_SCALE, 0, 0x5598c0e866c77636, 0x2359709571c229e5},
    {154, 2, "IQ3_KT", 256, 100, NO_SCALE, 0, 0x2ccd933a14e50587, 0x1a83ea87eb37b9ab},
    {155, 2, "IQ4_KT", 256, 128, NO_SCALE, 0, 0xd4224a799ee48501, 0x0bdd7ffa07936928},
    {156, 2, "IQ3_KS", 256, 102, NO_SCALE, 0, 0x1f11df5877a05d7a, 0x876eccec78bad9d9},
    {157, 2, "IQ2_KL", 256, 86, NO_SCALE, 0, 0x85fa9084b48bd0a5, 0x47a23aaabd158af3},
    {158, 2, "IQ1_KT", 256, 56, NO_SCALE, 0, 0x4e92567e53eb6fb4, 0xcbea9f4926d0753e},
    {202, 2, "Q4_0_R8", 32, 18, F16_SCALE, 0, 0x210d71a5827f2e8f, 0x61e7789f119eb64a},
    {206, 2, "Q5_0_R4", 32, 22, F16_SCALE, 0, 0x31ae99c233f517fb, 0xd9ff0866dcdcfa02},
    {208, 2, "Q8_0_R8", 32, 34, F16_SCALE, 0, 0xd76d014c2ca1feb0, 0x5f432e8e8d9de912},
    {210, 2, "Q2_K_R4", 256, 84, TWO_F16_SCALES, 0, 0x25608fe02cb8049a, 0x131e28af8e8caf1e},
    {211, 2, "Q3_K_R4", 256, 110, F16_SCALE, 0, 0xd7b8d6ee850bad4e, 0x061cbf96fcb70daa},
    {212, 2, "Q4_K_R4", 256, 144, TWO_F16_SCALES, 0, 0xa2cb8b330b734eee, 0xfe9248d8cb14ca8d},
    {213, 2, "Q5_K_R4", 256, 176, TWO_F16_SCALES, 0, 0x19a856e0492027d3, 0x94d9e6f1df750d49},
    {214, 2, "Q6_K_R4", 256, 210, F16_SCALE, 0, 0x1bd050966ccffb00, 0x07e4f4b369285880},
    {216, 2, "IQ2_XXS_R4", 256, 66, F16_SCALE, 0, 0x3c5bbf04e9f4b637, 0x69bbc9918c355392},
    {217, 2, "IQ2_XS_R4", 256, 74, F16_SCALE, 0, 0xef8ec0f366f564f6, 0x591ae8a40dd2a2f7},
    {218, 2, "IQ3_XXS_R4", 256, 98, F16_SCALE, 0, 0x496c0cf0fd118fdf, 0xf72d3cfee6fcd394},
    {219, 2, "IQ1_S_R4", 32, 6, NO_SCALE, 0, 0xa1b4d76397303ebb, 0xf4bd33f08529f5e0},
    {220, 2, "IQ4_NL_R4", 32, 18, F16_SCALE, 0, 0x9ce2576fa34460a5, 0x8b34f478aaa62033},
    {221, 2, "IQ3_S_R4", 256, 110, F16_SCALE, 0, 0xfdc76ccd9b9aa645, 0xac7a0980a1773b92},
    {222, 2, "IQ2_S_R4", 256, 82, F16_SCALE, 0, 0x9c894574395867d7, 0x5f3c2e5c9b735ba8},
    {223, 2, "IQ4_XS_R8", 256, 136, F16_SCALE, 0, 0x3ebc5292ca6d7b9f, 0x5deccb28f8d4efe6},
    {229, 2, "IQ1_M_R4", 32, 7, NO_SCALE, 0, 0x96bac7a760d717a7, 0xaf86a3db2b031e58},
    {230, 2, "BF16_R16", 2, 4, NO_SCALE, 0, 0xed00c844cc28e55a, 0x3ca355f8bc87adba},
    {233, 2, "Q6_0_R4", 32, 26, F16_SCALE, 0, 0x8c06a92e21677d83, 0x54b4b050d1e2bcac},
    {335, 2, "IQ2_BN_R4", 64, 16, NO_SCALE, 0, 0x816e5e745c67a509, 0x2ca093c6c314b991},
    {337, 2, "IQ2_K_R4", 256, 76, F16_SCALE, 0, 0x3580f44be693ef3a, 0x8a3e94310ff2e39f},
    {338, 2, "IQ3_K_R4", 256, 110, F16_SCALE, 0, 0x37e891cb0a9704ef, 0x0558d8883566e8c5},
    {339, 2, "IQ4_K_R4", 256, 144, F16_SCALE, 0, 0x7276ec2704815a86, 0x0b35b2d063fc755b},
    {340, 2, "IQ5_K_R4", 256, 176, F16_SCALE, 0, 0xa4596801b915ae1a, 0x02c3a98767d1d481},
    {344, 2, "IQ4_KS_R4", 256, 136, NO_SCALE, 0, 0xe1fd3b8ed9f4f526, 0xec6d55bf22a26225},
    {352, 2, "IQ5_KS_R4", 256, 168, NO_SCALE, 0, 0x5d82987034763592, 0x7cee2e97aa14ae0c},
    {353, 2, "MXFP4_R8", 32, 17, NO_SCALE, 0, 0x7e721da0f5207879, 0x16028947d199597a},
    {397, 2, "Q8_K_R16", 256, 258, F16_SCALE, 0, 0x131947e323f52263, 0x86becbda5bac0417},
    {398, 2, "Q8_KV_R8", 32, 32, NO_SCALE, 0, 0xf4ca0ebf66d40bdb, 0x40d7ac4045d59a25},
    {399, 2, "Q8_K_R8", 256, 258, F16_SCALE, 0, 0x2931423a7edde230, 0xa5053c1f28262a8a},

    {2, 0, "Q4_0", 32, 20, F32_SCALE, 0, 0xfb5bfdb4dfd9bb64, 0xf654bd9ab758deb1},
    {3, 0, "Q4_1", 32, 24, TWO_F32_SCALES, 0, 0x98455cbea34ffc7e, 0xfaa66de836b1b530},
    {4, 0, "Q4_2", 16, 10, F16_SCALE, 0, 0xadef0519d07ee902, 0x0f97fc920e02d3b9},
    {5, 0, "Q4_3", 16, 12, TWO_F16_SCALES, 0, 0xe2cddb2980241125, 0xe4025ce26f404de7},
    {6, 0, "Q5_0", 32, 22, F16_SCALE, 0, 0x1692381325c5ae75, 0xe97b6685682eee17},
    {7, 0, "Q5_1", 32, 24, TWO_F16_SCALES, 0, 0x96e3ab542fec368d, 0xedec1a1aa4552c98},
    {8, 0, "Q8_0", 32, 36, F32_SCALE, 0, 0x8087b973b5edc8f6, 0xcc4cea3edd54ee0d},
    {2, 1, "Q4_0", 32, 20, F32_SCALE, 0, 0x549594cd66e0fa3c, 0xf654bd9ab758deb1},
    {3, 1, "Q4_1", 32, 24, TWO_F32_SCALES, 0, 0x9a17dc77c29857ce, 0xfaa66de836b1b530},
    {8, 1, "Q8_0", 32, 36, F32_SCALE, 0, 0x8087b973b5edc8f6, 0xcc4cea3edd54ee0d},

    {34, 2, "IQ1_BN_OLD", 64, 13, NO_SCALE, 0, 0x34bc972b442627f8, 0xee988717c27afb52},
    {35, 2, "IQ2_BN_OLD", 64, 16, NO_SCALE, 0, 0xeb58948832fe0ba5, 0x231742beebd2656b},
    {36, 2, "IQ4_NL_4_4", 32, 18, F16_SCALE, 0, 0xda2ffdd5281d479b, 0xf1e5c93606033482},
    {37, 2, "IQ2_K_OLD", 256, 76, F16_SCALE, 0, 0x50f09b3401471dc6, 0x0871191b954eccb2},
    {38, 2, "TL1", 4, 1, NO_SCALE, 0, 0, 0},
    {38, 2, "IQ3_K", 256, 110, F16_SCALE, 0, 0x877ce7f6908c5dca, 0x162cd29c56c9646f},
    {39, 2, "TL2", 1, 1, NO_SCALE, 0, 0, 0},
    {39, 2, "IQ4_K", 256, 144, F16_SCALE, 0, 0xfea8627016ffa4a4, 0x518dbe90066880bd},
    {40, 2, "Q1_0_G32", 32, 6, F16_SCALE, 0, 0x2c90a2e0fbdfe1e5, 0xf6e301b55451f6fe},
    {40, 2, "IQ5_K", 256, 176, F16_SCALE, 0, 0x9b4c484130c81b27, 0xf0564821ce2e788c},
    {41, 2, "TQ3_0", 32, 14, F16_SCALE, 12, 0x941eb461c3af440d, 0x7b2456408a5e24db},
    {41, 2, "IQ6_K", 256, 212, F16_SCALE, 0, 0xb095167039693218, 0x4dc170b80b1d9701},
    {42, 2, "PQ2_0", 128, 34, F16_SCALE, 0, 0x8b4696df5147d554, 0xe30c900d3e395104},
    {42, 2, "IQ2_TN", 256, 66, F16_SCALE, 0, 0x9296f5199c92b1d4, 0xd6b8a16364ba5230},
    {134, 2, "IQ1_BN_OLD", 64, 13, NO_SCALE, 0, 0x120b6eefb4b954c8, 0x77ef516d9bd26c47},
    {135, 2, "IQ2_BN_OLD", 64, 16, NO_SCALE, 0, 0x3c7433283f02dd65, 0x2b60bc28b8828d43},
    {137, 2, "IQ2_K_OLD", 256, 76, F16_SCALE, 0, 0xb327d0fce37a0474, 0x6e7d4b4fe8a96113},
    {142, 2, "IQ2_TN", 256, 64, NO_SCALE, 0, 0x5e6f4223907d6385, 0x863f13d4d06033ba},
    {143, 2, "IQ1_TN", 64, 13, NO_SCALE, 0, 0x352a41977c6033e5, 0x23e1a88d5de8293a},
    {153, 2, "IQ2_KT_OLD", 256, 68, NO_SCALE, 0, 0x7529717fe200363b, 0x2359709571c229e5},
    {154, 2, "IQ3_KT_OLD", 256, 100, NO_SCALE, 0, 0x0af0f069957e0269, 0x1a83ea87eb37b9ab},
    {155, 2, "IQ4_KT_OLD", 256, 128, NO_SCALE, 0, 0xabc6694375e9ba19, 0x0bdd7ffa07936928},
    {202, 2, "Q4_0_R4", 32, 18, F16_SCALE, 0, 0x77486e4cc3ec711f, 0x5b99caa8969b1b81},
    {208, 2, "Q8_0_R4", 32, 34, F16_SCALE, 0, 0xc721098195dd6ead, 0x307624ad9d570e5d},
    {223, 2, "IQ4_XS_R4", 256, 136, F16_SCALE, 0, 0xde848b38a0f97f26, 0x3ca242f3c19dc156},
};

const size_t n_expectations = sizeof expectations / sizeof *expectations;

uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

uint64_t fnv1a_more(uint64_t hash, const void *data, size_t n_bytes)
{
    const uint8_t *bytes = data;

    for (size_t i = 0; i < n_bytes; i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3;
    return hash;
}

uint64_t fnv1a(const void *data, size_t n_bytes)
{
    return fnv1a_more(0xcbf29ce484222325, data, n_bytes);
}

/* Any sign, a finite exponent from subnormal to 2^5, any fraction. */
static uint16_t random_f16(uint64_t *state)
{
    uint64_t r = next_random(state);

    return (uint16_t)((r & 0x83ff) | (r >> 32) % 21 << 10);
}

size_t blocks_for(const struct expectation *e)
{
    return ELEMENTS / e->block_elements + 1;
}

const struct dequant_type *type_of(const struct expectation *e)
{
    return e->era == DEQUANT_ERA ? dequant_candidate_by_name(e->id, e->name)
                                 : dequant_type_of_era(e->id, e->era);
}

void set_scales(const struct expectation *e, uint8_t *block, const uint16_t halves[2])
{
    const size_t n_halves = (e->scale == TWO_F16_SCALES ? 2u : 1u) * type_of(e)->interleave_rows;
    uint8_t *at = block + e->scale_offset;

    switch (e->scale) {
    case NO_SCALE:
    case F32_SCALE:
    case TWO_F32_SCALES:
        break;
    case F16_SCALE:
    case TWO_F16_SCALES:
        for (size_t i = 0; i < n_halves; i++)
            memcpy(at + 2 * i, &halves[i % 2], 2);
        break;
    case SPLIT_F16_SCALE: /* the upper nibbles of four 16-bit words */
        for (size_t w = 0; w < 4; w++)
            at[2 * w + 1] = (uint8_t)((at[2 * w + 1] & 15) | ((halves[0] >> (4 * w)) & 15) << 4);
        break;
    }
}

size_t stride_of(const struct expectation *e)
{
    return (size_t)e->block_bytes * type_of(e)->interleave_rows;
}

/* Return the float with the same value. A subnormal becomes another number. */
static uint32_t float_bits(uint16_t half)
{
    return ((uint32_t)(half >> 15) << 31 | (uint32_t)(half & 0x7fff) << 13) +
           ((uint32_t)(127 - 15) << 23);
}

void make_blocks(const struct expectation *e, uint8_t *to)
{
    size_t n_bytes = blocks_for(e) * stride_of(e);
    uint64_t state = e->id;

    assert(n_bytes <= MAX_BYTES);
    for (size_t i = 0; i < n_bytes; i++)
        to[i] = (uint8_t)(next_random(&state) >> 40);

    for (size_t i = 0; i < blocks_for(e); i++) {
        uint8_t *block = to + i * stride_of(e);
        uint16_t halves[2] = {random_f16(&state), random_f16(&state)};
        uint32_t floats[2] = {float_bits(halves[0]), float_bits(halves[1])};

        if (e->scale == F32_SCALE)
            memcpy(block + e->scale_offset, floats, 4);
        else if (e->scale == TWO_F32_SCALES)
            memcpy(block + e->scale_offset, floats, 8);
        else
            set_scales(e, block, halves);
    }
}

size_t make_headers(const struct expectation *e, uint8_t *to)
{
    const struct dequant_type *type = type_of(e);
    const size_t n_bytes = dequant_headers_bytes(type);
    const size_t width_bytes = type->row_header_bytes == 2 ? 2 : 4;
    uint64_t state = e->id + 1000;

    for (size_t i = 0; i < n_bytes; i += width_bytes) {
        const uint16_t half = random_f16(&state);
        const uint32_t bits = width_bytes == 2 ? half : float_bits(half);

        memcpy(to + i, &bits, width_bytes);
    }
    return n_bytes;
}

void make_data(const struct expectation *e, uint8_t *to, size_t row_elements, size_t n_rows)
{
    static uint8_t blocks[MAX_BYTES];
    const struct dequant_type *type = type_of(e);
    const size_t group_bytes = row_elements / e->block_elements * stride_of(e);
    const size_t n_groups = n_rows / type->interleave_rows;

    assert(n_groups * group_bytes <= blocks_for(e) * stride_of(e));
    make_blocks(e, blocks);
    for (size_t i = 0; i < n_groups; i++) {
        if (type->row_header_bytes > 0)
            to += make_headers(e, to);
        memcpy(to, blocks + i * group_bytes, group_bytes);
        to += group_bytes;
    }
    if (type->tail_bytes > 0)
        make_headers(e, to);
}

const struct expectation *expectation_of(const struct dequant_type *type)
{
    for (size_t i = 0; i < n_expectations; i++) {
        if (expectations[i].id == type->id && expectations[i].era == type->era &&
            strcmp(expectations[i].name, type->name) == 0)
            return &expectations[i];
    }
    fprintf(stderr, "no expectation for %s (id %u, era %u) in %s\n", type->name, type->id,
            type->era, __FILE__);
    exit(1);
}
