/*
 * The lives of a replica's peers, as this replica sees them.
 *
 *     PEER       map the outbox, open two queuepairs (direct and tree)
 *     DEAD       by the kernel's mark in the commons, or PEER_DOWN, whichever
 *                comes first: close the queuepairs; the outbox stays mapped
 *                while the driver keeps it (its ring may hold the last slots)
 *     PEER       of a later life, in the order of lives
 *
 * Deaths and standstills are looked for only while something waits, and then at
 * every turn or LOOK apart at the latest, whichever is rarer: who waits for
 * nobody needs no news, and an idle server uses no CPU. A death is certain. A
 * standstill is a suspicion: the peer's turn counter has not moved for SILENT
 * of this replica's own time, of which one turn counts OWN_TURN at most, so
 * that one that was itself taken off its core suspects nobody for it. Who is
 * silent is rung first: he may sleep, and that is not standing still. Who has
 * run for RUNS in that time is in the middle of a long turn (KEYS of 10^7 keys:
 * 0.5 s), and given LONG_TURN: a change of leaders would help nobody, since the
 * next one may be asked the same.
 *
 * SILENT: a core shared by five processes gives each a turn every 15 to 20 ms.
 * Of one that was stopped the kernel says so, and nobody has to guess.
 *
 * Who has died frees its memory on the core that it had, perhaps that of the
 * next leader, for 0.1 ms per MB. So it gets the longest slice, and nobody
 * yields to it: whoever wakes there goes first.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/log.h"
#include "core/place/life.h"
#include "core/place/process.h"
#include "kvs/server.h"
#include "transports/registry.h"

#define LOOK           (500 * QN_US)
#define OWN_TURN       (5 * QN_MS)
#define SILENT         (50 * QN_MS) /* cores are shared */
#define SILENT_OWN     (20 * QN_MS) /* each replica has its own */
#define SILENT_STOPPED (10 * QN_MS) /* and the kernel says so */
#define RING_AFTER     QN_MS
#define RUNS           (5 * QN_MS) /* CPU time */
#define LONG_TURN      (2000 * QN_MS)
#define KEPT_LOOK      (100 * QN_MS)
#define RING_ADDRESS   (UINT64_C(1) << 30) /* of batches, address space */
#define RING_SPAN      (UINT64_C(4) << 20) /* of a lap at first */

bool qn_server_by_memory(const struct qn_server *s)
{
    return s->boot->config->memory_acceptor && s->boot->nodes > 1;
}

/* ---- rings --------------------------------------------------------------- */

static int ring_grow(void *ctx, uint64_t bytes)
{
    struct qn_server *s = ctx;
    return qn_outbox_grow(s->outbox, bytes);
}

static struct qn_ring_opts ring_opts(struct qn_server *s)
{
    return (struct qn_ring_opts){.slots = QN_RING,
                                 .capacity = RING_ADDRESS,
                                 .span = RING_SPAN,
                                 .keep = QN_LOG_BYTES,
                                 .grow = ring_grow,
                                 .ctx = s};
}

static void ring_open(struct qn_server *s, struct qn_ring *r,
                      const struct qn_outbox *o)
{
    const struct qn_ring_opts opts = ring_opts(s);
    if (qn_server_by_memory(s)) {
        qn_ring_open(r, qn_outbox_ring(o), &opts);
    }
}

/* ---- lives --------------------------------------------------------------- */

/* `outbox` is taken, also on failure; its descriptor `fd` is not. */
static int life_new(struct qn_server *s, struct qn_server_life **out,
                    const struct qn_boot_event *e, struct qn_outbox *outbox,
                    int fd)
{
    struct qn_server_life *l = calloc(1, sizeof *l);
    int own = l == NULL ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (own < 0) {
        int err = l == NULL ? QN_ENOMEM : QN_EMFILE;
        qn_outbox_destroy(outbox);
        free(l);
        return err;
    }
    l->fd = own;
    l->node = e->node;
    l->inc = e->incarnation;
    l->pid = (int)e->value;
    l->outbox = outbox;
    ring_open(s, &l->ring, outbox);
    *out = l;
    return QN_OK;
}

