/* The gradients of attention, a head of a row at a time. The weights are made anew, with keys as lines and queries as
   columns: so they are left operands of the gradients of keys and values, and packed the right one of the queries'. */
#include "heads.h"

#ifdef MATRICES

/* The buffers of a head. Packed operands, and those whose channels are lines, say so. */
struct buffers {
    bfloat16 *queries, *keys, *values, *above, *channels_of_keys;
    char *columns_of_queries, *columns_of_above, *packed_queries, *packed_above;
    float *of_keys, *of_values, *logarithms, *dots;
    bfloat16 *weights, *slopes; /* (keys, queries at once) */
    char *packed_slopes;
    float *channels_of_queries, *of_queries; /* (wide, queries at once) and turned */
    uint8_t *mask;                           /* (keys, queries) of a mask that differs by query; or none */
};

static int64_t queries_at_once(struct sizes of) { return of.keys > 2048 ? 32 : 64; }

/* Lays the buffers out and returns the bytes that they take. */
static int64_t lay_out(const struct call *call, char *memory, struct buffers *all) {
    const struct sizes of = sizes_of(call);
    const int64_t row = of.wide * (int64_t)sizeof(bfloat16), long_row = of.wide * (int64_t)sizeof(float);
    const int64_t at_once = queries_at_once(of), block = of.keys * at_once * (int64_t)sizeof(bfloat16);
    struct arena arena = {memory};
    all->queries = taken(&arena, of.queries * row);
    all->keys = taken(&arena, of.keys * row);
    all->values = taken(&arena, of.keys * row);
    all->above = taken(&arena, of.queries * row);
    all->channels_of_keys = taken(&arena, of.keys * row);
    all->columns_of_queries = taken(&arena, of.queries * row);
    all->columns_of_above = taken(&arena, of.queries * row);
    all->packed_queries = taken(&arena, of.queries * row);
    all->packed_above = taken(&arena, of.queries * row);
    all->of_keys = taken(&arena, of.keys * long_row);
    all->of_values = taken(&arena, of.keys * long_row);
    all->logarithms = taken(&arena, of.queries * (int64_t)sizeof(float));
    all->dots = taken(&arena, of.queries * (int64_t)sizeof(float));
    all->weights = taken(&arena, block);
    all->slopes = taken(&arena, block);
    all->packed_slopes = taken(&arena, block);
    all->channels_of_queries = taken(&arena, at_once * long_row);
    all->of_queries = taken(&arena, at_once * long_row);
    all->mask = call->mask && call->mask_query ? taken(&arena, of.keys * of.queries) : NULL;
    return arena.next - memory;
}

/* Reads a head, and packs what is multiplied more than once. */
static void read_all(const struct call *call, int64_t index, struct buffers to) {
    const struct sizes of = sizes_of(call);
    char *packed_keys = (char *)to.of_keys; /* for now */
    read_head(call, call->key, index, call->keys, of.keys, of.wide, of_keys(call), to.keys);
    pack_rows(to.keys, of.keys, of.wide, packed_keys);
    for (int64_t channel = 0; channel < of.wide / 16; channel++)
        for (int64_t step = 0; step < of.keys / SIDE; step++)
            transpose16(packed_keys + (channel * (of.keys / SIDE) + step) * TILE, LINE,
                        to.channels_of_keys + 16 * channel * of.keys + step * SIDE,
                        of.keys * (int64_t)sizeof(bfloat16));
    read_head(call, call->value, index, call->keys, of.keys, of.wide, none(), to.values);
    read_head(call, call->query, index, call->queries, of.queries, of.wide, of_queries(call), to.queries);
    read_head(call, call->of_mixed, index, call->queries, of.queries, of.wide, none(), to.above);
    pack_transposed(to.queries, of.queries, of.wide, to.columns_of_queries);
    pack_rows(to.queries, of.queries, of.wide, to.packed_queries);
    pack_transposed(to.above, of.queries, of.wide, to.columns_of_above);
    pack_rows(to.above, of.queries, of.wide, to.packed_above);
    const bfloat16 *mixed = head_of(call, call->mixed, index);
    for (int64_t query = 0; query < of.queries; query++, mixed += call->mixed.token) {
        __m512 dot = _mm512_setzero_ps();
        fetch(mixed + AHEAD * call->mixed.token, call->width);
        for (int64_t at = 0; query < call->queries && at < call->width; at += 16) {
            const __mmask16 some = first_lanes(call->width - at);
            dot = _mm512_fmadd_ps(read_some(mixed + at, some), read_some(to.above + query * of.wide + at, some), dot);
        }
        to.dots[query] = _mm512_reduce_add_ps(dot);
        to.logarithms[query] = query < call->queries ? call->logarithms[index * call->queries + query] : 0.0f;
    }
    if (!to.mask) return;
    const uint8_t *mask = call->mask + index / call->heads * call->mask_row + index % call->heads * call->mask_head;
    for (int64_t first = 0; first < call->keys; first += 16)
        for (int64_t query = 0; query < call->queries; query++)
            for (int64_t key = first; key < lesser(first + 16, call->keys); key++)
                to.mask[key * of.queries + query] = mask[query * call->mask_query + key];
}

