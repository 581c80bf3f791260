/* Control messages over a socket pair, and the replica's end of the dialogue.
 */
#include "kvs/control/control_channel.h"

#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/err.h"
#include "core/place/outbox.h"
#include "tests/support/fds.h"
#include "tests/support/test.h"

/* Replica 1 of 3, and the supervisor's end of its socket. */
struct pair {
    int supervisor;
    struct qn_replica_spec spec;
    struct qn_outbox_opts shape;
    struct qn_outbox *own;
    uint64_t life[8]; /* of the outboxes, in the order they came; 0: down */
    struct qn_control_msg said[8];
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
    p->spec = (struct qn_replica_spec){
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
    qn_outbox_destroy(p->own);
    close(p->spec.control);
    if (p->supervisor >= 0) {
        close(p->supervisor);
    }
}

static int hear(void *ctx, const struct qn_control_msg *m, int fd)
{
    struct pair *p = ctx;
    struct qn_outbox_opts like = p->shape;
    struct qn_outbox *peer = NULL;
    p->said[p->heard] = *m;
    if (m->kind == QN_CTL_PEER_UP) {
        like.node = m->u.peer_up.node;
        like.incarnation = 0;
        int err = qn_outbox_map(&peer, fd, &like);
        if (err != QN_OK) {
            return err;
        }
        p->life[p->heard] = qn_outbox_incarnation(peer);
        qn_outbox_destroy(peer);
    }
    p->heard++;
    return QN_OK;
}

static int exchange(struct pair *p)
{
    return qn_control_exchange(&p->spec, qn_outbox_fd(p->own), hear, p);
}

static int receive(struct pair *p, struct qn_control_msg *m, int *fd)
{
    const struct qn_control_link link = {.direction = QN_CTL_TO_SUPERVISOR,
                                         .nodes = 3};
    return qn_control_recv(p->supervisor, &link, m, fd, false);
}

/* The supervisor introduces `node`, whose outbox says it is `owner`'s. */
static void introduce(struct pair *p, qn_node_t node, qn_node_t owner)
{
    struct qn_outbox *o = outbox(p, owner, 7);
    const struct qn_control_msg m = {
        .kind = QN_CTL_PEER_UP,
        .u.peer_up = {.node = node, .incarnation = 7, .pid = 9}};
    cr_assert_eq(qn_control_send(p->supervisor, &m, qn_outbox_fd(o)), QN_OK);
    qn_outbox_destroy(o);
}

static void send_kind(struct pair *p, enum qn_control_kind kind)
{
    const struct qn_control_msg m = {.kind = kind};
    cr_assert_eq(qn_control_send(p->supervisor, &m, -1), QN_OK);
}

static void send_down(struct pair *p, qn_node_t node)
{
    const struct qn_control_msg m = {
        .kind = QN_CTL_PEER_DOWN,
        .u.peer_down = {.node = node, .incarnation = 7}};
    cr_assert_eq(qn_control_send(p->supervisor, &m, -1), QN_OK);
}

/* A message with `count` descriptors, whatever its kind may have. */
static void send_raw(int at, const struct qn_control_msg *m, size_t len,
                     uint32_t count)
{
    uint8_t bytes[2 * QN_CONTROL_BYTES] = {0};
    int fds[2] = {STDIN_FILENO, STDIN_FILENO};
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof fds)];
    } block = {0};
    qn_control_encode(m, bytes);
    struct iovec part = {.iov_base = bytes, .iov_len = len};
    struct msghdr msg = {.msg_iov = &part, .msg_iovlen = 1};
    if (count > 0) {
        msg.msg_control = block.bytes;
        msg.msg_controllen = CMSG_SPACE(count * sizeof(int));
        struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(count * sizeof(int));
        memcpy(CMSG_DATA(c), fds, count * sizeof(int));
    }
    cr_assert_eq(sendmsg(at, &msg, 0), (ssize_t)len);
}

