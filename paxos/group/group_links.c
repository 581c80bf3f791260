/*
 * Connections between guests and members, and what is said on them
 * (dialogue.h). A link is short: when a guest runs it closes those that it has
 * made, and a member closes one that has been there for LINK_MAX once the group
 * has begun. Nothing else is said on a link, and its end means nothing but in a
 * group that has not begun (group_enter.c).
 *
 * What comes is of a process of the same user, perhaps a damaged one. What
 * cannot be closes the link; descriptors are closed with what they came with.
 */
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/place/liveness.h"
#include "core/rendezvous/fd_message.h"
#include "paxos/group/group_internal.h"

#define LINK_MAX (2 * QN_S)
#define DEAF     (100 * QN_MS) /* without descriptors for those that come */

enum { FDS_MOST = QN_NODES_MAX + 1, HEAR_MOST = 512 };

/* ---- links --------------------------------------------------------------- */

struct qn_group_link *qn_group_link_add(struct qn_group *g, int fd, bool ours,
                                        qn_time_t now)
{
    uint32_t i = 0;
    while (i < QN_GROUP_LINKS_MAX && g->link[i].fd >= 0) {
        i++;
    }
    if (i == QN_GROUP_LINKS_MAX ||
        qn_group_watch(g, fd, QN_WATCH_LINKS + i) != QN_OK) {
        close(fd);
        return NULL;
    }
    g->link[i] = (struct qn_group_link){
        .fd = fd, .ours = ours, .node = QN_NODES_MAX, .since = now};
    g->links++;
    return &g->link[i];
}

void qn_group_link_close(struct qn_group *g, struct qn_group_link *l)
{
    if (l->fd < 0) {
        return;
    }
    if (l->ours && l->waits) {
        g->untold |= UINT64_C(1) << l->node; /* it may live and be told again */
        g->retry_at = g->step == QN_STEP_MEET ? 0 : g->retry_at;
    }
    /* A child that was forked meanwhile has it, too: the other end would wait
     * for an answer as long as that child lives. */
    (void)shutdown(l->fd, SHUT_RDWR);
    qn_group_unwatch(g, &l->fd);
    g->links--;
}

bool qn_group_link_say(struct qn_group *g, struct qn_group_link *l,
                       const struct qn_dialogue_msg *m, const int *fds,
                       uint32_t count)
{
    uint8_t bytes[QN_DIALOGUE_BYTES];
    qn_dialogue_encode(m, bytes);
    if (qn_fd_message_send(l->fd, (struct qn_slice){bytes, sizeof bytes}, fds,
                           count) != QN_OK) {
        qn_group_link_close(g, l); /* a guest comes again */
        return false;
    }
    return true;
}

static void listener_hears(struct qn_group *g, bool hears)
{
    struct epoll_event e = {.events = hears ? EPOLLIN : 0,
                            .data = {.u32 = QN_WATCH_LISTENER}};
    (void)epoll_ctl(g->epoll, EPOLL_CTL_MOD, qn_rendezvous_fd(g->rendezvous),
                    &e);
}

static void no_descriptors(struct qn_group *g)
{
    (void)qn_group_fail(g, QN_EMFILE, "this process has no free descriptors");
}

/* What cannot be accepted stays readable: a host would make one turn after the
 * other. So a member does not look for a while. */
void qn_group_links_accept(struct qn_group *g, qn_time_t now)
{
    int fd, err;
    pid_t pid;
    while ((err = qn_rendezvous_accept(g->rendezvous, &fd, &pid)) == QN_OK) {
        (void)qn_group_link_add(g, fd, false, now);
    }
    if (err == QN_EMFILE && g->step < QN_STEP_RUN) {
        no_descriptors(g);
    } else if (err != QN_EAGAIN) {
        listener_hears(g, false);
        g->deaf_until = now + DEAF;
    }
}