static void life_free(struct qn_server_life *l)
{
    if (l != NULL) {
        qn_outbox_destroy(l->outbox);
        close(l->fd);
        free(l);
    }
}

static void keep(struct qn_server *s, struct qn_server_life *l)
{
    qn_server_events_keep(s, l->node, l->outbox);
    l->next = s->kept;
    s->kept = l;
}

static void qps_close(struct qn_server *s, qn_node_t i)
{
    qn_qp_close(s->direct[i]);
    qn_qp_close(s->tree[i]);
    s->direct[i] = s->tree[i] = NULL;
}

static int qps_open(struct qn_server *s, qn_node_t i)
{
    const struct qn_boot *b = s->boot;
    const struct qn_server_life *l = s->peer[i];
    struct qn_qp **qp[QN_LANES] = {&s->direct[i], &s->tree[i]};
    qn_ringer_init(&s->ringer[i], qn_outbox_bell(l->outbox), b->bell_fd[i]);
    for (enum qn_lane lane = 0; lane < QN_LANES; lane++) {
        const struct qn_qp_opts o = {
            .tx = qn_outbox_lane(s->outbox, i, lane),
            .rx = qn_outbox_lane(l->outbox, b->self, lane),
            .cells = b->config->cells,
            .self = b->self,
            .peer = i,
            .self_inc = b->incarnation,
            .peer_inc = l->inc,
            .bell = &s->bell,
            .ringer = &s->ringer[i],
        };
        int err = s->transport->open(qp[lane], &o);
        if (err != QN_OK) {
            qps_close(s, i);
            return err;
        }
    }
    return QN_OK;
}

/* ---- before there is a driver -------------------------------------------- */

static int on_heard(void *ctx, const struct qn_boot_event *e,
                    struct qn_outbox *outbox, int fd)
{
    struct qn_server *s = ctx;
    struct qn_server_life *l = NULL;
    if (e->node >= s->boot->nodes) {
        return QN_ECORRUPT;
    }
    struct qn_server_life **peer = &s->peer[e->node];
    if (outbox == NULL) {
        s->peer_inc[e->node] = e->incarnation;
        if (*peer != NULL && (*peer)->inc == e->incarnation) {
            keep(s, *peer);
            *peer = NULL;
        }
        return QN_OK;
    }
    int err = life_new(s, &l, e, outbox, fd);
    if (err != QN_OK) {
        return err;
    }
    if (e->node == s->boot->self) { /* our predecessor */
        keep(s, l);
    } else if (*peer != NULL) {
        life_free(l);
        return QN_ECORRUPT;
    } else {
        s->peer_inc[e->node] = l->inc;
        l->founder = s->boot->first;
        *peer = l;
    }
    return QN_OK;
}

static struct qn_outbox_opts shape(const struct qn_server *s)
{
    const struct qn_boot *b = s->boot;
    return (struct qn_outbox_opts){
        .node = b->self,
        .nodes = b->nodes,
        .incarnation = b->incarnation,
        .lane_bytes = s->transport->lane_bytes(b->config->cells),
        .ring_bytes =
            qn_server_by_memory(s) ? qn_ring_bytes(QN_RING, RING_ADDRESS) : 0,
        .numa_node = b->numa_node[b->self],
        .reader_numa_node = b->numa_node,
        .shared = true,
    };
}

static int outbox_make(struct qn_server *s)
{
    const struct qn_outbox_opts o = shape(s);
    int err = qn_outbox_create(&s->outbox, &o);
    if (err == QN_OK && qn_server_by_memory(s)) {
        err = qn_outbox_grow(s->outbox, qn_ring_bytes(QN_RING, 0));
    }
    if (err == QN_OK) {
        ring_open(s, &s->ring, s->outbox);
    }
    return err;
}

/* This process lives as its node from here on: the kernel says when not. */
static int live(struct qn_server *s)
{
    const struct qn_boot *b = s->boot;
    int err = qn_commons_map(&s->commons, b->commons_fd, b->nodes);
    if (err == QN_OK) {
        err = qn_commons_own(s->commons, b->self);
    }
    return err == QN_OK ? qn_life_begin(s->commons, b->self, b->incarnation)
                        : err;
}

