/*
 * Incarnations of the cluster: they start, end, begin again, with all that an
 * incarnation has: its ring, what its record says, the state of a donor.
 *
 * A ring stays mapped until the run is over, as long as anybody may read it;
 * its memory is looked at then: what was never asked for was never touched. So
 * does an arena, and a node looks into it until it hears of its writer's end.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "paxos/machine/onepaxos_internal.h"
#include "paxos/mutant.h"
#include "tests/sim/paxos/cluster_internal.h"
#include "tests/sim/paxos/fault_oracle.h"

static void *resize(void *ctx, void *p, size_t bytes)
{
    struct cluster *c = ctx;
    if (bytes == 0) {
        c->refbufs -= p != NULL;
        free(p);
        return NULL;
    }
    if (c->out_of_memory != 0 && cluster_random(c, 1000) < c->out_of_memory) {
        return NULL;
    }
    c->refbufs += p == NULL;
    return realloc(p, bytes);
}

/* --------------------------------------------------------------- start -- */

const struct memory *cluster_memory(const struct cluster *c, qn_node_t node,
                                    uint64_t inc)
{
    for (uint32_t i = 0; i < c->memory_count; i++) {
        if (c->memory[i].node == node && c->memory[i].inc == inc) {
            return &c->memory[i];
        }
    }
    return NULL;
}

const struct qn_ring *cluster_ring(const struct cluster *c, qn_node_t node,
                                   uint64_t inc)
{
    const struct memory *m = cluster_memory(c, node, inc);
    return m != NULL ? &m->ring : NULL;
}

static void memory_ended(struct cluster *c, qn_node_t node)
{
    for (uint32_t i = 0; i < c->memory_count; i++) {
        struct memory *m = &c->memory[i];
        if (m->node == node && m->inc == c->member[node].inc) {
            m->ended = c->lives;
        }
    }
}

static int grow(void *ctx, uint64_t bytes)
{
    struct memory *m = ctx;
    CHECK(m->c, bytes <= qn_ring_bytes(m->c->ring_slots, m->c->ring_bytes),
          "node %u asks for more than its address space", m->node);
    if (m->c->out_of_memory != 0 &&
        cluster_random(m->c, 1000) < 4 * m->c->out_of_memory) {
        m->c->refused++;
        return QN_ENOMEM;
    }
    m->c->full |= bytes == qn_ring_bytes(m->c->ring_slots, m->c->ring_bytes);
    m->granted = QN_MAX(m->granted, bytes);
    return QN_OK;
}

static void claim(void *ctx, bool writable)
{
    struct member *m = ctx;
    m->claimed = writable;
}

static bool owner(void *ctx, qn_epoch_t epoch)
{
    struct member *m = ctx;
    struct cluster *c = m->cluster;
    CHECK(c, m->claimed, "life %" PRIu64 " owns without a claim", m->inc);
    CHECK(c, epoch < CLUSTER_ENTRIES, "run too long");
    c->owner[epoch] = m->inc;
    return true;
}

static bool owned_by(void *ctx, uint64_t epoch, qn_node_t *node, uint64_t *inc)
{
    const struct cluster *c = ((const struct member *)ctx)->cluster;
    CHECK(c, epoch < CLUSTER_ENTRIES, "run too long");
    for (uint32_t i = 0; i < c->memory_count; i++) {
        if (c->memory[i].inc == c->owner[epoch]) {
            *node = c->memory[i].node;
            *inc = c->owner[epoch];
            return true;
        }
    }
    return false;
}

static const struct qn_ring *map_ring(void *ctx, qn_node_t node, uint64_t inc)
{
    const struct member *m = ctx;
    return cluster_ring(m->cluster, node, inc);
}

/** Every fourth life knows of the others what they say only. */
static bool position(void *ctx, qn_node_t node, struct qn_position *out)
{
    const struct member *m = ctx;
    const struct member *of = &m->cluster->member[node];
    if (m->inc % 4 == 0 || of->p == NULL) {
        return false;
    }
    *out = (struct qn_position){of->slot, of->p->learned_hi};
    return true;
}

