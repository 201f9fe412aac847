/* Layer norms and root-mean-square norms of states, or of the sum of states and of a branch with dropout.

   A row is read in pairs of vectors, for each of which dropout draws one block of bits. */
#include "dropout.h"
#include "pairs.h"

#include <math.h>

static inline void add_to(float *to, pair x, int64_t left) {
    store_pair_float32(to, plus(load_pair_float32(to, left), x), left);
}

/* x less a number, of the lanes that are there; the others stay zero. */
static inline floats less(floats x, float number, int64_t left) {
    if (left >= LANES) return x - number;
    for (int64_t lane = 0; lane < left; lane++) x[lane] -= number;
    return x;
}

static inline pair pair_less(pair x, float number, int64_t left) {
    return (pair){less(x.low, number, left), less(x.high, number, left - LANES)};
}

static inline pair dropped(pair x, mask_of drawn, int64_t block) {
    const words bits = random_bits(drawn.seed, block);
    return (pair){x.low * factors(drawn, bits, 0), x.high * factors(drawn, bits, 1)};
}

/* normed = norm(x + y mask), and the sum where `sum` is given; and each row's mean, 0 where it is not subtracted, and
   1 / sqrt(mean square + epsilon): (rows, 2). y, weight and bias may be null. items: rows. */
KERNEL norm(int64_t begin, int64_t end, const bfloat16 *x, const bfloat16 *y, bfloat16 *sum, bfloat16 *normed,
            float *moments, const float *weight, const float *bias, int64_t width, float epsilon, int64_t centred,
            int64_t seed, int64_t threshold) {
    const int64_t pairs = (width + PAIR - 1) / PAIR;
    const mask_of drawn = mask(seed, threshold);
    pair row[pairs];
    for (int64_t item = begin; item < end; item++) {
        const int64_t at = item * width;
        pair sums = both(all(0.0f)), squares = sums;
        for (int64_t each = 0; each < pairs; each++) {
            const int64_t place = at + each * PAIR, left = width - each * PAIR;
            pair s = load_pair(x + place, left);
            if (y) {
                pair branch = load_pair(y + place, left);
                if (threshold) branch = dropped(branch, drawn, item * pairs + each);
                s = plus(s, branch);
                s = (pair){floats_of(bfloat16_of(s.low)), floats_of(bfloat16_of(s.high))}; /* as it is stored */
            }
            if (sum) store_pair(sum + place, s, left);
            row[each] = s;
            if (centred)
                sums = plus(sums, s);
            else
                squares = plus(squares, times(s, s));
        }
        const float mean = centred ? sum_of(sums.low + sums.high) / width : 0.0f;
        for (int64_t each = 0; centred && each < pairs; each++) {
            row[each] = pair_less(row[each], mean, width - each * PAIR);
            squares = plus(squares, times(row[each], row[each]));
        }
        const float scale = 1.0f / sqrtf(sum_of(squares.low + squares.high) / width + epsilon);
        moments[2 * item] = mean;
        moments[2 * item + 1] = scale;
        for (int64_t each = 0; each < pairs; each++) {
            const int64_t place = each * PAIR, left = width - place;
            pair value = times(row[each], both(all(scale)));
            if (weight) value = times(value, load_pair_float32(weight + place, left));
            if (bias) value = plus(value, load_pair_float32(bias + place, left));
            store_pair(normed + at + place, value, left);
        }
    }
}

/* The gradient of the sum, that of its norm plus `beside`, which may be null; that of the branch, where asked for; and
   those of weight and bias, summed over each block of rows: (blocks, 2, width). The gradient of the norm is in two
   parts where it was used twice; `other` may be null.

   With n = (s - mean) scale and u = weight above, it is scale (u - mean(u) - n mean(u n)). items: blocks. */
KERNEL norm_gradient(int64_t begin, int64_t end, int64_t rows, const bfloat16 *sum, const bfloat16 *upstream,
                     const bfloat16 *other, const bfloat16 *beside, bfloat16 *of_sum, bfloat16 *of_branch,
                     const float *moments, float *of_both, const float *weight, int64_t width, int64_t centred,
                     int64_t seed, int64_t threshold) {
    const int64_t pairs = (width + PAIR - 1) / PAIR;
    const mask_of drawn = mask(seed, threshold);
    pair normed[pairs], slopes[pairs];
    for (int64_t block = begin; block < end; block++) {
        float *of_weight = of_both + 2 * block * width, *of_bias = of_weight + width;
        memset(of_weight, 0, sizeof(float) * 2 * width);
        for (int64_t item = block * BLOCK; item < lesser((block + 1) * BLOCK, rows); item++) {
            const int64_t at = item * width;
            const float mean = moments[2 * item], scale = moments[2 * item + 1];
            pair along = both(all(0.0f)), across = along;
            for (int64_t each = 0; each < pairs; each++) {
                const int64_t place = each * PAIR, left = width - place;
                const pair s = pair_less(load_pair(sum + at + place, left), mean, left);
                const pair n = times(s, both(all(scale)));
                pair above = load_pair(upstream + at + place, left);
                if (other) above = plus(above, load_pair(other + at + place, left));
                add_to(of_weight + place, times(above, n), left);
                add_to(of_bias + place, above, left);
                const pair u = weight ? times(above, load_pair_float32(weight + place, left)) : above;
                along = plus(along, u);
                across = plus(across, times(u, n));
                normed[each] = n;
                slopes[each] = u;
            }
            const float first = centred ? sum_of(along.low + along.high) / width : 0.0f;
            const float second = sum_of(across.low + across.high) / width;
            for (int64_t each = 0; each < pairs; each++) {
                const int64_t place = at + each * PAIR, left = width - each * PAIR;
                pair of = {(slopes[each].low - first - normed[each].low * second) * scale,
                           (slopes[each].high - first - normed[each].high * second) * scale};
                if (beside) of = plus(of, load_pair(beside + place, left));
                store_pair(of_sum + place, of, left);
                if (of_branch)
                    store_pair(of_branch + place, threshold ? dropped(of, drawn, item * pairs + each) : of, left);
            }
        }
    }
}
