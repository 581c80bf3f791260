#include "kvs/control/boot.h"

#include <sys/socket.h>
#include <unistd.h>

#include "core/base/err.h"
#include "tests/support/fds.h"
#include "tests/support/test.h"

/* Replica 1 of 3, and the supervisor's end of its socket. */
struct pair {
    int supervisor;
    struct qn_boot boot;
    struct qn_outbox_opts shape;
    struct qn_outbox *own;
    struct qn_outbox *peer[8]; /* in the order they came; NULL: down */
    struct qn_boot_event said[8];
    uint32_t heard;
};

static struct qn_outbox *outbox(struct pair *p, qn_node_t node, uint64_t life)
{
    struct qn_outbox *o = NULL;
    struct qn_outbox_opts w = p->shape;
    w.node = node;
    w.incarnation = life;
    cr_assert_eq(qn_outbox_create(&o, &w), QN_OK);
    return o;
}

static void init(struct pair *p)
{
    int fd[2];
    memset(p, 0, sizeof *p);
    cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fd), 0);
    p->supervisor = fd[0];
    p->boot = (struct qn_boot){
        .self = 1, .nodes = 3, .incarnation = 5, .control = fd[1]};
    p->shape = (struct qn_outbox_opts){.node = 1,
                                       .nodes = 3,
                                       .incarnation = 5,
                                       .lane_bytes = 4096,
                                       .numa_node = -1,
                                       .shared = true};
    p->own = outbox(p, 1, 5);
}

static void fini(struct pair *p)
{
    for (uint32_t i = 0; i < p->heard; i++) {
        qn_outbox_destroy(p->peer[i]);
    }
    qn_outbox_destroy(p->own);
    close(p->boot.control);
    if (p->supervisor >= 0) {
        close(p->supervisor);
    }
}

static int hear(void *ctx, const struct qn_boot_event *e,
                struct qn_outbox *peer, int fd)
{
    struct pair *p = ctx;
    (void)fd;
    p->said[p->heard] = *e;
    p->peer[p->heard++] = peer;
    return QN_OK;
}

static int exchange(struct pair *p)
{
    return qn_boot_exchange(&p->boot, p->own, &p->shape, hear, p);
}

/* The supervisor introduces `node`, whose outbox says it is `owner`'s. */
static void introduce(struct pair *p, qn_node_t node, qn_node_t owner)
{
    struct qn_outbox *o = outbox(p, owner, 7);
    const struct qn_boot_event e = {
        .kind = QN_BOOT_PEER, .node = node, .incarnation = 7};
    cr_assert_eq(qn_boot_send(p->supervisor, &e, qn_outbox_fd(o)), QN_OK);
    qn_outbox_destroy(o);
}

static void send_kind(struct pair *p, enum qn_boot_kind kind)
{
    const struct qn_boot_event e = {.kind = kind, .node = 2, .incarnation = 7};
    cr_assert_eq(qn_boot_send(p->supervisor, &e, -1), QN_OK);
}

Test(boot, exchange_gives_the_own_outbox_and_maps_the_others)
{
    struct pair p;
    struct qn_boot_event e;
    struct qn_outbox *seen;
    int fd;
    init(&p);
    introduce(&p, 2, 2);
    introduce(&p, 0, 0);
    send_kind(&p, QN_BOOT_GO);
    cr_assert_eq(exchange(&p), QN_OK);
    cr_assert_eq(p.heard, 2);
    cr_assert_eq(p.said[0].node, 2);
    cr_assert_eq(qn_outbox_incarnation(p.peer[0]), 7);
    cr_assert_eq(p.said[1].node, 0);
    cr_assert_not_null(p.peer[1]);
    cr_assert_eq(qn_boot_recv(p.supervisor, &e, &fd, false), QN_OK);
    cr_assert(e.kind == QN_BOOT_HELLO && e.node == 1 && e.incarnation == 5);
    cr_assert_eq(qn_outbox_map(&seen, fd, &p.shape), QN_OK);
    qn_outbox_destroy(seen);
    close(fd);
    fini(&p);
}

Test(boot, exchange_goes_when_told_to_and_no_sooner, .timeout = 10)
{
    struct pair p;
    init(&p);
    p.boot.self = 0;
    p.boot.nodes = 1;
    send_kind(&p, QN_BOOT_GO);
    cr_assert_eq(exchange(&p), QN_OK);
    cr_assert_eq(p.heard, 0);
    fini(&p);
}

/* A dead node, and a dead life of this very node whose memory is needed. */
Test(boot, exchange_hears_of_the_dead)
{
    struct pair p;
    init(&p);
    introduce(&p, 1, 1);
    send_kind(&p, QN_BOOT_PEER_DOWN);
    send_kind(&p, QN_BOOT_GO);
    cr_assert_eq(exchange(&p), QN_OK);
    cr_assert_eq(p.heard, 2);
    cr_assert(p.said[0].node == 1 && p.peer[0] != NULL);
    cr_assert(p.said[1].node == 2 && p.peer[1] == NULL);
    cr_assert_eq(p.said[1].kind, QN_BOOT_PEER_DOWN);
    fini(&p);
}

Test(boot, exchange_ends_when_told_to_end)
{
    static const enum qn_boot_kind kind[] = {QN_BOOT_DRAIN, QN_BOOT_STOP};
    for (size_t i = 0; i < 2; i++) {
        struct pair p;
        init(&p);
        introduce(&p, 0, 0);
        send_kind(&p, kind[i]);
        cr_expect_eq(exchange(&p), QN_EABORTED, "row %zu", i);
        fini(&p);
    }
}

