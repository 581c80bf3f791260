#ifndef QN_LOADGEN_SIMULATE_TERMS_H
#define QN_LOADGEN_SIMULATE_TERMS_H

/** The optional terms of coherent machines, as options of `quoin sim`: what
 *  each means is in core/sim/timed/coherent.h. */

#include "core/base/err.h"
#include "core/sim/timed/coherent.h"
#include "core/sim/timed/store_buffer.h"
#include "loadgen/base/options.h"

/** 0: off. */
struct qn_simulate_terms {
    uint64_t store_buffer;
    double prefetch, link, queued;
    double memory, watched;
    bool poll, hyper_threads;
};

/** Rows of a table of options; `at(member)` is the offset of a member. */
#define QN_SIMULATE_TERMS(at)                                                  \
    QN_OPTION_COUNT("store-buffer", "N", at(store_buffer),                     \
                    "stores of a node that may be on their way while it goes " \
                    "on (0)",                                                  \
                    0, QN_STORE_BUFFER_MAX),                                   \
        QN_OPTION("poll", NULL, qn_option_flag, at(poll),                      \
                  "a loop sees a change at its next look, not at once"),       \
        QN_OPTION("prefetch", "PART", qn_option_double, at(prefetch),          \
                  "a stride prefetcher that hides this part of a transfer, 0 " \
                  "to 1 (0)"),                                                 \
        QN_OPTION("link", "PART", qn_option_double, at(link),                  \
                  "sockets are joined by links, which a transfer occupies "    \
                  "for this part of its time, 0 to 1 (0)"),                    \
        QN_OPTION("queued", "PART", qn_option_double, at(queued),              \
                  "a read of a change that came before the look takes this "   \
                  "part, 0 to 1 (0: all)"),                                    \
        QN_OPTION("memory", "CYCLES", qn_option_double, at(memory),            \
                  "of reading what was stored past the caches (0: as from "    \
                  "the farthest core)"),                                       \
        QN_OPTION("watched", "FACTOR", qn_option_double, at(watched),          \
                  "a streaming store takes this times as long if others poll " \
                  "its line, from 1 (0: 1)"),                                  \
        QN_OPTION("hyper-threads", NULL, qn_option_flag, at(hyper_threads),    \
                  "nodes on one physical core share its cache and its issue")

/** Is any asked for? */
static inline bool qn_simulate_terms_any(const struct qn_simulate_terms *t)
{
    return t->store_buffer > 0 || t->prefetch > 0 || t->link > 0 || t->poll ||
           t->queued > 0 || t->memory > 0 || t->watched > 0 || t->hyper_threads;
}

/** @return what is wrong with them; NULL. */
static inline const char *qn_simulate_terms_wrong(
    const struct qn_simulate_terms *t)
{
    if (!(t->prefetch >= 0 && t->prefetch <= 1 && t->link >= 0 &&
          t->link <= 1 && t->queued >= 0 && t->queued <= 1)) {
        return "--prefetch, --link and --queued are parts, 0 to 1";
    }
    return t->memory >= 0 && (t->watched == 0 || t->watched >= 1)
               ? NULL
               : "--memory is 0 or more cycles, --watched 0 or a factor of at "
                 "least 1";
}

static inline void qn_simulate_terms_take(struct qn_coherent_opts *c,
                                          const struct qn_simulate_terms *t)
{
    c->store_buffer = (uint32_t)t->store_buffer;
    c->poll = t->poll;
    c->prefetch = t->prefetch;
    c->link = t->link;
    c->queued = t->queued;
    c->memory_cycles = t->memory;
    c->watched = t->watched;
    c->hyper_threads = t->hyper_threads;
}

#endif
