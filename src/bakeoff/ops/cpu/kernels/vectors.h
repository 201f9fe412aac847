/* Vectors of sixteen float32, and their way from and to bfloat16.

   The types are extensions that gcc and clang have in common; a processor with shorter vectors takes several of them.
   Every kernel is a function of a range, [begin, end), and what it computes of an item depends neither on the range nor
   on the other items of it, so that threads may divide the work in any way. */
#ifndef VECTORS_H
#define VECTORS_H

#include <stdint.h>
#include <string.h>
#ifdef __AVX512F__
#include <immintrin.h>
#endif

#define LANES 16
#define BLOCK 64 /* rows, tokens or positions whose gradients of parameters make one addend */
#define KERNEL __attribute__((visibility("default"))) void

typedef float floats __attribute__((vector_size(4 * LANES)));
typedef int32_t ints __attribute__((vector_size(4 * LANES)));
typedef uint32_t words __attribute__((vector_size(4 * LANES)));
typedef uint16_t halves __attribute__((vector_size(2 * LANES)));
typedef uint16_t bfloat16;

static inline int64_t lesser(int64_t a, int64_t b) { return a < b ? a : b; }

static inline floats all(float value) { return value - (floats){0}; }

static inline floats floats_of(halves bits) {
#ifdef __AVX512F__
    return (floats)((words)_mm512_cvtepu16_epi32((__m256i)bits) << 16);
#else
    return (floats)(__builtin_convertvector(bits, words) << 16);
#endif
}

/* Rounded to the nearest, and to the even one of two; NaN stays NaN. */
static inline halves bfloat16_of(floats x) {
#ifdef __AVX512BF16__
    return (halves)_mm512_cvtneps_pbh((__m512)x);
#else
    words bits = (words)x;
    words rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    words is_nan = (words)((bits & 0x7fffffff) > 0x7f800000);
    return __builtin_convertvector((is_nan & 0x7fc0) | (~is_nan & rounded), halves);
#endif
}

static inline floats load(const bfloat16 *from) {
    halves bits;
    memcpy(&bits, from, sizeof bits);
    return floats_of(bits);
}

static inline void store(bfloat16 *to, floats x) {
    halves bits = bfloat16_of(x);
    memcpy(to, &bits, sizeof bits);
}

static inline floats load_float32(const float *from) {
    floats x;
    memcpy(&x, from, sizeof x);
    return x;
}

static inline void store_float32(float *to, floats x) { memcpy(to, &x, sizeof x); }

/* The first `count` numbers, at most LANES, followed by zeros. */
static inline floats load_some(const bfloat16 *from, int64_t count) {
    if (count >= LANES) return load(from);
    halves bits = {0};
    memcpy(&bits, from, sizeof(bfloat16) * count);
    return floats_of(bits);
}

static inline floats load_some_float32(const float *from, int64_t count) {
    if (count >= LANES) return load_float32(from);
    floats x = {0};
    memcpy(&x, from, sizeof(float) * count);
    return x;
}

static inline void store_some(bfloat16 *to, floats x, int64_t count) {
    if (count >= LANES) {
        store(to, x);
        return;
    }
    halves bits = bfloat16_of(x);
    memcpy(to, &bits, sizeof(bfloat16) * count);
}

static inline void store_some_float32(float *to, floats x, int64_t count) {
    if (count >= LANES)
        store_float32(to, x);
    else
        memcpy(to, &x, sizeof(float) * count);
}

/* a where the mask is all ones, else b. */
static inline floats chosen(ints mask, floats a, floats b) { return (floats)(((ints)a & mask) | ((ints)b & ~mask)); }

/* The larger of two, b where one is NaN. */
static inline floats larger(floats a, floats b) {
#ifdef __AVX512F__
    return (floats)_mm512_max_ps((__m512)a, (__m512)b);
#else
    return chosen(a > b, a, b);
#endif
}

/* Brings LANES of numbers that are read soon into the cache; the address may lie beyond them. */
static inline void fetch_soon(const void *from) { __builtin_prefetch(from); }

/* Two vectors as 2 LANES numbers. */
static inline void store_two(bfloat16 *to, floats low, floats high) {
#ifdef __AVX512BF16__
    _mm512_storeu_si512(to, (__m512i)_mm512_cvtne2ps_pbh((__m512)high, (__m512)low));
#else
    store(to, low);
    store(to + LANES, high);
#endif
}

static inline float sum_of(floats x) {
#ifdef __AVX512F__
    return _mm512_reduce_add_ps((__m512)x); /* in the order of what follows */
#else
    for (int half = LANES / 2; half; half /= 2)
        for (int lane = 0; lane < half; lane++) x[lane] += x[lane + half];
    return x[0];
#endif
}

static inline float largest_of(floats x) {
    for (int half = LANES / 2; half; half /= 2)
        for (int lane = 0; lane < half; lane++) x[lane] = x[lane] > x[lane + half] ? x[lane] : x[lane + half];
    return x[0];
}

#ifdef __AVX512F__
/* Powers of two, to a part in 2^17. */
static inline __m512 power_of_two(__m512 x) {
    const __m512 whole = _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    const __m512 rest = _mm512_sub_ps(x, whole);
    __m512 y = _mm512_fmadd_ps(_mm512_set1_ps(9.6184373e-3f), rest, _mm512_set1_ps(5.5826318e-2f));
    y = _mm512_fmadd_ps(y, rest, _mm512_set1_ps(2.4022651e-1f));
    y = _mm512_fmadd_ps(y, rest, _mm512_set1_ps(6.9314718e-1f));
    y = _mm512_fmadd_ps(y, rest, _mm512_set1_ps(1.0f));
    return _mm512_scalef_ps(y, whole);
}
#endif

/* e^x to 8e-6 of it, for x up to 88; 0 far below -87; NaN stays NaN. */
static inline floats exponential(floats x) {
#ifdef __AVX512F__
    return (floats)power_of_two(_mm512_max_ps(_mm512_set1_ps(-150.0f), (__m512)(x * 1.44269504f)));
#else
    floats within = chosen(x < -87.0f, all(-87.0f), x);
    floats shifted = within * 1.44269504f + 12582912.0f; /* 1.5 * 2^23: the whole number in the lowest bits */
    floats whole = shifted - 12582912.0f;
    floats rest = (within - whole * 0.693359375f) - whole * -2.12194440e-4f;
    floats series = all(1.9875691500e-4f);
    series = series * rest + 1.3981999507e-3f;
    series = series * rest + 8.3334519073e-3f;
    series = series * rest + 4.1665795894e-2f;
    series = series * rest + 1.6666665459e-1f;
    series = series * rest + 5.0000001201e-1f;
    series = series * rest * rest + rest + 1.0f;
    ints powers = (ints)series + ((ints)shifted << 23); /* the shift leaves nothing of a NaN's bits */
    return (floats)(powers & ((x >= -87.0f) | (x != x)));
#endif
}

#endif
