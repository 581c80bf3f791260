/*
 * Snapshots: the facts of a snapshot to give, and the installation of a
 * received one.
 *
 * A snapshot replaces the store between two slots. The log will not bring own
 * writes that the snapshot contains: `covered` is the last such sequence. They
 * complete when they reach the head of the ring, with +OK where that is certain
 * (`refused` travels in the snapshot), else with an error. Marks between them
 * see the new store, which contains all writes before them.
 *
 * The old store is freed in steps, DISCARD_PER_TURN blocks per turn, so that no
 * client waits for it.
 */
#include <string.h>

#include "core/base/assert.h"
#include "kvs/replica/replica_internal.h"

enum { DISCARD_PER_TURN = 1024 /* blocks of discarded stores freed */ };

void qn_replica_facts(const struct qn_replica *r, struct qn_snapshot_meta *m)
{
    memcpy(m->refused, r->refused, sizeof m->refused);
    m->applied_ms = r->stamp_ms;
    m->nodes = r->nodes;
    m->config = r->config;
}

void qn_replica_discard(struct qn_replica *r, struct qn_store *store)
{
    uint32_t i = 0;
    while (i < DISCARDS - 1 && r->discard[i] != NULL) {
        i++;
    }
    qn_store_destroy(r->discard[i]); /* NULL, unless snapshots follow each
                                        other too fast */
    r->discard[i] = store;
    qn_store_flush(store, UINT32_MAX, 0);
}

bool qn_replica_discards_turn(struct qn_replica *r)
{
    for (uint32_t i = 0; i < DISCARDS; i++) {
        if (r->discard[i] == NULL) {
            continue;
        }
        if (qn_store_reclaim(r->discard[i], DISCARD_PER_TURN)) {
            return true;
        }
        qn_store_destroy(r->discard[i]);
        r->discard[i] = NULL;
    }
    return false;
}

/* Take the options that change by the log from the snapshot; keep the others.
 */
static void config_install(struct qn_replica *r, const struct qn_config *c)
{
    char why[QN_CONFIG_WHY_MAX], room[QN_CONFIG_NUMBER_MAX];
    struct qn_config_option o;
    for (uint32_t i = 0; qn_config_at(i, &o); i++) {
        if (o.when == QN_CONFIG_BY_LOG) {
            (void)qn_config_start(&r->config, o.name,
                                  qn_config_value(c, i, room), why, sizeof why);
        }
    }
}

void qn_replica_serve_soon(struct qn_replica *r, qn_slot_t position)
{
    if (r->serving) {
        return;
    }
    if (qn_driver_by_message(r->driver)) {
        r->serve_at = position;
        r->serve_after = qn_driver_read_view(r->driver).index;
        qn_driver_read_wanted(r->driver, r->serve_after);
    } else {
        const qn_slot_t index = qn_driver_read_index(r->driver);
        r->serve_at = QN_MAX(position, index);
    }
}

void qn_replica_covered(struct qn_replica *r, uint64_t seq)
{
    r->covered = QN_MAX(r->covered, seq);
}

void qn_replica_caught_up(struct qn_replica *r, qn_slot_t position)
{
    if (r->store != NULL) {
        qn_replica_serve_soon(r, position);
    }
}

void qn_replica_install(struct qn_replica *r, struct qn_store *store,
                        const struct qn_snapshot_meta *m)
{
    if (r->store != NULL) {
        qn_replica_discard(r, r->store);
    }
    struct qn_store_stats st;
    qn_store_stats(store, &st);
    r->store = store;
    r->growths = st.growths;
    r->stamp_ms = m->applied_ms;
    config_install(r, &m->config);
    r->config.databases = m->dbs;
    if (r->configured != NULL) {
        r->configured(r->ctx);
    }
    memcpy(r->refused, m->refused, sizeof r->refused);
    qn_replica_deferred_reads_run(r, m->position);
    qn_replica_serve_soon(r, m->position);
}