/** A new incarnation has a new ring, and maps those of all others. */
static struct qn_memory_acceptor *make_shared(struct cluster *c, qn_node_t i)
{
    CHECK(c, c->memory_count < CLUSTER_LIVES, "run too long");
    struct memory *m = &c->memory[c->memory_count++];
    size_t bytes = qn_ring_bytes(c->ring_slots, c->ring_bytes);
    *m = (struct memory){.c = c,
                         .node = i,
                         .inc = c->member[i].inc,
                         .granted = qn_ring_bytes(c->ring_slots, 0),
                         .ended = UINT64_MAX,
                         .mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)};
    CHECK(c, m->mem != MAP_FAILED, "no memory for a ring");
    const struct qn_ring_opts o = {.slots = c->ring_slots,
                                   .capacity = c->ring_bytes,
                                   .span = c->ring_span,
                                   .keep = c->ring_keep,
                                   .grow = grow,
                                   .ctx = m};
    qn_ring_open(&m->ring, m->mem, &o);
    struct member *x = &c->member[i];
    x->cluster = c;
    x->claimed = false;
    x->shared = (struct qn_memory_acceptor){.accept_register = &c->word,
                                            .own = m->ring,
                                            .ring = map_ring,
                                            .claim = claim,
                                            .owner = owner,
                                            .owned_by = owned_by,
                                            .position = position,
                                            .ctx = x};
    qn_ring_begin(&x->shared.own, 1);
    return &x->shared;
}

/** The arena of an incarnation that has not ended as far as the member knows.
 */
static const struct qn_arena *map_arena(void *ctx, qn_node_t node, uint64_t inc)
{
    const struct member *m = ctx;
    struct cluster *c = m->cluster;
    bool lives =
        m->p->incarnation[node] == inc && (m->p->alive & QN_BIT(node)) != 0;
    if (c->cover != NULL) {
        c->cover->row[lives ? COVERAGE_PULLED : COVERAGE_PULL_LATE]++;
    }
    for (uint32_t i = 0; lives && i < c->upload_count; i++) {
        if (c->upload[i].node == node && c->upload[i].inc == inc) {
            return &c->upload[i].arena;
        }
    }
    return NULL;
}

static const struct qn_uploads *make_uploads(struct cluster *c, qn_node_t i)
{
    struct member *m = &c->member[i];
    CHECK(c, c->upload_count < CLUSTER_LIVES, "run too long");
    struct upload *u = &c->upload[c->upload_count++];
    const struct qn_arena_opts o = {.capacity = c->arena_bytes};
    size_t bytes = qn_arena_bytes(o.capacity);
    *u = (struct upload){.node = i,
                         .inc = m->inc,
                         .mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)};
    CHECK(c, u->mem != MAP_FAILED, "no memory for an arena");
    m->cluster = c;
    CHECK(c, qn_arena_begin(&m->arena, u->mem, &o) == QN_OK, "no memory");
    qn_arena_open(&u->arena, u->mem, o.capacity);
    m->uploads =
        (struct qn_uploads){.own = &m->arena, .arena = map_arena, .ctx = m};
    return &m->uploads;
}

#define PAGE      4096u
#define PAGES_MAX 2048u

/** What was never asked for was never touched. */
static void memory_end(struct cluster *c, struct memory *m)
{
    static const uint8_t zero[PAGE];
    static uint8_t resident[PAGES_MAX];
    size_t bytes = qn_ring_bytes(c->ring_slots, c->ring_bytes);
    CHECK(c, bytes <= PAGES_MAX * PAGE, "the ring is too long");
    CHECK(c, mincore(m->mem, bytes, resident) == 0, "mincore");
    for (size_t at = m->granted; at < bytes;) {
        size_t end = QN_MIN(qn_align_up(at + 1, PAGE), bytes);
        bool same = (resident[at / PAGE] & 1) == 0 ||
                    memcmp(m->mem + at, zero, end - at) == 0;
        CHECK(c, same, "node %u wrote to memory it has not", m->node);
        at = end;
    }
    munmap(m->mem, bytes);
}