Test(boot, exchange_ends_when_the_supervisor_does)
{
    struct pair p;
    init(&p);
    introduce(&p, 0, 0);
    close(p.supervisor);
    p.supervisor = -1;
    cr_assert_eq(exchange(&p), QN_EPEERDEAD);
    fini(&p);
}

Test(boot, exchange_refuses_what_is_no_peer_and_leaks_nothing)
{
    int before = open_descriptors();
    for (int i = 0; i < 4; i++) {
        struct pair p;
        init(&p);
        switch (i) {
        case 0:
            p.boot.incarnation = 7;
            introduce(&p, 1, 1); /* myself */
            break;
        case 1:
            introduce(&p, 3, 2); /* nobody */
            break;
        case 2:
            send_kind(&p, QN_BOOT_PEER); /* no descriptor */
            break;
        default:
            introduce(&p, 0, 2); /* another's outbox */
        }
        cr_expect_eq(exchange(&p), QN_ECORRUPT, "case %d", i);
        fini(&p);
    }
    cr_assert_eq(open_descriptors(), before);
}

Test(boot, notices_and_failures_reach_the_supervisor)
{
    struct pair p;
    struct qn_boot_event e;
    int fd;
    init(&p);
    cr_assert_eq(qn_boot_notify(&p.boot, QN_BOOT_READY, 0), QN_OK);
    cr_assert_eq(qn_boot_drained(&p.boot, 7, true), QN_OK);
    qn_boot_failed(&p.boot, QN_ENOMEM);
    cr_assert_eq(qn_boot_recv(p.supervisor, &e, &fd, false), QN_OK);
    cr_assert(e.kind == QN_BOOT_READY && e.node == 1 && fd == -1);
    cr_assert_eq(qn_boot_recv(p.supervisor, &e, &fd, false), QN_OK);
    cr_assert(e.kind == QN_BOOT_DRAINED && e.value == 7 && e.error == 1);
    cr_assert_eq(qn_boot_recv(p.supervisor, &e, &fd, false), QN_OK);
    cr_assert(e.kind == QN_BOOT_FAILED && e.error == QN_ENOMEM);
    cr_assert_eq(qn_boot_recv(p.supervisor, &e, &fd, false), QN_EAGAIN);
    close(p.supervisor);
    p.supervisor = -1;
    cr_assert_eq(qn_boot_drained(&p.boot, 0, false), QN_EPEERDEAD);
    qn_boot_failed(&p.boot, QN_ENOMEM); /* harmless */
    fini(&p);
}

Test(boot, events_come_one_by_one_then_none_then_the_end)
{
    struct pair p;
    struct qn_boot_event e;
    int fd;
    init(&p);
    send_kind(&p, QN_BOOT_PEER_DOWN);
    send_kind(&p, QN_BOOT_DRAIN);
    cr_assert_eq(qn_boot_next_event(&p.boot, &e, &fd), QN_OK);
    cr_assert(e.kind == QN_BOOT_PEER_DOWN && e.node == 2 && e.incarnation == 7);
    cr_assert_eq(qn_boot_next_event(&p.boot, &e, &fd), QN_OK);
    cr_assert_eq(e.kind, QN_BOOT_DRAIN);
    cr_assert_eq(qn_boot_next_event(&p.boot, &e, &fd), QN_EAGAIN);
    close(p.supervisor);
    p.supervisor = -1;
    cr_assert_eq(qn_boot_next_event(&p.boot, &e, &fd), QN_EPEERDEAD);
    fini(&p);
}

Test(boot, a_message_of_another_size_is_corrupt)
{
    struct pair p;
    struct qn_boot_event e = {.kind = QN_BOOT_DRAIN};
    char bytes[2 * sizeof e] = {0};
    int fd;
    init(&p);
    cr_assert_eq(send(p.supervisor, bytes, sizeof e - 1, 0),
                 (ssize_t)sizeof e - 1);
    cr_assert_eq(send(p.supervisor, bytes, sizeof e + 1, 0),
                 (ssize_t)sizeof e + 1);
    cr_assert_eq(qn_boot_next_event(&p.boot, &e, &fd), QN_ECORRUPT);
    cr_assert_eq(qn_boot_next_event(&p.boot, &e, &fd), QN_ECORRUPT);
    cr_assert_eq(e.kind, QN_BOOT_DRAIN, "untouched");
    cr_assert_eq(qn_boot_next_event(&p.boot, &e, &fd), QN_EAGAIN);
    fini(&p);
}

Test(boot, last_words_are_heard_though_messages_were_left_unread, .timeout = 10)
{
    struct pair p;
    init(&p);
    struct qn_boot_event e = {.kind = QN_BOOT_DRAIN};
    int fd = -1;
    cr_assert_eq(qn_boot_send(p.supervisor, &e, -1), QN_OK);
    qn_boot_failed(&p.boot, QN_ENOMEM);
    close(p.boot.control); /* with DRAIN unread: ECONNRESET at the other end */
    p.boot.control = dup(p.supervisor); /* something for fini to close */
    cr_assert_eq(qn_boot_recv(p.supervisor, &e, &fd, false), QN_OK);
    cr_assert_eq(e.kind, (uint32_t)QN_BOOT_FAILED);
    cr_assert_eq(e.error, QN_ENOMEM);
    cr_assert_eq(qn_boot_recv(p.supervisor, &e, &fd, false), QN_EPEERDEAD);
    fini(&p);
}
