/* What the two passes of attention have in common: the call, which keys a query sees, and which weights are dropped. */
#ifndef ATTENTION_H
#define ATTENTION_H

#include "tiles.h"

#include <math.h>
#include <stdlib.h>

#ifdef MATRICES

/* (rows, heads, tokens, width) numbers, so many apart; a head's channels lie side by side. */
struct view {
    bfloat16 *numbers;
    int64_t row, head, token;
};

/* softmax(scale Q K^T) V, or its gradients. `bakeoff.ops.cpu.attention` has the same structure. */
struct call {
    int64_t rows, heads, queries, keys, width;
    struct view query, key, value, mixed, of_mixed, of_query, of_key, of_value;
    float *logarithms;   /* (rows, heads, queries) to base 2, of the sums of exponentials */
    const uint8_t *mask; /* nonzero where a query sees a key, keys side by side; or none */
    int64_t mask_row, mask_head, mask_query;
    int64_t before,
        after;       /* distances from a query's own key to the farthest that it sees; the last query owns the last */
    int64_t own;     /* a query sees its own key, whatever the mask says */
    int64_t dropped; /* of 65,536 weights */
    int64_t seed;
    const float *query_gain, *key_gain; /* (width,) of the norms of heads, or none */
    const float *cosines, *sines;       /* (tokens, width / 2) of the turns of heads, or none */
    float *of_gains;                    /* (rows, heads, 2, width) */
    float scale, epsilon;
    int64_t failed; /* there was no memory */
};

#define LOG2E 1.44269504088896341f
#define UNSEEN -1e30f /* a score whose power of two is zero; that of minus infinity would be no number */

static inline __mmask16 first_lanes(int64_t count) {
    return count >= 16 ? 0xffff : count <= 0 ? 0 : (__mmask16)((1u << count) - 1);
}

static inline __m512i lanes(void) { return _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0); }

/* The numbers from which a head's random words are made. */
struct stream {
    __m512i first, second;
};

static inline uint64_t scrambled(uint64_t x) { /* splitmix64: Steele et al. 2014, doi 10.1145/2714064.2660195 */
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static inline struct stream stream_of(const struct call *call, int64_t index) {
    const uint64_t mixed = scrambled(scrambled((uint64_t)call->seed) + (uint64_t)index);
    return (struct stream){_mm512_set1_epi32((int)mixed), _mm512_set1_epi32((int)(mixed >> 32))};
}

enum { PAIR_BITS = 15 }; /* of a place, for the number of a pair of keys; the others are for the query's */

/* Words of two neighbouring keys each, 16 bits a key: a function of the place alone, so that both passes have the same.
 */
static inline __m512i random_words(struct stream stream, __m512i place) {
    __m512i x = _mm512_xor_si512(place, stream.first);
    x = _mm512_xor_si512(x, _mm512_srli_epi32(x, 16));
    x = _mm512_mullo_epi32(x, _mm512_set1_epi32(0x7feb352d)); /* factors of Wellons' lowbias32 */
    x = _mm512_add_epi32(_mm512_xor_si512(x, _mm512_srli_epi32(x, 15)), stream.second);
    x = _mm512_mullo_epi32(x, _mm512_set1_epi32((int)0x846ca68bu));
    return _mm512_xor_si512(x, _mm512_srli_epi32(x, 16));
}

/* What the weights that are left are multiplied by. */
static inline float kept_factor(const struct call *call) { return 65536.0f / (float)(65536 - call->dropped); }

/* The keys that some of the queries see, as far as distances say, in whole blocks. */
struct range {
    int64_t begin, end;
};

static inline struct range seen_by(const struct call *call, int64_t begin, int64_t end) {
    const int64_t own = call->keys - call->queries;
    int64_t low = begin + own - call->before, high = lesser(end, call->queries) + own + call->after;
    low = low < 0 ? 0 : low;
    high = lesser(high, call->keys);
    if (high <= low) return (struct range){0, 0};
    return (struct range){low / SIDE * SIDE, rounded_up(high, SIDE)};
}

/* Which of 16 numbers, from `first` on, lie from `begin` to before `end`. */
static inline __mmask16 between(int64_t first, int64_t begin, int64_t end) {
    return first_lanes(end - first) & (__mmask16)~first_lanes(begin - first);
}

/* Buffers of a piece of memory, one after the other. */
struct arena {
    char *next;
};

static inline void *taken(struct arena *arena, int64_t bytes) {
    void *start = arena->next;
    arena->next +=
        rounded_up(bytes, LINE) + LINE; /* a line more, lest all of them begin at the same place of the cache */
    return start;
}

/* Numbers of queries, keys and channels in whole blocks. */
struct sizes {
    int64_t queries, keys, wide;
};

static inline struct sizes sizes_of(const struct call *call) {
    return (struct sizes){rounded_up(call->queries, SIDE), rounded_up(call->keys, SIDE), rounded_up(call->width, SIDE)};
}

#endif
#endif
