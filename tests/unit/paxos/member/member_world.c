#include "tests/unit/paxos/member/member_world.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "tests/support/test.h"
#include "transports/registry.h"

enum { CELLS = 256 };

#define BACKLOG (UINT64_C(4) << 20)

/* ---- what a member tells, in its thread ---------------------------------- */

static void on_superseded(void *ctx, uint64_t incarnation)
{
    (void)ctx;
    (void)incarnation;
    _exit(7);
}

static void on_ended(void *ctx, qn_node_t node, uint64_t incarnation,
                     qn_time_t now)
{
    struct world_life *l = ctx;
    struct qn_member_peer p;
    (void)now;
    QN_ASSERT(qn_member_peer(l->member, node, &p)); /* still there */
    QN_ASSERT(p.incarnation == incarnation);
    pthread_mutex_lock(&l->world->lock);
    l->deaths |= UINT64_C(1) << node;
    pthread_cond_broadcast(&l->world->changed);
    pthread_mutex_unlock(&l->world->lock);
}

static void on_recorded(void *ctx, qn_node_t node, uint64_t incarnation,
                        const void *flight)
{
    struct world_life *l = ctx;
    (void)node;
    (void)incarnation;
    QN_ASSERT(flight != NULL);
    pthread_mutex_lock(&l->world->lock);
    l->recorded++;
    pthread_cond_broadcast(&l->world->changed);
    pthread_mutex_unlock(&l->world->lock);
}

static void on_resumed(void *ctx, qn_node_t node, qn_time_t timeout)
{
    struct world_life *l = ctx;
    QN_ASSERT(timeout > 0);
    pthread_mutex_lock(&l->world->lock);
    l->resumed |= UINT64_C(1) << node;
    pthread_cond_broadcast(&l->world->changed);
    pthread_mutex_unlock(&l->world->lock);
}

static void on_line(void *ctx, enum qn_log_level level, const char *line)
{
    struct world_life *l = ctx;
    char mine[32];
    (void)level;
    snprintf(mine, sizeof mine, "member %u: ", l->node);
    QN_ASSERT(strncmp(line, mine, strlen(mine)) == 0);
    pthread_mutex_lock(&l->world->lock);
    l->snapshot_lines += strstr(line, "installed a snapshot") != NULL;
    pthread_mutex_unlock(&l->world->lock);
}

/* ---- the service --------------------------------------------------------- */

static uint32_t on_apply(void *ctx, const struct qn_applied *a)
{
    struct world_life *l = ctx;
    pthread_mutex_lock(&l->world->lock);
    QN_ASSERT(!l->cutting || !l->world->no_cut);
    l->state.applied++;
    l->state.digest =
        (l->state.digest ^ (a->seq << 8 | a->origin)) * 1099511628211u;
    pthread_mutex_unlock(&l->world->lock);
    return 1;
}

static void on_applied(void *ctx, qn_slot_t slot, uint64_t stamp_ms)
{
    struct world_life *l = ctx;
    (void)slot;
    (void)stamp_ms;
    pthread_cond_broadcast(&l->world->changed);
}

static void on_peer_message(void *ctx, qn_node_t from, struct qn_slice bytes)
{
    struct world_life *l = ctx;
    (void)from;
    QN_ASSERT(bytes.len == sizeof WORLD_MESSAGE);
    QN_ASSERT(memcmp(bytes.data, WORLD_MESSAGE, bytes.len) == 0);
    pthread_mutex_lock(&l->world->lock);
    l->messages++;
    pthread_cond_broadcast(&l->world->changed);
    pthread_mutex_unlock(&l->world->lock);
}

/* ---- its state ----------------------------------------------------------- */

static bool is_complete(void *ctx)
{
    return ((struct world_life *)ctx)->complete;
}

static int cut_begin(void *ctx, qn_slot_t position)
{
    struct world_life *l = ctx;
    QN_ASSERT(position == qn_driver_applied(qn_member_driver(l->member)));
    l->cut = l->state;
    l->cut_given = false;
    l->cutting = true;
    pthread_mutex_lock(&l->world->lock);
    l->cuts++;
    pthread_cond_broadcast(&l->world->changed);
    pthread_mutex_unlock(&l->world->lock);
    return QN_OK;
}