/* Which of 16 queries see a key. */
static inline __mmask16 seeing_queries(const struct call *call, const uint8_t *mask, struct buffers from, int64_t query,
                                       int64_t key) {
    const int64_t own = key - (call->keys - call->queries); /* whose own key it is */
    if (key >= call->keys) return 0;
    const __mmask16 inside = first_lanes(call->queries - query);
    const __mmask16 near = between(query, own - call->after, own + call->before + 1) & inside;
    if (!mask) return near;
    __mmask16 seen;
    if (from.mask) {
        const __m128i line = _mm_maskz_loadu_epi8(inside, from.mask + key * rounded_up(call->queries, SIDE) + query);
        seen = _mm_test_epi8_mask(line, line);
    } else {
        seen = mask[key] ? 0xffff : 0;
    }
    if (call->own) seen |= between(query, own, own + 1);
    return seen & near;
}

/* From a block's scores and products of upstream gradients and values to its weights p and slopes p (dp - sum p dp). */
static void make_slopes(const struct call *call, const uint8_t *mask, struct stream stream, struct buffers in,
                        int64_t first, int64_t query, int64_t key, const float *scores, const float *products) {
    const struct sizes of = sizes_of(call);
    const int64_t at_once = queries_at_once(of), column = of.keys / SIDE * TILE;
    const __m512 factors = _mm512_set1_ps(call->scale * LOG2E), kept = _mm512_set1_ps(kept_factor(call));
    const __m512i threshold = _mm512_set1_epi32((int)(call->dropped << 16));
    for (int64_t line = 0; line < SIDE; line += 2) {
        __m512 weight[2][2], slope[2][2];
        for (int half = 0; half < 2; half++) {
            const int64_t at = query + 16 * half;
            const __m512 logarithm = _mm512_loadu_ps(in.logarithms + at), dot = _mm512_loadu_ps(in.dots + at);
            __m512i words = _mm512_setzero_si512();
            if (call->dropped) {
                const __m512i places =
                    _mm512_slli_epi32(_mm512_add_epi32(_mm512_set1_epi32((int)at), lanes()), PAIR_BITS);
                words = random_words(stream, _mm512_add_epi32(places, _mm512_set1_epi32((int)((key + line) / 2))));
            }
            for (int odd = 0; odd < 2; odd++) {
                const int64_t place = (line + odd) * SIDE + 16 * half;
                const __m512 exact = _mm512_fmsub_ps(_mm512_load_ps(scores + place), factors, logarithm);
                /* of large scores the difference is rounded to whole numbers, and yet no probability is above 1 */
                const __m512 power = power_of_two(_mm512_min_ps(_mm512_setzero_ps(), exact)); /* NaN stays NaN */
                const __m512 p = _mm512_maskz_mov_ps(seeing_queries(call, mask, in, at, key + line + odd), power);
                __m512 above = _mm512_load_ps(products + place);
                weight[odd][half] = p;
                if (call->dropped) {
                    const __m512i bits = odd ? words : _mm512_slli_epi32(words, 16);
                    const __mmask16 stays = _mm512_cmpge_epu32_mask(bits, threshold);
                    above = _mm512_maskz_mul_ps(stays, above, kept);
                    weight[odd][half] = _mm512_maskz_mov_ps(stays, p);
                }
                slope[odd][half] = _mm512_mul_ps(p, _mm512_sub_ps(above, dot));
            }
        }
        const int64_t place = (key + line) * at_once + query - first;
        __m512i both[2];
        for (int odd = 0; odd < 2; odd++) {
            const __m512i weights = (__m512i)_mm512_cvtne2ps_pbh(weight[odd][1], weight[odd][0]);
            both[odd] = (__m512i)_mm512_cvtne2ps_pbh(slope[odd][1], slope[odd][0]);
            _mm512_storeu_si512(in.weights + place + odd * at_once, weights);
            _mm512_storeu_si512(in.slopes + place + odd * at_once, both[odd]);
        }
        char *into = in.packed_slopes + (query - first) / 16 * column + key / SIDE * TILE + line / 2 * LINE;
        interleave(both[0], both[1], into, into + column);
    }
}

