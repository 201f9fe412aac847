/* The Gaussian error linear unit, x Phi(x), and its derivative, by polynomials.

   Phi(x) - 1/2 and the derivative less 1/2 are odd functions of x, fitted on [-5, 5] as x times a polynomial of
   2 x^2 / 25 - 1 with the least maximum of the error (Lawson's algorithm): 1e-6 for the function, 3e-6 for the
   derivative, in float32. Beyond, both are 0 or 1. */
#include "vectors.h"

#define BOUND 5.0f
#define FUNCTION 12
#define DERIVATIVE 13

/* With the normal distribution, and with BERT's approximation of it by tanh. */
static const float OF_FUNCTION[2][FUNCTION] = {
    {0.141363606f, -0.0702976882f, 0.0515348502f, -0.0404097624f, 0.0312585272f, -0.0234790072f, 0.0172561388f,
     -0.0106231179f, 0.0046277605f, -0.00328721013f, 0.00342821563f, -0.00137251965f},
    {0.141378343f, -0.0703675151f, 0.0516707115f, -0.0405011661f, 0.0311681703f, -0.0232780315f, 0.0168958679f,
     -0.00979353487f, 0.00395203428f, -0.00378322625f, 0.00440422725f, -0.00174605369f},
};
static const float OF_DERIVATIVE[2][DERIVATIVE] = {
    {0.142133653f, -0.0750997886f, 0.0665815324f, -0.0720791146f, 0.080213815f, -0.0819138736f, 0.0806352273f,
     -0.0773051307f, 0.0513890795f, -0.0178737566f, 0.0177255664f, -0.0246615056f, 0.0102562914f},
    {0.142024636f, -0.0748327672f, 0.0667564645f, -0.0735919923f, 0.082485266f, -0.0834987164f, 0.0818628222f,
     -0.0755671635f, 0.0412679762f, -0.00758773321f, 0.0206743218f, -0.0338575542f, 0.013865374f},
};

enum {
    SOME = 4,              /* vectors whose polynomials are computed side by side: each sum waits for the one before */
    BATCH = SOME * LANES,  /* numbers of an item */
    AHEAD = 16 * BATCH     /* numbers that are fetched before they are read */
};

/* 1/2 + x P(2 x^2 / 25 - 1) of SOME vectors within the bound, 0 below it, 1 above; NaN stays NaN. */
static inline void half_plus_odd(const floats *x, floats *sums, const float *coefficients, int count) {
    floats places[SOME];
    for (int each = 0; each < SOME; each++) {
        places[each] = x[each] * x[each] * (2.0f / (BOUND * BOUND)) - 1.0f;
        sums[each] = all(coefficients[count - 1]);
    }
    for (int power = count - 2; power >= 0; power--)
        for (int each = 0; each < SOME; each++) sums[each] = sums[each] * places[each] + coefficients[power];
    for (int each = 0; each < SOME; each++) {
        const floats sum = sums[each] * x[each] + 0.5f;
#ifdef __AVX512F__
        const __mmask16 above = _mm512_cmp_ps_mask((__m512)x[each], _mm512_set1_ps(BOUND), _CMP_GT_OQ);
        const __mmask16 not_below = _mm512_cmp_ps_mask((__m512)x[each], _mm512_set1_ps(-BOUND), _CMP_NLT_UQ);
        sums[each] = (floats)_mm512_maskz_mov_ps(not_below, _mm512_mask_mov_ps((__m512)sum, above, _mm512_set1_ps(1.0f)));
#else
        sums[each] = chosen(x[each] > BOUND, all(1.0f), chosen(x[each] < -BOUND, all(0.0f), sum));
#endif
    }
}

static inline void gelu_of(const floats *x, floats *y, int by_tanh) {
    half_plus_odd(x, y, OF_FUNCTION[by_tanh], FUNCTION);
    /* 0 x, and not 0, so that minus infinity gives what torch gives. */
    for (int each = 0; each < SOME; each++) y[each] *= x[each];
}

