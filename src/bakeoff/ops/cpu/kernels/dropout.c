/* Dropout, whose gradient is the same function of the gradient. */
#include "dropout.h"

/* y = x mask; items: blocks of 2 LANES of `size` elements. */
KERNEL dropout(int64_t begin, int64_t end, const bfloat16 *x, bfloat16 *y, int64_t size, int64_t seed, int64_t threshold) {
    mask_of drawn = mask(seed, threshold);
    for (int64_t block = begin; block < end; block++) {
        words bits = random_bits(drawn.seed, block);
        for (int second = 0; second < 2; second++) {
            int64_t place = (2 * block + second) * LANES;
            if (place >= size) break;
            store_some(y + place, load_some(x + place, size - place) * factors(drawn, bits, second), size - place);
        }
    }
}
