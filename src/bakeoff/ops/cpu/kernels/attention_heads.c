/* Queries, keys and values: cut into heads, normed and turned.

   B rows of T tokens, H heads of d channels, of which the first half turns with the second; a projection is
   (B, T, 3, H, d), and what is made of it (3, B, H, T, d). Gains are (2, d), or null: there is no norm; cosines and sines
   are (T, d / 2), or null: nothing turns. */
#include "vectors.h"

#include <math.h>

/* `size` numbers as float32, followed by zeros up to a whole vector. */
static void read_row(float *to, const bfloat16 *from, int64_t size) {
    for (int64_t place = 0; place < size; place += LANES) store_float32(to + place, load_some(from + place, size - place));
}

static void write_row(bfloat16 *to, const float *from, int64_t size) {
    for (int64_t place = 0; place < size; place += LANES) store_some(to + place, load_float32(from + place), size - place);
}

static float product_of(const float *x, const float *y, int64_t size) {
    floats sums = all(0.0f);
    for (int64_t place = 0; place < size; place += LANES) sums += load_float32(x + place) * load_float32(y + place);
    return sum_of(sums);
}

/* Pairs turned by angles, times `direction` 1 or -1. */
static void turn(float *x, const float *cosine, const float *sine, float direction, int64_t half) {
    for (int64_t place = 0; place < half; place += LANES) {
        int64_t count = half - place;
        floats c = load_some_float32(cosine + place, count), s = load_some_float32(sine + place, count) * direction;
        floats first = load_some_float32(x + place, count), second = load_some_float32(x + half + place, count);
        store_some_float32(x + place, first * c - second * s, count);
        store_some_float32(x + half + place, second * c + first * s, count);
    }
}

static void multiply(float *x, const float *factors, float factor, int64_t size) {
    for (int64_t place = 0; place < size; place += LANES)
        store_float32(x + place, load_float32(x + place) * load_some_float32(factors + place, size - place) * factor);
}

/* items: the B T tokens. */
KERNEL attention_heads(int64_t begin, int64_t end, const bfloat16 *projected, bfloat16 *made, const float *gains,
                       const float *cosine, const float *sine, int64_t rows, int64_t length, int64_t heads, int64_t width,
                       float epsilon) {
    float x[width + LANES];
    memset(x, 0, sizeof x);
    for (int64_t token = begin; token < end; token++) {
        int64_t row = token / length, place = token % length;
        for (int64_t kind = 0; kind < 3; kind++)
            for (int64_t head = 0; head < heads; head++) {
                const bfloat16 *from = projected + ((token * 3 + kind) * heads + head) * width;
                bfloat16 *to = made + (((kind * rows + row) * heads + head) * length + place) * width;
                if (kind == 2 || (!gains && !cosine)) {
                    memcpy(to, from, sizeof(bfloat16) * width);
                    continue;
                }
                read_row(x, from, width);
                if (gains) multiply(x, gains + kind * width, 1.0f / sqrtf(product_of(x, x, width) / width + epsilon), width);
                if (cosine) turn(x, cosine + place * (width / 2), sine + place * (width / 2), 1.0f, width / 2);
                write_row(to, x, width);
            }
    }
}

/* The gradients of the projection, and of the gains summed over each block of tokens: (blocks, 2, d).

   items: blocks. */
KERNEL attention_heads_gradient(int64_t begin, int64_t end, const bfloat16 *projected, const bfloat16 *of_query,
                                const bfloat16 *of_key, const bfloat16 *of_value, bfloat16 *of_projected, float *of_gains,
                                const float *gains, const float *cosine, const float *sine, int64_t rows, int64_t length,
                                int64_t heads, int64_t width, float epsilon) {
    const bfloat16 *upstream[3] = {of_query, of_key, of_value};
    float x[width + LANES], above[width + LANES];
    memset(x, 0, sizeof x);
    memset(above, 0, sizeof above);
    for (int64_t block = begin; block < end; block++) {
        if (gains) memset(of_gains + block * 2 * width, 0, sizeof(float) * 2 * width);
        for (int64_t token = block * BLOCK; token < (block + 1) * BLOCK && token < rows * length; token++) {
            int64_t row = token / length, place = token % length;
            for (int64_t kind = 0; kind < 3; kind++)
                for (int64_t head = 0; head < heads; head++) {
                    int64_t at = ((token * 3 + kind) * heads + head) * width;
                    const bfloat16 *from = upstream[kind] + ((row * heads + head) * length + place) * width;
                    if (kind == 2 || (!gains && !cosine)) {
                        memcpy(of_projected + at, from, sizeof(bfloat16) * width);
                        continue;
                    }
                    read_row(above, from, width);
                    if (cosine) turn(above, cosine + place * (width / 2), sine + place * (width / 2), -1.0f, width / 2);
                    if (gains) {
                        /* with n = x scale and u = g above: the gain's is above n, that of x (u - n mean(u n)) scale */
                        float *sums = of_gains + (block * 2 + kind) * width;
                        read_row(x, projected + at, width);
                        float scale = 1.0f / sqrtf(product_of(x, x, width) / width + epsilon);
                        for (int64_t i = 0; i < width; i += LANES) {
                            int64_t count = width - i;
                            floats product = load_float32(above + i) * load_float32(x + i) * scale;
                            store_some_float32(sums + i, load_some_float32(sums + i, count) + product, count);
                        }
                        multiply(above, gains + kind * width, scale, width);
                        float mean = product_of(above, x, width) / width * scale * scale;
                        for (int64_t i = 0; i < width; i += LANES)
                            store_float32(above + i, load_float32(above + i) - load_float32(x + i) * mean);
                    }
                    write_row(of_projected + at, above, width);
                }
        }
    }
}
