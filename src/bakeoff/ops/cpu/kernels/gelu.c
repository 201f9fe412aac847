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

/* 1/2 + x P(2 x^2 / 25 - 1) within the bound, 0 below it, 1 above; NaN stays NaN. */
static inline floats half_plus_odd(floats x, const float *coefficients, int count) {
    floats place = x * x * (2.0f / (BOUND * BOUND)) - 1.0f;
    floats sum = all(coefficients[count - 1]);
    for (int power = count - 2; power >= 0; power--) sum = sum * place + coefficients[power];
    sum = sum * x + 0.5f;
    return chosen(x > BOUND, all(1.0f), chosen(x < -BOUND, all(0.0f), sum));
}

static inline floats gelu_of(floats x, int64_t by_tanh) {
    /* 0 x, and not 0, so that minus infinity gives what torch gives. */
    return x * half_plus_odd(x, OF_FUNCTION[by_tanh], FUNCTION);
}

static inline floats slope_of(floats x, int64_t by_tanh) {
    return half_plus_odd(x, OF_DERIVATIVE[by_tanh], DERIVATIVE);
}

/* y = gelu(x), or gelu(x) gate where a gate is given; items are blocks of LANES of `size` numbers. */
KERNEL gelu(int64_t begin, int64_t end, const bfloat16 *x, const bfloat16 *gate, bfloat16 *y, int64_t size,
            int64_t by_tanh) {
    for (int64_t place = begin * LANES; place < end * LANES && place < size; place += LANES) {
        floats made = gelu_of(load_some(x + place, size - place), by_tanh);
        if (gate) made *= load_some(gate + place, size - place);
        store_some(y + place, made, size - place);
    }
}

/* The gradient of x, and of the gate where one is given. */
KERNEL gelu_gradient(int64_t begin, int64_t end, const bfloat16 *x, const bfloat16 *gate, const bfloat16 *upstream,
                     bfloat16 *of_x, bfloat16 *of_gate, int64_t size, int64_t by_tanh) {
    for (int64_t place = begin * LANES; place < end * LANES && place < size; place += LANES) {
        int64_t left = size - place;
        floats at = load_some(x + place, left), above = load_some(upstream + place, left);
        if (gate) {
            store_some(of_gate + place, above * gelu_of(at, by_tanh), left);
            above *= load_some(gate + place, left);
        }
        store_some(of_x + place, above * slope_of(at, by_tanh), left);
    }
}