static int cut_next(void *ctx, uint8_t *bytes, size_t cap, size_t *len)
{
    struct world_life *l = ctx;
    if (l->cut_given) {
        return QN_ENOENT;
    }
    QN_ASSERT(cap >= sizeof l->cut);
    memcpy(bytes, &l->cut, sizeof l->cut);
    *len = sizeof l->cut;
    l->cut_given = true;
    return QN_OK;
}

static void cut_end(void *ctx)
{
    ((struct world_life *)ctx)->cutting = false;
}

static int build_read(void *ctx, qn_slot_t position, struct qn_slice part)
{
    struct world_life *l = ctx;
    (void)position;
    QN_ASSERT(part.len == sizeof l->built);
    memcpy(&l->built, part.data, sizeof l->built);
    return QN_OK;
}

static int build_finish(void *ctx)
{
    (void)ctx;
    return QN_OK;
}

static void build_install(void *ctx, qn_slot_t position)
{
    struct world_life *l = ctx;
    QN_ASSERT(position == qn_driver_applied(qn_member_driver(l->member)));
    pthread_mutex_lock(&l->world->lock);
    l->state = l->built;
    l->complete = true;
    l->installed++;
    pthread_cond_broadcast(&l->world->changed);
    pthread_mutex_unlock(&l->world->lock);
}

static void build_abandon(void *ctx)
{
    ((struct world_life *)ctx)->built = (struct world_state){0};
}

static void on_lags(void *ctx, qn_slot_t slot)
{
    struct world_life *l = ctx;
    QN_ASSERT(slot > 0);
    pthread_mutex_lock(&l->world->lock);
    l->lags++;
    pthread_mutex_unlock(&l->world->lock);
}

static void on_covered(void *ctx, uint64_t seq)
{
    const struct world_life *l = ctx;
    QN_ASSERT(seq <= l->submitted);
}

static void on_caught_up(void *ctx, qn_slot_t position)
{
    struct world_life *l = ctx;
    QN_ASSERT(position <= qn_driver_applied(qn_member_driver(l->member)));
    l->complete = true;
}

struct qn_member_state world_state_of(struct world_life *l)
{
    return (struct qn_member_state){.user = {.no_cut = l->world->no_cut,
                                             .complete = is_complete,
                                             .begin = cut_begin,
                                             .next = cut_next,
                                             .end = cut_end,
                                             .read = build_read,
                                             .finish = build_finish,
                                             .install = build_install,
                                             .abandon = build_abandon,
                                             .ctx = l},
                                    .lags = on_lags,
                                    .covered = on_covered,
                                    .caught_up = on_caught_up,
                                    .ctx = l};
}

/* ---- a member's thread --------------------------------------------------- */

static uint64_t seats_taken(const struct world *w)
{
    uint64_t mask = 0;
    for (qn_node_t i = 0; i < w->seats; i++) {
        mask |= (uint64_t)(w->present[i] != NULL) << i;
    }
    return mask;
}

struct qn_member_opts world_opts(struct world *w, qn_node_t node,
                                 uint64_t incarnation)
{
    static const int anywhere[QN_NODES_MAX] = {[0 ... QN_NODES_MAX - 1] = -1};
    return (struct qn_member_opts){
        .self = node,
        .nodes = w->seats,
        .seats = seats_taken(w),
        .voters = w->seats > WORLD_NODES ? qn_low_bits(WORLD_NODES) : 0,
        .incarnation = incarnation,
        .first = incarnation <= WORLD_NODES,
        .seed = incarnation,
        .commons_fd = w->commons_fd,
        .hold_fd = w->commons_fd,
        .record_fd = -1,
        .doorbell_fd = w->doorbell_fd,
        .transport = w->transport,
        .cells = CELLS,
        .device = {.nodes = w->seats, .lanes = QN_LANES, .seed = 1},
        .shares = true,
        .memory_acceptor = w->memory_acceptor,
        .ring_bytes = 2 * BACKLOG,
        .arena_bytes = BACKLOG,
        .backlog_bytes = BACKLOG,
        .lag_timeout = w->lag_timeout != 0 ? w->lag_timeout : 10 * QN_S,
        .numa_node = anywhere,
        .topology = "sequential",
        .callbacks = {.superseded = on_superseded,
                      .ended = on_ended,
                      .recorded = on_recorded,
                      .resumed = on_resumed}};
}

