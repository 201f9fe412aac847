/* The product of a transposed matrix and another, such as the gradient of a linear layer's weight. */
#include "tiles.h"

#include <math.h>
#include <stdlib.h>

#ifdef MATRICES

enum {
    COLUMNS = 256,      /* of an item */
    DEPTH = 256,        /* tokens of a pass, whose right operands stay in the first cache, 32 columns at a time */
    MOST_SUMS = 1 << 18 /* sums of the items that are made together, which stay in the second cache with a pass */
};

/* 32 tokens, or fewer, of 32 channels as two tiles of pairs of tokens; each channel's sum is added to `sums`. */
static inline void pack_tokens(const bfloat16 *x, int64_t stride, int64_t tokens, char *left, char *right,
                               float *sums) {
    const __m512bh ones = (__m512bh)_mm512_set1_epi16(0x3f80);
    __m512 one_sum = _mm512_loadu_ps(sums), other_sum = _mm512_loadu_ps(sums + 16);
    for (int64_t pair = 0; pair < 16; pair++, left += LINE, right += LINE) {
        const bfloat16 *from = x + 2 * pair * stride;
        _mm_prefetch((const char *)(from + SIDE * stride), _MM_HINT_T0);
        _mm_prefetch((const char *)(from + (SIDE + 1) * stride), _MM_HINT_T0);
        const __m512i even = 2 * pair < tokens ? _mm512_loadu_si512(from) : _mm512_setzero_si512();
        const __m512i odd = 2 * pair + 1 < tokens ? _mm512_loadu_si512(from + stride) : _mm512_setzero_si512();
        interleave(even, odd, left, right);
        one_sum = _mm512_dpbf16_ps(one_sum, (__m512bh)_mm512_loadu_si512(left), ones);
        other_sum = _mm512_dpbf16_ps(other_sum, (__m512bh)_mm512_loadu_si512(right), ones);
    }
    _mm512_storeu_ps(sums, one_sum);
    _mm512_storeu_ps(sums + 16, other_sum);
}

/* A pass's tokens of the narrow matrix as left operands, each of 32 channels and 32 tokens lying together. */
static void pack_left(const bfloat16 *narrow, int64_t tokens, int64_t steps, int64_t height, char *left, float *sums) {
    char pairs[2 * TILE] __attribute__((aligned(LINE)));
    for (int64_t step = 0; step < steps; step++)
        for (int64_t row = 0; row < height; row += SIDE) {
            char *into = left + (row / SIDE * steps + step) * 2 * TILE;
            pack_tokens(narrow + step * SIDE * height + row, height, tokens - step * SIDE, pairs, pairs + TILE,
                        sums + row);
            transpose16(pairs, LINE, into, LINE);
            transpose16(pairs + TILE, LINE, into + TILE, LINE);
        }
}

/* A pass's tokens of some of the wide matrix's columns as right operands. */
static void pack_right(const bfloat16 *wide, int64_t tokens, int64_t steps, int64_t width, int64_t columns, char *right,
                       float *sums) {
    for (int64_t step = 0; step < steps; step++)
        for (int64_t column = 0; column < columns; column += SIDE) {
            char *into = right + (column / 16 * steps + step) * TILE;
            pack_tokens(wide + step * SIDE * width + column, width, tokens - step * SIDE, into, into + steps * TILE,
                        sums + column);
        }
}

/* Adds a pass to the sums of some columns, which lie in blocks of 32 x 32, one under the other. */
static void add_pass(const char *left, const char *right, int64_t steps, int64_t height, int64_t columns, int begun,
                     float *sums) {
    for (int64_t column = 0; column < columns; column += SIDE)
        for (int64_t row = 0; row < height; row += SIDE)
            product(left + row / SIDE * steps * 2 * TILE, LINE, 2 * TILE, right + column / 16 * steps * TILE,
                    steps * TILE, steps, sums + column * height + row * SIDE, SIDE, begun);
}