static void member_start(struct cluster *c, qn_node_t i,
                         const struct member *donor)
{
    uint64_t inc[QN_NODES_MAX] = {0};
    struct member *m = &c->member[i];
    for (uint32_t n = 0; n < c->nodes; n++) {
        inc[n] = c->member[n].inc;
    }
    struct qn_onepaxos_opts o = {.self = i,
                                 .nodes = c->nodes,
                                 .incarnation = inc,
                                 .voters = c->voters,
                                 .parent = c->nodes > 1 ? 1 : 0,
                                 .alloc = &c->alloc,
                                 .params = c->params,
                                 .seed = cluster_random(c, UINT64_MAX)};
    struct qn_resume resume;
    struct qn_ul_entry ul[QN_UL_KEPT];
    if (donor != NULL) {
        const struct qn_utility *u = qn_onepaxos_utility(donor->p);
        qn_onepaxos_resume(donor->p, &resume);
        o.resume = &resume;
        o.ul = ul;
        uint32_t len = QN_MAX(qn_utility_len(u), m->record.count);
        for (uint32_t e = len > QN_UL_KEPT ? len - QN_UL_KEPT : 0; e < len;
             e++) {
            const struct qn_ul_entry *x = qn_utility_entry(u, e);
            ul[o.ul_count++] = x != NULL ? *x : m->record.log[e];
        }
        o.vote = m->record.lost ? NULL : &m->record.vote;
        o.non_voting = m->record.lost;
    }
    o.memory = c->in_memory ? make_shared(c, i) : NULL;
    o.uploads = c->arena_bytes != 0 ? make_uploads(c, i) : NULL;
    size_t size = qn_onepaxos_size(&o);
    CHECK(c, size != 0, "bad options");
    m->p = qn_onepaxos_init(calloc(1, size), &o);
    m->deadline = QN_TIME_NEVER;
    cluster_reads_begin(m);
    if (c->record != NULL) {
        run_trace_begins(c->record, m->p);
    }
}

void cluster_start(struct cluster *c)
{
    c->alloc = (struct qn_alloc){resize, c};
    c->lives = 99;
    uint64_t begin = c->voters != 0 ? c->voters : UINT64_MAX;
    for (qn_node_t i = 0; i < c->nodes; i++) {
        c->member[i].inc = (begin & QN_BIT(i)) != 0 ? ++c->lives : 0;
    }
    for (qn_node_t i = 0; i < c->nodes; i++) {
        if ((begin & QN_BIT(i)) != 0) {
            member_start(c, i, NULL);
            cluster_check_roles(c, i);
        }
        for (qn_node_t k = 0; k < c->nodes; k++) {
            c->direct[i][k].tail = &c->direct[i][k].head;
            c->tree[i][k].tail = &c->tree[i][k].head;
        }
    }
}

static void member_end(struct member *m)
{
    if (m->p != NULL) {
        if (m->p->uploads != NULL) {
            qn_arena_end(&m->arena);
        }
        qn_onepaxos_fini(m->p);
        free(m->p);
        m->p = NULL;
    }
}

void cluster_end(struct cluster *c)
{
    for (qn_node_t i = 0; i < c->nodes; i++) {
        member_end(&c->member[i]);
        for (qn_node_t k = 0; k < c->nodes; k++) {
            qn_joiner_reset(&c->direct[i][k].joiner);
            while (c->direct[i][k].head != NULL) {
                cluster_drop(c, &c->direct[i][k]);
            }
            while (c->tree[i][k].head != NULL) {
                cluster_drop(c, &c->tree[i][k]);
            }
        }
    }
    for (uint32_t i = 0; i < c->memory_count; i++) {
        memory_end(c, &c->memory[i]);
    }
    for (uint32_t i = 0; i < c->upload_count; i++) {
        munmap(c->upload[i].mem, qn_arena_bytes(c->arena_bytes));
    }
    CHECK(c, c->refbufs == 0, "%" PRId64 " refbufs are left", c->refbufs);
}

