/* Attention, a head of a row at a time, with all of it in the cache. */
#include "heads.h"

#ifdef MATRICES

/* Which of 16 keys a query sees; `line` is that of the mask, or none. */
static inline __mmask16 seen_keys(const struct call *call, const uint8_t *line, int64_t query, int64_t key) {
    const int64_t own = query + call->keys - call->queries;
    const __mmask16 inside = first_lanes(call->keys - key);
    const __mmask16 near = between(key, own - call->before, own + call->after + 1) & inside;
    if (!line) return near;
    const __m128i visible = _mm_maskz_loadu_epi8(inside, line + key);
    __mmask16 seen = _mm_test_epi8_mask(visible, visible);
    if (call->own) seen |= between(key, own, own + 1);
    return seen & near;
}

/* The largest of a query's scores that it sees; the others become UNSEEN. */
static inline float largest_score(const struct call *call, const uint8_t *line, int64_t query, int64_t key,
                                  int64_t count, float *scores) {
    const __m512 unseen = _mm512_set1_ps(UNSEEN);
    __m512 highest = unseen;
    for (int64_t at = 0; at < count; at += 16) {
        const __m512 some =
            _mm512_mask_mov_ps(unseen, seen_keys(call, line, query, key + at), _mm512_loadu_ps(scores + at));
        _mm512_storeu_ps(scores + at, some);
        highest = _mm512_max_ps(highest, some);
    }
    return _mm512_reduce_max_ps(highest);
}

/* The sum of the exponentials of scores less the highest, which is subtracted first, so that none is above 1 however
   large the scores are; they become weights as far as they are not dropped. */
static inline float sum_of_powers(const struct call *call, struct stream stream, int64_t query, int64_t key,
                                  int64_t count, const float *scores, float highest, bfloat16 *weights) {
    const __m512 factors = _mm512_set1_ps(call->scale * LOG2E), subtracted = _mm512_set1_ps(highest);
    const __m512i threshold = _mm512_set1_epi16((short)call->dropped);
    __m512 one_sum = _mm512_setzero_ps(), other_sum = _mm512_setzero_ps();
    for (int64_t at = 0; at < count; at += SIDE) {
        const __m512 left = _mm512_sub_ps(_mm512_loadu_ps(scores + at), subtracted);
        const __m512 right = _mm512_sub_ps(_mm512_loadu_ps(scores + at + 16), subtracted);
        const __m512 one = power_of_two(_mm512_mul_ps(left, factors));
        const __m512 other = power_of_two(_mm512_mul_ps(right, factors));
        one_sum = _mm512_add_ps(one_sum, one);
        other_sum = _mm512_add_ps(other_sum, other);
        __m512i both = (__m512i)_mm512_cvtne2ps_pbh(other, one);
        if (call->dropped) {
            const __m512i first = _mm512_set1_epi32((int)((query << PAIR_BITS) + (key + at) / 2));
            const __m512i words = random_words(stream, _mm512_add_epi32(first, lanes()));
            both = _mm512_maskz_mov_epi16(_mm512_cmpge_epu16_mask(words, threshold), both);
        }
        _mm512_storeu_si512(weights + at, both);
    }
    return _mm512_reduce_add_ps(_mm512_add_ps(one_sum, other_sum));
}

static void attend(const struct call *call, int64_t index, char *memory) {
    const struct sizes of = sizes_of(call);
    const int64_t wide = of.wide, row = wide * (int64_t)sizeof(bfloat16), steps = wide / SIDE, depth = of.keys / SIDE;
    struct arena arena = {memory};
    bfloat16 *queries = taken(&arena, of.queries * row), *keys = taken(&arena, of.keys * row);
    char *packed_keys = taken(&arena, of.keys * row), *packed_values = taken(&arena, of.keys * row);
    bfloat16 *weights = taken(&arena, SIDE * of.keys * (int64_t)sizeof(bfloat16));
    float *scores = taken(&arena, SIDE * of.keys * (int64_t)sizeof(float));
    float *sums = taken(&arena, SIDE * wide * (int64_t)sizeof(float));
    read_head(call, call->key, index, call->keys, of.keys, wide, of_keys(call), keys);
    pack_transposed(keys, of.keys, wide, packed_keys);
    read_head(call, call->value, index, call->keys, of.keys, wide, none(), keys);
    pack_rows(keys, of.keys, wide, packed_values);
    read_head(call, call->query, index, call->queries, of.queries, wide, of_queries(call), queries);
    const int64_t mask_at = index / call->heads * call->mask_row + index % call->heads * call->mask_head;
    const struct stream stream = stream_of(call, index);
    memset(weights, 0, (size_t)(SIDE * of.keys) * sizeof(bfloat16)); /* for rows after the last query */
    for (int64_t first = 0; first < of.queries; first += SIDE) {
        const struct range range = seen_by(call, first, first + SIDE);
        const int64_t count = range.end - range.begin, last = lesser(SIDE, call->queries - first);
        for (int64_t at = 0; at < count; at += SIDE)
            product(queries + first * wide, row, LINE, packed_keys + (range.begin + at) / 16 * steps * TILE,
                    steps * TILE, steps, scores + at, of.keys, 0);
        float factors[SIDE];
        for (int64_t line = 0; line < last; line++) {
            const int64_t query = first + line;
            const uint8_t *mask = call->mask ? call->mask + mask_at + query * call->mask_query : NULL;
            const float highest = largest_score(call, mask, query, range.begin, count, scores + line * of.keys);
            const float subtracted = highest == UNSEEN ? 0.0f : highest;
            const float sum = sum_of_powers(call, stream, query, range.begin, count, scores + line * of.keys, subtracted,
                                            weights + line * of.keys);
            factors[line] = kept_factor(call) / sum; /* infinite where a query sees no key, which makes it NaN */
            if (call->logarithms)
                call->logarithms[index * call->queries + query] = subtracted * call->scale * LOG2E + log2f(sum);
        }
        for (int64_t channel = 0; channel < wide; channel += SIDE)
            product(weights, of.keys * (int64_t)sizeof(bfloat16), LINE,
                    packed_values + (channel / 16 * depth + range.begin / SIDE) * TILE, depth * TILE, count / SIDE,
                    sums + channel, wide, 0);
        bfloat16 *into = head_of(call, call->mixed, index) + first * call->mixed.token;
        for (int64_t line = 0; line < last; line++, into += call->mixed.token)
            for (int64_t at = 0; at < call->width; at += 16)
                write_some(into + at, first_lanes(call->width - at),
                           _mm512_mul_ps(_mm512_loadu_ps(sums + line * wide + at), _mm512_set1_ps(factors[line])));
    }
}

/* items: the heads of all rows. */
KERNEL attention_forward(int64_t begin, int64_t end, struct call *call) {
    const struct sizes of = sizes_of(call);
    const int64_t numbers = (of.queries + 3 * of.keys) * of.wide * 2 + SIDE * (6 * of.keys + 4 * of.wide);
    char *memory = aligned_alloc(LINE, (size_t)(rounded_up(numbers, LINE) + 16 * LINE));
    if (!memory) {
        call->failed = 1;
        return;
    }
    begin_tiles();
    for (int64_t index = begin; index < end; index++) attend(call, index, memory);
    end_tiles();
    free(memory);
}

#endif
