/*
 * The cluster: see cluster.h. Starts and ends lives, carries packets, executes
 * outputs. What must hold after each step is in cluster_check.c.
 */
#include "tests/sim/cluster.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <xxhash.h>

#include "paxos/mutant.h"
#include "paxos/onepaxos_internal.h"
#include "tests/sim/cluster_internal.h"
#include "tests/sim/fate.h"

uint64_t cluster_random(struct cluster *c, uint64_t n)
{
    /* splitmix64 */
    uint64_t z = (c->rng += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (z ^ (z >> 31)) % n;
}

static void *resize(void *ctx, void *p, size_t bytes)
{
    struct cluster *c = ctx;
    if (bytes == 0) {
        c->blobs -= p != NULL;
        free(p);
        return NULL;
    }
    if (c->out_of_memory != 0 && cluster_random(c, 1000) < c->out_of_memory) {
        return NULL;
    }
    c->blobs += p == NULL;
    return realloc(p, bytes);
}

/* --------------------------------------------------------------- start -- */

const struct qn_ring *cluster_ring(const struct cluster *c, qn_node_t node,
                                   uint64_t inc)
{
    for (uint32_t i = 0; i < c->memory_count; i++) {
        if (c->memory[i].node == node && c->memory[i].inc == inc) {
            return &c->memory[i].ring;
        }
    }
    return NULL;
}

static int grow(void *ctx, uint64_t bytes)
{
    struct memory *m = ctx;
    CHECK(m->c, bytes <= qn_ring_bytes(m->c->ring_slots, m->c->ring_bytes),
          "node %u asks for more than its address space", m->node);
    if (m->c->out_of_memory != 0 &&
        cluster_random(m->c, 1000) < 4 * m->c->out_of_memory) {
        return QN_ENOMEM;
    }
    m->granted = QN_MAX(m->granted, bytes);
    return QN_OK;
}

static void claim(void *ctx, bool writable)
{
    struct member *m = ctx;
    m->claimed = writable;
}

static void owner(void *ctx, qn_epoch_t epoch)
{
    struct member *m = ctx;
    struct cluster *c = m->cluster;
    CHECK(c, m->claimed, "life %" PRIu64 " owns without a claim", m->inc);
    CHECK(c, epoch < CLUSTER_ENTRIES, "run too long");
    c->owner[epoch] = m->inc;
}

static const struct qn_ring *map_ring(void *ctx, qn_node_t node, uint64_t inc)
{
    const struct member *m = ctx;
    return cluster_ring(m->cluster, node, inc);
}

/** A new life has a new ring, and maps those of all others. */
static struct qn_shared *make_shared(struct cluster *c, qn_node_t i)
{
    CHECK(c, c->memory_count < CLUSTER_LIVES, "run too long");
    struct memory *m = &c->memory[c->memory_count++];
    size_t bytes = qn_ring_bytes(c->ring_slots, c->ring_bytes);
    *m = (struct memory){.c = c,
                         .node = i,
                         .inc = c->member[i].inc,
                         .granted = qn_ring_bytes(c->ring_slots, 0),
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
    x->shared = (struct qn_shared){.word = &c->word,
                                   .own = m->ring,
                                   .ring = map_ring,
                                   .claim = claim,
                                   .owner = owner,
                                   .ctx = x};
    qn_ring_begin(&x->shared.own, 1);
    return &x->shared;
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
        o.vote = &m->record.vote;
    }
    o.shared = c->in_memory ? make_shared(c, i) : NULL;
    size_t size = qn_onepaxos_size(&o);
    CHECK(c, size != 0, "bad options");
    m->p = qn_onepaxos_init(calloc(1, size), &o);
    m->deadline = QN_TIME_NEVER;
}

void cluster_start(struct cluster *c)
{
    c->alloc = (struct qn_alloc){resize, c};
    c->lives = 99;
    for (qn_node_t i = 0; i < c->nodes; i++) {
        c->member[i].inc = ++c->lives;
    }
    for (qn_node_t i = 0; i < c->nodes; i++) {
        member_start(c, i, NULL);
        cluster_check_roles(c, i);
        for (qn_node_t k = 0; k < c->nodes; k++) {
            c->direct[i][k].tail = &c->direct[i][k].head;
            c->tree[i][k].tail = &c->tree[i][k].head;
        }
    }
}

static void member_end(struct member *m)
{
    if (m->p != NULL) {
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
    CHECK(c, c->blobs == 0, "%" PRId64 " blobs are left", c->blobs);
}

/* ------------------------------------------------------------- packets -- */

static void post_piece(struct cluster *c, qn_node_t from, qn_node_t to,
                       const struct qn_msg *m, bool tree)
{
    uint8_t head[QN_HEAD_MAX];
    size_t n = qn_msg_head(m, head);
    if (c->member[to].p == NULL) {
        return;
    }
    struct packet *k = malloc(sizeof *k + n + m->body.len);
    *k = (struct packet){
        .from = from, .to = to, .due = c->now, .len = n + m->body.len};
    memcpy(k->bytes, head, n);
    if (m->body.len != 0) {
        memcpy(k->bytes + n, m->body.data, m->body.len);
    }
    if (c->on_send != NULL && !c->on_send(c, k, tree)) {
        free(k);
        return;
    }
    struct lane *l = tree ? &c->tree[from][to] : &c->direct[from][to];
    *l->tail = k;
    l->tail = &k->next;
}

static void post(struct cluster *c, qn_node_t from, qn_node_t to,
                 const struct qn_msg *m, bool tree)
{
    struct qn_msg piece;
    uint32_t at = 0;
    size_t max = tree || c->piece_bytes == 0 ? SIZE_MAX : c->piece_bytes;
    while (qn_msg_cut(m, max, &at, &piece)) {
        post_piece(c, from, to, &piece, tree);
    }
}

void cluster_drop(struct cluster *c, struct lane *l)
{
    (void)c;
    struct packet *k = l->head;
    l->head = k->next;
    if (l->head == NULL) {
        l->tail = &l->head;
    }
    free(k);
}

/** @return false: refused for now. */
static bool give(struct cluster *c, qn_node_t from, qn_node_t to,
                 const struct qn_msg *m)
{
    const struct qn_input in = {.kind = QN_IN_RECV, .recv = {from, m}};
    int err = cluster_step(c, to, &in);
    CHECK(c, err == QN_OK || err == QN_EAGAIN || err == QN_ENOMEM,
          "%u answers %d to %s from %u", to, err, qn_msg_name(m->kind), from);
    return err == QN_OK;
}

bool cluster_deliver(struct cluster *c, struct lane *l, bool tree)
{
    struct packet *k = l->head;
    if (k == NULL || c->member[k->to].p == NULL) {
        return false;
    }
    const qn_node_t to = k->to;
    if (!l->is_parked) {
        int err = qn_msg_decode(&l->parked, k->bytes, k->len);
        CHECK(c, err == QN_OK, "malformed packet %u->%u", k->from, k->to);
        err = tree ? QN_OK : qn_joiner_take(&l->joiner, &c->alloc, &l->parked);
        if (err == QN_ENOMEM) {
            return false;
        }
        CHECK(c, err == QN_OK || err == QN_EAGAIN, "pieces do not join");
        if (err == QN_EAGAIN) {
            const struct qn_input in = {
                .kind = QN_IN_PIECE,
                .piece = {k->from, l->parked.kind, l->parked.slot}};
            cluster_step(c, to, &in);
            if (c->member[to].p != NULL) {
                cluster_drop(c, l);
            }
            return true;
        }
    }
    bool taken = give(c, k->from, to, &l->parked);
    if (c->member[to].p == NULL) {
        return true; /* it died of it, and its lanes are empty */
    }
    l->is_parked = !taken;
    if (taken) {
        cluster_drop(c, l);
    }
    return taken;
}

/* --------------------------------------------------------------- steps -- */

static void persist(struct cluster *c, qn_node_t i, const struct qn_vote *vote)
{
    struct member *m = &c->member[i];
    const struct qn_utility *u = qn_onepaxos_utility(m->p);
    m->record.vote = *vote;
    for (uint32_t *n = &m->record.count; *n < vote->index; (*n)++) {
        CHECK(c, *n < CLUSTER_ENTRIES, "run too long");
        /* NULL: so old that a snapshot has brought the log without it. */
        const struct qn_ul_entry *e = qn_utility_entry(u, *n);
        m->record.log[*n] = e != NULL ? *e : c->entry[*n];
    }
}

static void execute(struct cluster *c, qn_node_t i, const struct qn_out *o)
{
    switch (o->kind) {
    case QN_OUT_SEND:
        post(c, i, o->to, &o->msg, false);
        break;
    case QN_OUT_SEND_ALL:
    case QN_OUT_BCAST:
        for (qn_node_t k = 0; k < c->nodes; k++) {
            if (k != i && (o->kind == QN_OUT_SEND_ALL || k != o->to)) {
                post(c, i, k, &o->msg, o->kind == QN_OUT_BCAST);
            }
        }
        break;
    case QN_OUT_PERSIST:
        persist(c, i, &o->vote);
        break;
    case QN_OUT_APPLY:
        cluster_check_apply(c, i, &o->apply);
        break;
    case QN_OUT_NEED_SNAPSHOT:
        c->member[i].need_snapshot = true;
        break;
    }
}

/** All that a step did, so that two runs can be compared. */
static void trace(struct cluster *c, qn_node_t node, const struct qn_input *in,
                  int err)
{
    const struct member *m = &c->member[node];
    const uint64_t step[] = {c->now,         c->wall_ms,    node,
                             in->kind,       (uint64_t)err, m->out.count,
                             m->out.deadline};
    c->trace = XXH3_64bits_withSeed(step, sizeof step, c->trace);
    for (uint32_t i = 0; i < m->out.count; i++) {
        const struct qn_out *o = &m->out.out[i];
        uint8_t head[QN_HEAD_MAX];
        struct qn_slice body = {NULL, 0};
        size_t n = 0;
        if (o->kind <= QN_OUT_BCAST) {
            n = qn_msg_head(&o->msg, head);
            body = o->msg.body;
        } else if (o->kind == QN_OUT_APPLY) {
            body = o->apply.group.commands;
        }
        const uint64_t what[] = {o->kind, o->kind <= QN_OUT_BCAST ? o->to : 0,
                                 XXH3_64bits(head, n),
                                 XXH3_64bits(body.data, body.len)};
        c->trace = XXH3_64bits_withSeed(what, sizeof what, c->trace);
    }
}

static void count(struct cluster *c, qn_node_t node, const struct qn_input *in,
                  enum qn_role before, bool active)
{
    const struct member *m = &c->member[node];
    struct coverage *v = c->cover;
    if (v == NULL) {
        return;
    }
    bool mem = c->in_memory;
    const struct qn_onepaxos *p = m->p;
    v->input[mem][in->kind]++;
    v->message[mem][in->kind == QN_IN_RECV ? in->recv.msg->kind : 0]++;
    for (uint32_t i = 0; i < m->out.count; i++) {
        v->output[mem][m->out.out[i].kind]++;
    }
    if (before != p->leader.role) {
        v->role[mem][before][p->leader.role]++;
    }
    bool lost = mem && in->kind == QN_IN_TICK && before == QN_ACTIVE &&
                p->leader.role == QN_FOLLOWER && p->cfg.index == p->leader.ep;
    v->row[COVERAGE_WORD_CAS_LOST] += lost;
    bool prepare =
        in->kind == QN_IN_RECV && in->recv.msg->kind == QN_MSG_PREPARE;
    v->row[COVERAGE_BY_PREPARE] += prepare && !active && p->acceptor.active;
}

/** @return how many outputs are executed: all, unless it dies on the way. */
static uint32_t outputs_before_death(struct cluster *c, qn_node_t node)
{
    uint32_t all = c->member[node].out.count;
    if ((c->doomed & QN_BIT(node)) == 0 || all == 0) {
        return UINT32_MAX;
    }
    c->doomed &= ~QN_BIT(node);
    if (!c->on_doom(c, node)) {
        return UINT32_MAX;
    }
    if (c->cover != NULL) {
        c->cover->row[COVERAGE_DIED_BETWEEN]++;
    }
    return (uint32_t)cluster_random(c, all);
}

int cluster_step(struct cluster *c, qn_node_t node, const struct qn_input *in)
{
    struct member *m = &c->member[node];
    if (m->p == NULL) {
        return QN_OK;
    }
    enum qn_role before = m->p->leader.role;
    bool active = m->p->acceptor.active;
    int err = qn_onepaxos_step(m->p, in, c->now, c->wall_ms, &m->out);
    trace(c, node, in, err);
    count(c, node, in, before, active);
    cluster_check_learned(c, node);
    cluster_check_roles(c, node);
    cluster_check_bounds(c, node);
    if (c->on_outputs != NULL) {
        c->on_outputs(c, node);
    }
    uint32_t last = outputs_before_death(c, node);
    for (uint32_t i = 0; i < m->out.count && i < last; i++) {
        execute(c, node, &m->out.out[i]);
    }
    m->deadline = m->out.deadline;
    m->transfers = m->out.transfers;
    qn_step_out_release(&m->out);
    if (last != UINT32_MAX) {
        cluster_kill(c, node, 8);
    }
    return err;
}

int cluster_submit(struct cluster *c, qn_node_t node, const char *text,
                   size_t len)
{
    struct qn_slice part = {(const uint8_t *)text, len};
    const struct qn_input in = {.kind = QN_IN_SUBMIT, .submit = {&part, 1}};
    return cluster_step(c, node, &in);
}

void cluster_tick(struct cluster *c, qn_node_t node)
{
    const struct qn_input in = {.kind = QN_IN_TICK};
    do {
        int err = cluster_step(c, node, &in);
        CHECK(c, err == QN_OK, "TICK answers %d", err);
    } while (c->member[node].out.again);
}

void cluster_room(struct cluster *c, qn_node_t node, uint64_t peers)
{
    const struct qn_input in = {.kind = QN_IN_ROOM, .room = {peers}};
    cluster_step(c, node, &in);
}

void cluster_beat(struct cluster *c, qn_node_t node, qn_node_t peer)
{
    struct qn_onepaxos_status st;
    if (c->member[peer].p == NULL) {
        return;
    }
    qn_onepaxos_status(c->member[peer].p, &st);
    const struct qn_input in = {.kind = QN_IN_BEAT,
                                .beat = {peer, st.applied, st.learned_hi, 0}};
    cluster_step(c, node, &in);
}

void cluster_say_beat(struct cluster *c, qn_node_t node)
{
    const struct qn_onepaxos *p = c->member[node].p;
    const struct qn_msg m = {.kind = QN_MSG_BEAT,
                             .epoch = p->cfg.index,
                             .beat = {.applied = p->applied,
                                      .learned = p->learned_hi,
                                      .decided = p->decided_hi,

                                      .ul_len = qn_utility_len(&p->ul)}};
    for (qn_node_t k = 0; k < c->nodes; k++) {
        if (k != node) {
            post(c, node, k, &m, false);
        }
    }
}

void cluster_allow(struct cluster *c, qn_node_t node, uint64_t commands)
{
    const struct qn_input in = {.kind = QN_IN_GO};
    qn_onepaxos_allow(c->member[node].p, commands);
    cluster_step(c, node, &in);
}

/* --------------------------------------------------------------- lives -- */

/** Drop what is behind the first `keep` packets. */
static void cut(struct lane *l, uint64_t keep)
{
    struct packet **at = &l->head;
    while (*at != NULL && keep-- > 0) {
        at = &(*at)->next;
    }
    struct packet *rest = *at;
    *at = NULL;
    l->tail = at;
    while (rest != NULL) {
        struct packet *next = rest->next;
        free(rest);
        rest = next;
    }
}

static void reset_lane(struct lane *l)
{
    cut(l, 0);
    qn_joiner_reset(&l->joiner);
    l->is_parked = false;
}

void cluster_kill(struct cluster *c, qn_node_t node, uint64_t keep)
{
    struct member *m = &c->member[node];
    fate_dies(c, node);
    member_end(m);
    c->doomed &= ~QN_BIT(node);
    m->need_snapshot = m->active = m->out.again = false;
    m->transfers = 0;
    for (qn_node_t k = 0; k < c->nodes; k++) {
        reset_lane(&c->direct[k][node]);
        reset_lane(&c->tree[k][node]);
        cut(&c->direct[node][k],
            cluster_random(c, keep) + c->direct[node][k].is_parked);
        cut(&c->tree[node][k], cluster_random(c, keep));
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
        reset_lane(&c->direct[node][k]);
        reset_lane(&c->tree[node][k]);
    }
    copy_state(m, &c->member[donor]);
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

void cluster_down(struct cluster *c, qn_node_t node, qn_node_t peer)
{
    const struct qn_input in = {.kind = QN_IN_DOWN, .down = {peer}};
    cluster_step(c, node, &in);
}

void cluster_suspect(struct cluster *c, qn_node_t node, uint64_t peers)
{
    const struct qn_input in = {.kind = QN_IN_SUSPECT, .suspect = {peers}};
    cluster_step(c, node, &in);
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