/* ------------------------------------------------------- end and again -- */

void cluster_kill(struct cluster *c, qn_node_t node, uint64_t keep)
{
    struct member *m = &c->member[node];
    fault_oracle_dies(c, node);
    if (c->record != NULL) {
        run_trace_ends(c->record, m->p);
    }
    member_end(m);
    memory_ended(c, node);
    c->doomed &= ~QN_BIT(node);
    m->need_snapshot = m->active = m->out.again = false;
    m->transfers = 0;
    for (qn_node_t k = 0; k < c->nodes; k++) {
        cluster_reset_lane(&c->direct[k][node]);
        cluster_reset_lane(&c->tree[k][node]);
        cluster_cut(&c->direct[node][k],
                    cluster_random(c, keep) + c->direct[node][k].is_parked);
        cluster_cut(&c->tree[node][k], cluster_random(c, keep));
    }
}

/** Last sequence of each origin in what a node has learned. */
static void sequences(const struct qn_onepaxos *p, struct qn_session *seq)
{
    memcpy(seq, p->session, sizeof p->session);
    for (qn_slot_t s = p->applied + 1; s <= p->learned_hi; s++) {
        const struct qn_refbuf *b = qn_log_at(&p->log, s)->batch;
        struct qn_command_run g;
        for (uint32_t at = 0;
             qn_batch_next((struct qn_slice){b->bytes, b->len}, &at, &g);) {
            struct qn_session *x = &seq[g.origin];
            if (g.inc > x->inc) {
                *x = (struct qn_session){.inc = g.inc};
            }
            if (g.inc == x->inc) {
                x->last = QN_MAX(x->last, g.first + g.count - 1);
            }
        }
    }
}

/** The slots from `kept` to the word's last are as if they had been empty:
 *  positions go on, and no batch is one of theirs. */
static void make_void(struct cluster *c, qn_node_t node, qn_slot_t kept)
{
    struct member *m = &c->member[node];
    CHECK(c, m->p->applied == c->word.second && m->slot == kept,
          "node %u goes on from slot %" PRIu64 ", void are %" PRIu64
          " to %" PRIu64,
          node, m->p->applied, kept + 1, c->word.second);
    m->slot = m->learned = m->accepted = c->word.second;
    for (qn_slot_t s = kept + 1; s <= c->word.second; s++) {
        c->decided[s] = CLUSTER_VOID;
    }
}

/** The order goes to who has most: nothing that anybody has is given up. */
static void check_longest(const struct cluster *c, qn_node_t node)
{
    for (qn_node_t i = 0; i < c->nodes; i++) {
        const struct qn_onepaxos *p = c->member[i].p;
        CHECK(c, p == NULL || p->learned_hi <= c->member[node].p->learned_hi,
              "node %u is to go on, and node %u has more", node, i);
    }
}

void cluster_recover(struct cluster *c, qn_node_t node)
{
    const struct qn_input in = {.kind = QN_IN_RECOVER};
    const struct qn_onepaxos *p = c->member[node].p;
    check_longest(c, node);
    for (qn_node_t i = 0; i < c->nodes; i++) {
        if (i == node) {
            continue;
        }
        if (c->member[i].p != NULL) {
            cluster_kill(c, i, 1);
        }
        cluster_reset_lane(&c->direct[i][node]);
        cluster_reset_lane(&c->tree[i][node]);
        cluster_down(c, node, i);
    }
    c->history_count = c->member[node].applied;
    sequences(p, c->decided_seq);
    c->ghosts = 0;
    c->stopped = 0;
    qn_slot_t kept = p->learned_hi;
    if (!c->in_memory) {
        c->decided_hi = kept;
        c->forced = true; /* it lives and says so: no verdict until then */
        cluster_reads_recover(c, node);
    }
    int err = cluster_step(c, node, &in);
    CHECK(c, err == QN_OK, "node %u cannot go on alone: %d", node, err);
    if (c->in_memory) {
        make_void(c, node, kept);
    }
}

