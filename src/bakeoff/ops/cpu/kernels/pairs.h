/* Pairs of vectors: a line of the cache of bfloat16 at once. */
#ifndef PAIRS_H
#define PAIRS_H

#include "vectors.h"

enum { PAIR = 2 * LANES };

/* Two vectors of a row, of which some numbers may lack, which are zeros then. */
typedef struct {
    floats low, high;
} pair;

static inline pair both(floats x) { return (pair){x, x}; }

static inline pair load_pair(const bfloat16 *from, int64_t left) {
    return (pair){load_some(from, left), left > LANES ? load_some(from + LANES, left - LANES) : all(0.0f)};
}

static inline pair load_pair_float32(const float *from, int64_t left) {
    return (pair){load_some_float32(from, left),
                  left > LANES ? load_some_float32(from + LANES, left - LANES) : all(0.0f)};
}

static inline void store_pair(bfloat16 *to, pair x, int64_t left) {
    if (left >= PAIR) {
        store_two(to, x.low, x.high);
        return;
    }
    store_some(to, x.low, left);
    if (left > LANES) store_some(to + LANES, x.high, left - LANES);
}

static inline void store_pair_float32(float *to, pair x, int64_t left) {
    store_some_float32(to, x.low, left);
    if (left > LANES) store_some_float32(to + LANES, x.high, left - LANES);
}

static inline pair times(pair x, pair y) { return (pair){x.low * y.low, x.high * y.high}; }

static inline pair plus(pair x, pair y) { return (pair){x.low + y.low, x.high + y.high}; }

#endif
