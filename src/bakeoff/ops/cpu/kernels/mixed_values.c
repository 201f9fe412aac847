/* The values of attention, the last channels of each row of its projection, given to and mixed with those of other
   layers; gradients of the whole row, whose other channels are copied, in the same pass. */
#include "vectors.h"

/* v becomes v + a (first - v), and the difference is kept. items: rows. */
KERNEL mixed_values(int64_t begin, int64_t end, bfloat16 *projected, const bfloat16 *first, bfloat16 *difference,
                    const float *share, int64_t width, int64_t channels) {
    for (int64_t row = begin; row < end; row++) {
        bfloat16 *values = projected + (row + 1) * width - channels;
        for (int64_t place = 0; place < channels; place += LANES) {
            int64_t left = channels - place, at = row * channels + place;
            floats value = load_some(values + place, left), apart = load_some(first + at, left) - value;
            store_some(difference + at, apart, left);
            store_some(values + place, value + *share * apart, left);
        }
    }
}

/* The gradients of the projection as it was, of the first values, and of the share, summed over each block of rows:
   (blocks,). items: blocks. */
KERNEL mixed_values_gradient(int64_t begin, int64_t end, int64_t rows, const bfloat16 *upstream,
                             const bfloat16 *difference, bfloat16 *of_projected, bfloat16 *of_first, float *of_share,
                             const float *share, int64_t width, int64_t channels) {
    for (int64_t block = begin; block < end; block++) {
        floats sums = all(0.0f);
        for (int64_t row = block * BLOCK; row < (block + 1) * BLOCK && row < rows; row++) {
            int64_t values = (row + 1) * width - channels;
            memcpy(of_projected + row * width, upstream + row * width, sizeof(bfloat16) * (width - channels));
            for (int64_t place = 0; place < channels; place += LANES) {
                int64_t left = channels - place, at = row * channels + place;
                floats above = load_some(upstream + values + place, left);
                sums += above * load_some(difference + at, left);
                store_some(of_first + at, *share * above, left);
                store_some(of_projected + values + place, above - *share * above, left);
            }
        }
        of_share[block] = sum_of(sums);
    }
}

/* The gradient of a projection that was used whole, and its values beside. items: rows. */
KERNEL given_values_gradient(int64_t begin, int64_t end, const bfloat16 *upstream, const bfloat16 *of_values,
                             bfloat16 *of_projected, int64_t width, int64_t channels) {
    for (int64_t row = begin; row < end; row++) {
        int64_t values = (row + 1) * width - channels;
        memcpy(of_projected + row * width, upstream + row * width, sizeof(bfloat16) * (width - channels));
        for (int64_t place = 0; place < channels; place += LANES) {
            int64_t left = channels - place;
            floats sum = load_some(upstream + values + place, left);
            store_some(of_projected + values + place, sum + load_some(of_values + row * channels + place, left), left);
        }
    }
}
