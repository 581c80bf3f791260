#include "tests/support/alike_program.h"

#include <string.h>

uint64_t alike_mixed(uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t x = a * UINT64_C(0x9e3779b97f4a7c15) + b;
    x = (x ^ x >> 29) * UINT64_C(0xbf58476d1ce4e5b9) + c;
    x = (x ^ x >> 32) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* Does not commute. */
static void append(void *into, const void *from, uint32_t count)
{
    uint64_t *x = into;
    const uint64_t *y = from;
    for (uint32_t i = 0; i < count; i++) {
        x[i] = x[i] * 31 + y[i];
    }
}

static const uint64_t none;
static const struct qn_operator appending = {
    .combine = append, .neutral = &none, .bytes = 8, .commutes = false};

enum qn_coll_what alike_what(const struct alike_program *p, uint32_t k)
{
    const uint64_t by = p->seed % 4; /* in some programs one kind only */
    return by == 0 ? (enum qn_coll_what)(p->seed / 4 % (QN_COLL_SCATTER + 1))
                   : (enum qn_coll_what)(alike_mixed(p->seed, k, 1) %
                                         (QN_COLL_SCATTER + 1));
}

static const struct qn_operator *operator_of(const struct alike_program *p,
                                             uint32_t k)
{
    const struct qn_operator *adding =
        p->adding != NULL ? p->adding : &qn_sum_u64;
    return alike_mixed(p->seed, k, 2) % 2 == 0 ? adding : &appending;
}

static bool has_elements(enum qn_coll_what what)
{
    return what == QN_COLL_REDUCE || what == QN_COLL_ALLREDUCE ||
           what == QN_COLL_COMMIT;
}

static bool is_gathered(const struct alike_program *p, uint32_t k)
{
    const enum qn_coll_what what = alike_what(p, k);
    return what == QN_COLL_GATHER ||
           (what != QN_COLL_COMMIT && has_elements(what) &&
            !operator_of(p, k)->commutes);
}

/* Words of a part that operation k has room for. */
static uint32_t room_of(const struct alike_program *p, uint32_t k)
{
    const uint32_t words = p->bytes_max / 8;
    return is_gathered(p, k)                     ? words / p->members - 1
           : alike_what(p, k) == QN_COLL_SCATTER ? words / p->members
                                                 : words;
}

/* In a long program a third is as long as it can be. */
uint32_t alike_words(const struct alike_program *p, uint32_t k)
{
    const uint64_t x = alike_mixed(p->seed, k, 3);
    if (alike_what(p, k) == QN_COLL_COMMIT) {
        return 1;
    }
    return alike_is_long(p) && x % 3 == 0 ? room_of(p, k)
           : alike_is_long(p) && x % 3 == 1
               ? (uint32_t)(x / 3 % room_of(p, k))
               : (uint32_t)(x / 3 % (ALIKE_SHORT_MAX + 1));
}

uint32_t alike_bytes(const struct alike_program *p, uint32_t k)
{
    const uint32_t words = alike_words(p, k);
    return is_gathered(p, k)                     ? 8 * p->members * (words + 1)
           : alike_what(p, k) == QN_COLL_SCATTER ? 8 * p->members * words
                                                 : 8 * words;
}

/* The first words of what a member contributes. */
static void fill(const struct alike_program *p, uint32_t k, qn_node_t v,
                 uint32_t view, uint64_t *word, uint32_t words)
{
    uint64_t x = alike_mixed(p->seed * 64 + view, k * 16 + v, 4);
    for (uint32_t i = 0; i < words; i++) {
        x = x * UINT64_C(6364136223846793005) + 1442695;
        word[i] =
            alike_what(p, k) == QN_COLL_COMMIT ? (x >> 33) % 8 != 0 : x >> 3;
    }
}

struct qn_coll_call alike_call(const struct alike_program *p, uint32_t k,
                               qn_node_t v, uint32_t view, uint64_t *in,
                               uint64_t *out)
{
    const enum qn_coll_what what = alike_what(p, k);
    const uint32_t words = alike_words(p, k);
    fill(p, k, v, view, in,
         what == QN_COLL_SCATTER ? p->members * words : words);
    return (struct qn_coll_call){.what = what,
                                 .op = operator_of(p, k),
                                 .in = in,
                                 .out = out,
                                 .count =
                                     has_elements(what) ? words : 8 * words};
}

/* One contribution more; the first one is there. */
static void combine(const struct alike_program *p, uint32_t k, uint64_t *out,
                    const uint64_t *word)
{
    if (alike_what(p, k) == QN_COLL_COMMIT) {
        out[0] = out[0] != 0 && word[0] != 0;
    } else {
        operator_of(p, k)->combine(out, word, alike_words(p, k));
    }
}

static uint32_t rank_of(const struct alike_party *party, qn_node_t self)
{
    uint32_t rank = 0;
    while (party->rank[rank] != self) {
        rank++;
    }
    return rank;
}

uint32_t alike_expected(const struct alike_program *p, uint32_t k,
                        const struct alike_party *party, uint32_t view,
                        qn_node_t self, uint64_t *out)
{
    static _Thread_local uint64_t part[QN_COLL_PAYLOAD_MAX / 8];
    const enum qn_coll_what what = alike_what(p, k);
    const uint32_t words = alike_words(p, k);
    if ((what == QN_COLL_REDUCE || what == QN_COLL_GATHER) &&
        self != party->root) {
        return 0;
    }
    if (what == QN_COLL_SCATTER) {
        const uint32_t first = rank_of(party, self) * words;
        fill(p, k, party->root, view, part, first + words);
        memcpy(out, part + first, words * sizeof *out);
    } else if (!has_elements(what) && what != QN_COLL_GATHER) {
        fill(p, k, party->root, view, out, words);
    } else {
        fill(p, k, party->rank[0], view, out, words);
    }
    for (uint32_t r = 1; r < party->members; r++) {
        fill(p, k, party->rank[r], view, part, words);
        if (what == QN_COLL_GATHER) {
            memcpy(out + r * words, part, words * sizeof *out);
        } else if (has_elements(what)) {
            combine(p, k, out, part);
        }
    }
    return what == QN_COLL_GATHER ? words * party->members : words;
}