qn_time_t qn_group_links_turn(struct qn_group *g, qn_time_t now)
{
    if (g->deaf_until != 0 && now >= g->deaf_until) {
        listener_hears(g, true);
        g->deaf_until = 0;
    }
    qn_time_t at = g->deaf_until != 0 ? g->deaf_until : QN_TIME_NEVER;
    uint32_t left = g->links;
    for (uint32_t i = 0; left > 0 && i < QN_GROUP_LINKS_MAX; i++) {
        struct qn_group_link *l = &g->link[i];
        left -= l->fd >= 0;
        const bool waits =
            l->waits || (g->step != QN_STEP_RUN && l->node < QN_NODES_MAX);
        if (l->fd < 0 || waits) {
            continue;
        }
        if (now >= l->since + LINK_MAX) {
            qn_group_link_close(g, l);
        } else {
            at = QN_MIN(at, l->since + LINK_MAX);
        }
    }
    return at;
}

static bool say_begin(struct qn_group *g, struct qn_group_link *l)
{
    struct qn_dialogue_msg m = {.kind = QN_DIALOGUE_BEGIN};
    memcpy(m.begin.incarnation, g->begin, sizeof g->begin);
    return qn_group_link_say(g, l, &m, NULL, 0);
}

void qn_group_links_begin(struct qn_group *g)
{
    for (uint32_t i = 0; i < QN_GROUP_LINKS_MAX; i++) {
        if (g->link[i].fd >= 0 && g->link[i].node < QN_NODES_MAX) {
            (void)say_begin(g, &g->link[i]);
        }
    }
}

void qn_group_links_close_ours(struct qn_group *g)
{
    for (uint32_t i = 0; i < QN_GROUP_LINKS_MAX; i++) {
        if (g->link[i].fd >= 0 && g->link[i].ours && !g->link[i].waits) {
            qn_group_link_close(g, &g->link[i]);
        }
    }
}

/* ---- what is said -------------------------------------------------------- */

static struct qn_dialogue_msg peer_msg(const struct qn_member_peer *p,
                                       bool ended)
{
    return (struct qn_dialogue_msg){.kind = QN_DIALOGUE_PEER,
                                    .peer = {.node = p->node,
                                             .incarnation = p->incarnation,
                                             .pid = (uint32_t)p->pid,
                                             .ended = ended}};
}

static bool say_peer(struct qn_group *g, struct qn_group_link *l,
                     const struct qn_member_peer *p, bool ended)
{
    const struct qn_dialogue_msg m = peer_msg(p, ended);
    return qn_group_link_say(g, l, &m, &p->fd, 1);
}

static bool say_self(struct qn_group *g, struct qn_group_link *l)
{
    const struct qn_member_peer self = {.node = g->self,
                                        .incarnation = g->incarnation,
                                        .pid = (int)gettid(),
                                        .fd = qn_member_outbox_fd(g->member)};
    struct qn_dialogue_msg m = peer_msg(&self, false);
    m.peer.observer = g->o.observer && !g->founds;
    return qn_group_link_say(g, l, &m, &self.fd, 1);
}

bool qn_group_link_introduce(struct qn_group *g, struct qn_group_link *l)
{
    QN_ASSERT(l->ours && l->node < QN_NODES_MAX);
    int err = qn_member_seat(g->member, l->node);
    if (err != QN_OK) {
        (void)qn_group_fail(g, err, "no memory for lanes to a member");
        return false;
    }
    l->introduced = l->waits = true;
    return say_self(g, l);
}

static void refuse(struct qn_group *g, struct qn_group_link *l, int err,
                   const char *why)
{
    struct qn_dialogue_msg m = {.kind = QN_DIALOGUE_REFUSE,
                                .refuse = {.err = err}};
    snprintf(m.refuse.text, sizeof m.refuse.text, "%s", why);
    if (qn_group_link_say(g, l, &m, NULL, 0)) {
        qn_group_link_close(g, l);
    }
}

/* A guest that has asked this member hears of all peers, for one of them may
 * be stalled and not answer. */
struct telling {
    struct qn_group *g;
    struct qn_group_link *l;
};

static void tell_retained(void *ctx, const struct qn_member_peer *p)
{
    const struct telling *t = ctx;
    if (t->l->fd >= 0) {
        (void)say_peer(t->g, t->l, p, true);
    }
}

