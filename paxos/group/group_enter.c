/*
 * From the name to a seat (group_internal.h, enum qn_group_step).
 *
 *     ENTER -- no member lives: found -----------------------+
 *       |  a member lives: HELLO                             |
 *     ASK -- WELCOME: commons, doorbells                     |
 *       |                                                    |
 *     SIT -- a seat, an incarnation, the own outbox          |
 *       |                                                    |
 *     MEET -- PEER to each living member, DONE from each     |
 *       |  some member says that the group has begun: RUN    |
 *     ASSEMBLE <---------------------------------------------+
 *       |  all have come with which it begins: BEGIN
 *     RUN -- members that were stalled are told now
 *
 * The kernel's locks of the seats are the only truth: a guest takes any seat
 * that is vacant, and no member gives one. That of a voter that has ended comes
 * first, for its vote is missing; an observer takes none of those. It tells all
 * that live *after* it has its seat: of two guests, one at least sees the
 * other. So each pair is told, perhaps twice, which does no harm.
 *
 * Before one of a pair tells the other of itself it has lanes for it. So each
 * that has been told can be met, and the newcomer meets those that have
 * answered. A member that has not is not there for it, if it has no lanes to
 * this seat from a former process; it is told as soon as it goes on, and
 * answers.
 *
 * A guest that has met no member that runs belongs to a group that has not
 * begun. If the process that founds it ends, the attempt is void: each guest
 * gives its seat back and begins anew (qn_group_enter_again), and one founds.
 * So does a guest that has taken the seat of a voter that was removed just
 * then, as a member says at MEET, while another voter's vote is missing.
 *
 * The process that founds starts before it says BEGIN: so whenever any process
 * has begun, the record of seat 0 has the first entry of the utility log, and
 * the next process that takes seat 0 votes with it.
 */
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/place/liveness.h"
#include "paxos/group/group_internal.h"

#define LISTED                                                                 \
    "this thread has locked a robust mutex, or is a member of another group"
#define RETRY   (2 * QN_MS)
#define REST    (100 * QN_MS) /* stalled members are told again */
#define FOUNDER (100 * QN_MS) /* guests that wait look whether it lives */
#define ANSWER  QN_S /* a member that is silent for so long is stalled */

enum { MEBI = 1 << 20, CELLS_MIN = 16, CELLS_MAX = 65536 };

#define LOG_MIN ((uint64_t)MEBI)
#define LOG_MAX ((uint64_t)MEBI << 10)

/* ---- options ------------------------------------------------------------- */

bool qn_group_by_memory(const struct qn_dialogue_layout *l)
{
    return l->nodes > 1 && !l->process_acceptor;
}

struct qn_device_opts qn_group_device(const struct qn_dialogue_layout *l)
{
    return (struct qn_device_opts){
        .nodes = l->nodes, .lanes = QN_LANES, .seed = 1};
}

/* A lap of the log, and the longest batch in each direction. */
uint64_t qn_group_ring_bytes(const struct qn_dialogue_layout *l)
{
    return l->log_bytes + 2 * l->command_max + MEBI;
}

uint64_t qn_group_arena_bytes(const struct qn_dialogue_layout *l)
{
    return QN_MAX(l->log_bytes / 2, 4 * (uint64_t)MEBI) + 2 * l->command_max;
}

static size_t device_bytes(const struct qn_group *g,
                           const struct qn_dialogue_layout *l)
{
    const struct qn_device_opts d = qn_group_device(l);
    return qn_transport_needs(g->o.transport, l->cells, &d).device;
}

/* With the process acceptor all seats vote from the beginning. Two nodes have
 * no third one that could lead when one of them has ended. */
static bool acceptor_fits(const struct qn_group_opts *o,
                          const struct qn_dialogue_layout *l)
{
    return !l->process_acceptor ||
           (o->members == l->nodes && l->nodes != 2 && !o->observer);
}

static bool valid(const struct qn_group_opts *o,
                  const struct qn_dialogue_layout *l)
{
    return l->nodes >= 1 && l->nodes <= QN_NODES_MAX && l->cells >= CELLS_MIN &&
           l->cells <= CELLS_MAX && qn_is_pow2(l->cells) &&
           l->log_bytes >= LOG_MIN && l->log_bytes <= LOG_MAX &&
           l->command_max <= QN_GROUP_COMMAND_MAX && o->transport != NULL &&
           strlen(o->transport->name) < QN_DIALOGUE_NAME;
}

