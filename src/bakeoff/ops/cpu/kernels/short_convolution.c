/* A short convolution with fixed kernels, and its gradients.

   B rows of N inputs and T outputs of D channels, K taps: y[t] = sum_j weight[j] x[t - before + j dilation] same[t, j],
   with zeros around a row. Weights are (K, D) float32; `same`, (B, T, K), or null for ones. */
#include "pairs.h"

/* Positions, taps and channels. */
typedef struct {
    int64_t inputs, outputs, width, before, dilation;
} shape_of;

static inline __attribute__((always_inline)) floats factor_of(const bfloat16 *same, int64_t place) {
    uint32_t bits = (uint32_t)same[place] << 16;
    float factor;
    memcpy(&factor, &bits, sizeof factor);
    return all(factor);
}

/* One output, PAIR channels of it at a time. */
static inline __attribute__((always_inline)) void output(int64_t item, const bfloat16 *x, const float *weight,
                                                         const bfloat16 *same, bfloat16 *y, shape_of shape,
                                                         int64_t taps) {
    int64_t row = item / shape.outputs, place = item % shape.outputs, width = shape.width;
    for (int64_t channel = 0; channel < width; channel += PAIR) {
        int64_t left = width - channel;
        pair sum = both(all(0.0f));
        for (int64_t tap = 0; tap < taps; tap++) {
            int64_t from = place - shape.before + tap * shape.dilation;
            if (from < 0 || from >= shape.inputs) continue;
            pair term = load_pair(x + (row * shape.inputs + from) * width + channel, left);
            if (same) term = times(term, both(factor_of(same, item * taps + tap)));
            sum = plus(sum, times(term, load_pair_float32(weight + tap * width + channel, left)));
        }
        store_pair(y + item * width + channel, sum, left);
    }
}

/* The gradients of the inputs [first, last) of all rows, one after the other, and the weights' from these inputs. */
static inline __attribute__((always_inline)) void gradients(int64_t first, int64_t last, const bfloat16 *x,
                                                            const float *weight, const bfloat16 *same,
                                                            const bfloat16 *upstream, bfloat16 *of_x, float *of_weight,
                                                            shape_of shape, int64_t taps) {
    int64_t width = shape.width;
    pair sums[taps];
    for (int64_t channel = 0; channel < width; channel += PAIR) {
        int64_t left = width - channel;
        for (int64_t tap = 0; tap < taps; tap++) sums[tap] = both(all(0.0f));
        int64_t row = first / shape.inputs, place = first % shape.inputs;
        for (int64_t item = first; item < last; item++) {
            pair input = load_pair(x + item * width + channel, left), sum = both(all(0.0f));
            for (int64_t tap = 0; tap < taps; tap++) {
                int64_t to = place + shape.before - tap * shape.dilation;
                if (to < 0 || to >= shape.outputs) continue;
                int64_t output = row * shape.outputs + to;
                pair above = load_pair(upstream + output * width + channel, left);
                if (same) above = times(above, both(factor_of(same, output * taps + tap)));
                sum = plus(sum, times(above, load_pair_float32(weight + tap * width + channel, left)));
                sums[tap] = plus(sums[tap], times(above, input));
            }
            store_pair(of_x + item * width + channel, sum, left);
            if (++place == shape.inputs) place = 0, row++;
        }
        for (int64_t tap = 0; tap < taps; tap++) store_pair_float32(of_weight + tap * width + channel, sums[tap], left);
    }
}

/* items: the B T outputs. */
KERNEL short_convolution(int64_t begin, int64_t end, const bfloat16 *x, const float *weight, const bfloat16 *same,
                         bfloat16 *y, int64_t inputs, int64_t outputs, int64_t width, int64_t before, int64_t dilation,
                         int64_t taps) {
    shape_of shape = {inputs, outputs, width, before, dilation};
    for (int64_t item = begin; item < end; item++)
        if (taps == 3)
            output(item, x, weight, same, y, shape, 3);
        else
            output(item, x, weight, same, y, shape, taps);
}

/* The gradients of the inputs, and of the weights summed over each block of inputs: (blocks, K, D). items: blocks. */
KERNEL short_convolution_gradient(int64_t begin, int64_t end, int64_t count, const bfloat16 *x, const float *weight,
                                  const bfloat16 *same, const bfloat16 *upstream, bfloat16 *of_x, float *of_weight,
                                  int64_t inputs, int64_t outputs, int64_t width, int64_t before, int64_t dilation,
                                  int64_t taps) {
    shape_of shape = {inputs, outputs, width, before, dilation};
    for (int64_t block = begin; block < end; block++) {
        int64_t first = block * BLOCK, last = first + BLOCK < count ? first + BLOCK : count;
        float *sums = of_weight + block * taps * width;
        if (taps == 3)
            gradients(first, last, x, weight, same, upstream, of_x, sums, shape, 3);
        else
            gradients(first, last, x, weight, same, upstream, of_x, sums, shape, taps);
    }
}
