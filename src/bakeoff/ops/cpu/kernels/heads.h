/* Heads as attention reads them, normed and turned, and the way back for gradients. */
#ifndef HEADS_H
#define HEADS_H

#include "attention.h"

#ifdef MATRICES

/* What is done to each head's tokens when they are read. */
struct treatment {
    const float *gain, *cosines, *sines; /* see `struct call` */
    float epsilon;
};

static inline struct treatment of_queries(const struct call *call) {
    return (struct treatment){call->query_gain, call->cosines, call->sines, call->epsilon};
}

static inline struct treatment of_keys(const struct call *call) {
    return (struct treatment){call->key_gain, call->cosines, call->sines, call->epsilon};
}

static inline struct treatment none(void) { return (struct treatment){NULL, NULL, NULL, 0.0f}; }

static inline bfloat16 *head_of(const struct call *call, struct view view, int64_t index) {
    return view.numbers + index / call->heads * view.row + index % call->heads * view.head;
}

enum {
    AHEAD = 12
}; /* tokens between the one that is read and the one that is fetched: the processor does not foresee it */

static inline void fetch(const bfloat16 *token, int64_t width) {
    for (int64_t at = 0; at < width; at += LINE / 2) _mm_prefetch((const char *)(token + at), _MM_HINT_T0);
}

static inline __m512 read_some(const bfloat16 *from, __mmask16 some) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(some, from)), 16));
}

static inline void write_some(bfloat16 *into, __mmask16 some, __m512 x) {
    _mm256_mask_storeu_epi16(into, some, (__m256i)_mm512_cvtneps_pbh(x));
}

/* 1 / sqrt(mean(x^2) + epsilon) */
static inline float inverse_root(const bfloat16 *x, int64_t width, float epsilon) {
    __m512 squares = _mm512_setzero_ps();
    for (int64_t at = 0; at < width; at += 16) {
        const __m512 some = read_some(x + at, first_lanes(width - at));
        squares = _mm512_fmadd_ps(some, some, squares);
    }
    return 1.0f / sqrtf(_mm512_reduce_add_ps(squares) / (float)width + epsilon);
}

/* The token's y = x, or g x / rms(x), and then each pair of the two halves turned. */
static inline void read_token(const bfloat16 *x, int64_t token, int64_t width, struct treatment how, bfloat16 *into) {
    const int64_t half = (width + 1) / 2;
    if (!how.gain && !how.cosines) {
        for (int64_t at = 0; at < width; at += 16) {
            const __mmask16 some = first_lanes(width - at);
            _mm256_mask_storeu_epi16(into + at, some, _mm256_maskz_loadu_epi16(some, x + at));
        }
        return;
    }
    const __m512 factor = _mm512_set1_ps(how.gain ? inverse_root(x, width, how.epsilon) : 1.0f);
    for (int64_t at = 0; at < half; at += 16) {
        const __mmask16 low = first_lanes(half - at), high = first_lanes(width - half - at);
        __m512 one = _mm512_mul_ps(read_some(x + at, low), factor);
        __m512 other = _mm512_mul_ps(read_some(x + half + at, high), factor);
        if (how.gain) {
            one = _mm512_mul_ps(one, _mm512_maskz_loadu_ps(low, how.gain + at));
            other = _mm512_mul_ps(other, _mm512_maskz_loadu_ps(high, how.gain + half + at));
        }
        if (how.cosines) {
            const __m512 cosine = _mm512_maskz_loadu_ps(low, how.cosines + token * half + at);
            const __m512 sine = _mm512_maskz_loadu_ps(low, how.sines + token * half + at);
            const __m512 turned = _mm512_fmsub_ps(one, cosine, _mm512_mul_ps(other, sine));
            other = _mm512_fmadd_ps(other, cosine, _mm512_mul_ps(one, sine));
            one = turned;
        }
        write_some(into + at, low, one);
        write_some(into + half + at, high, other);
    }
}

/* The tokens of a head as rows of `wide` numbers, with zeros after the last channel and, up to `padded`, the last
 * token. */