Test(control_channel, exchange_gives_the_own_outbox_and_gets_the_others)
{
    struct pair p;
    struct qn_control_msg m;
    struct qn_outbox *seen;
    int fd;
    init(&p);
    introduce(&p, 2, 2);
    introduce(&p, 0, 0);
    send_kind(&p, QN_CTL_START);
    cr_assert_eq(exchange(&p), QN_OK);
    cr_assert_eq(p.heard, 2);
    cr_assert_eq(p.said[0].u.peer_up.node, 2);
    cr_assert_eq(p.said[0].u.peer_up.pid, 9);
    cr_assert_eq(p.life[0], 7);
    cr_assert_eq(p.said[1].u.peer_up.node, 0);
    cr_assert_eq(p.life[1], 7);
    cr_assert_eq(receive(&p, &m, &fd), QN_OK);
    cr_assert_eq(m.kind, QN_CTL_HELLO);
    cr_assert(m.u.hello.node == 1 && m.u.hello.incarnation == 5);
    cr_assert_eq(qn_outbox_map(&seen, fd, &p.shape), QN_OK);
    qn_outbox_destroy(seen);
    close(fd);
    fini(&p);
}

Test(control_channel, exchange_of_a_single_replica_ends_with_start,
     .timeout = 10)
{
    struct pair p;
    init(&p);
    p.spec.self = 0;
    p.spec.nodes = 1;
    send_kind(&p, QN_CTL_START);
    cr_assert_eq(exchange(&p), QN_OK);
    cr_assert_eq(p.heard, 0);
    fini(&p);
}

/* A dead node, and a dead incarnation of this very node whose memory is
 * needed. */
Test(control_channel, exchange_hears_of_the_dead)
{
    struct pair p;
    init(&p);
    introduce(&p, 1, 1);
    send_down(&p, 2);
    send_kind(&p, QN_CTL_START);
    cr_assert_eq(exchange(&p), QN_OK);
    cr_assert_eq(p.heard, 2);
    cr_assert_eq(p.said[0].kind, QN_CTL_PEER_UP);
    cr_assert(p.said[0].u.peer_up.node == 1 && p.life[0] == 7);
    cr_assert_eq(p.said[1].kind, QN_CTL_PEER_DOWN);
    cr_assert(p.said[1].u.peer_down.node == 2 && p.life[1] == 0);
    fini(&p);
}

Test(control_channel, exchange_ends_when_told_to_end)
{
    static const enum qn_control_kind kind[] = {QN_CTL_DRAIN, QN_CTL_STOP};
    for (size_t i = 0; i < 2; i++) {
        struct pair p;
        init(&p);
        introduce(&p, 0, 0);
        send_kind(&p, kind[i]);
        cr_expect_eq(exchange(&p), QN_EABORTED, "row %zu", i);
        fini(&p);
    }
}

Test(control_channel, exchange_ends_when_the_supervisor_does)
{
    struct pair p;
    init(&p);
    introduce(&p, 0, 0);
    close(p.supervisor);
    p.supervisor = -1;
    cr_assert_eq(exchange(&p), QN_EPEERDEAD);
    fini(&p);
}

Test(control_channel, exchange_refuses_what_is_no_peer_and_leaks_nothing)
{
    const struct qn_control_msg up = {
        .kind = QN_CTL_PEER_UP, .u.peer_up = {.node = 2, .incarnation = 7}};
    int before = open_descriptors();
    for (int i = 0; i < 3; i++) {
        struct pair p;
        init(&p);
        switch (i) {
        case 0:
            introduce(&p, 3, 2); /* there is no node 3 */
            break;
        case 1:
            send_raw(p.supervisor, &up, QN_CONTROL_BYTES, 0);
            break;
        default:
            introduce(&p, 0, 2); /* another node's outbox, says the callee */
        }
        cr_expect_eq(exchange(&p), QN_ECORRUPT, "case %d", i);
        fini(&p);
    }
    cr_assert_eq(open_descriptors(), before);
}

