/*
 * The circle method: all but the last core sit on a circle of N-1 seats, N even
 * (one is empty if n is odd). In round r those meet whose numbers add up to r,
 * modulo N-1; a core that would meet itself meets the last one.
 *
 * Steps are made greedily: of the pairs of the round that were not given yet,
 * in the order of the lower core, each that shares no physical core with those
 * taken. With two threads per core a round takes two steps or three.
 */
#include "core/discover/round_robin.h"

#include <string.h>

#include "core/base/assert.h"

uint32_t qn_round_robin_rounds(uint32_t n)
{
    return n < 2 ? 0 : n - 1 + n % 2;
}

uint32_t qn_round_robin_partner(uint32_t n, uint32_t round, uint32_t i)
{
    if (n < 2) {
        return i;
    }
    uint32_t circle = (n - 1) | 1; /* seats, an odd number */
    uint32_t last = circle;
    uint32_t partner;
    if (i == last) {
        /* 2 * partner = round: halving modulo an odd number */
        partner = round % 2 == 0 ? round / 2 : (round + circle) / 2;
    } else {
        partner = (round + circle - i) % circle;
        partner = partner == i ? last : partner;
    }
    return partner < n ? partner : i; /* the empty seat */
}

void qn_round_robin_init(struct qn_round_robin *s, const struct qn_machine *m,
                         uint32_t limit)
{
    QN_ASSERT(limit >= 1);
    s->m = m;
    s->limit = limit;
    s->round = 0;
    memset(s->met, 0, sizeof s->met);
}

static bool shares_core(const struct qn_round_robin *s, uint32_t i,
                        const struct qn_round_robin_pair *pair, uint32_t count)
{
    const struct qn_machine_core *c = s->m->core;
    for (uint32_t k = 0; k < count; k++) {
        if (c[i].phys == c[pair[k].a].phys || c[i].phys == c[pair[k].b].phys) {
            return true;
        }
    }
    return false;
}

static uint32_t fill_step(struct qn_round_robin *s,
                          struct qn_round_robin_pair *pair,
                          bool (*wanted)(void *arg, uint32_t a, uint32_t b),
                          void *arg)
{
    uint32_t count = 0;
    for (uint32_t a = 0; a < s->m->n && count < s->limit; a++) {
        uint32_t b = qn_round_robin_partner(s->m->n, s->round, a);
        if (b <= a || s->met[a]) {
            continue;
        }
        if (wanted != NULL && !wanted(arg, a, b)) {
            s->met[a] = true;
            continue;
        }
        if (!shares_core(s, a, pair, count) &&
            !shares_core(s, b, pair, count)) {
            s->met[a] = true;
            pair[count++] = (struct qn_round_robin_pair){a, b};
        }
    }
    return count;
}

uint32_t qn_round_robin_next(struct qn_round_robin *s,
                             struct qn_round_robin_pair *pair,
                             bool (*wanted)(void *arg, uint32_t a, uint32_t b),
                             void *arg)
{
    while (s->round < qn_round_robin_rounds(s->m->n)) {
        uint32_t count = fill_step(s, pair, wanted, arg);
        if (count > 0) {
            return count;
        }
        s->round++;
        memset(s->met, 0, sizeof s->met);
    }
    return 0;
}
