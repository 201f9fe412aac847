/* Products of bfloat16 matrices in blocks of 32 x 32, summed in float32: in tiles (AMX), or in vectors (AVX512_BF16).

   A left operand lies row by row. A right operand is packed into tiles of 32 numbers of depth and 16 columns: 16 lines
   of 16 pairs, a pair being two neighbouring numbers of a column. Without these instructions MATRICES is not defined.
 */
#ifndef TILES_H
#define TILES_H

#include "vectors.h"

#if defined(__AVX512BF16__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#define MATRICES
#if defined(__AMX_BF16__) && defined(__linux__)
#define TILES
#endif
#endif

#ifdef MATRICES

enum { SIDE = 32, LINE = 64, TILE = 1024 }; /* side of a block in numbers; a tile's line, and a tile, in bytes */

static inline int64_t rounded_up(int64_t number, int64_t multiple) {
    return (number + multiple - 1) / multiple * multiple;
}

#ifdef TILES

/* Lay out this thread's tiles, as each thread does before its first product. */
static inline void begin_tiles(void) {
    struct {
        uint8_t palette, start, reserved[14];
        uint16_t bytes[16];
        uint8_t rows[16];
    } layout = {.palette = 1};
    for (int tile = 0; tile < 8; tile++) {
        layout.bytes[tile] = LINE;
        layout.rows[tile] = 16;
    }
    _tile_loadconfig(&layout);
}

static inline void end_tiles(void) { _tile_release(); }

/* C = A B, or C + A B: A has 32 rows of `steps` times 32 numbers, B two columns of `steps` tiles, C 32 x 32 numbers.

   The next 32 numbers of A's rows are `a_step` bytes after the first; rows of C are `c_row` numbers apart, others
   bytes. */
static inline void product(const void *a, int64_t a_row, int64_t a_step, const void *b, int64_t b_column, int64_t steps,
                           float *c, int64_t c_row, int add) {
    const char *left = a, *right = b;
    const int64_t line = c_row * (int64_t)sizeof(float);
    float *below = c + 16 * c_row;
    if (add) {
        _tile_loadd(0, c, line);
        _tile_loadd(1, c + 16, line);
        _tile_loadd(2, below, line);
        _tile_loadd(3, below + 16, line);
    } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    }
    for (int64_t step = 0; step < steps; step++, left += a_step, right += TILE) {
        _tile_loadd(4, left, a_row);
        _tile_loadd(6, right, LINE);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(7, right + b_column, LINE);
        _tile_dpbf16ps(1, 4, 7);
        _tile_loadd(5, left + 16 * a_row, a_row);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, c, line);
    _tile_stored(1, c + 16, line);
    _tile_stored(2, below, line);
    _tile_stored(3, below + 16, line);
}

#else

static inline void begin_tiles(void) {}

static inline void end_tiles(void) {}

enum { ROWS = 8 }; /* of C whose sums are in registers at once */

static inline void product(const void *a, int64_t a_row, int64_t a_step, const void *b, int64_t b_column, int64_t steps,
                           float *c, int64_t c_row, int add) {
    for (int first = 0; first < SIDE; first += ROWS) {
        __m512 sums[ROWS][2];
        for (int row = 0; row < ROWS; row++)
            for (int half = 0; half < 2; half++)
                sums[row][half] = add ? _mm512_loadu_ps(c + (first + row) * c_row + 16 * half) : _mm512_setzero_ps();
        for (int64_t step = 0; step < steps; step++)
            for (int pair = 0; pair < 16; pair++) {
                const char *right = (const char *)b + step * TILE + pair * LINE;
                const __m512bh one = (__m512bh)_mm512_loadu_si512(right);
                const __m512bh other = (__m512bh)_mm512_loadu_si512(right + b_column);
                for (int row = 0; row < ROWS; row++) {
                    int both;
                    memcpy(&both, (const char *)a + (first + row) * a_row + step * a_step + pair * 4, sizeof both);
                    const __m512bh left = (__m512bh)_mm512_set1_epi32(both);
                    sums[row][0] = _mm512_dpbf16_ps(sums[row][0], left, one);
                    sums[row][1] = _mm512_dpbf16_ps(sums[row][1], left, other);
                }
            }
        for (int row = 0; row < ROWS; row++)
            for (int half = 0; half < 2; half++)
                _mm512_storeu_ps(c + (first + row) * c_row + 16 * half, sums[row][half]);
    }
}

