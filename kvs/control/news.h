#ifndef QN_KVS_CONTROL_NEWS_H
#define QN_KVS_CONTROL_NEWS_H

/**
 * What a replica has yet to be told: messages of the supervisor that wait, in
 * order, for room in its control socket. That is full if the replica stands
 * still for hundreds of them; it is told the rest when it goes on.
 *
 * Lives that came and ended meanwhile need not be told (qn_news_skip), so what
 * waits is bounded by the number of replicas, and so are the descriptors.
 *
 * Zero it to begin. One thread, never blocks.
 */

#include "kvs/control/boot.h"

struct qn_news_item {
    struct qn_boot_event event;
    int fd; /* a descriptor of its own; -1: none */
};

struct qn_news {
    struct qn_news_item *item; /* [cap], oldest first */
    uint32_t count, cap;
};

static inline bool qn_news_wait(const struct qn_news *n)
{
    return n->count != 0;
}

/** Send, or keep behind what waits. `fd` borrowed, -1: none. @return QN_OK;
 *  QN_EMFILE, QN_ENOMEM: neither; else as qn_boot_send, but for QN_EAGAIN. */
int qn_news_send(struct qn_news *n, int control, const struct qn_boot_event *e,
                 int fd);

/** Send what waits, as far as there is room. QN_OK, or as qn_boot_send. */
int qn_news_flush(struct qn_news *n, int control);

/** A new life of `node` is about to be told. Take back those before it of which
 *  beginning and end wait here, but one: `needed`, 0: none. */
void qn_news_skip(struct qn_news *n, qn_node_t node, uint64_t needed);

/** Drop everything and free the memory. */
void qn_news_free(struct qn_news *n);

#endif
