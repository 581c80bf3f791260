#ifndef QN_TESTS_UNIT_MPB_WORLD_H
#define QN_TESTS_UNIT_MPB_WORLD_H

/** A chip and the attachments of its nodes, in one thread. */

#include <stdlib.h>
#include <string.h>

#include "tests/support/test.h"
#include "transports/mpb/chip.h"
#include "transports/mpb/layout.h"
#include "transports/mpb/mpb.h"

#define MPB_ATTACHED 5u /* nodes of a larger chip that are there */

struct mpb_world {
    struct qn_device_opts opts;
    void *memory;
    uint64_t incarnation[QN_MPB_CORES];
    struct qn_device *node[QN_MPB_CORES];
    struct qn_doorbell_line line[QN_MPB_CORES];
    struct qn_doorbell doorbell[QN_MPB_CORES];
    struct qn_doorbell_handle ringer[QN_MPB_CORES];
};

static inline struct qn_mpb *mpb_core(struct mpb_world *w, qn_node_t i)
{
    return qn_mpb_of(w->node[i]);
}

static inline void mpb_attach(struct mpb_world *w, qn_node_t i)
{
    int rc = qn_mpb_device.attach(
        &w->node[i],
        &(struct qn_device_attach_opts){.memory = w->memory,
                                        .opts = &w->opts,
                                        .self = i,
                                        .incarnation = w->incarnation,
                                        .doorbell = &w->doorbell[i],
                                        .ringer = w->ringer});
    cr_assert_eq(rc, QN_OK, "%s", qn_strerror(rc));
}

static inline void mpb_open_world(struct mpb_world *w, uint32_t nodes,
                                  bool strict, uint64_t seed)
{
    memset(w, 0, sizeof *w);
    w->opts = (struct qn_device_opts){
        .nodes = nodes, .lanes = 1, .strict = strict, .seed = seed};
    size_t bytes = qn_mpb_device.bytes(&w->opts);
    cr_assert_neq(bytes, 0);
    w->memory = aligned_alloc(4096, bytes);
    cr_assert_not_null(w->memory);
    memset(w->memory, 0, bytes);
    qn_mpb_device.format(w->memory, &w->opts);
    for (qn_node_t i = 0; i < nodes; i++) {
        w->incarnation[i] = 10 + i;
        qn_doorbell_init(&w->doorbell[i], &w->line[i], -1);
        qn_doorbell_handle_init(&w->ringer[i], &w->line[i], -1);
    }
    for (qn_node_t i = 0; i < nodes && i < MPB_ATTACHED; i++) {
        mpb_attach(w, i);
    }
}

static inline void mpb_close_world(struct mpb_world *w)
{
    for (qn_node_t i = 0; i < w->opts.nodes; i++) {
        qn_device_detach(w->node[i]);
    }
    free(w->memory);
}

/** Node i ends, and all others are told. */
static inline void mpb_end(struct mpb_world *w, qn_node_t i)
{
    qn_device_detach(w->node[i]);
    w->node[i] = NULL;
    for (qn_node_t j = 0; j < w->opts.nodes; j++) {
        if (w->node[j] != NULL) {
            qn_device_down(w->node[j], i);
        }
    }
}

static inline struct qn_qp *mpb_open_qp(struct mpb_world *w, qn_node_t i,
                                        qn_node_t peer, uint32_t start)
{
    struct qn_qp *qp = NULL;
    int rc = qn_mpb_open_at(&qp,
                            &(struct qn_qp_opts){
                                .device = w->node[i],
                                .self = i,
                                .peer = peer,
                                .self_inc = w->incarnation[i],
                                .peer_inc = w->incarnation[peer],
                                .doorbell = &w->doorbell[i],
                                .ringer = &w->ringer[peer],
                            },
                            start);
    cr_assert_eq(rc, QN_OK, "%s", qn_strerror(rc));
    return qp;
}

#endif
