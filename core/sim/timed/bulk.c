/*
 * Bulk copies: piece by piece, so that those which go on at once share what
 * they need. Bytes move when the last piece has ended; until then no other node
 * may look at them, which the program sees to by words.
 */
#include <string.h>

#include "core/sim/timed/timed_internal.h"

static uint32_t owner_of(const void *at)
{
    const struct qn_timed_opts *o = qn_timed.o;
    return o->owner != NULL ? o->owner(o->ctx, at) : qn_sim.self;
}

static void price_piece(struct qn_actor *a, const struct qn_bulk_request *c)
{
    qn_timed_take_turn(a);
    struct qn_timed_node *out = a->out;
    const qn_ps_t now = out->clock;
    qn_ps_t price = qn_timed.prices->bulk(qn_timed.prices, c, now) - now;
    price = qn_timed_jittered(a, price);
    if (qn_timed_within(now, a->far_from, a->far_until)) {
        price = qn_timed_times(price, a->far);
    }
    out->clock += price;
    out->copied += price;
    qn_timed_hash(now);
    qn_timed_hash((uint64_t)qn_sim.self << 40 | c->bytes);
}

bool qn_timed_bulk(void *to, const void *from, size_t n, bool moves)
{
    struct qn_actor *a = qn_timed_self();
    if (qn_timed.prices->bulk == NULL) {
        return false;
    }
    struct qn_bulk_request c = {
        .by = qn_sim.self, .owner = owner_of(from), .taker = owner_of(to)};
    for (size_t at = 0; at < n; at += QN_BULK_PIECE) {
        c.from = (uint64_t)(uintptr_t)from + at;
        c.to = (uint64_t)(uintptr_t)to + at;
        c.bytes = QN_MIN(QN_BULK_PIECE, n - at);
        price_piece(a, &c);
    }
    if (moves && !qn_timed.o->unmoved) {
        memcpy(to, from, n);
    }
    qn_timed_forget_watches(a);
    return true;
}
