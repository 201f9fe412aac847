/* Masks of dropout, which are functions of a seed and of an element's number, so that nobody keeps them. */
#ifndef DROPOUT_H
#define DROPOUT_H

#include "vectors.h"

/* A rate of threshold / 2^16, and the scale of what is kept; with a threshold of 0 all is. */
typedef struct {
    uint64_t seed;
    uint32_t threshold;
    float scale;
} mask_of;

static inline mask_of mask(int64_t seed, int64_t threshold) {
    return (mask_of){(uint64_t)seed, (uint32_t)threshold, 65536.0f / (65536.0f - (float)threshold)};
}

/* The bits of block `number`, 16 for each of 2 LANES elements: a counter, mixed with both halves of the seed by
   multiplications and shifts (the constants of Wellons, "Prospecting for hash functions", 2018, and of MurmurHash3). */
static inline words random_bits(uint64_t seed, uint64_t number) {
    words bits;
    for (int lane = 0; lane < LANES; lane++) bits[lane] = lane;
    bits += (uint32_t)(number * LANES);
    bits ^= (uint32_t)seed;
    bits ^= bits >> 16;
    bits *= 0x21f0aaadu;
    bits ^= bits >> 15;
    bits *= 0xd35a2d97u;
    bits ^= bits >> 15;
    bits += (uint32_t)(seed >> 32) + (uint32_t)(number * LANES >> 32) * 0x9e3779b9u;
    bits ^= bits >> 16;
    bits *= 0x85ebca6bu;
    bits ^= bits >> 13;
    return bits;
}

/* The factors, 0 or the scale, of the first and of the second LANES elements of a block, given its bits. */
static inline floats factors(mask_of mask, words bits, int second) {
    ints drawn = (ints)(second ? bits >> 16 : bits & 0xffff);
#ifdef __AVX512F__
    const __mmask16 kept = _mm512_cmpge_epi32_mask((__m512i)drawn, _mm512_set1_epi32((int32_t)mask.threshold));
    return (floats)_mm512_maskz_mov_ps(kept, _mm512_set1_ps(mask.scale));
#else
    return chosen(drawn >= (int32_t)mask.threshold, all(mask.scale), all(0.0f));
#endif
}

#endif
