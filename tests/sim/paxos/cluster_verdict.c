/*
 * Checks a node that says that the group has stopped (PROTOCOL.md 6.5 and
 * 5.7): from then on no node leads, unless it is forced to.
 *
 * With the memory acceptor the verdict is that of paxos/halt/verdict.c, made
 * of what the members' outboxes would say to node i. When it says stopped, the
 * slot that all members lack must be in no node's log and in no message.
 */
#include <inttypes.h>

#include "paxos/halt/verdict.h"
#include "paxos/machine/onepaxos_internal.h"
#include "tests/sim/paxos/cluster_internal.h"

/** A majority has never voted for an entry later than node i knows, as the
 *  voters' outboxes would say (paxos/driver/driver_positions.c). */
static bool newest_known(const struct cluster *c, qn_node_t i)
{
    const struct qn_onepaxos *p = c->member[i].p;
    uint32_t sure = 0;
    for (qn_node_t n = 0; n < c->nodes; n++) {
        const struct member *m = &c->member[n];
        const struct qn_vote *v = &m->record.vote;
        bool known = m->p != NULL && m->inc == p->incarnation[n] &&
                     (p->alive & QN_BIT(n)) != 0;
        uint32_t voted = v->index - (v->vbal.round == 0 && v->index != 0);
        sure += known && !m->record.lost && !m->p->ul.non_voting &&
                voted < qn_utility_len(&p->ul);
    }
    return 2 * sure > c->nodes;
}

/** All that the dead had sent to node i is received, or lost. */
static bool all_heard(const struct cluster *c, qn_node_t i)
{
    for (qn_node_t n = 0; n < c->nodes; n++) {
        if (c->member[n].p == NULL && c->direct[n][i].head != NULL) {
            return false;
        }
    }
    return true;
}

/** Who says that the group has stopped is right: nobody leads ever again. */
static void check_process(struct cluster *c, qn_node_t i)
{
    const struct member *m = &c->member[i];
    const struct qn_onepaxos *p = m->p;
    bool active = p->leader.role == QN_ACTIVE;
    CHECK(c,
          !active || m->active || c->stopped == 0 || p->cfg.index < c->stopped,
          "node %u leads, epoch %u; the group had stopped in epoch %u", i,
          p->cfg.index, c->stopped);
    c->forced = c->forced && !active;
    if (c->stopped == 0 && !c->forced && qn_onepaxos_lost(p) &&
        newest_known(c, i) && all_heard(c, i)) {
        c->stopped = p->cfg.index;
    }
}

/* ------------------------------------------------------ memory acceptor -- */

/** Member n receives from nobody who has ended, and has read what they sent. */
static bool hears_the_living(const struct cluster *c, qn_node_t n)
{
    const struct qn_onepaxos *p = c->member[n].p;
    for (qn_node_t k = 0; k < c->nodes; k++) {
        bool unread =
            c->direct[k][n].head != NULL || c->tree[k][n].head != NULL;
        bool receives = (p->alive & QN_BIT(k)) != 0;
        if (k != n && c->member[k].p == NULL && (unread || receives)) {
            return false;
        }
    }
    return true;
}

struct qn_verdict cluster_verdict(const struct cluster *c)
{
    const struct qn_ul_entry *e = &c->entry[c->word.first];
    const struct member *owner = &c->member[e->leader];
    struct qn_verdict_in in = {.nodes = c->nodes, .hi = c->word.second};
    if (!c->in_memory || (owner->p != NULL && owner->inc == e->leader_inc)) {
        return (struct qn_verdict){0};
    }
    const struct memory *m = cluster_memory(c, e->leader, e->leader_inc);
    in.ended = true;
    in.lo = qn_ring_lo(&m->ring);
    for (qn_node_t n = 0; n < c->nodes; n++) {
        if (c->member[n].p != NULL) {
            in.member[n] = (struct qn_verdict_member){
                .lives = true,
                .votes = cluster_votes(c, n),
                .heard = hears_the_living(c, n),
                .late = c->member[n].inc > m->ended,
                .learned = c->member[n].p->learned_hi};
        }
    }
    return qn_verdict_find(&in);
}

/** Batches of this slot that are in the lane. */
static uint32_t on_its_way(const struct lane *l, qn_slot_t slot)
{
    uint32_t found = 0;
    for (const struct packet *k = l->head; k != NULL; k = k->next) {
        struct qn_msg m;
        found += qn_msg_decode(&m, k->bytes, k->len) == QN_OK &&
                 (m.kind == QN_MSG_LEARN || m.kind == QN_MSG_FILL) &&
                 m.slot == slot && m.body.len != 0;
    }
    return found;
}

/** Nobody living has the first slot that all lack, nor will have it. */
static void check_gone(const struct cluster *c, const struct qn_verdict *v)
{
    qn_slot_t slot = v->kept + 1;
    for (qn_node_t n = 0; n < c->nodes; n++) {
        const struct qn_onepaxos *p = c->member[n].p;
        if (p == NULL) {
            continue;
        }
        CHECK(c,
              !qn_log_holds(&p->log, slot) ||
                  qn_log_at(&p->log, slot)->state != QN_SLOT_LEARNED,
              "it has stopped after slot %" PRIu64 ", and node %u has the next",
              v->kept, n);
        for (qn_node_t k = 0; k < c->nodes; k++) {
            CHECK(c,
                  on_its_way(&c->direct[k][n], slot) +
                          on_its_way(&c->tree[k][n], slot) ==
                      0,
                  "it has stopped after slot %" PRIu64
                  ", and the next is on its way from %u to %u",
                  v->kept, k, n);
        }
    }
}

/** No word moves after a verdict, nor is it withdrawn. */
static void check_memory(struct cluster *c)
{
    if (c->stopped != 0) {
        CHECK(c, c->word.first < c->stopped,
              "the word is at epoch %" PRIu64
              "; the group had stopped in epoch %u",
              c->word.first, c->stopped - 1);
        return;
    }
    struct qn_verdict v = cluster_verdict(c);
    if (v.kind == QN_VERDICT_STOPPED) {
        check_gone(c, &v);
        c->stopped = (qn_epoch_t)c->word.first + 1;
    }
}

void cluster_check_stopped(struct cluster *c, qn_node_t i)
{
    if (c->in_memory) {
        check_memory(c);
    } else {
        check_process(c, i);
    }
}