void cluster_lose_record(struct cluster *c, qn_node_t node)
{
    uint32_t kept = 0;
    for (qn_node_t i = 0; i < c->nodes; i++) {
        kept += i != node && !c->member[i].record.lost;
    }
    struct record *r = &c->member[node].record;
    if (kept > c->nodes / 2 && !r->lost) {
        r->lost = true;
        r->count = 0;
        r->vote = (struct qn_vote){.index = 0};
        if (c->cover != NULL) {
            c->cover->row[COVERAGE_RECORD_LOST]++;
        }
    }
}

/** What the donor's state has, the other's has now. */
static void copy_state(struct member *m, const struct member *donor)
{
    m->applied = donor->applied;
    m->slot = m->learned = donor->slot;
    m->accepted = donor->slot;
    m->stamp = donor->stamp;
    memcpy(m->seq, donor->seq, sizeof m->seq);
    m->need_snapshot = false;
}

static bool between_slots(const struct member *donor)
{
    struct qn_resume r;
    return donor->p != NULL && qn_onepaxos_resume(donor->p, &r);
}

bool cluster_votes(const struct cluster *c, qn_node_t i)
{
    uint64_t mask = c->entry[c->entries - 1].voters;
    for (qn_node_t n = 0; n < c->nodes; n++) {
        const struct qn_onepaxos *p = c->member[n].p;
        mask |= p != NULL ? qn_utility_voters(&p->ul) : 0;
    }
    return c->voters == 0 || (mask & QN_BIT(i)) != 0;
}

/** A seat that was never taken has no record: what is written says that no
 *  incarnation from this one on has voted. */
static void take_seat(struct cluster *c, qn_node_t node, qn_node_t donor)
{
    struct member *m = &c->member[node];
    uint32_t len = qn_utility_len(&c->member[donor].p->ul);
    bool taken = m->record.count != 0 || (c->voters & QN_BIT(node)) != 0;
    if (c->voters == 0 || taken) {
        return;
    }
    memcpy(m->record.log, c->entry, len * sizeof *c->entry);
    m->record.count = len;
    m->record.vote = (struct qn_vote){.index = len, .since = m->inc};
}

bool cluster_restart(struct cluster *c, qn_node_t node, qn_node_t donor)
{
    struct member *m = &c->member[node];
    if (!between_slots(&c->member[donor])) {
        return false;
    }
    if (c->in_memory || !QN_MUTANT(AMNESIA)) {
        m->inc = ++c->lives;
    }
    for (qn_node_t k = 0; k < c->nodes; k++) {
        cluster_reset_lane(&c->direct[node][k]);
        cluster_reset_lane(&c->tree[node][k]);
    }
    copy_state(m, &c->member[donor]);
    take_seat(c, node, donor);
    member_start(c, node, &c->member[donor]);
    for (qn_node_t k = 0; k < c->nodes; k++) {
        const struct qn_input in = {.kind = QN_IN_UP, .up = {node, m->inc}};
        if (k != node) {
            cluster_step(c, k, &in);
        }
    }
    return true;
}

void cluster_install(struct cluster *c, qn_node_t node, qn_node_t donor)
{
    struct member *m = &c->member[node];
    const struct member *d = &c->member[donor];
    struct qn_resume resume;
    if (m->p == NULL || !between_slots(d) || !between_slots(m) ||
        d->slot <= m->slot) {
        return;
    }
    qn_onepaxos_resume(d->p, &resume);
    copy_state(m, d);
    qn_onepaxos_install(m->p, &resume, c->now);
    cluster_tick(c, node);
}

bool cluster_in_sync(const struct cluster *c, qn_node_t node)
{
    const struct member *m = &c->member[node];
    if (m->p == NULL) {
        return false;
    }
    const struct qn_ul_entry *e = &c->entry[c->word.first];
    const struct qn_ring *r = cluster_ring(c, e->leader, e->leader_inc);
    return r != NULL && m->slot + 1 >= qn_ring_lo(r);
}