/* Multiplies numbers, a multiple of LANES. */
static void scale(float *numbers, int64_t count, float factor) {
    for (int64_t at = 0; at < count; at += LANES)
        store_float32(numbers + at, load_float32(numbers + at) * factor);
}

/* Writes blocks, times a factor, into (height, width) numbers from a column on, or into (width, height) from a row on. */
static void write_blocks(float *sums, int64_t height, int64_t columns, int64_t at, int64_t width, int64_t turned,
                         float factor, float *result) {
    const int64_t line = SIDE * (int64_t)sizeof(float);
    for (int64_t row = 0; row < height; row += SIDE)
        for (int64_t column = 0; column < columns; column += SIDE) {
            float *from = sums + column * height + row * SIDE;
            if (factor != 1.0f) scale(from, SIDE * SIDE, factor);
            if (!turned)
                for (int64_t each = 0; each < SIDE; each++)
                    memcpy(result + (row + each) * width + at + column, from + each * SIDE, (size_t)line);
            else
                for (int64_t part = 0; part < 4; part++) {
                    const int64_t down = part / 2 * 16, along = part % 2 * 16;
                    transpose16(from + down * SIDE + along, line, result + (at + column + along) * height + row + down,
                                height * (int64_t)sizeof(float));
                }
        }
}

/* narrow^T wide, times a factor, of (tokens, height) and (tokens, width) numbers, in float32: (height, width), or
   turned (width, height).

   items: 256 columns each of the wide matrix, or the rest. height and width are multiples of 32. The columns' sums of
   the one matrix or the other go to where they are asked for. Where memory is short, the first number of the result is
   NaN. */
KERNEL transposed_product(int64_t begin, int64_t end, const bfloat16 *narrow, const bfloat16 *wide, int64_t tokens,
                          int64_t height, int64_t width, float *result, int64_t turned, float *narrow_sums,
                          float *wide_sums, float factor) {
    const int64_t passes = (tokens + DEPTH - 1) / DEPTH, depth = rounded_up((tokens + passes - 1) / passes, SIDE);
    const int64_t steps = depth / SIDE, fitting = MOST_SUMS / (height * COLUMNS), before = begin * COLUMNS,
                  until = lesser(end * COLUMNS, width);
    const int64_t together = lesser(end - begin, fitting > 1 ? fitting : 1) * COLUMNS;
    const int64_t packed = 2 * depth * (height + together), extra = height + (end - begin) * COLUMNS;
    char *left = aligned_alloc(LINE, (size_t)(packed + 4 * (height * together + extra))), *right = left + 2 * depth * height;
    float *sums = (float *)(left + packed), *heights = sums + height * together, *widths = heights + height;
    if (!left) {
        *result = NAN; /* which the gradient's norm shows */
        return;
    }
    memset(widths, 0, (size_t)(extra - height) * sizeof(float));
    begin_tiles();
    for (int64_t at = before; at < until; at += together) {
        const int64_t columns = lesser(together, until - at);
        memset(heights, 0, (size_t)height * sizeof(float));
        for (int64_t pass = 0; pass < passes; pass++) {
            const int64_t first = pass * depth, count = lesser(depth, tokens - first);
            pack_left(narrow + first * height, count, steps, height, left, heights);
            pack_right(wide + first * width + at, count, steps, width, columns, right, widths + at - before);
            add_pass(left, right, steps, height, columns, pass > 0, sums);
        }
        write_blocks(sums, height, columns, at, width, turned, factor, result);
    }
    end_tiles();
    if (factor != 1.0f) scale(heights, height, factor), scale(widths, rounded_up(until - before, LANES), factor);
    if (narrow_sums && begin == 0) memcpy(narrow_sums, heights, (size_t)height * sizeof(float));
    if (wide_sums) memcpy(wide_sums + before, widths, (size_t)(until - before) * sizeof(float));
    free(left);
}

#endif