static void tell_present(struct qn_group *g, struct qn_group_link *l)
{
    struct qn_member_peer p;
    for (qn_node_t i = 0; i < g->layout.nodes && l->fd >= 0; i++) {
        if (i != l->node && i != g->self && qn_member_peer(g->member, i, &p)) {
            (void)say_peer(g, l, &p, false);
        }
    }
}

static void tell_known(struct qn_group *g, struct qn_group_link *l)
{
    for (uint32_t i = 0; i < g->known_count && l->fd >= 0; i++) {
        const struct qn_group_known *k = &g->known[i];
        if (k->peer.node != l->node) {
            (void)say_peer(g, l, &k->peer, k->ended);
        }
    }
}

static struct qn_dialogue_voters voters(const struct qn_group *g)
{
    struct qn_driver_status st;
    if (g->driver == NULL) {
        return (struct qn_dialogue_voters){.mask = g->first};
    }
    qn_driver_status(g->driver, &st);
    return (struct qn_dialogue_voters){.mask = st.voters,
                                       .entries = st.entries};
}

static void answer(struct qn_group *g, struct qn_group_link *l)
{
    const struct qn_dialogue_msg done = {
        .kind = QN_DIALOGUE_DONE,
        .done = {.first = g->first, .voters = voters(g)}};
    struct telling t = {g, l};
    bool there = say_self(g, l);
    if (there && g->has_begin && g->begin[l->node] == l->incarnation) {
        there = say_begin(g, l); /* the group begins with this guest, too */
    }
    if (there && g->driver != NULL) {
        qn_member_each_retained(g->member, tell_retained, &t);
        if (l->asked) {
            tell_present(g, l);
        }
    } else if (there && l->asked) {
        tell_known(g, l);
    }
    if (l->fd >= 0) {
        (void)qn_group_link_say(g, l, &done, NULL, 0);
    }
}

/* ---- what is heard ------------------------------------------------------- */

static void on_hello(struct qn_group *g, struct qn_group_link *l,
                     const struct qn_dialogue_hello *hello)
{
    const struct qn_dialogue_msg m = {
        .kind = QN_DIALOGUE_WELCOME,
        .welcome = {.layout = g->layout, .voters = voters(g)}};
    int fds[FDS_MOST] = {g->commons_fd};
    char why[QN_DIALOGUE_TEXT];
    int err = qn_dialogue_check(&g->hello, hello, why);
    if (err != QN_OK) {
        refuse(g, l, err, why);
        return;
    }
    l->asked = true;
    memcpy(fds + 1, g->doorbell_fd, g->layout.nodes * sizeof *fds);
    (void)qn_group_link_say(g, l, &m, fds, 1 + g->layout.nodes);
}

/* It began its liveness word before any process was told of it. A later one of
 * its seat would end it here. */
static bool has_begun(const struct qn_group *g, const struct qn_member_peer *p)
{
    uint64_t last;
    pid_t tid;
    (void)qn_liveness_incarnation(g->commons, p->node, &last, &tid);
    return p->incarnation <= last;
}

/* Of an introduction, and of what a member tells a guest. `fd` is taken. */
static void on_peer(struct qn_group *g, struct qn_group_link *l,
                    const struct qn_dialogue_msg *m, int fd)
{
    const struct qn_member_peer p = {.node = m->peer.node,
                                     .incarnation = m->peer.incarnation,
                                     .pid = (int)m->peer.pid,
                                     .fd = fd};
    int err =
        p.node < g->layout.nodes && has_begun(g, &p) ? QN_OK : QN_ECORRUPT;
    if (err != QN_OK) {
        close(fd);
    } else {
        const struct qn_group_known k = {.peer = p,
                                         .ended = m->peer.ended,
                                         .observer = m->peer.observer,
                                         .seated =
                                             !l->ours || l->node == p.node};
        err = qn_group_acquaint(g, &k);
    }
    if (err == QN_OK && !l->ours && g->driver == NULL) {
        err = qn_member_seat(g->member, p.node); /* before it is answered */
    }
    if (l->ours) {
        return; /* one that cannot be met is met when it introduces itself */
    }
    if (err != QN_OK) {
        refuse(g, l, err, "a member cannot map what this one shares");
        return;
    }
    l->node = p.node;
    l->incarnation = p.incarnation;
    answer(g, l);
}

