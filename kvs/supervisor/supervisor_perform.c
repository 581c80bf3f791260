/*
 * Events go into the machine, its actions are done: the only place where a
 * decision becomes a process, a message or a descriptor.
 *
 * An action may fail, or have a result (the process that was started). That is
 * an event as well. It waits in `later` until all actions of the step are done,
 * since the machine's state already counts on them, and comes before any event
 * from outside.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/base/log.h"
#include "kvs/supervisor/startup_banner.h"
#include "kvs/supervisor/supervisor_internal.h"
#include "paxos/wire/msg.h"

/** A replica whose control channel is full is tried again so often. */
#define FLUSH_MS 100

/* ---- observations -------------------------------------------------------- */

/* The least slot that was decided: what was shown is the least. */
static uint64_t decided_upto(const struct qn_supervisor *s)
{
    uint64_t epoch;
    uint64_t hi;
    qn_load_pair(qn_commons_word(s->commons), &epoch, &hi);
    /* relaxed: a number for people. */
    uint64_t shown = qn_load(qn_commons_read_index(s->commons), QN_RELAXED);
    return QN_MAX(hi, shown <= QN_SLOT_MAX ? shown : 0);
}

static uint64_t stopped(const struct qn_supervisor *s)
{
    uint64_t mask = 0;
    for (qn_node_t i = 0; i < qn_config_seats(&s->config); i++) {
        const bool is =
            s->child[i].runs && qn_supervisor_is_stopped(&s->child[i]);
        mask |= is ? (uint64_t)1 << i : 0;
    }
    return mask;
}

static struct qn_supervision_facts observe(const struct qn_supervisor *s,
                                           enum qn_supervision_on kind,
                                           qn_time_t now)
{
    struct qn_supervision_facts f = {.group_known = s->commons != NULL};
    uint64_t epoch;
    uint64_t hi;
    if (f.group_known) {
        qn_load_pair(qn_commons_word(s->commons), &epoch, &hi);
        f.owned =
            qn_commons_owner(s->commons, epoch, &f.owner, &f.owner_incarnation);
        f.decided_upto = decided_upto(s);
    }
    if (qn_supervision_needs_stopped(&s->machine, kind, now)) {
        f.stopped = stopped(s);
    }
    return f;
}

/* ---- actions ------------------------------------------------------------- */

static void cause(struct qn_supervisor *s, const struct qn_supervision_event *e)
{
    QN_ASSERT(s->later_count < QN_LATER_MAX);
    s->later[s->later_count++] = *e;
}

/* That there is no other end any more is reported as the end of a process. */
static void send_failed(struct qn_supervisor *s, qn_node_t to, int err)
{
    const struct qn_supervision_event e = {
        .kind = QN_ON_SEND_FAILED, .node = to, .number = err};
    bool said = err == QN_OK || err == QN_EPEERDEAD;
    for (uint32_t i = 0; i < s->later_count; i++) {
        said = said || (s->later[i].kind == e.kind && s->later[i].node == to);
    }
    if (!said) {
        cause(s, &e);
    }
}

static void do_send(struct qn_supervisor *s,
                    const struct qn_supervision_action *a)
{
    struct qn_child *c = &s->child[a->node];
    const int fd = a->outbox.incarnation == 0
                       ? -1
                       : qn_outboxes_find(&s->outboxes, a->outbox);
    QN_ASSERT(c->control >= 0);
    send_failed(
        s, a->node,
        qn_control_backlog_send(&c->backlog, c->control, &a->message, fd));
}

/* @return false: the group cannot begin, so no other process is to be
 * started. */
static bool do_spawn(struct qn_supervisor *s,
                     const struct qn_supervision_action *a)
{
    struct qn_supervision_event e = {.node = a->node,
                                     .incarnation = a->incarnation};
    QN_ASSERT(!s->child[a->node].runs);
    e.number = qn_supervisor_spawn(s, a->node, &e.incarnation);
    e.kind = e.number == QN_OK ? QN_ON_SPAWNED : QN_ON_SPAWN_FAILED;
    e.pid = s->child[a->node].pid;
    cause(s, &e);
    return e.number == QN_OK || s->machine.served;
}

static void do_close_control(struct qn_child *c)
{
    qn_control_backlog_free(&c->backlog);
    qn_supervisor_close(c->control);
    qn_supervisor_close(c->pidfd);
    c->control = c->pidfd = -1;
}

static void do_keep_outbox(struct qn_supervisor *s,
                           const struct qn_supervision_action *a)
{
    QN_ASSERT(s->message_fd >= 0);
    qn_outboxes_keep(&s->outboxes, a->outbox, s->message_fd);
    s->message_fd = -1;
}

