/*
 * The chip as a device: layout, registers, interrupts, and what a strict one
 * does to code that forgets.
 */
#include "tests/unit/transports/mpb/mpb_world.h"

static struct mpb_world w;

/* Each line has one purpose and one writer, for all numbers of nodes. */
Test(mpb_layout, no_two_purposes_share_a_line)
{
    for (uint32_t lanes = 1; lanes <= QN_LANES; lanes++) {
        for (uint32_t n = 2; n <= (lanes == 1 ? 48u : 39u); n++) {
            struct qn_mpb_layout l;
            uint8_t used[QN_MPB_LINES] = {0};
            qn_node_t core = n / 2;
            cr_assert(qn_mpb_layout(&l, n, lanes), "%u nodes", n);
            for (qn_node_t v = 0; v < n; v++) {
                for (uint32_t i = 0; i < lanes && v != core; i++) {
                    uint32_t chunk =
                        qn_mpb_chunk_line(&l, core, v, (enum qn_lane)i);
                    used[qn_mpb_flag_line(&l, core, v, (enum qn_lane)i)]++;
                    for (uint32_t c = 0; c < l.cells * QN_MPB_CELL_LINES; c++) {
                        used[chunk + c]++;
                    }
                }
            }
            for (uint32_t i = 0; i < QN_MPB_LINES; i++) {
                cr_assert_eq(used[i], i < l.broadcast, "line %u of %u nodes", i,
                             n);
            }
            cr_assert_leq(l.broadcast +
                              qn_mpb_broadcast_lines(n, n > 2 ? 2 : 1),
                          QN_MPB_LINES);
        }
    }
}

Test(mpb_layout, what_does_not_fit_is_refused)
{
    struct qn_mpb_layout l;
    struct qn_device_opts o = {.nodes = 48, .lanes = 1};
    cr_assert_neq(qn_mpb_device.bytes(&o), 0);
    o.lanes = 2;
    cr_assert_eq(qn_mpb_device.bytes(&o), 0);
    cr_assert(qn_mpb_layout(&l, 39, 2));
    cr_assert(!qn_mpb_layout(&l, 40, 2));
    cr_assert(!qn_mpb_layout(&l, 49, 1));
    cr_assert(!qn_mpb_layout(&l, 1, 1));
    cr_assert(!qn_mpb_layout(&l, 2, 0));
    cr_assert(!qn_mpb_layout(&l, 2, 3));
}

Test(mpb_device, attach_refuses_what_is_formatted_otherwise)
{
    mpb_open_world(&w, 3, false, 1);
    struct qn_device *d = NULL;
    struct qn_device_opts other = w.opts;
    struct qn_device_attach_opts a = {.memory = w.memory,
                                      .opts = &other,
                                      .self = 0,
                                      .incarnation = w.incarnation};
    other.nodes = 4;
    w.incarnation[3] = 1;
    cr_assert_eq(qn_mpb_device.attach(&d, &a), QN_ECORRUPT);
    other = w.opts;
    other.strict = true;
    cr_assert_eq(qn_mpb_device.attach(&d, &a), QN_ECORRUPT);
    other = w.opts;
    a.self = 3;
    cr_assert_eq(qn_mpb_device.attach(&d, &a), QN_EINVAL);
    a.self = 0;
    w.incarnation[0] = 0;
    cr_assert_eq(qn_mpb_device.attach(&d, &a), QN_EINVAL);
    cr_assert_null(d);
    mpb_close_world(&w);
}

Test(mpb_registers, one_core_has_a_register)
{
    mpb_open_world(&w, 3, false, 1);
    cr_assert(qn_mpb_try_acquire(mpb_core(&w, 0), 2));
    cr_assert(!qn_mpb_try_acquire(mpb_core(&w, 1), 2));
    cr_assert(qn_mpb_try_acquire(mpb_core(&w, 1), 1), "another register");
    qn_mpb_release(mpb_core(&w, 0), 2);
    cr_assert(qn_mpb_try_acquire(mpb_core(&w, 1), 2));
    mpb_close_world(&w);
}

/* Only once it is known that the holder is dead, by any survivor, and never
 * what its successor or another node has taken since. */
Test(mpb_registers, a_dead_holder_is_released)
{
    mpb_open_world(&w, 3, false, 1);
    cr_assert(qn_mpb_try_acquire(mpb_core(&w, 0), 2));
    qn_device_detach(w.node[0]);
    w.node[0] = NULL;
    cr_assert(!qn_mpb_try_acquire(mpb_core(&w, 1), 2), "it may be stalled");
    qn_device_down(w.node[1], 0);
    w.incarnation[0] = 77;
    mpb_attach(&w, 0);
    cr_assert(qn_mpb_try_acquire(mpb_core(&w, 0), 2));
    qn_device_down(w.node[2], 0); /* told late, of the former incarnation */
    cr_assert(!qn_mpb_try_acquire(mpb_core(&w, 1), 2));
    qn_device_up(w.node[1], 0, 77);
    qn_device_down(w.node[1], 0);
    cr_assert(qn_mpb_try_acquire(mpb_core(&w, 1), 2));
    mpb_close_world(&w);
}