#endif

/* 16 lines of 16 numbers of 32 bits, with columns as lines; lines are so many bytes apart. */
static inline void transpose16(const void *from, int64_t from_line, void *into, int64_t into_line) {
    __m512i a[16], b[16];
    for (int i = 0; i < 16; i++) a[i] = _mm512_loadu_si512((const char *)from + i * from_line);
    for (int i = 0; i < 16; i += 2) {
        b[i] = _mm512_unpacklo_epi32(a[i], a[i + 1]);
        b[i + 1] = _mm512_unpackhi_epi32(a[i], a[i + 1]);
    }
    for (int i = 0; i < 16; i += 4) {
        a[i] = _mm512_unpacklo_epi64(b[i], b[i + 2]);
        a[i + 1] = _mm512_unpackhi_epi64(b[i], b[i + 2]);
        a[i + 2] = _mm512_unpacklo_epi64(b[i + 1], b[i + 3]);
        a[i + 3] = _mm512_unpackhi_epi64(b[i + 1], b[i + 3]);
    }
    for (int i = 0; i < 4; i++) {
        const __m512i even = _mm512_shuffle_i32x4(a[i], a[i + 4], 0x88),
                      odd = _mm512_shuffle_i32x4(a[i], a[i + 4], 0xdd);
        const __m512i more_even = _mm512_shuffle_i32x4(a[i + 8], a[i + 12], 0x88);
        const __m512i more_odd = _mm512_shuffle_i32x4(a[i + 8], a[i + 12], 0xdd);
        b[i] = _mm512_shuffle_i32x4(even, more_even, 0x88);
        b[i + 8] = _mm512_shuffle_i32x4(even, more_even, 0xdd);
        b[i + 4] = _mm512_shuffle_i32x4(odd, more_odd, 0x88);
        b[i + 12] = _mm512_shuffle_i32x4(odd, more_odd, 0xdd);
    }
    for (int i = 0; i < 16; i++) _mm512_storeu_si512((char *)into + i * into_line, b[i]);
}

/* Two lines of 32 numbers as a line of pairs in each of two tiles. */
static inline void interleave(__m512i one, __m512i other, char *left, char *right) {
    const __m512i low = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38, 6, 37,
                                         5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
    const __m512i high = _mm512_add_epi16(low, _mm512_set1_epi16(16));
    _mm512_storeu_si512(left, _mm512_permutex2var_epi16(one, low, other));
    _mm512_storeu_si512(right, _mm512_permutex2var_epi16(one, high, other));
}

/* The right operand whose columns are rows of `width` numbers; both counts are multiples of 32. */
static inline void pack_transposed(const bfloat16 *x, int64_t rows, int64_t width, char *packed) {
    const int64_t row = width * (int64_t)sizeof(bfloat16), steps = width / SIDE;
    for (int64_t column = 0; column < rows / 16; column++)
        for (int64_t step = 0; step < steps; step++)
            transpose16((const char *)x + 16 * column * row + step * LINE, row, packed + (column * steps + step) * TILE,
                        LINE);
}

/* The right operand whose depth is rows of `width` numbers; both counts are multiples of 32. */
static inline void pack_rows(const bfloat16 *x, int64_t rows, int64_t width, char *packed) {
    const int64_t row = width * (int64_t)sizeof(bfloat16), column = rows / SIDE * TILE;
    for (int64_t pair = 0; pair < rows / 2; pair++)
        for (int64_t some = 0; some < width / SIDE; some++) {
            const char *from = (const char *)x + 2 * pair * row + some * LINE;
            char *into = packed + 2 * some * column + pair / 16 * TILE + pair % 16 * LINE;
            interleave(_mm512_loadu_si512(from), _mm512_loadu_si512(from + row), into, into + column);
        }
}

#endif
#endif
