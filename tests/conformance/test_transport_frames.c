/*
 * The contract of core/qp.h for frames: what an inner node of a tree passes on
 * before it is whole, and what is taken back.
 */
#include "tests/conformance/pair.h"

static uint8_t out[QN_MSG_MAX];
static uint8_t in[QN_MSG_MAX];

/* Bytes that any frame of that transport can carry, also a FIRST, which says
 * how long its message is. */
static uint32_t part_of(const struct qn_transport *t)
{
    return t->frame_max - 6;
}

static struct qn_frame frame(enum qn_frame_kind kind, const void *data,
                             uint32_t len, uint32_t total)
{
    return (struct qn_frame){
        .kind = kind, .data = data, .len = len, .total = total};
}

static int send_frame(struct qn_qp *qp, enum qn_frame_kind kind, uint32_t len,
                      uint32_t total)
{
    const struct qn_frame f = frame(kind, out, len, total);
    return qn_qp_try_send_frame(qp, &f);
}

/* A -> B -> C, frame by frame, both hops on the smallest ring. */
Test(transport, frames_forward_a_long_message_before_it_is_whole)
{
    FOR_EACH_TRANSPORT(t)
    {
        struct pair ab;
        struct pair bc;
        size_t len = 0;
        struct qn_frame f;
        bool early = false;
        int rc = QN_EAGAIN;
        pair_open(&ab, t, 16);
        pair_open(&bc, t, 16);
        pattern(out, 20000, 9);
        cr_assert_eq(qn_qp_try_send(ab.end[0], out, 20000), QN_OK);
        for (int turn = 0; turn < 5000 && rc == QN_EAGAIN; turn++) {
            if (qn_qp_peek_frame(ab.end[1], &f) == QN_OK &&
                qn_qp_try_send_frame(bc.end[0], &f) == QN_OK) {
                cr_assert_eq(f.total, 20000);
                qn_qp_release_frame(ab.end[1]);
            }
            bool staged = qn_qp_flush(ab.end[0]);
            early = early || (staged && f.len > 0);
            rc = qn_qp_try_recv(bc.end[1], in, sizeof in, &len);
        }
        cr_assert_eq(rc, QN_OK);
        cr_assert(early, "forwarded while the source was still pushing");
        cr_assert(len == 20000 && pattern_is(in, len, 9));
        pair_close(&ab);
        pair_close(&bc);
    }
}

Test(transport, an_aborted_message_is_never_seen)
{
    FOR_EACH_TRANSPORT(t)
    {
        struct pair p;
        size_t len = 0;
        pair_open(&p, t, 16);
        cr_assert_eq(send_frame(p.end[0], QN_FRAME_FIRST, part_of(t), 300),
                     QN_OK);
        cr_assert_eq(send_frame(p.end[0], QN_FRAME_MORE, t->frame_max, 0),
                     QN_OK);
        cr_assert_eq(qn_qp_try_recv(p.end[1], in, sizeof in, &len), QN_EAGAIN);
        cr_assert_eq(send_frame(p.end[0], QN_FRAME_ABORT, 0, 0), QN_OK);
        cr_assert_eq(qn_qp_try_recv(p.end[1], in, sizeof in, &len), QN_EAGAIN);
        cr_assert_eq(send_frame(p.end[0], QN_FRAME_FIRST, 5, 300), QN_OK);
        cr_assert_eq(send_frame(p.end[0], QN_FRAME_ABORT, 0, 0), QN_OK);
        cr_assert_eq(qn_qp_try_send(p.end[0], "after", 5), QN_OK);
        cr_assert_eq(pair_pump(&p, in, sizeof in, &len), QN_OK);
        cr_assert(len == 5 && memcmp(in, "after", 5) == 0);
        pattern(out, 700, 3);
        cr_assert_eq(qn_qp_try_send(p.end[0], out, 700), QN_OK);
        cr_assert_eq(pair_pump(&p, in, sizeof in, &len), QN_OK);
        cr_assert(len == 700 && pattern_is(in, len, 3));
        pair_close(&p);
    }
}

Test(transport, the_frame_view_shows_an_abort)
{
    FOR_EACH_TRANSPORT(t)
    {
        static const enum qn_frame_kind want[] = {
            QN_FRAME_FIRST, QN_FRAME_ABORT, QN_FRAME_ONLY};
        struct pair p;
        struct qn_frame f;
        pair_open(&p, t, 16);
        cr_assert_eq(send_frame(p.end[0], QN_FRAME_FIRST, part_of(t), 300),
                     QN_OK);
        cr_assert_eq(send_frame(p.end[0], QN_FRAME_ABORT, 0, 0), QN_OK);
        cr_assert_eq(qn_qp_try_send(p.end[0], "abc", 3), QN_OK);
        for (int i = 0; i < 3; i++) {
            cr_assert_eq(qn_qp_peek_frame(p.end[1], &f), QN_OK);
            cr_assert_eq(f.kind, want[i]);
            qn_qp_release_frame(p.end[1]);
        }
        cr_assert(f.len == 3 && f.total == 3);
        cr_assert_eq(qn_qp_peek_frame(p.end[1], &f), QN_EAGAIN);
        pair_close(&p);
    }
}

Test(transport, frames_that_form_no_message_are_refused)
{
    FOR_EACH_TRANSPORT(t)
    {
        struct pair p;
        struct qn_qp *a;
        const uint32_t n = part_of(t);
        pair_open(&p, t, 16);
        a = p.end[0];
        cr_assert_eq(send_frame(a, QN_FRAME_MORE, 10, 0), QN_EINVAL);
        cr_assert_eq(send_frame(a, QN_FRAME_LAST, 10, 0), QN_EINVAL);
        cr_assert_eq(send_frame(a, QN_FRAME_ABORT, 0, 0), QN_EINVAL);
        cr_assert_eq(send_frame(a, QN_FRAME_FIRST, n, QN_MSG_MAX + 1),
                     QN_EINVAL);
        cr_assert_eq(send_frame(a, QN_FRAME_FIRST, n, n - 1), QN_EINVAL);
        cr_assert_eq(send_frame(a, QN_FRAME_FIRST, n, n + 20), QN_OK);
        cr_assert_eq(send_frame(a, QN_FRAME_FIRST, n, n + 20), QN_EINVAL);
        cr_assert_eq(send_frame(a, QN_FRAME_ONLY, 4, 4), QN_EINVAL);
        cr_assert_eq(send_frame(a, QN_FRAME_MORE, 21, 0), QN_EINVAL);
        cr_assert_eq(send_frame(a, QN_FRAME_LAST, 19, 0), QN_EINVAL);
        cr_assert_eq(qn_qp_try_send(a, "x", 1), QN_EAGAIN);
        cr_assert_eq(send_frame(a, QN_FRAME_LAST, 20, 0), QN_OK);
        cr_assert_eq(qn_qp_try_send(a, "x", 1), QN_OK);
        pair_close(&p);
        pair_open_limited(&p, t, 16, 100, 100);
        a = p.end[0];
        cr_assert_eq(send_frame(a, QN_FRAME_FIRST, n, 101), QN_EINVAL);
        cr_assert_eq(send_frame(a, QN_FRAME_FIRST, n, 100), QN_OK);
        pair_close(&p);
    }
}
