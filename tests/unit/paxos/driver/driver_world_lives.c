/*
 * Lives end and begin: see driver_world.h. The memory of an incarnation that
 * has ended is poisoned and freed as soon as no living driver keeps it: who
 * reads it later, reads nonsense.
 */
#include <stdlib.h>
#include <string.h>

#include "core/place/outbox.h"
#include "paxos/driver/driver_internal.h"
#include "paxos/driver/vote_record.h"
#include "tests/support/test.h"
#include "tests/unit/paxos/driver/driver_world.h"

/* Nobody needs it any more. */
static bool unneeded(struct world *w, const struct world_life *l)
{
    for (qn_node_t i = 0; i < w->nodes; i++) {
        const struct world_member *m = &w->member[i];
        if (m->driver != NULL &&
            (m->direct[l->node] != NULL ? w->member[l->node].inc == l->inc
                                        : false)) {
            return false; /* it has not heard of its death */
        }
        if (m->driver != NULL && m->deaf) {
            return false;
        }
        if (m->driver != NULL && qn_driver_keeps(m->driver, l->node, l->inc)) {
            return false;
        }
    }
    return true;
}

static void sweep(struct world *w)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < w->old_count; k++) {
        if (unneeded(w, &w->old[k])) {
            world_life_free(w, &w->old[k]);
        } else {
            w->old[n++] = w->old[k];
        }
    }
    w->old_count = n;
}

void world_kill(struct world *w, qn_node_t i)
{
    struct world_member *m = &w->member[i];
    qn_driver_destroy(m->driver);
    m->driver = NULL;
    qn_feed_destroy(m->feed);
    m->feed = NULL;
    for (qn_node_t p = 0; p < w->nodes; p++) {
        world_channel_close(m, p);
    }
    qn_device_detach(m->device);
    m->device = NULL;
    m->need_snapshot = m->stopped = m->deaf = false;
    m->submitted = 0;
    cr_assert_lt(w->old_count, WORLD_LIVES);
    w->old[w->old_count++] = m->incarnation;
}

void world_tell(struct world *w, qn_node_t at, qn_node_t i)
{
    struct world_member *m = &w->member[at];
    if (m->driver != NULL && m->direct[i] != NULL && !m->deaf) {
        qn_driver_down(m->driver, i, w->now);
        world_channel_close(m, i);
        if (m->device != NULL) {
            qn_device_down(m->device, i);
        }
    }
    sweep(w);
}

void world_lose(struct world *w, qn_node_t i)
{
    world_kill(w, i);
    for (qn_node_t p = 0; p < w->nodes; p++) {
        world_tell(w, p, i);
    }
}

/* What a new incarnation begins with. */
static void make_anew(struct world *w, qn_node_t i)
{
    struct world_member *m = &w->member[i];
    cr_assert(m->driver == NULL);
    for (qn_node_t p = 0; p < w->nodes; p++) {
        world_tell(w, p, i);
    }
    m->inc = ++w->lives;
    m->count = 0;
    m->wanted = m->reached = 0;
    memset(m->floor, 0, sizeof m->floor);
    m->slot = m->exposed = m->stamp_ms = 0;
    memset(m->session, 0, sizeof m->session);
    if (m->blank) {
        memset(m->vote_record, 0, QN_VOTE_RECORD_BYTES);
    }
    world_life_make(w, i);
    world_device_attach(w, i);
    for (qn_node_t p = 0; p < w->nodes; p++) {
        if (p != i && w->member[p].driver != NULL) {
            world_channel_open(w, i, p);
        }
    }
}

static void all_hear(struct world *w, qn_node_t i)
{
    for (qn_node_t p = 0; p < w->nodes; p++) {
        if (p != i && w->member[p].driver != NULL && !w->member[p].deaf) {
            world_hear(w, p, i);
        }
    }
}

void world_restart(struct world *w, qn_node_t i)
{
    make_anew(w, i);
    world_driver_start(w, i, false);
    all_hear(w, i);
}

void world_come(struct world *w, qn_node_t i)
{
    make_anew(w, i);
    w->member[i].coming = true;
    all_hear(w, i);
}

void world_arrive(struct world *w, qn_node_t i)
{
    w->member[i].coming = false;
    world_driver_start(w, i, false);
}

void world_hear(struct world *w, qn_node_t at, qn_node_t i)
{
    struct world_member *x = &w->member[at];
    const struct world_member *m = &w->member[i];
    world_tell(w, at, i);
    world_channel_open(w, at, i);
    const struct qn_driver_peer_opts up = {
        .node = i,
        .inc = m->inc,
        .direct = x->direct[i],
        .tree = x->tree[i],
        .state = w->messages ? NULL : qn_outbox_state(m->incarnation.outbox),
        .ring = &m->incarnation.ring,
        .arena = w->arena_bytes != 0 ? &m->incarnation.seen : NULL,
    };
    cr_assert_eq(qn_driver_up(x->driver, &up, w->now), QN_OK);
    x->heard[i] = m->inc;
}