static inline void read_head(const struct call *call, struct view from, int64_t index, int64_t tokens, int64_t padded,
                             int64_t wide, struct treatment how, bfloat16 *into) {
    const bfloat16 *x = head_of(call, from, index);
    memset(into + tokens * wide, 0, (size_t)((padded - tokens) * wide) * sizeof *into);
    for (int64_t token = 0; token < tokens; token++, x += from.token, into += wide) {
        fetch(x + AHEAD * from.token, call->width);
        if (wide > call->width) memset(into + call->width, 0, (size_t)(wide - call->width) * sizeof *into);
        read_token(x, token, call->width, how, into);
    }
}

/* Turn the gradient of a token's turned pairs back, in its place. */
static inline void turn_back(float *above, int64_t token, int64_t width, struct treatment how) {
    const int64_t half = width / 2;
    for (int64_t at = 0; at < half; at += 16) {
        const __mmask16 some = first_lanes(half - at);
        const __m512 one = _mm512_maskz_loadu_ps(some, above + at),
                     other = _mm512_maskz_loadu_ps(some, above + half + at);
        const __m512 cosine = _mm512_maskz_loadu_ps(some, how.cosines + token * half + at);
        const __m512 sine = _mm512_maskz_loadu_ps(some, how.sines + token * half + at);
        _mm512_mask_storeu_ps(above + at, some, _mm512_fmadd_ps(one, cosine, _mm512_mul_ps(other, sine)));
        _mm512_mask_storeu_ps(above + half + at, some, _mm512_fmsub_ps(other, cosine, _mm512_mul_ps(one, sine)));
    }
}

/* With n = x / rms(x), dg += dy n and dx = (g dy - n mean(g dy n)) / rms(x). */
static inline void write_through_norm(const bfloat16 *x, bfloat16 *y, const float *above, int64_t width,
                                      struct treatment how, float scale, float *of_gain) {
    const float inverse = inverse_root(x, width, how.epsilon);
    __m512 products = _mm512_setzero_ps();
    for (int64_t at = 0; at < width; at += 16) {
        const __mmask16 some = first_lanes(width - at);
        const __m512 gain = _mm512_maskz_loadu_ps(some, how.gain + at), slope = _mm512_maskz_loadu_ps(some, above + at);
        products = _mm512_fmadd_ps(read_some(x + at, some), _mm512_mul_ps(gain, slope), products);
    }
    const float mean = _mm512_reduce_add_ps(products) / (float)width;
    const __m512 factor = _mm512_set1_ps(inverse * scale),
                 back = _mm512_set1_ps(inverse * inverse * inverse * scale * mean);
    for (int64_t at = 0; at < width; at += 16) {
        const __mmask16 some = first_lanes(width - at);
        const __m512 number = read_some(x + at, some), sum = _mm512_maskz_loadu_ps(some, of_gain + at);
        const __m512 slope = _mm512_mul_ps(factor, _mm512_maskz_loadu_ps(some, above + at));
        _mm512_mask_storeu_ps(of_gain + at, some, _mm512_fmadd_ps(slope, number, sum));
        const __m512 through = _mm512_mul_ps(slope, _mm512_maskz_loadu_ps(some, how.gain + at));
        write_some(y + at, some, _mm512_fnmadd_ps(back, number, through));
    }
}

/* The gradient of the tokens that were read, from that of what they became, (tokens, wide), times `scale`. */
static inline void write_gradients(const struct call *call, struct view from, struct view into, int64_t index,
                                   int64_t begin, int64_t end, int64_t wide, struct treatment how, float *above,
                                   float scale, float *of_gain) {
    const bfloat16 *x = head_of(call, from, index) + begin * from.token;
    bfloat16 *y = head_of(call, into, index) + begin * into.token;
    const __m512 factor = _mm512_set1_ps(scale);
    for (int64_t token = begin; token < end; token++, x += from.token, y += into.token, above += wide) {
        if (how.gain) fetch(x + AHEAD * from.token, call->width);
        fetch(y + AHEAD * into.token, call->width);
        if (how.cosines) turn_back(above, token, call->width, how);
        if (how.gain) {
            write_through_norm(x, y, above, call->width, how, scale, of_gain);
            continue;
        }
        for (int64_t at = 0; at < call->width; at += 16)
            write_some(y + at, first_lanes(call->width - at), _mm512_mul_ps(factor, _mm512_loadu_ps(above + at)));
    }
}

#endif
#endif