Test(control_channel, what_a_replica_says_reaches_the_supervisor)
{
    struct pair p;
    struct qn_control_msg m;
    int fd;
    init(&p);
    cr_assert_eq(qn_control_ready(&p.spec), QN_OK);
    cr_assert_eq(qn_control_draining(&p.spec, 10), QN_OK);
    cr_assert_eq(qn_control_drained(&p.spec, 7, true), QN_OK);
    qn_control_failed(&p.spec, QN_ENOMEM);
    cr_assert_eq(receive(&p, &m, &fd), QN_OK);
    cr_assert(m.kind == QN_CTL_READY && fd == -1);
    cr_assert_eq(receive(&p, &m, &fd), QN_OK);
    cr_assert(m.kind == QN_CTL_DRAINING && m.u.draining.timeout_s == 10);
    cr_assert_eq(receive(&p, &m, &fd), QN_OK);
    cr_assert_eq(m.kind, QN_CTL_DRAINED);
    cr_assert(m.u.drained.unsent_replies == 7 && m.u.drained.group_stopped);
    cr_assert_eq(receive(&p, &m, &fd), QN_OK);
    cr_assert(m.kind == QN_CTL_FAILED && m.u.failed.error == QN_ENOMEM);
    cr_assert_eq(receive(&p, &m, &fd), QN_EAGAIN);
    fini(&p);
}

Test(control_channel, without_a_supervisor_a_replica_is_told_so)
{
    struct pair p;
    init(&p);
    close(p.supervisor);
    p.supervisor = -1;
    cr_assert_eq(qn_control_drained(&p.spec, 0, false), QN_EPEERDEAD);
    qn_control_failed(&p.spec, QN_ENOMEM); /* harmless */
    fini(&p);
}

Test(control_channel, messages_come_one_by_one_then_none_then_the_end)
{
    struct pair p;
    struct qn_control_msg m;
    int fd;
    init(&p);
    send_down(&p, 2);
    send_kind(&p, QN_CTL_DRAIN);
    cr_assert_eq(qn_control_next(&p.spec, &m, &fd), QN_OK);
    cr_assert_eq(m.kind, QN_CTL_PEER_DOWN);
    cr_assert(m.u.peer_down.node == 2 && m.u.peer_down.incarnation == 7);
    cr_assert_eq(qn_control_next(&p.spec, &m, &fd), QN_OK);
    cr_assert_eq(m.kind, QN_CTL_DRAIN);
    cr_assert_eq(qn_control_next(&p.spec, &m, &fd), QN_EAGAIN);
    close(p.supervisor);
    p.supervisor = -1;
    cr_assert_eq(qn_control_next(&p.spec, &m, &fd), QN_EPEERDEAD);
    fini(&p);
}

static void expect_fault(struct pair *p, const char *fault)
{
    struct qn_control_msg m;
    int fd = 0;
    cr_expect_eq(qn_control_next(&p->spec, &m, &fd), QN_ECORRUPT, "%s", fault);
    cr_expect_str_eq(m.u.invalid.fault, fault);
    cr_expect_eq(fd, -1);
}

Test(control_channel, a_message_of_another_size_is_corrupt)
{
    const struct qn_control_msg drain = {.kind = QN_CTL_DRAIN};
    struct qn_control_msg m;
    struct pair p;
    int fd;
    init(&p);
    send_raw(p.supervisor, &drain, QN_CONTROL_BYTES - 1, 0);
    send_raw(p.supervisor, &drain, QN_CONTROL_BYTES + 1, 0);
    expect_fault(&p, QN_CTL_FAULT_LENGTH);
    expect_fault(&p, QN_CTL_FAULT_LENGTH);
    cr_assert_eq(qn_control_next(&p.spec, &m, &fd), QN_EAGAIN);
    fini(&p);
}

