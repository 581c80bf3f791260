/*
 * Reads of the cluster, by message (PROTOCOL.md 8.3): what a read must see, and
 * what it is answered.
 *
 * The strongest that a client can ask for: when a question is asked, all that
 * any node has applied by then may have been acknowledged or read. So the
 * answer may not be below it, and a node that says that the reads of that
 * number may be answered must have applied it.
 */
#include <inttypes.h>
#include <string.h>

#include "paxos/machine/onepaxos_internal.h"
#include "tests/sim/paxos/cluster_internal.h"

static struct read_floor *floor_of(struct member *m, uint64_t number)
{
    return &m->reads.floor[number % CLUSTER_READS];
}

void cluster_shown(struct cluster *c, qn_slot_t slot)
{
    c->shown = QN_MAX(c->shown, slot);
}

void cluster_read(struct cluster *c, qn_node_t node, bool fresh)
{
    struct member *m = &c->member[node];
    const struct qn_input in = {.kind = QN_IN_READ, .read = {fresh}};
    if (m->p == NULL || (!fresh && !qn_onepaxos_read_waits(m->p))) {
        return;
    }
    if (fresh) {
        uint64_t number = qn_onepaxos_read_number(m->p);
        *floor_of(m, number) = (struct read_floor){number, c->shown};
    }
    cluster_step(c, node, &in);
}

/* The newest answer, which may be a later number's: its slot must do for all
 * up to it. */
static void check_answer(struct cluster *c, qn_node_t i)
{
    struct member *m = &c->member[i];
    const struct qn_read_index *r = &m->p->reads;
    const struct qn_read_answer *a =
        r->newest.number == r->answered ? &r->newest : &r->oldest;
    const struct read_floor *f = floor_of(m, r->answered);
    bool new = r->answered > m->reads.answered;
    m->reads.answered = r->answered; /* or void, by force */
    if (!new) {
        return;
    }
    CHECK(c, a->number == r->answered, "node %u: an answer is lost", i);
    CHECK(c, f->number != r->answered || a->slot >= f->slot,
          "node %u: read %" PRIu64 " is told slot %" PRIu64 ", and %" PRIu64
          " was shown before it was asked",
          i, r->answered, a->slot, f->slot);
    if (c->cover != NULL) {
        c->cover->row[COVERAGE_READ_ANSWERED]++;
    }
}

static void check_reached(struct cluster *c, qn_node_t i)
{
    struct member *m = &c->member[i];
    uint64_t reached = qn_onepaxos_read_reached(m->p);
    while (m->reads.reached < reached) {
        const struct read_floor *f = floor_of(m, ++m->reads.reached);
        CHECK(c, f->number != m->reads.reached || m->slot >= f->slot,
              "node %u answers read %" PRIu64 " from slot %" PRIu64
              ", and %" PRIu64 " was shown before it came",
              i, m->reads.reached, m->slot, f->slot);
    }
}

void cluster_check_reads(struct cluster *c, qn_node_t i)
{
    if (!c->in_memory) {
        check_answer(c, i);
        check_reached(c, i);
    }
}

void cluster_reads_begin(struct member *m)
{
    memset(&m->reads, 0, sizeof m->reads);
}

void cluster_reads_recover(struct cluster *c, qn_node_t node)
{
    struct member *m = &c->member[node];
    c->shown = c->decided_hi;
    for (uint32_t k = 0; k < CLUSTER_READS; k++) {
        struct read_floor *f = &m->reads.floor[k];
        f->slot = QN_MIN(f->slot, c->shown);
    }
}
