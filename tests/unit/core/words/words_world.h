#ifndef QN_TESTS_UNIT_WORDS_WORLD_H
#define QN_TESTS_UNIT_WORDS_WORLD_H

/** A device in private memory, and attachments of all its nodes. */

#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/words/words_internal.h"
#include "tests/support/test.h"

#define NODES 4u

struct words_world {
    const struct qn_device_type *type;
    struct qn_device_opts opts;
    uint8_t *memory;
    uint64_t inc[NODES];
    struct qn_doorbell_line line[NODES];
    struct qn_doorbell doorbell[NODES];
    struct qn_doorbell_handle ringer[NODES][NODES]; /* [i][j]: i rings j */
    struct qn_device *node[NODES];
};

static inline void world_attach(struct words_world *w, qn_node_t i)
{
    const struct qn_device_attach_opts o = {.memory = w->memory,
                                            .opts = &w->opts,
                                            .self = i,
                                            .incarnation = w->inc,
                                            .doorbell = &w->doorbell[i],
                                            .ringer = w->ringer[i]};
    int rc = w->type->attach(&w->node[i], &o);
    cr_assert_eq(rc, QN_OK, "%s", qn_strerror(rc));
}

static inline void world_make(struct words_world *w,
                              const struct qn_device_type *type)
{
    memset(w, 0, sizeof *w);
    w->type = type;
    w->opts = (struct qn_device_opts){.nodes = NODES, .lanes = QN_LANES};
    size_t bytes = type->bytes(&w->opts);
    w->memory = aligned_alloc(QN_CACHELINE, bytes);
    cr_assert_not_null(w->memory);
    memset(w->memory, 0, bytes);
    type->format(w->memory, &w->opts);
    for (uint32_t i = 0; i < NODES; i++) {
        w->inc[i] = 11 + i;
        qn_doorbell_init(&w->doorbell[i], &w->line[i], -1);
        for (uint32_t k = 0; k < NODES; k++) {
            qn_doorbell_handle_init(&w->ringer[k][i], &w->line[i], -1);
        }
    }
    for (uint32_t i = 0; i < NODES; i++) {
        world_attach(w, i);
    }
}

static inline void world_free(struct words_world *w)
{
    for (uint32_t i = 0; i < NODES; i++) {
        qn_device_detach(w->node[i]);
    }
    free(w->memory);
}

/** Send n words: first, first + 1, ... */
static inline int send_run(struct words_world *w, qn_node_t from, qn_node_t to,
                           uint32_t queue, uint64_t first, uint32_t n)
{
    uint64_t words[QN_WORDS_SHARED_MAX + 1] = {0};
    for (uint32_t i = 0; i < n && i < QN_ARRAY_COUNT(words); i++) {
        words[i] = first + i;
    }
    return qn_words_try_send(w->node[from], (struct qn_words_target){to, queue},
                             words, n);
}

/** Receive n words, which must be first, first + 1, ...
 *  @return what try_receive said. */
static inline int receive_run(struct words_world *w, qn_node_t node,
                              uint32_t queue, uint64_t first, uint32_t n)
{
    uint64_t words[QN_WORDS_SHARED_MAX];
    int rc = qn_words_try_receive(w->node[node], queue, words, n);
    for (uint32_t i = 0; i < n && rc == QN_OK; i++) {
        cr_assert_eq(words[i], first + i, "word %u is %lu, expected %lu", i,
                     words[i], first + i);
    }
    return rc;
}

static inline struct qn_words_port *port_of(struct words_world *w, qn_node_t i)
{
    return qn_words_port_of(w->node[i]);
}

/** A sender that has ended, or was stopped, behind its reservation. */
static inline uint32_t only_reserve(struct words_world *w, qn_node_t from,
                                    qn_node_t to, uint32_t queue, uint32_t n)
{
    uint32_t position = 0;
    cr_assert_eq(qn_words_reserve(port_of(w, from),
                                  (struct qn_words_target){to, queue}, n,
                                  &position),
                 QN_OK);
    return position;
}

/** The next incarnation of a node whose end is told or not: by the caller. */
static inline void world_successor(struct words_world *w, qn_node_t i)
{
    qn_device_detach(w->node[i]);
    w->inc[i] += 100;
    world_attach(w, i);
}

#endif