static struct qn_member_peer peer_of(const struct world_life *l)
{
    return (struct qn_member_peer){.node = l->node,
                                   .incarnation = l->incarnation,
                                   .pid = l->tid,
                                   .fd = qn_member_outbox_fd(l->member)};
}

static bool all_there(const struct world *w)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < w->lives; i++) {
        n += w->life[i].there;
    }
    return n == w->lives;
}

/* All that take turns have met it. */
static bool is_met(const struct world_life *l)
{
    for (qn_node_t i = 0; i < l->world->seats; i++) {
        const struct world_life *k = l->world->present[i];
        if (k != NULL && k != l && k->started && !k->ended &&
            k->met[l->node] != l->incarnation) {
            return false;
        }
    }
    return true;
}

/* The present ones of all nodes, and this node's own former incarnations. All
 * are there, and none comes or goes meanwhile. */
static void meet(struct world_life *l)
{
    const struct world *w = l->world;
    for (uint32_t i = 0; i < w->lives; i++) {
        const struct world_life *k = &w->life[i];
        const struct qn_member_peer p = peer_of(k);
        if (k != l && (k->node == l->node || w->present[k->node] == k)) {
            QN_ASSERT(qn_member_meet(l->member, &p) == QN_OK);
            if (k->ended && k->node != l->node) {
                qn_member_meet_ended(l->member, p.node, p.incarnation);
            }
        }
    }
}

/* Locked. */
static void hear_of_new_peers(struct world_life *l)
{
    struct world *w = l->world;
    for (qn_node_t i = 0; i < w->seats; i++) {
        const struct world_life *k = w->present[i];
        struct qn_member_peer known;
        (void)qn_member_peer(l->member, i, &known);
        if (k != NULL && i != l->node && k->there &&
            k->incarnation > known.incarnation) {
            const struct qn_member_peer p = peer_of(k);
            pthread_mutex_unlock(&w->lock); /* it may call back */
            QN_ASSERT(qn_member_peer_up(l->member, &p) == QN_OK);
            pthread_mutex_lock(&w->lock);
            l->met[i] = p.incarnation;
            pthread_cond_broadcast(&w->changed);
        }
    }
}

/* Locked. */
static void submit(struct world_life *l)
{
    static const uint8_t zeros[1 << 15];
    struct qn_driver *d = qn_member_driver(l->member);
    while (l->submitted < l->wanted && qn_driver_room(d)) {
        const uint32_t bytes = l->world->command_bytes;
        const struct qn_slice command = {.data = zeros,
                                         .len = bytes != 0 ? bytes : 8};
        uint64_t seq;
        QN_ASSERT(qn_driver_submit(d, &command, 1, &seq) == QN_OK);
        l->submitted++;
    }
}

static void note_roles(struct world_life *l, qn_time_t now)
{
    struct qn_driver_status st;
    qn_driver_status(qn_member_driver(l->member), &st);
    if (st.failovers != l->failovers && st.reason == QN_REASON_SUSPECTED) {
        qn_member_deposed(l->member, st.lost, now);
    }
    pthread_mutex_lock(&l->world->lock);
    l->failovers = st.failovers;
    l->leader = st.leader;
    pthread_cond_broadcast(&l->world->changed);
    pthread_mutex_unlock(&l->world->lock);
}

/* @return when the next one is due; 0: at once. */
static qn_time_t turn(struct world_life *l)
{
    struct qn_driver *d = qn_member_driver(l->member);
    qn_time_t now = qn_clock_now();
    qn_time_t at = qn_member_turn_begin(l->member, now);
    (void)qn_driver_turn(d, now, qn_clock_wall_ms());
    pthread_mutex_lock(&l->world->lock);
    hear_of_new_peers(l);
    submit(l);
    if (l->speak) {
        const struct qn_slice bytes = {(const uint8_t *)WORLD_MESSAGE,
                                       sizeof WORLD_MESSAGE};
        int err = qn_driver_send_peer_message(d, l->speak_to, bytes);
        l->speak = err == QN_EAGAIN;
    }
    pthread_mutex_unlock(&l->world->lock);
    (void)qn_driver_flush(d, now);
    at = QN_MIN(at, qn_member_turn_end(l->member, now));
    note_roles(l, now);
    at = QN_MIN(at, qn_driver_deadline(d));
    qn_member_yield(l->member, now);
    qn_member_arm(l->member);
    return qn_member_again(l->member) ? 0 : at;
}