int qn_group_layout(const struct qn_group_opts *o, struct qn_dialogue_layout *l)
{
    *l = (struct qn_dialogue_layout){
        .nodes = o->capacity,
        .cells = o->cells != 0 ? o->cells : 1024,
        .log_bytes = o->log_bytes != 0 ? o->log_bytes : 16 * (uint64_t)MEBI,
        .command_max = o->command_max != 0 ? o->command_max : MEBI,
        .process_acceptor = o->process_acceptor};
    return valid(o, l) && o->members <= l->nodes && acceptor_fits(o, l)
               ? QN_OK
               : QN_EINVAL;
}

/* ---- giving back --------------------------------------------------------- */

void qn_group_drop(struct qn_group *g)
{
    for (uint32_t i = 0; i < QN_GROUP_LINKS_MAX; i++) {
        qn_group_link_close(g, &g->link[i]);
    }
    qn_group_forget_known(g);
    if (g->member != NULL) {
        qn_member_stop(g->member);
        qn_member_leave(g->member);
        qn_member_destroy(g->member);
    }
    qn_group_ends_tell(g);
    for (qn_node_t i = 0; i < QN_NODES_MAX; i++) {
        qn_group_ends_forget(g, i);
    }
    g->member = NULL;
    g->driver = NULL;
    qn_commons_destroy(g->commons);
    g->commons = NULL;
    if (g->commons_fd >= 0) {
        close(g->commons_fd);
    }
    g->commons_fd = -1;
    for (qn_node_t i = 0; i < QN_NODES_MAX; i++) {
        qn_group_unwatch(g, &g->doorbell_fd[i]);
    }
    g->founds = g->has_begin = false;
    g->first = g->untold = 0;
    g->seen = (struct qn_dialogue_voters){.mask = 0};
    g->ordered = QN_ORDERED_NOTHING;
}

int qn_group_enter_again(struct qn_group *g)
{
    qn_group_drop(g);
    qn_group_part(g);
    g->step = QN_STEP_ENTER;
    int err = qn_group_open_place(g);
    g->retry_at = qn_clock_now() + RETRY;
    return err == QN_OK ? QN_OK
                        : qn_group_fail(g, err, "the name cannot be opened");
}

/* ---- founding ------------------------------------------------------------ */