Test(control_channel, descriptors_that_do_not_belong_are_closed)
{
    const struct qn_control_msg drain = {.kind = QN_CTL_DRAIN};
    const struct qn_control_msg up = {
        .kind = QN_CTL_PEER_UP, .u.peer_up = {.node = 2, .incarnation = 7}};
    struct pair p;
    init(&p);
    int before = open_descriptors();
    send_raw(p.supervisor, &drain, QN_CONTROL_BYTES, 1);
    expect_fault(&p, QN_CTL_FAULT_DESCRIPTOR);
    send_raw(p.supervisor, &up, QN_CONTROL_BYTES, 2); /* one is expected */
    expect_fault(&p, QN_CTL_FAULT_LENGTH);
    send_raw(p.supervisor, &up, QN_CONTROL_BYTES - 1, 1);
    expect_fault(&p, QN_CTL_FAULT_LENGTH);
    cr_assert_eq(open_descriptors(), before);
    fini(&p);
}

/* The channel goes on: a message less is no end of the other process. */
Test(control_channel, a_message_whose_descriptor_has_no_room_is_refused)
{
    const struct qn_control_msg drain = {.kind = QN_CTL_DRAIN};
    const struct qn_control_msg up = {
        .kind = QN_CTL_PEER_UP, .u.peer_up = {.node = 2, .incarnation = 7}};
    struct qn_control_msg m;
    struct rlimit many, few;
    struct pair p;
    int fd;
    init(&p);
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &many), 0);
    few = (struct rlimit){.rlim_cur = (rlim_t)dup(STDIN_FILENO),
                          .rlim_max = many.rlim_max};
    close((int)few.rlim_cur); /* the lowest that is free: none is below it */
    send_raw(p.supervisor, &up, QN_CONTROL_BYTES, 1);
    send_raw(p.supervisor, &drain, QN_CONTROL_BYTES, 0);
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    expect_fault(&p, QN_CTL_FAULT_NO_DESCRIPTOR);
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &many), 0);
    cr_assert_eq(qn_control_next(&p.spec, &m, &fd), QN_OK);
    cr_assert_eq(m.kind, QN_CTL_DRAIN);
    fini(&p);
}

Test(control_channel, last_words_are_heard_though_messages_were_left_unread,
     .timeout = 10)
{
    struct pair p;
    struct qn_control_msg m;
    int fd = -1;
    init(&p);
    send_kind(&p, QN_CTL_DRAIN);
    qn_control_failed(&p.spec, QN_ENOMEM);
    close(p.spec.control); /* with DRAIN unread: ECONNRESET at the other end */
    p.spec.control = dup(p.supervisor); /* something for fini to close */
    cr_assert_eq(receive(&p, &m, &fd), QN_OK);
    cr_assert_eq(m.kind, QN_CTL_FAILED);
    cr_assert_eq(m.u.failed.error, QN_ENOMEM);
    cr_assert_eq(receive(&p, &m, &fd), QN_EPEERDEAD);
    fini(&p);
}

Test(control_channel, a_descriptor_of_another_kind_is_never_sent,
     .signal = SIGABRT)
{
    struct pair p;
    const struct qn_control_msg m = {.kind = QN_CTL_DRAIN};
    init(&p);
    (void)qn_control_send(p.supervisor, &m, STDIN_FILENO);
}

Test(control_channel, a_missing_descriptor_is_never_sent, .signal = SIGABRT)
{
    struct pair p;
    const struct qn_control_msg m = {
        .kind = QN_CTL_PEER_UP, .u.peer_up = {.node = 2, .incarnation = 7}};
    init(&p);
    (void)qn_control_send(p.supervisor, &m, -1);
}

/* A socket may carry a frame without bytes and with a descriptor. */
Test(control_channel, an_empty_message_with_a_descriptor_is_refused)
{
    struct pair p;
    init(&p);
    int fds = open_descriptors();
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct msghdr msg = {.msg_control = control.bytes,
                         .msg_controllen = sizeof control.bytes};
    struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &p.spec.control, sizeof(int));
    cr_assert_eq(sendmsg(p.spec.control, &msg, 0), 0);
    struct qn_control_msg m;
    int fd = -1;
    cr_assert_eq(receive(&p, &m, &fd), QN_ECORRUPT);
    cr_assert_eq(fd, -1);
    cr_assert_eq(open_descriptors(), fds, "the descriptor is closed");
    fini(&p);
}