static void on_begin(struct qn_group *g, const struct qn_dialogue_msg *m)
{
    if (!g->has_begin && g->step < QN_STEP_RUN) {
        memcpy(g->begin, m->begin.incarnation, sizeof g->begin);
        g->has_begin = true;
        g->first = qn_group_first(g);
        qn_group_links_begin(g); /* the one that founds may have ended */
    }
}

static void on_refuse(struct qn_group *g, struct qn_group_link *l,
                      const struct qn_dialogue_msg *m)
{
    if (g->step <= QN_STEP_MEET) {
        (void)qn_group_fail(g, m->refuse.err, m->refuse.text);
    } else {
        qn_group_link_close(g, l); /* it is told again */
    }
}

/* Descriptors that came are taken. */
static void on_message(struct qn_group *g, struct qn_group_link *l,
                       const struct qn_dialogue_msg *m, const int *fds)
{
    const bool member = g->member != NULL;
    switch (m->kind) {
    case QN_DIALOGUE_HELLO:
        if (!l->ours && member) {
            on_hello(g, l, &m->hello);
            return;
        }
        break;
    case QN_DIALOGUE_PEER:
        if (member) {
            on_peer(g, l, m, fds[0]);
            return;
        }
        close(fds[0]);
        break;
    case QN_DIALOGUE_WELCOME:
        if (g->step == QN_STEP_ASK && l->ours) {
            int err = qn_group_welcomed(g, &m->welcome.layout, fds);
            g->seen = m->welcome.voters;
            if (err != QN_OK) {
                (void)qn_group_fail(
                    g, err,
                    err == QN_EINVAL ? "the group has no observers, or needs "
                                       "snapshots, which this one cannot give"
                                     : "the commons cannot be mapped");
            }
            return;
        }
        for (uint32_t i = 0; i <= m->welcome.layout.nodes; i++) {
            close(fds[i]);
        }
        break;
    case QN_DIALOGUE_DONE:
        if (l->ours && l->introduced) {
            l->waits = false;
            g->first = g->first != 0 ? g->first : m->done.first;
            if (m->done.voters.entries > g->seen.entries) {
                g->seen = m->done.voters;
                g->seen.mask &= qn_low_bits(g->layout.nodes);
            }
            return;
        }
        break;
    case QN_DIALOGUE_BEGIN:
        if (member && l->node < QN_NODES_MAX) {
            on_begin(g, m);
            return;
        }
        break;
    default:
        if (l->ours) {
            on_refuse(g, l, m);
            return;
        }
    }
    qn_group_link_close(g, l); /* that cannot come now */
}

/* @return false: no more. */
static bool hear_one(struct qn_group *g, struct qn_group_link *l)
{
    uint8_t bytes[QN_DIALOGUE_BYTES];
    struct qn_fd_message in = {.bytes = bytes, .cap = sizeof bytes};
    struct qn_dialogue_msg m;
    int err = qn_fd_message_recv(l->fd, &in, FDS_MOST, false);
    if (err == QN_EAGAIN) {
        return false;
    }
    if (err == QN_OK) {
        const struct qn_slice s = {bytes, QN_MIN(in.len, sizeof bytes)};
        err =
            in.len == s.len ? qn_dialogue_decode(s, in.count, &m) : QN_ECORRUPT;
        if (err != QN_OK) {
            qn_fd_message_close(&in);
        }
    }
    if (err == QN_EMFILE && g->step < QN_STEP_RUN) {
        no_descriptors(g); /* what came with it is lost */
    } else if (err == QN_ENOSYS && !l->ours) {
        refuse(g, l, err, "the members speak another version");
    } else if (err != QN_OK) {
        qn_group_link_close(g, l);
    } else {
        on_message(g, l, &m, in.fds);
    }
    return l->fd >= 0;
}

void qn_group_link_hear(struct qn_group *g, struct qn_group_link *l)
{
    for (uint32_t i = 0; l->fd >= 0 && i < HEAR_MOST; i++) {
        if (!hear_one(g, l)) {
            return;
        }
    }
}