int qn_server_peers_meet(struct qn_server *s)
{
    const struct qn_boot *b = s->boot;
    const struct qn_outbox_opts like = shape(s);
    int err = outbox_make(s);
    if (err == QN_OK) {
        err = live(s);
    }
    if (err == QN_OK) {
        err = qn_boot_exchange(b, s->outbox, &like, on_heard, s);
    }
    if (err == QN_OK) {
        qn_bell_init(&s->bell, qn_outbox_bell(s->outbox), b->bell_fd[b->self]);
    }
    for (qn_node_t i = 0; err == QN_OK && i < b->nodes; i++) {
        err = s->peer[i] == NULL ? QN_OK : qps_open(s, i);
    }
    return err;
}

int qn_server_peers_remember(struct qn_server *s)
{
    int err = QN_OK;
    for (struct qn_server_life *l = s->kept; err == QN_OK && l != NULL;
         l = l->next) {
        err = qn_server_by_memory(s)
                  ? qn_driver_remember(qn_replica_driver(s->replica), l->node,
                                       l->inc, &l->ring)
                  : QN_OK;
    }
    return err;
}

/* ---- while serving ------------------------------------------------------- */

static void down(struct qn_server *s, qn_node_t i)
{
    struct qn_server_life *l = s->peer[i];
    qn_driver_down(qn_replica_driver(s->replica), i, qn_clock_now());
    qps_close(s, i);
    qn_ask_down(s->ask, i);
    qn_rejoin_down(s->rejoin, i, qn_clock_now());
    qn_server_events_ended(s, i, l->inc, qn_clock_now());
    s->peer[i] = NULL;
    keep(s, l);
    qn_doors_news(s);
    s->turn_wanted = true;
}

void qn_server_peer_down(struct qn_server *s, const struct qn_boot_event *e)
{
    if (e->node < s->boot->nodes && s->peer[e->node] != NULL &&
        s->peer[e->node]->inc == e->incarnation) {
        down(s, e->node);
    }
}

static int up(struct qn_server *s, struct qn_server_life *l)
{
    qn_node_t i = l->node;
    s->peer[i] = l;
    s->peer_inc[i] = l->inc;
    int err = qps_open(s, i);
    if (err == QN_OK) {
        const struct qn_driver_peer_opts o = {
            .node = i,
            .inc = l->inc,
            .direct = s->direct[i],
            .tree = s->tree[i],
            .state = qn_outbox_state(l->outbox),
            .ring = qn_server_by_memory(s) ? &l->ring : NULL};
        err = qn_driver_up(qn_replica_driver(s->replica), &o, qn_clock_now());
    }
    if (err != QN_OK) {
        qps_close(s, i);
        s->peer[i] = NULL;
        life_free(l);
    }
    return err;
}

void qn_server_peer_up(struct qn_server *s, const struct qn_boot_event *e,
                       int fd)
{
    const struct qn_outbox_opts like = shape(s);
    struct qn_outbox *outbox = NULL;
    struct qn_server_life *l = NULL;
    int err = e->node == s->boot->self
                  ? QN_ECORRUPT
                  : qn_boot_map(s->boot, e, fd, &like, &outbox);
    if (err == QN_OK) {
        err = life_new(s, &l, e, outbox, fd);
    }
    if (err == QN_OK) {
        if (s->peer[e->node] != NULL) {
            down(s, e->node);
        }
        err = up(s, l);
    }
    if (err != QN_OK) {
        qn_log(QN_LOG_ERROR, "replica %u: cannot reach replica %u again: %s",
               s->boot->self, e->node, qn_strerror(err));
        return;
    }
    qn_ask_up(s->ask, e->node);
    qn_rejoin_up(s->rejoin, e->node);
    qn_doors_news(s);
    s->turn_wanted = true;
}

/* ---- watching ------------------------------------------------------------ */