static inline void slope_of(const floats *x, floats *y, int by_tanh) {
    half_plus_odd(x, y, OF_DERIVATIVE[by_tanh], DERIVATIVE);
}

/* A batch, or as many numbers as are left, followed by zeros. */
static inline void load_batch(const bfloat16 *from, floats *x, int64_t left) {
    fetch_soon(from + AHEAD);
    fetch_soon(from + AHEAD + 2 * LANES);
    for (int each = 0; each < SOME; each++)
        x[each] = left >= BATCH              ? load(from + each * LANES)
                  : left > each * LANES ? load_some(from + each * LANES, left - each * LANES)
                                             : all(0.0f);
}

static inline void store_batch(bfloat16 *to, const floats *x, int64_t left) {
    if (left >= BATCH)
        for (int each = 0; each < SOME; each += 2) store_two(to + each * LANES, x[each], x[each + 1]);
    else
        for (int each = 0; each * LANES < left; each++) store_some(to + each * LANES, x[each], left - each * LANES);
}

/* The kernels' loops, compiled for each of the two functions, so that its coefficients stay in registers. */
static inline __attribute__((always_inline)) void make(int64_t begin, int64_t end, const bfloat16 *x, const bfloat16 *gate,
                                                       bfloat16 *y, int64_t size, int by_tanh) {
    floats at[SOME], made[SOME], factor[SOME];
    for (int64_t place = begin * BATCH; place < lesser(end * BATCH, size); place += BATCH) {
        load_batch(x + place, at, size - place);
        gelu_of(at, made, by_tanh);
        if (gate) {
            load_batch(gate + place, factor, size - place);
            for (int each = 0; each < SOME; each++) made[each] *= factor[each];
        }
        store_batch(y + place, made, size - place);
    }
}

static inline __attribute__((always_inline)) void differentiate(int64_t begin, int64_t end, const bfloat16 *x,
                                                                const bfloat16 *gate, const bfloat16 *upstream,
                                                                bfloat16 *of_x, bfloat16 *of_gate, int64_t size,
                                                                int by_tanh) {
    floats at[SOME], above[SOME], made[SOME], factor[SOME];
    for (int64_t place = begin * BATCH; place < lesser(end * BATCH, size); place += BATCH) {
        const int64_t left = size - place;
        load_batch(x + place, at, left);
        load_batch(upstream + place, above, left);
        if (gate) {
            gelu_of(at, made, by_tanh);
            for (int each = 0; each < SOME; each++) made[each] *= above[each];
            store_batch(of_gate + place, made, left);
            load_batch(gate + place, factor, left);
            for (int each = 0; each < SOME; each++) above[each] *= factor[each];
        }
        slope_of(at, made, by_tanh);
        for (int each = 0; each < SOME; each++) made[each] *= above[each];
        store_batch(of_x + place, made, left);
    }
}

/* y = gelu(x), or gelu(x) gate where a gate is given; items are batches of the `size` numbers. */
KERNEL gelu(int64_t begin, int64_t end, const bfloat16 *x, const bfloat16 *gate, bfloat16 *y, int64_t size,
            int64_t by_tanh) {
    if (by_tanh)
        make(begin, end, x, gate, y, size, 1);
    else
        make(begin, end, x, gate, y, size, 0);
}

/* The gradient of x, and of the gate where one is given. */
KERNEL gelu_gradient(int64_t begin, int64_t end, const bfloat16 *x, const bfloat16 *gate, const bfloat16 *upstream,
                     bfloat16 *of_x, bfloat16 *of_gate, int64_t size, int64_t by_tanh) {
    if (by_tanh)
        differentiate(begin, end, x, gate, upstream, of_x, of_gate, size, 1);
    else
        differentiate(begin, end, x, gate, upstream, of_x, of_gate, size, 0);
}