static void do_progress(const struct qn_supervisor *s, const char *line)
{
    fprintf(s->opts->ready, "upgrade: %s\n", line);
    fflush(s->opts->ready);
}

static void do_announce(const struct qn_supervisor *s)
{
    struct qn_place place[QN_NODES_MAX];
    const uint64_t members = qn_supervision_taken(&s->machine);
    const uint32_t adopted = s->machine.adopted;
    const struct qn_startup_banner banner = {.config = &s->config,
                                             .listen = &s->listen,
                                             .place = place,
                                             .members = members,
                                             .adopted = adopted};
    for (qn_node_t i = 0; i < qn_config_seats(&s->config); i++) {
        place[i] = s->child[i].place;
    }
    if ((members & (members - 1)) == 0) {
        qn_log(QN_LOG_WARN, "one replica: nothing is replicated");
    }
    if (adopted == 0 && s->budget.said[0] != '\0') {
        qn_log(s->budget.beyond ? QN_LOG_WARN : QN_LOG_INFO, "%s",
               s->budget.said);
    }
    qn_startup_banner_print(s->opts->ready, &banner);
}

static void do_hand_over(struct qn_supervisor *s)
{
    QN_ASSERT(s->successor >= 0);
    qn_log(QN_LOG_INFO, "process %d is the supervisor from now on",
           (int)s->successor_pid);
    s->handed_over = true;
}

static void do_finish(struct qn_supervisor *s, int status)
{
    QN_ASSERT(!s->over);
    QN_ASSERT(s->machine.over);
    s->over = true;
    s->status = status;
}

/* @return false: leave the rest of the actions. */
static bool perform_one(struct qn_supervisor *s,
                        const struct qn_supervision_action *a)
{
    struct qn_child *c = &s->child[a->node];
    const char *text = s->actions.text[a->text];
    switch (a->kind) {
    case QN_DO_SPAWN:
        return do_spawn(s, a);
    case QN_DO_KILL:
        qn_supervisor_kill(c, a->number);
        break;
    case QN_DO_SEND:
        do_send(s, a);
        break;
    case QN_DO_SKIP_OBSOLETE:
        qn_control_backlog_skip(&c->backlog, a->outbox.node,
                                a->outbox.incarnation);
        break;
    case QN_DO_CLOSE_CONTROL:
        do_close_control(c);
        break;
    case QN_DO_CLOSE_LISTENER:
        qn_listen_close_node(&s->listen, a->node);
        break;
    case QN_DO_CLOSE_LISTENERS:
        qn_listen_close(&s->listen);
        break;
    case QN_DO_KEEP_OUTBOX:
        do_keep_outbox(s, a);
        break;
    case QN_DO_DROP_OUTBOX:
        qn_outboxes_drop(&s->outboxes, a->outbox);
        break;
    case QN_DO_LOG:
        qn_log((enum qn_log_level)a->number, "%s", text);
        break;
    case QN_DO_PROGRESS:
        do_progress(s, text);
        break;
    case QN_DO_ANNOUNCE:
        do_announce(s);
        break;
    case QN_DO_BLAME:
        qn_supervisor_blame(s, a->node, a->number);
        break;
    case QN_DO_ANSWER_SUCCESSOR:
        qn_supervisor_answer_successor(s);
        break;
    case QN_DO_REFUSE_SUCCESSOR:
        qn_supervisor_refuse_successor(s);
        break;
    case QN_DO_HANG_UP_SUCCESSOR:
        qn_supervisor_hang_up_successor(s);
        break;
    case QN_DO_HAND_OVER:
        do_hand_over(s);
        break;
    case QN_DO_FINISH:
        do_finish(s, a->number);
        break;
    }
    return true;
}

/* ---- events -------------------------------------------------------------- */

static void step(struct qn_supervisor *s, struct qn_supervision_event e)
{
    const qn_time_t now = qn_clock_now();
    bool goes_on = true;
    e.facts = observe(s, e.kind, now);
    qn_supervision_step(&s->machine, &e, now, &s->actions);
    for (uint32_t i = 0; goes_on && i < s->actions.count; i++) {
        goes_on = perform_one(s, &s->actions.action[i]);
    }
}

void qn_supervisor_event(struct qn_supervisor *s, struct qn_supervision_event e)
{
    QN_ASSERT(s->later_count == 0);
    if (!s->over) {
        step(s, e);
    }
    for (uint32_t i = 0; !s->over && i < s->later_count; i++) {
        /* What a result causes is no result: it starts nothing. */
        step(s, s->later[i]);
    }
    s->later_count = 0;
}

