/* Cross-entropy of scores over a vocabulary. */
#include "vectors.h"

#include <math.h>
#include <stdlib.h>

/* The last scores of a row, fewer than LANES, followed by minus infinity. */
static floats last_scores(const bfloat16 *from, int64_t count) {
    floats x = load_some(from, count);
    for (int64_t lane = count; lane < LANES; lane++) x[lane] = -INFINITY;
    return x;
}

/* The losses in nats of rows of scores, which become the gradients of the losses: the probabilities, less 1 at the label.

   items: rows of `size` scores. The sum of all exponentials but the label's decides its loss and its gradient wherever
   the others are the smaller part, which 1 - p would lose. Where memory is short, losses are NaN. */
KERNEL cross_entropy(int64_t begin, int64_t end, bfloat16 *scores, const int64_t *labels, float *losses, int64_t size) {
    int64_t whole = size / LANES * LANES, rest = size - whole;
    float *powers = malloc(sizeof(float) * (whole + LANES));
    for (int64_t item = begin; item < end; item++) {
        if (!powers) {
            losses[item] = NAN;
            continue;
        }
        bfloat16 *row = scores + item * size;
        floats highest = last_scores(row + whole, rest), sums = all(0.0f);
        for (int64_t place = 0; place < whole; place += LANES) highest = larger(load(row + place), highest);
        float top = largest_of(highest), right = load_some(row + labels[item], 1)[0] - top;
        row[labels[item]] = 0xff80; /* minus infinity: left out of the sum */
        for (int64_t place = 0; place < whole; place += LANES) {
            floats power = exponential(load(row + place) - top);
            store_float32(powers + place, power);
            sums += power;
        }
        floats power = exponential(last_scores(row + whole, rest) - top);
        store_float32(powers + whole, power);
        float others = sum_of(sums + power), of_label = expf(right), total = others + of_label, scale = 1.0f / total;
        for (int64_t place = 0; place < whole; place += LANES) store(row + place, load_float32(powers + place) * scale);
        store_some(row + whole, power * scale, rest);
        store_some(row + labels[item], all(-others * scale), 1);
        losses[item] = of_label > others ? log1pf(others / of_label) : logf(total) - right;
    }
    free(powers);
}