static int doorbells_make(struct qn_group *g)
{
    for (qn_node_t i = 0; i < g->layout.nodes; i++) {
        g->doorbell_fd[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        if (g->doorbell_fd[i] < 0) {
            return QN_EMFILE;
        }
    }
    return QN_OK;
}

static int commons_make(struct qn_group *g)
{
    const struct qn_device_opts d = qn_group_device(&g->layout);
    int err =
        qn_commons_create(&g->commons, g->layout.nodes,
                          device_bytes(g, &g->layout), true, &g->commons_fd);
    if (err == QN_OK) {
        qn_commons_keep_from_children(g->commons);
    }
    if (err == QN_OK && g->o.transport->device != NULL) {
        g->o.transport->device->format(qn_commons_device(g->commons), &d);
    }
    return err;
}

static int listen_at(struct qn_group *g)
{
    g->deaf_until = 0;
    return qn_group_watch(g, qn_rendezvous_fd(g->rendezvous),
                          QN_WATCH_LISTENER);
}

static int found(struct qn_group *g)
{
    int err = qn_group_layout(&g->o, &g->layout);
    err = err == QN_OK ? commons_make(g) : err;
    err = err == QN_OK ? doorbells_make(g) : err;
    g->self = 0;
    err = err == QN_OK ? qn_group_member_make(g) : err;
    QN_ASSERT(err != QN_OK || g->incarnation == QN_GROUP_FOUNDER);
    err = err == QN_OK ? qn_rendezvous_seat(g->rendezvous, 0) : err;
    err = err == QN_OK ? listen_at(g) : err;
    if (err != QN_OK) {
        return qn_group_fail(
            g, err, err == QN_EBUSY ? LISTED : "the group cannot be made");
    }
    g->founds = true;
    g->step = QN_STEP_ASSEMBLE;
    return QN_OK;
}

/* ---- asking a member ----------------------------------------------------- */

static int enter(struct qn_group *g, qn_time_t now)
{
    const struct qn_dialogue_msg hello = {.kind = QN_DIALOGUE_HELLO,
                                          .hello = g->hello};
    qn_node_t seat = 0;
    int fd = -1;
    int err = qn_rendezvous_enter(g->rendezvous, g->skip, &seat, &fd);
    g->retry_at = now + RETRY;
    if (err == QN_EAGAIN) {
        g->skip = 0;
        return QN_OK;
    }
    if (err != QN_OK) {
        return qn_group_fail(g, err, "the name cannot be used");
    }
    if (fd < 0) {
        return found(g);
    }
    struct qn_group_link *l = qn_group_link_add(g, fd, true, now);
    g->contact = seat;
    if (l != NULL) {
        l->node = seat;
        if (qn_group_link_say(g, l, &hello, NULL, 0)) {
            g->step = QN_STEP_ASK;
            g->deadline = now + ANSWER;
        }
    }
    return QN_OK;
}

static struct qn_group_link *link_to(struct qn_group *g, qn_node_t node)
{
    for (uint32_t i = 0; i < QN_GROUP_LINKS_MAX; i++) {
        if (g->link[i].fd >= 0 && g->link[i].ours && g->link[i].node == node) {
            return &g->link[i];
        }
    }
    return NULL;
}

static int ask(struct qn_group *g, qn_time_t now)
{
    struct qn_group_link *l = link_to(g, g->contact);
    g->retry_at = g->deadline;
    if (l != NULL && now < g->deadline) {
        return QN_OK;
    }
    if (l != NULL) { /* it is stalled: another one is asked */
        g->skip |= UINT64_C(1) << g->contact;
        qn_group_link_close(g, l);
    }
    g->step = QN_STEP_ENTER;
    g->retry_at = now + RETRY;
    return QN_OK;
}

int qn_group_welcomed(struct qn_group *g, const struct qn_dialogue_layout *l,
                      const int *fds)
{
    int err = valid(&g->o, l) ? QN_OK : QN_ECORRUPT;
    if (err == QN_OK && (!qn_group_can_serve(&g->o.service, l->nodes) ||
                         (l->process_acceptor && g->o.observer))) {
        err = QN_EINVAL;
    }
    if (err == QN_OK) {
        err = qn_commons_map(&g->commons, fds[0], l->nodes, device_bytes(g, l));
    }
    if (err != QN_OK) {
        for (uint32_t i = 0; i <= l->nodes; i++) {
            close(fds[i]);
        }
        return err;
    }
    qn_commons_keep_from_children(g->commons);
    g->layout = *l;
    g->commons_fd = fds[0];
    memcpy(g->doorbell_fd, fds + 1, l->nodes * sizeof *fds);
    g->step = QN_STEP_SIT;
    g->retry_at = 0;
    g->deadline = qn_clock_now() + ANSWER;
    return QN_OK;
}

/* ---- a seat -------------------------------------------------------------- */

static bool had_process(const struct qn_group *g, qn_node_t seat)
{
    uint64_t inc;
    pid_t tid;
    (void)qn_liveness_incarnation(g->commons, seat, &inc, &tid);
    return inc != 0;
}

/* The first vacant one of these seats. */
static int take_one(struct qn_group *g, uint64_t seats)
{
    int err = QN_EBUSY;
    for (; err == QN_EBUSY && seats != 0; seats &= seats - 1) {
        g->self = (qn_node_t)__builtin_ctzll(seats);
        err = qn_rendezvous_seat(g->rendezvous, g->self);
    }
    return err;
}

/* Those of voters first: their votes are missing. Then those that had a
 * process: members have lanes to them. */
static int take_vacant(struct qn_group *g)
{
    const uint64_t others = qn_low_bits(g->layout.nodes) & ~g->seen.mask;
    uint64_t had = 0;
    for (qn_node_t i = 0; i < g->layout.nodes; i++) {
        had |= (uint64_t)had_process(g, i) << i;
    }
    int err = g->o.observer ? QN_EBUSY : take_one(g, g->seen.mask);
    err = err == QN_EBUSY ? take_one(g, others & had) : err;
    return err == QN_EBUSY ? take_one(g, others & ~had) : err;
}

static int sit(struct qn_group *g, qn_time_t now)
{
    int err = take_vacant(g);
    g->retry_at = now + RETRY;
    if (err == QN_EAGAIN || (err == QN_EBUSY && now < g->deadline)) {
        return QN_OK; /* another process takes one, or is about to end */
    }
    if (err == QN_ESTALE) {
        return qn_group_enter_again(g);
    }
    if (err != QN_OK) {
        return qn_group_fail(g, err,
                             err == QN_EBUSY
                                 ? "all seats of the group are taken"
                                 : "no seat of the group can be taken");
    }
    g->sat_for_vote = (g->seen.mask >> g->self & 1) != 0;
    err = qn_group_member_make(g);
    err = err == QN_OK ? listen_at(g) : err;
    if (err != QN_OK) {
        return qn_group_fail(
            g, err, err == QN_EBUSY ? LISTED : "the member cannot be made");
    }
    g->untold = qn_rendezvous_living(g->rendezvous) &
                ~(UINT64_C(1) << g->self) & qn_low_bits(g->layout.nodes);
    g->step = QN_STEP_MEET;
    g->deadline = now + ANSWER;
    g->retry_at = 0;
    return QN_OK;
}

/* ---- meeting all --------------------------------------------------------- */

/* @return false: later again. */
static bool tell(struct qn_group *g, qn_node_t node, qn_time_t now)
{
    struct qn_group_link *l = link_to(g, node);
    int fd = -1;
    if (l == NULL) {
        int err = qn_rendezvous_reach(g->rendezvous, node, &fd);
        if (err != QN_OK) {
            return err == QN_ENOENT; /* it has ended */
        }
        l = qn_group_link_add(g, fd, true, now);
        if (l == NULL) {
            return false;
        }
        l->node = node;
    }
    return l->introduced || qn_group_link_introduce(g, l);
}

/* Those that have not answered; one whose connection has ended is told again,
 * if it lives. */
static uint64_t unanswered(const struct qn_group *g)
{
    uint64_t nodes = 0;
    for (uint32_t i = 0; i < QN_GROUP_LINKS_MAX; i++) {
        const struct qn_group_link *l = &g->link[i];
        if (l->fd >= 0 && l->ours && l->waits) {
            nodes |= UINT64_C(1) << l->node;
        }
    }
    return nodes;
}

static void tell_untold(struct qn_group *g, qn_time_t now)
{
    for (uint64_t s = g->untold; s != 0; s &= s - 1) {
        qn_node_t i = (qn_node_t)__builtin_ctzll(s);
        if (tell(g, i, now)) {
            g->untold &= ~(UINT64_C(1) << i);
        }
        if (g->step == QN_STEP_FAILED) {
            return;
        }
    }
}

qn_time_t qn_group_tell_rest(struct qn_group *g, qn_time_t now)
{
    if (g->untold != 0 && now >= g->retry_at) {
        tell_untold(g, now);
        g->retry_at = now + REST;
    }
    return g->untold != 0 ? g->retry_at : QN_TIME_NEVER;
}

/* The voter whose seat it has was removed before it ended, which was not known
 * yet; and the vote of another one is missing. */
static bool sits_wrong(const struct qn_group *g)
{
    return g->sat_for_vote && (g->seen.mask >> g->self & 1) == 0 &&
           (g->seen.mask & ~qn_rendezvous_living(g->rendezvous)) != 0;
}

static int meet(struct qn_group *g, qn_time_t now)
{
    tell_untold(g, now);
    if (g->step == QN_STEP_FAILED) {
        return g->err;
    }
    g->retry_at = g->untold != 0 ? now + RETRY : g->deadline;
    if ((g->untold | unanswered(g)) != 0 && now < g->deadline) {
        return QN_OK;
    }
    if (sits_wrong(g)) {
        return qn_group_enter_again(g);
    }
    if (g->first != 0 && !g->has_begin) {
        return qn_group_start_later(g);
    }
    g->step = QN_STEP_ASSEMBLE;
    g->retry_at = 0;
    return QN_OK;
}

/* The connection alone does not say so: a child of that process may hold it. */
static bool founder_ended(struct qn_group *g)
{
    struct qn_group_link *l = link_to(g, 0);
    if (l == NULL || !qn_group_founder_ended(g)) {
        return l == NULL;
    }
    qn_group_link_hear(g, l); /* BEGIN may be its last word */
    return true;
}

static int assemble(struct qn_group *g, qn_time_t now)
{
    const bool alone = !g->founds && !g->has_begin && founder_ended(g);
    if (g->step == QN_STEP_FAILED) {
        return g->err;
    }
    if (alone && !g->has_begin) {
        return g->first != 0 ? qn_group_start_later(g)
                             : qn_group_enter_again(g);
    }
    g->retry_at = g->has_begin ? now + RETRY
                  : g->founds  ? QN_TIME_NEVER
                               : now + FOUNDER;
    return qn_group_assemble_turn(g);
}

int qn_group_enter_turn(struct qn_group *g, qn_time_t now)
{
    enum qn_group_step before;
    int err;
    do {
        before = g->step;
        switch (before) {
        case QN_STEP_ENTER:
            err = now >= g->retry_at ? enter(g, now) : QN_OK;
            break;
        case QN_STEP_ASK:
            err = ask(g, now);
            break;
        case QN_STEP_SIT:
            err = now >= g->retry_at ? sit(g, now) : QN_OK;
            break;
        case QN_STEP_MEET:
            err = meet(g, now);
            break;
        case QN_STEP_ASSEMBLE:
            err = assemble(g, now);
            break;
        default:
            return g->err;
        }
    } while (err == QN_OK && g->step != before && g->step != QN_STEP_RUN);
    return err;
}
