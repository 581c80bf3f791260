/*
 * The looks come before the yields, and with both the node has looked for
 * `look_ns` before it yields. Each has its part of a wait: a node that owns its
 * core has nothing to yield to, one that shares it must not look.
 */
#include "core/wait/backoff.h"

#include "core/base/atomic.h"
#include "core/base/mark.h"
#include "core/wait/park.h"

/* Two nodes of a core: one that has something to do gets the core by the first
 * yield, and has sent what this one waits for by the second. (All-reduction and
 * acknowledged broadcast of 4 and 8 nodes on two cores: with one yield 7 times
 * as long, with 3 or 4 the same, and longer beside other load. A look before
 * them takes the core from the others: 300 ns of it make it 3 times as long.)
 */
#define SHARED_YIELDS 2u

struct qn_backoff_opts qn_backoff_of(const struct qn_spin_opts *o)
{
    const qn_time_t look_ns = qn_doorbell_spin_budget(o);
    return (struct qn_backoff_opts){.look_ns = look_ns,
                                    .yields = look_ns == 0 ? SHARED_YIELDS : 0};
}

void qn_backoff_init(struct qn_backoff *p, const struct qn_backoff_opts *o)
{
    *p = (struct qn_backoff){.o = *o};
    qn_spin_init(&p->spin, o->look_ns);
}

void qn_backoff_reset(struct qn_backoff *p)
{
    qn_spin_reset(&p->spin);
    p->looks = p->yields = 0;
}

/* The looks are over, or there are none. */
static bool yields_again(struct qn_backoff *p)
{
    if (p->yields < p->o.yields && p->looks < p->o.looks) {
        p->looks++;
        qn_pause();
        return true;
    }
    if (p->yields < p->o.yields) {
        p->looks = 0;
        p->yields++;
        qn_park_yield();
        return true;
    }
    return false;
}

static bool may_look(const struct qn_backoff *p)
{
    return p->o.look_ns > 0 && p->yields == 0;
}

bool qn_backoff_again(struct qn_backoff *p)
{
    if (!qn_may_park()) {
        qn_pause();
        return true;
    }
    if (may_look(p)) {
        if (++p->looks % QN_BACKOFF_LOOKS != 0) {
            qn_pause();
            return true;
        }
        if (qn_spin_again(&p->spin, qn_clock_now())) {
            return true;
        }
    }
    return yields_again(p);
}

bool qn_backoff_again_at(struct qn_backoff *p, qn_time_t now)
{
    if (!qn_may_park()) {
        qn_pause();
        return true;
    }
    return (may_look(p) && qn_spin_again(&p->spin, now)) || yields_again(p);
}