static void look_for_deaths(struct qn_server *s)
{
    for (qn_node_t i = 0; i < s->boot->nodes; i++) {
        if (s->peer[i] != NULL &&
            qn_life_look(s->commons, i, s->peer[i]->inc) == QN_LIFE_DEAD) {
            (void)qn_process_slice(s->peer[i]->pid, QN_SLICE_LONGEST);
            qn_spin_yield_not(&s->yield, qn_clock_now());
            down(s, i);
        }
    }
}

/* Time in which it has made no turn, while it was waited for. */
static void count_silence(struct qn_server *s, struct qn_server_life *l,
                          bool waited_for, qn_time_t passed)
{
    /* relaxed: a sign of life; nothing is read through it. */
    uint64_t turns = qn_load(&qn_outbox_state(l->outbox)->turns, QN_RELAXED);
    if (!waited_for || turns != l->turns) {
        l->turns = turns;
        l->silent = 0;
        return;
    }
    bool new = l->silent < RING_AFTER;
    l->silent += passed;
    if (l->silent >= RING_AFTER) {
        l->cpu = new ? qn_process_ran(l->pid) : l->cpu;
        (void)qn_ringer_ring(&s->ringer[l->node]);
    }
}

/* It stands still; or its turn is so long that nobody can wait for it. */
static bool is_silent(const struct qn_server *s, const struct qn_server_life *l)
{
    if (l->silent >= SILENT_STOPPED && qn_process_stopped(l->pid)) {
        return true;
    }
    if (l->silent < (s->boot->own_cores ? SILENT_OWN : SILENT)) {
        return false;
    }
    return l->silent >= LONG_TURN || qn_process_ran(l->pid) < l->cpu + RUNS;
}

static void look_for_standstills(struct qn_server *s, uint64_t waited_for,
                                 qn_time_t passed)
{
    uint64_t suspects = 0;
    for (qn_node_t i = 0; i < s->boot->nodes; i++) {
        struct qn_server_life *l = s->peer[i];
        if (l != NULL) {
            count_silence(s, l, (waited_for >> i & 1) != 0, passed);
            suspects |= (uint64_t)is_silent(s, l) << i;
        }
    }
    if (suspects != s->suspects) {
        s->suspects = suspects;
        s->turn_wanted = true;
        qn_driver_suspect(qn_replica_driver(s->replica), suspects,
                          qn_clock_now());
    }
}

static void forget_kept(struct qn_server *s)
{
    struct qn_server_life **at = &s->kept;
    while (*at != NULL) {
        struct qn_server_life *l = *at;
        if (qn_driver_keeps(qn_replica_driver(s->replica), l->node, l->inc)) {
            at = &l->next;
        } else {
            *at = l->next;
            life_free(l);
        }
    }
}

qn_time_t qn_server_peers_turn(struct qn_server *s, qn_time_t now)
{
    if (now < s->look_at) {
        return s->look_at;
    }
    uint64_t waited_for = qn_driver_waits_for(qn_replica_driver(s->replica));
    qn_time_t passed = QN_MIN(now - s->looked, OWN_TURN);
    s->looked = now;
    if (waited_for != 0) {
        look_for_deaths(s);
    }
    if (waited_for != 0 || s->suspects != 0) {
        look_for_standstills(s, waited_for, passed);
    }
    forget_kept(s);
    if (waited_for == 0 && s->suspects == 0 && s->kept == NULL) {
        s->look_at = 0; /* with the next turn */
        return QN_TIME_NEVER;
    }
    s->look_at = now + (waited_for != 0 ? LOOK : KEPT_LOOK);
    return s->look_at;
}

void qn_server_peers_fini(struct qn_server *s)
{
    for (qn_node_t i = 0; i < s->boot->nodes; i++) {
        qps_close(s, i);
        life_free(s->peer[i]);
    }
    while (s->kept != NULL) {
        struct qn_server_life *l = s->kept;
        s->kept = l->next;
        life_free(l);
    }
    if (s->commons != NULL) {
        (s->leaves ? qn_life_leave : qn_life_end)(s->commons, s->boot->self,
                                                  s->boot->incarnation);
    }
    qn_commons_destroy(s->commons);
    qn_outbox_destroy(s->outbox);
}