static void wait(struct world_life *l, qn_time_t at)
{
    struct pollfd p = {.fd = l->world->doorbell_fd[l->node], .events = POLLIN};
    qn_time_t now = qn_clock_now();
    int ms = at == QN_TIME_NEVER ? -1
             : at <= now         ? 0
                                 : (int)((at - now + QN_MS - 1) / QN_MS);
    if (poll(&p, 1, ms) > 0) {
        qn_member_drain(l->member);
    }
    qn_member_wake(l->member);
}

/* @return false: leave the loop. */
static bool obey(struct world_life *l)
{
    struct world *w = l->world;
    pthread_mutex_lock(&w->lock);
    l->started = true;
    pthread_cond_broadcast(&w->changed);
    while (l->sleep && !l->die && !l->stop) {
        pthread_cond_wait(&w->changed, &w->lock);
    }
    bool go_on = !l->die && !l->stop;
    pthread_mutex_unlock(&w->lock);
    return go_on;
}

static void wake(const struct world *w, qn_node_t node)
{
    uint64_t one = 1;
    QN_ASSERT(write(w->doorbell_fd[node], &one, sizeof one) == sizeof one);
}

static void wake_others(const struct world_life *l)
{
    for (qn_node_t i = 0; i < l->world->seats; i++) {
        if (i != l->node) {
            wake(l->world, i);
        }
    }
}

static void *run(void *arg)
{
    struct world_life *l = arg;
    struct world *w = l->world;
    struct qn_member_opts o = world_opts(w, l->node, l->incarnation);
    const struct qn_service service = {.apply = on_apply,
                                       .applied = on_applied,
                                       .on_peer_message = on_peer_message,
                                       .ctx = l};
    const struct qn_member_state state = world_state_of(l);
    o.callbacks.ctx = l;
    o.log = (struct qn_log_sink){on_line, l};
    l->complete = o.first;
    QN_ASSERT(qn_member_create(&l->member, &o) == QN_OK);
    pthread_mutex_lock(&w->lock);
    l->tid = gettid();
    l->there = true;
    pthread_cond_broadcast(&w->changed);
    wake_others(l);
    while (!all_there(w) || (!o.first && !is_met(l))) {
        pthread_cond_wait(&w->changed, &w->lock);
    }
    pthread_mutex_unlock(&w->lock);
    meet(l);
    QN_ASSERT(qn_member_start(l->member, &service, &state) == QN_OK);
    while (obey(l)) {
        wait(l, turn(l));
    }
    if (l->stop) {
        qn_member_destroy(l->member);
        l->member = NULL;
    }
    return NULL; /* if it dies, with all that it has */
}

/* ---- the test's thread --------------------------------------------------- */

static struct world_life *live(struct world *w, qn_node_t node)
{
    cr_assert_lt(w->lives, WORLD_LIVES);
    struct world_life *l = &w->life[w->lives++];
    *l = (struct world_life){.world = w, .node = node, .incarnation = w->lives};
    w->present[node] = l;
    return l;
}