/* Holder and all that knew it end: whoever comes next releases. */
Test(mpb_registers, what_a_forgotten_incarnation_holds_is_released)
{
    for (uint32_t by = 0; by < 3; by++) {
        mpb_open_world(&w, 3, false, 1);
        cr_assert(qn_mpb_try_acquire(mpb_core(&w, 0), 2));
        for (qn_node_t i = 0; i < 3; i++) {
            qn_device_detach(w.node[i]);
            w.node[i] = NULL;
        }
        const uint64_t next[] = {by == 1 ? 0 : 77, 21, 22};
        memcpy(w.incarnation, next, sizeof next);
        if (by == 0) { /* the seat itself */
            mpb_attach(&w, 0);
        }
        w.incarnation[0] = by == 2 ? 77 : 0;
        mpb_attach(&w, 1);
        if (by == 1) { /* one that did not know it, told of the next */
            cr_assert(!qn_mpb_try_acquire(mpb_core(&w, 1), 2));
            qn_device_up(w.node[1], 0, 77);
        }
        cr_assert(qn_mpb_try_acquire(mpb_core(&w, 1), 2), "%u", by);
        mpb_close_world(&w);
    }
}

/* What is told late is of the past: the successor keeps what it holds. */
Test(mpb_registers, an_up_told_late_releases_nothing_of_a_successor)
{
    mpb_open_world(&w, 3, false, 1);
    qn_device_detach(w.node[0]);
    w.incarnation[0] = 78;
    mpb_attach(&w, 0);
    cr_assert(qn_mpb_try_acquire(mpb_core(&w, 0), 2));
    qn_device_down(w.node[1], 0);
    qn_device_up(w.node[1], 0, 77); /* 78 holds it meanwhile */
    cr_assert(!qn_mpb_try_acquire(mpb_core(&w, 1), 2));
    qn_device_up(w.node[1], 0, 78);
    cr_assert(!qn_mpb_try_acquire(mpb_core(&w, 1), 2));
    mpb_close_world(&w);
}

Test(mpb_interrupts, two_of_one_source_merge)
{
    mpb_open_world(&w, 3, false, 1);
    struct qn_mpb *m = mpb_core(&w, 0);
    m->access->interrupt(m, 6);
    m->access->interrupt(m, 6);
    m = mpb_core(&w, 1);
    m->access->interrupt(m, 4);
    cr_assert_eq(m->access->take(m), 1);
    cr_assert_eq(m->access->take(m), 0);
    m = mpb_core(&w, 2);
    cr_assert_eq(m->access->take(m), 3);
    mpb_close_world(&w);
}

Test(mpb_interrupts, a_sleeper_is_rung)
{
    mpb_open_world(&w, 2, false, 1);
    struct qn_mpb *m = mpb_core(&w, 0);
    qn_doorbell_arm(&w.doorbell[1]);
    m->access->interrupt(m, 2);
    cr_assert_eq(qn_doorbell_wait(&w.doorbell[1], 0), QN_OK);
    qn_doorbell_disarm(&w.doorbell[1]);
    mpb_close_world(&w);
}

/* For some seed it is on its way for a while; never behind settle. */
Test(mpb_interrupts, a_strict_controller_delays_them)
{
    uint32_t late = 0;
    for (uint64_t seed = 0; seed < 20; seed++) {
        mpb_open_world(&w, 2, true, seed);
        struct qn_mpb *from = mpb_core(&w, 0);
        struct qn_mpb *to = mpb_core(&w, 1);
        from->access->interrupt(from, 2);
        if (to->access->take(to) == 0) {
            late++;
            from->access->settle(from);
            cr_assert_eq(to->access->take(to), 1);
        }
        mpb_close_world(&w);
    }
    cr_assert(late > 0 && late < 20, "%u", late);
}

/* A node dies with an interrupt on its way; its successor interrupts before the
 * target is told of the death. */
Test(mpb_interrupts, those_of_a_successor_survive_down)
{
    mpb_open_world(&w, 3, false, 1);
    qn_mpb_request(mpb_core(&w, 0), 6); /* and dies here */
    qn_device_detach(w.node[0]);
    w.incarnation[0] = 77;
    mpb_attach(&w, 0);
    mpb_core(&w, 0)->access->interrupt(mpb_core(&w, 0), 2);
    struct qn_mpb *to = mpb_core(&w, 1);
    qn_device_down(w.node[1], 0);
    qn_device_up(w.node[1], 0, 77);
    cr_assert_eq(to->access->take(to), 1);
    cr_assert_eq(to->access->take(to), 0);
    mpb_close_world(&w);
}

