/* Layer norms and root-mean-square norms of states, or of the sum of states and of a branch with dropout. */
#include "dropout.h"

#include <math.h>

/* s = x + y mask of one row, rounded as it is stored; y may be null. */
static void add_row(float *sum, const bfloat16 *x, const bfloat16 *y, int64_t row, int64_t width, mask_of drawn) {
    int64_t blocks = (width + 2 * LANES - 1) / (2 * LANES);
    for (int64_t block = 0; block < blocks; block++) {
        words bits = y && drawn.threshold ? random_bits(drawn.seed, row * blocks + block) : (words){0};
        for (int second = 0; second < 2; second++) {
            int64_t place = (2 * block + second) * LANES;
            if (place >= width) break;
            floats s = load_some(x + place, width - place);
            if (y) {
                floats branch = load_some(y + place, width - place);
                if (drawn.threshold) branch *= factors(drawn, bits, second);
                s = floats_of(bfloat16_of(s + branch));
            }
            store_float32(sum + place, s);
        }
    }
}

/* Subtracts the mean, where there is one, and returns 1 / sqrt(mean square + epsilon). */
static float centre(float *x, int64_t width, float epsilon, int64_t centred) {
    floats sums = all(0.0f), squares = all(0.0f);
    if (centred) {
        for (int64_t place = 0; place < width; place += LANES) sums += load_float32(x + place);
        float mean = sum_of(sums) / width;
        for (int64_t place = 0; place < width; place++) x[place] -= mean;
    }
    for (int64_t place = 0; place < width; place += LANES) squares += load_float32(x + place) * load_float32(x + place);
    return 1.0f / sqrtf(sum_of(squares) / width + epsilon);
}

/* normed = norm(x + y mask), and the sum where `sum` is given; weight and bias may be null. items: rows. */
KERNEL norm(int64_t begin, int64_t end, const bfloat16 *x, const bfloat16 *y, bfloat16 *sum, bfloat16 *normed,
            const float *weight, const float *bias, int64_t width, float epsilon, int64_t centred, int64_t seed,
            int64_t threshold) {
    float row[width + LANES];
    mask_of drawn = mask(seed, threshold);
    for (int64_t item = begin; item < end; item++) {
        int64_t at = item * width;
        add_row(row, x + at, y ? y + at : NULL, item, width, drawn);
        if (sum)
            for (int64_t place = 0; place < width; place += LANES)
                store_some(sum + at + place, load_float32(row + place), width - place);
        float scale = centre(row, width, epsilon, centred);
        for (int64_t place = 0; place < width; place += LANES) {
            floats value = load_float32(row + place) * scale;
            if (weight) value *= load_some_float32(weight + place, width - place);
            if (bias) value += load_some_float32(bias + place, width - place);
            store_some(normed + at + place, value, width - place);
        }
    }
}

/* The gradient of normed states, which is in two parts where they were used twice; `other` may be null. */
static inline floats slope_of(const bfloat16 *upstream, const bfloat16 *other, int64_t at, int64_t left) {
    floats slope = load_some(upstream + at, left);
    return other ? slope + load_some(other + at, left) : slope;
}

/* The gradient of the sum, that of its norm plus `beside`, which may be null; that of the branch, where asked for; and
   those of weight and bias, summed over each block of rows: (blocks, 2, width).

   With n = (s - mean) scale and u = weight above, it is scale (u - mean(u) - n mean(u n)). items: blocks. */
KERNEL norm_gradient(int64_t begin, int64_t end, int64_t rows, const bfloat16 *sum, const bfloat16 *upstream,
                     const bfloat16 *other, const bfloat16 *beside, bfloat16 *of_sum, bfloat16 *of_branch,
                     float *of_both, const float *weight, int64_t width, float epsilon, int64_t centred, int64_t seed, int64_t threshold) {
    float row[width + LANES];
    mask_of drawn = mask(seed, threshold);
    int64_t halves_of_a_row = (width + 2 * LANES - 1) / (2 * LANES);
    for (int64_t block = begin; block < end; block++) {
        float *of_weight = of_both + 2 * block * width, *of_bias = of_weight + width;
        memset(of_weight, 0, sizeof(float) * 2 * width);
        for (int64_t item = block * BLOCK; item < (block + 1) * BLOCK && item < rows; item++) {
            int64_t at = item * width;
            add_row(row, sum + at, NULL, item, width, drawn);
            float scale = centre(row, width, epsilon, centred);
            floats along = all(0.0f), across = all(0.0f);
            for (int64_t place = 0; place < width; place += LANES) {
                int64_t left = width - place;
                floats above = slope_of(upstream, other, at + place, left), n = load_float32(row + place) * scale;
                store_some_float32(of_weight + place, load_some_float32(of_weight + place, left) + above * n, left);
                store_some_float32(of_bias + place, load_some_float32(of_bias + place, left) + above, left);
                floats u = weight ? above * load_some_float32(weight + place, left) : above;
                along += u;
                across += u * n;
            }
            float mean = centred ? sum_of(along) / width : 0.0f, product = sum_of(across) / width;
            for (int64_t part = 0; part < halves_of_a_row; part++) {
                words bits = of_branch && threshold ? random_bits(drawn.seed, item * halves_of_a_row + part) : (words){0};
                for (int second = 0; second < 2; second++) {
                    int64_t place = (2 * part + second) * LANES, left = width - place;
                    if (left <= 0) break;
                    floats u = slope_of(upstream, other, at + place, left);
                    if (weight) u *= load_some_float32(weight + place, left);
                    floats of = (u - mean - load_float32(row + place) * (scale * product)) * scale;
                    if (beside) of += load_some(beside + at + place, left);
                    store_some(of_sum + at + place, of, left);
                    if (of_branch) store_some(of_branch + at + place, of * factors(drawn, bits, second), left);
                }
            }
        }
    }
}