void world_begin(struct world *w, const char *transport, bool memory_acceptor)
{
    const qn_time_t lag_timeout = w->lag_timeout;
    const uint32_t command_bytes = w->command_bytes;
    const bool no_cut = w->no_cut;
    const uint32_t seats = w->seats != 0 ? w->seats : WORLD_NODES;
    *w = (struct world){.seats = seats,
                        .transport = qn_transport_find(transport),
                        .memory_acceptor = memory_acceptor,
                        .no_cut = no_cut,
                        .lag_timeout = lag_timeout,
                        .command_bytes = command_bytes};
    cr_assert_not_null(w->transport);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    const struct qn_member_opts o = world_opts(w, 0, 1);
    const struct qn_transport_bytes bytes =
        qn_transport_needs(w->transport, CELLS, &o.device);
    cr_assert_eq(qn_commons_create(&w->commons, seats, bytes.device, true,
                                   &w->commons_fd),
                 QN_OK);
    if (w->transport->device != NULL) {
        w->transport->device->format(qn_commons_device(w->commons), &o.device);
    }
    for (qn_node_t i = 0; i < seats; i++) {
        w->doorbell_fd[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    }
    for (qn_node_t i = 0; i < WORLD_NODES; i++) {
        (void)live(w, i);
    }
    for (qn_node_t i = 0; i < WORLD_NODES; i++) {
        struct world_life *l = w->present[i];
        cr_assert_eq(pthread_create(&l->thread, NULL, run, l), 0);
    }
}

void world_wait(struct world *w, qn_node_t node,
                bool (*is)(const struct world_life *l))
{
    pthread_mutex_lock(&w->lock);
    while (!is(w->present[node])) {
        pthread_cond_wait(&w->changed, &w->lock);
    }
    pthread_mutex_unlock(&w->lock);
}

static bool has_started(const struct world_life *l)
{
    return l->started;
}

/* It leaves its loop; its thread has ended. */
static void leave(struct world *w, struct world_life *l, bool die)
{
    if (l->ended) {
        return;
    }
    world_wait(w, l->node, has_started);
    pthread_mutex_lock(&w->lock);
    l->die = die;
    l->stop = !die;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    wake(w, l->node);
    cr_assert_eq(pthread_join(l->thread, NULL), 0);
    pthread_mutex_lock(&w->lock);
    l->ended = true;
    pthread_mutex_unlock(&w->lock);
}

void world_kill(struct world *w, qn_node_t node)
{
    leave(w, w->present[node], true);
}

void world_return(struct world *w, qn_node_t node)
{
    pthread_mutex_lock(&w->lock);
    cr_assert(w->present[node] == NULL || w->present[node]->ended);
    struct world_life *l = live(w, node);
    pthread_mutex_unlock(&w->lock);
    cr_assert_eq(pthread_create(&l->thread, NULL, run, l), 0);
    world_wait(w, node, has_started);
}

void world_submit(struct world *w, qn_node_t node, uint64_t n)
{
    pthread_mutex_lock(&w->lock);
    w->present[node]->wanted += n;
    pthread_mutex_unlock(&w->lock);
    wake(w, node);
}

void world_applied(struct world *w, uint64_t n)
{
    pthread_mutex_lock(&w->lock);
    for (qn_node_t i = 0; i < w->seats; i++) {
        const struct world_life *l = w->present[i];
        while (l != NULL && !l->ended && l->state.applied < n) {
            pthread_cond_wait(&w->changed, &w->lock);
        }
        cr_assert(l == NULL || l->ended || l->state.applied == n);
    }
    pthread_mutex_unlock(&w->lock);
}

void world_sleep(struct world *w, qn_node_t node, bool sleep)
{
    pthread_mutex_lock(&w->lock);
    w->present[node]->sleep = sleep;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    wake(w, node);
}

void world_speak(struct world *w, qn_node_t from, qn_node_t to)
{
    pthread_mutex_lock(&w->lock);
    w->present[from]->speak = true;
    w->present[from]->speak_to = to;
    pthread_mutex_unlock(&w->lock);
    wake(w, from);
}

struct world_facts world_facts(struct world *w, qn_node_t node)
{
    const struct world_life *l = w->present[node];
    pthread_mutex_lock(&w->lock);
    const struct world_facts f = {.state = l->state,
                                  .deaths = l->deaths,
                                  .recorded = l->recorded,
                                  .resumed = l->resumed,
                                  .installed = l->installed,
                                  .lags = l->lags,
                                  .messages = l->messages,
                                  .cuts = l->cuts,
                                  .snapshot_lines = l->snapshot_lines,
                                  .leader = (qn_node_t)l->leader};
    pthread_mutex_unlock(&w->lock);
    return f;
}

void world_end(struct world *w)
{
    for (qn_node_t i = 0; i < w->seats; i++) {
        if (w->present[i] != NULL) {
            leave(w, w->present[i], false);
        }
    }
    for (uint32_t i = 0; i < w->lives; i++) {
        qn_member_destroy(w->life[i].member); /* of one that died */
    }
    for (qn_node_t i = 0; i < w->seats; i++) {
        close(w->doorbell_fd[i]);
    }
    qn_commons_destroy(w->commons);
    close(w->commons_fd);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
}