/* ---- strict ---- */

/* For some seed a copy stays for ever, for some it does not; never behind
 * invalidate. */
Test(mpb_strict, a_line_is_stale_until_it_is_invalidated)
{
    uint32_t stale = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        bool kept = true;
        mpb_open_world(&w, 2, true, seed);
        struct qn_mpb *reader = mpb_core(&w, 0);
        struct qn_mpb *writer = mpb_core(&w, 1);
        cr_assert_eq(qn_mpb_load(reader, 0, 5, 0), 0);
        qn_mpb_store(writer, 0, 5, 0, 42);
        qn_mpb_drain(writer);
        for (int i = 0; i < 50; i++) {
            kept = kept && qn_mpb_load(reader, 0, 5, 0) == 0;
        }
        stale += kept;
        qn_mpb_invalidate(reader);
        cr_assert_eq(qn_mpb_load(reader, 0, 5, 0), 42);
        cr_assert_null(qn_mpb_fault(w.node[0]));
        mpb_close_world(&w);
    }
    cr_assert(stale > 5 && stale < 35, "%u", stale);
}

Test(mpb_strict, less_than_a_line_stays_in_the_write_buffer)
{
    mpb_open_world(&w, 2, true, 3);
    struct qn_mpb *m = mpb_core(&w, 0);
    const qn_a64 *word = m->chip->core[1].line[7].word;
    qn_mpb_store(m, 1, 7, 0, 1);
    qn_mpb_store(m, 1, 7, 2, 3);
    cr_assert_eq(qn_load(&word[0], QN_SEQ_CST), 0);
    qn_mpb_drain(m);
    cr_assert_eq(qn_load(&word[0], QN_SEQ_CST), 1);
    cr_assert_eq(qn_load(&word[2], QN_SEQ_CST), 3);
    qn_mpb_store(m, 1, 7, 0, 4);
    qn_mpb_store(m, 1, 8, 0, 5);
    cr_assert_eq(qn_load(&word[0], QN_SEQ_CST), 4, "another line drains it");
    cr_assert_eq(qn_load(&word[4], QN_SEQ_CST), 0);
    const uint64_t line[4] = {6, 7, 8, 9};
    qn_mpb_put(m, 1, 7, line, sizeof line);
    cr_assert_eq(qn_load(&word[3], QN_SEQ_CST), 9, "a whole line leaves");
    cr_assert_null(qn_mpb_fault(w.node[0]));
    mpb_close_world(&w);
}

Test(mpb_strict, loading_what_was_not_drained_is_a_fault)
{
    mpb_open_world(&w, 2, true, 3);
    struct qn_mpb *m = mpb_core(&w, 0);
    qn_mpb_store(m, 0, 7, 1, 1);
    (void)qn_mpb_load(m, 0, 7, 0);
    (void)qn_mpb_load(m, 0, 8, 1);
    cr_assert_null(qn_mpb_fault(w.node[0]));
    (void)qn_mpb_load(m, 0, 7, 1);
    cr_assert_not_null(qn_mpb_fault(w.node[0]));
    mpb_close_world(&w);
}

/* Whole lines from any buffer to the own one, and bytes that are no words. */
Test(mpb_chip, moves_lines_and_bytes)
{
    for (int strict = 0; strict < 2; strict++) {
        char text[50] = "no multiple of eight bytes";
        char copy[sizeof text] = "";
        mpb_open_world(&w, 2, strict, 3);
        struct qn_mpb *a = mpb_core(&w, 0);
        struct qn_mpb *b = mpb_core(&w, 1);
        qn_mpb_put(a, 0, 100, text, sizeof text);
        qn_mpb_drain(a);
        b->access->move(b, 110, 0, 100, 2);
        qn_mpb_drain(b);
        qn_mpb_invalidate(a);
        qn_mpb_get(a, copy, 1, 110, sizeof copy);
        cr_assert_str_eq(text, copy);
        mpb_close_world(&w);
    }
}

/* What its bell was in may be unmapped by now. */
Test(mpb_chip, a_core_that_has_ended_is_not_rung)
{
    mpb_open_world(&w, 3, false, 3);
    qn_doorbell_arm(&w.doorbell[1]);
    qn_doorbell_arm(&w.doorbell[2]);
    uint32_t asleep = qn_load(&w.line[1].epoch, QN_SEQ_CST);
    qn_device_down(w.node[0], 1);
    qn_mpb_request(mpb_core(&w, 0), 0x6);
    qn_mpb_serve(mpb_core(&w, 0));
    cr_assert_eq(qn_load(&w.line[1].epoch, QN_SEQ_CST), asleep);
    cr_assert_neq(qn_load(&w.line[2].epoch, QN_SEQ_CST), asleep);
    mpb_close_world(&w);
}
