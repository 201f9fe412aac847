/* Muon's passes over the numbers of a matrix, before and after its iterations in bfloat16. */
#include "vectors.h"

/* mean <- mean + share (gradient - mean), direction = mean + share (gradient - mean) with the new mean, and the sum of
   the direction's squares. items: rows. */
KERNEL muon_directions(int64_t begin, int64_t end, const float *gradient, float *mean, bfloat16 *direction,
                       float *squares, int64_t width, float share) {
    for (int64_t item = begin; item < end; item++) {
        int64_t at = item * width;
        floats sums = all(0.0f);
        for (int64_t place = 0; place < width; place += LANES) {
            int64_t left = width - place;
            floats slope = load_some_float32(gradient + at + place, left);
            floats old = load_some_float32(mean + at + place, left);
            floats new = old + share * (slope - old);
            floats step = new + share * (slope - new);
            store_some_float32(mean + at + place, new, left);
            store_some(direction + at + place, step, left);
            sums += step * step;
        }
        squares[item] = sum_of(sums);
    }
}

/* weight <- weight + factor update. items: rows. */
KERNEL muon_move(int64_t begin, int64_t end, float *weight, const bfloat16 *update, int64_t width, float factor) {
    for (int64_t item = begin; item < end; item++) {
        int64_t at = item * width;
        for (int64_t place = 0; place < width; place += LANES) {
            floats moved = load_some_float32(weight + at + place, width - place);
            moved += factor * load_some(update + at + place, width - place);
            store_some_float32(weight + at + place, moved, width - place);
        }
    }
}