void world_catch_up(struct world *w, qn_node_t at)
{
    struct world_member *m = &w->member[at];
    m->deaf = false;
    for (qn_node_t i = 0; i < w->nodes; i++) {
        if (w->member[i].driver == NULL) {
            world_tell(w, at, i);
        } else if (i != at && m->heard[i] != w->member[i].inc) {
            world_hear(w, at, i);
        }
    }
}

bool world_install(struct world *w, qn_node_t i, qn_node_t donor)
{
    struct world_member *m = &w->member[i];
    const struct world_member *from = &w->member[donor];
    struct qn_resume r;
    struct qn_ul_entry ul[QN_UL_KEPT];
    if (i == donor || from->driver == NULL || m->driver == NULL ||
        from->need_snapshot || !qn_driver_cut(from->driver, &r)) {
        return false;
    }
    cr_assert_eq(r.position, from->slot);
    uint32_t n = qn_driver_ul(from->driver, ul, QN_UL_KEPT);
    if (qn_driver_install(m->driver, &r, ul, n, w->now) != QN_OK) {
        return false;
    }
    m->count = from->count;
    m->slot = m->exposed = from->slot;
    m->stamp_ms = from->stamp_ms;
    memcpy(m->session, from->session, sizeof m->session);
    m->need_snapshot = false;
    w->installs++;
    cr_assert_eq(qn_driver_applied(m->driver), m->slot);
    return true;
}

bool world_suspend_apply(struct world *w, qn_node_t i, bool suspended)
{
    struct world_member *m = &w->member[i];
    struct qn_resume r;
    if (suspended && !qn_driver_cut(m->driver, &r)) {
        return false;
    }
    m->suspended = suspended;
    qn_driver_suspend_apply(m->driver, suspended);
    return true;
}

void world_suspect(struct world *w, uint64_t mask)
{
    for (qn_node_t i = 0; i < w->nodes; i++) {
        if (w->member[i].driver != NULL && !w->member[i].stopped) {
            qn_driver_suspect(w->member[i].driver, mask, w->now);
        }
    }
}

/* The incarnation that owns the accept register, by the table of owners in the
 * commons: the entry of the utility log may have ended with its owner. */
static const struct world_life *word_life(const struct world *w)
{
    uint64_t epoch = qn_load(&w->word.first, QN_RELAXED);
    uint64_t inc = w->owner[epoch % WORLD_OWNERS].inc;
    if (inc == 0 || w->owner[epoch % WORLD_OWNERS].epoch != epoch) {
        return NULL;
    }
    for (uint32_t k = 0; k < w->old_count; k++) {
        if (w->old[k].inc == inc) {
            return &w->old[k];
        }
    }
    return &w->member[w->owner[epoch % WORLD_OWNERS].node].incarnation;
}

bool world_in_sync(const struct world *w, qn_node_t i)
{
    const struct world_member *m = &w->member[i];
    const struct world_life *l = word_life(w);
    return m->driver != NULL && l != NULL &&
           m->slot + 1 >= qn_ring_lo(&l->ring) &&
           qn_driver_ring(m->driver, l->node, l->inc) != NULL;
}

/* ---- voters that come and go ----------------------------------------------
 */

struct world *world_seats(uint32_t nodes, uint64_t voters)
{
    struct world *w = world_make(nodes, true);
    w->voters = voters;
    world_start(w);
    return w;
}

struct qn_driver_change world_change(const struct world *w, qn_node_t node,
                                     bool votes)
{
    return (struct qn_driver_change){
        .node = node, .inc = w->member[node].inc, .votes = votes};
}

int world_order(struct world *w, qn_node_t at, const struct qn_driver_change *c)
{
    return qn_driver_change(w->member[at].driver, c, w->now);
}

int world_order_of(struct world *w, qn_node_t at, qn_node_t node, bool votes)
{
    const struct qn_driver_change c = world_change(w, node, votes);
    return world_order(w, at, &c);
}

void world_ordered(struct world *w, qn_node_t at, uint64_t voters)
{
    for (int r = 0;
         r < 20000 && world_status(w, at).change == QN_CHANGE_PENDING; r++) {
        world_rounds(w, 1);
    }
    cr_assert_eq(world_status(w, at).change, QN_CHANGE_DONE, "%s",
                 qn_strerror(world_status(w, at).change_error));
    cr_assert_eq(world_status(w, at).voters, voters);
}

void world_becomes_voter(struct world *w, qn_node_t node)
{
    uint64_t before = world_status(w, node).voters;
    cr_assert_eq(world_order_of(w, node, node, true), QN_OK);
    world_ordered(w, node, before | qn_driver_bit(node));
    world_rounds(w, 20);
    cr_assert(world_status(w, node).is_voter);
    cr_assert_not(world_status(w, node).non_voting);
}