void qn_supervisor_node_event(struct qn_supervisor *s,
                              enum qn_supervision_on kind, qn_node_t i)
{
    qn_supervisor_event(s,
                        (struct qn_supervision_event){.kind = kind, .node = i});
}

/* Its private memory, and what its outbox has taken. */
static uint64_t used_by(const struct qn_supervisor *s, qn_node_t i)
{
    const struct qn_replica_slot *r = &s->machine.replica[i];
    const struct qn_outbox_name name = {i, r->incarnation};
    return qn_resource_check_used(
        s->child[i].pid,
        r->has_outbox ? qn_outboxes_find(&s->outboxes, name) : -1);
}

/* Has the machine the memory for one more? Reading takes a moment: only if it
 * matters. */
static bool is_unfit(const struct qn_supervisor *s,
                     const struct qn_control_msg *m, uint32_t *fits_mib)
{
    struct qn_resource_limits limits;
    struct qn_budget_group g = {.maxmemory = m->u.member_add.maxmemory};
    uint64_t fits = 0;
    if (m->kind != QN_CTL_MEMBER_ADD) {
        return false;
    }
    for (qn_node_t i = 0; i < qn_config_seats(&s->config); i++) {
        if (s->child[i].runs) {
            g.used[g.members++] = used_by(s, i);
        }
    }
    const struct qn_transport_bytes channels =
        qn_supervisor_channels(s, &s->config);
    qn_resource_check_read(&limits);
    const bool fit =
        qn_budget_one_more(&limits, &s->config, &channels, &g, &fits);
    *fits_mib = (uint32_t)QN_MIN(fits >> 20, UINT32_MAX);
    return !fit;
}

void qn_supervisor_message(struct qn_supervisor *s, qn_node_t from,
                           const struct qn_control_msg *m, int fd)
{
    QN_ASSERT(s->message_fd < 0);
    if (qn_supervisor_adopt_message(s, from, m, fd)) {
        return;
    }
    s->message_fd = fd;
    struct qn_supervision_event e = {.kind = QN_ON_MESSAGE,
                                     .node = from,
                                     .message = m,
                                     .with_outbox = fd >= 0};
    e.unfit = is_unfit(s, m, &e.fits);
    qn_supervisor_event(s, e);
    qn_supervisor_close(s->message_fd);
    s->message_fd = -1;
}

void qn_supervisor_hear(struct qn_supervisor *s, qn_node_t from, uint32_t nodes,
                        bool (*stop)(const struct qn_supervisor *s,
                                     qn_node_t from))
{
    const struct qn_control_link link = {.direction = QN_CTL_TO_SUPERVISOR,
                                         .nodes = nodes};
    struct qn_child *c = &s->child[from];
    char fault[QN_CONTROL_FAULT_MAX];
    struct qn_control_msg m;
    int err = QN_OK;
    while (c->control >= 0 && !s->over && err != QN_EAGAIN &&
           (stop == NULL || !stop(s, from))) {
        int fd;
        err = qn_control_recv(c->control, &link, &m, &fd, false);
        if (err == QN_OK) {
            qn_supervisor_message(s, from, &m, fd);
        } else if (err == QN_ECORRUPT) {
            qn_log(QN_LOG_ERROR, "replica %u: %s", from,
                   qn_control_fault_text(&m, fault));
        } else if (err != QN_EAGAIN) { /* if it ended, that is seen, too */
            close(c->control);
            c->control = -1;
            qn_supervisor_node_event(s, QN_ON_HANGUP, from);
        }
    }
}

/* A full channel is looked at in time and not polled: what is missing may be
 * room for descriptors under way, of which poll knows nothing. */
void qn_supervisor_flush(struct qn_supervisor *s)
{
    for (qn_node_t i = 0; !s->over && i < qn_config_seats(&s->config); i++) {
        struct qn_child *c = &s->child[i];
        const int err = c->control >= 0 && qn_control_backlog_wait(&c->backlog)
                            ? qn_control_backlog_flush(&c->backlog, c->control)
                            : QN_OK;
        if (err != QN_OK && err != QN_EPEERDEAD) {
            qn_supervisor_event(
                s, (struct qn_supervision_event){
                       .kind = QN_ON_SEND_FAILED, .node = i, .number = err});
        }
    }
}

int qn_supervisor_flush_wait_ms(const struct qn_supervisor *s)
{
    for (qn_node_t i = 0; i < qn_config_seats(&s->config); i++) {
        if (qn_control_backlog_wait(&s->child[i].backlog)) {
            return FLUSH_MS;
        }
    }
    return -1;
}