/* Adds what a block of queries gives to the gradients of keys and values, and makes its own. */
static void add_gradients(const struct call *call, struct buffers in, int64_t first, int64_t count,
                          struct range range) {
    const struct sizes of = sizes_of(call);
    const int64_t at_once = queries_at_once(of), line = at_once * (int64_t)sizeof(bfloat16), wide = of.wide;
    const int64_t column = of.queries / SIDE * TILE, at = first / SIDE * TILE, depth = of.keys / SIDE * TILE;
    for (int64_t key = range.begin; key < range.end; key += SIDE)
        for (int64_t channel = 0; channel < wide; channel += SIDE) {
            const int64_t begin = channel / 16 * column + at;
            product(in.weights + key * at_once, line, LINE, in.packed_above + begin, column, count / SIDE,
                    in.of_values + key * wide + channel, wide, 1);
            product(in.slopes + key * at_once, line, LINE, in.packed_queries + begin, column, count / SIDE,
                    in.of_keys + key * wide + channel, wide, 1);
        }
    for (int64_t query = 0; query < count; query += SIDE)
        for (int64_t channel = 0; channel < wide; channel += SIDE) {
            product(in.channels_of_keys + channel * of.keys + range.begin, of.keys * (int64_t)sizeof(bfloat16), LINE,
                    in.packed_slopes + query / 16 * depth + range.begin / SIDE * TILE, depth,
                    (range.end - range.begin) / SIDE, in.channels_of_queries + channel * at_once + query, at_once, 0);
            for (int part = 0; part < 4; part++) {
                const int64_t low = query + part / 2 * 16, high = channel + part % 2 * 16;
                transpose16(in.channels_of_queries + high * at_once + low, at_once * (int64_t)sizeof(float),
                            in.of_queries + low * wide + high, wide * (int64_t)sizeof(float));
            }
        }
}

static void differentiate(const struct call *call, int64_t index, struct buffers in) {
    const struct sizes of = sizes_of(call);
    const int64_t wide = of.wide, row = wide * (int64_t)sizeof(bfloat16), steps = wide / SIDE,
                  at_once = queries_at_once(of);
    const struct stream stream = stream_of(call, index);
    const int64_t mask_at = index / call->heads * call->mask_row + index % call->heads * call->mask_head;
    const uint8_t *mask = call->mask ? call->mask + mask_at : NULL;
    float *of_gains = call->of_gains ? call->of_gains + index * 2 * call->width : NULL;
    float scores[SIDE * SIDE] __attribute__((aligned(LINE))), products[SIDE * SIDE] __attribute__((aligned(LINE)));
    read_all(call, index, in);
    memset(in.of_keys, 0, (size_t)(of.keys * wide) * sizeof(float));
    memset(in.of_values, 0, (size_t)(of.keys * wide) * sizeof(float));
    if (of_gains) memset(of_gains, 0, (size_t)(2 * call->width) * sizeof(float));
    for (int64_t first = 0; first < of.queries; first += at_once) {
        const int64_t count = lesser(at_once, of.queries - first);
        const struct range range = seen_by(call, first, first + count);
        for (int64_t key = range.begin; key < range.end; key += SIDE)
            for (int64_t query = first; query < first + count; query += SIDE) {
                const int64_t column = query / 16 * steps * TILE;
                product(in.keys + key * wide, row, LINE, in.columns_of_queries + column, steps * TILE, steps, scores,
                        SIDE, 0);
                product(in.values + key * wide, row, LINE, in.columns_of_above + column, steps * TILE, steps, products,
                        SIDE, 0);
                make_slopes(call, mask, stream, in, first, query, key, scores, products);
            }
        add_gradients(call, in, first, count, range);
        write_gradients(call, call->query, call->of_query, index, first, lesser(first + count, call->queries), wide,
                        of_queries(call), in.of_queries, call->scale, of_gains);
    }
    write_gradients(call, call->key, call->of_key, index, 0, call->keys, wide, of_keys(call), in.of_keys, call->scale,
                    of_gains ? of_gains + call->width : NULL);
    write_gradients(call, call->value, call->of_value, index, 0, call->keys, wide, none(), in.of_values,
                    kept_factor(call), NULL);
}

/* items: the heads of all rows. */
KERNEL attention_backward(int64_t begin, int64_t end, struct call *call) {
    struct buffers buffers;
    char *memory = aligned_alloc(LINE, (size_t)lay_out(call, NULL, &buffers));
    if (!memory) {
        call->failed = 1;
        return;
    }
    lay_out(call, memory, &buffers);
    begin_tiles();
    for (int64_t index = begin; index < end; index++) differentiate(call, index, buffers);
    end_tiles();
    free(memory);
}

#endif
