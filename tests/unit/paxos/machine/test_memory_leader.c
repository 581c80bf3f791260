/*
 * Take-over of the memory acceptor, as node 1 of three: entry 1 says that it
 * leads, node 0 has died, and what it decided lies in its ring. (PROTOCOL.md
 * 5; whole groups: tests/sim.)
 */
#include <stdlib.h>
#include <string.h>

#include "tests/support/test.h"
#include "tests/unit/paxos/machine/fixture.h"

enum {
    SELF = 1,
    JOINER = 2,
    SLOTS = 64,
    BYTES = 1 << 16,
    LO = 1150, /* first slot of the old ring */
    AT = 1190, /* applied by node 1 */
    HI = 1200, /* decided; more than an incarnation that has nothing gets copied
                */
    LATER = 5, /* an epoch of node 0 that is not heard of at first */
    MANY = 200 /* ticks */
};

static struct {
    struct fx f;
    struct qn_pair word;
    struct qn_memory_acceptor shared;
    struct qn_ring old;
    void *mem[2];
    qn_slot_t joined; /* where the joiner is */
    bool other;       /* another incarnation owns the next epoch */
    uint64_t known;   /* its owner has announced itself: node 0; 0: none has */
    bool joiner_owns; /* not node 0, but the joiner has */
} w;

static const struct qn_ring *ring(void *ctx, qn_node_t node, uint64_t inc)
{
    (void)ctx;
    return node == 0 && inc == 10 ? &w.old : NULL;
}

static bool owner(void *ctx, qn_epoch_t epoch)
{
    (void)ctx;
    (void)epoch;
    return !w.other;
}

static bool owned_by(void *ctx, uint64_t epoch, qn_node_t *node, uint64_t *inc)
{
    (void)ctx;
    *node = w.joiner_owns ? JOINER : 0;
    *inc = w.joiner_owns ? 30 : 10;
    return epoch == w.known && epoch != 0;
}

static bool position(void *ctx, qn_node_t node, struct qn_position *out)
{
    (void)ctx;
    *out = (struct qn_position){w.joined, w.joined};
    return node == JOINER;
}

static void open_ring(struct qn_ring *r, unsigned i, qn_slot_t lo)
{
    const struct qn_ring_opts o = {
        .slots = SLOTS, .capacity = BYTES, .span = BYTES};
    size_t bytes = qn_ring_bytes(SLOTS, BYTES);
    w.mem[i] = aligned_alloc(QN_CACHELINE, bytes);
    memset(w.mem[i], 0, bytes);
    qn_ring_open(r, w.mem[i], &o);
    qn_ring_begin(r, lo);
}

/* What node 0 has decided. */
static void decide(void)
{
    for (qn_slot_t s = LO; s <= HI; s++) {
        struct qn_refbuf *b = fx_slot_batch(s);
        const struct qn_slice bytes = {b->bytes, b->len};
        const struct qn_ring_need need = {.own = LO, .all = LO};
        cr_assert_eq(qn_ring_reserve(&w.old, b->len, need), QN_OK);
        qn_ring_write(&w.old, s, 0, bytes);
        qn_refbuf_unref(b);
    }
    qn_store(&w.word.second, HI, QN_SEQ_CST);
}

static void chosen_of(uint32_t index, uint8_t leader)
{
    const struct qn_ul_entry e = {.index = index,
                                  .kind = QN_UL_LEADER,
                                  .leader = leader,
                                  .acceptor = leader,
                                  .leader_inc = 10u + leader,
                                  .acceptor_inc = 10u + leader};
    uint8_t ul[QN_UL_BYTES];
    qn_ul_encode(&e, ul);
    const struct qn_msg m = {
        .kind = QN_MSG_U_CHOSEN, .epoch = index, .body = {ul, sizeof ul}};
    fx_recv(&w.f, JOINER, &m);
}

static void chosen(uint32_t index)
{
    chosen_of(index, SELF);
}

static void hear_of_later(void)
{
    for (uint32_t i = 1; i <= LATER; i++) {
        chosen_of(i, 0);
    }
}

/* Node 0 has died, node 2 is a new incarnation that has nothing, this one has
 * applied all up to `at`. */
static void begin_with(qn_slot_t at, struct qn_params v)
{
    const struct qn_resume have = {.position = at, .session = {{10, at}}};
    v.copy_bytes = 32; /* so that a copy takes many turns */
    memset(&w, 0, sizeof w);
    open_ring(&w.old, 0, LO);
    w.shared = (struct qn_memory_acceptor){.accept_register = &w.word,
                                           .ring = ring,
                                           .owner = owner,
                                           .owned_by = owned_by,
                                           .position = position};
    open_ring(&w.shared.own, 1, 1);
    fx_make_shared(&w.f, SELF, 3, &v, &w.shared);
    qn_onepaxos_install(w.f.p, &have, w.f.now);
    decide();
    fx_down(&w.f, 0);
    fx_down(&w.f, JOINER);
    fx_up(&w.f, JOINER, 30);
    fx_beat(&w.f, JOINER, 0, 0);
}

static void begin(qn_slot_t at)
{
    begin_with(at, fx_params());
}

static void end(void)
{
    fx_end(&w.f);
    free(w.mem[0]);
    free(w.mem[1]);
}

static bool leads(void)
{
    return fx_status(&w.f).role == QN_ACTIVE;
}

/* So many turns, 10 us apart, or until it leads. */
static void ticks(uint32_t n)
{
    for (uint32_t i = 0; i < n && !leads(); i++) {
        fx_later(&w.f, QN_MS / 100);
    }
}

Test(memory_leader, moves_the_word_when_all_is_copied)
{
    begin(AT);
    chosen(1);
    fx_tick(&w.f);
    cr_assert_not(leads(), "a copy takes many turns");
    ticks(MANY);
    cr_assert(leads());
    cr_assert_eq(qn_load(&w.word.first, QN_SEQ_CST), 1);
    cr_assert_geq(qn_load(&w.word.second, QN_SEQ_CST), HI);
    end();
}

/* Nothing is copied for an incarnation that has nothing. It brings a snapshot
 * while the copy is made: from then on it needs the old ring, until it has read
 * that far as the new one does not go back. */
Test(memory_leader, waits_for_who_came_during_the_copy)
{
    begin(AT);
    chosen(1);
    fx_tick(&w.f);
    w.joined = LO + 10;
    ticks(MANY);
    cr_assert_not(leads(), "it would be out of sync");
    w.joined = AT;
    ticks(MANY);
    cr_assert(leads());
    end();
}

/* But not for one that does not go on. */
Test(memory_leader, waits_for_nobody_longer_than_a_change_of_leaders_takes)
{
    begin(AT);
    chosen(1);
    fx_tick(&w.f);
    w.joined = LO + 10;
    ticks(MANY);
    cr_assert_not(leads());
    fx_later(&w.f, 2 * fx_params().t_lead);
    ticks(MANY);
    cr_assert(leads());
    end();
}

/* Another node took this entry for its own, and has moved the word. */
Test(memory_leader, steps_down_when_the_word_has_its_epoch)
{
    begin(HI);
    qn_store(&w.word.first, 1, QN_SEQ_CST);
    chosen(1);
    ticks(MANY);
    cr_assert_eq(fx_status(&w.f).role, QN_FOLLOWER);
    end();
}

/* He is about to. */
Test(memory_leader, does_not_move_the_word_to_an_epoch_that_another_life_owns)
{
    begin(AT);
    w.other = true;
    chosen(1);
    ticks(MANY);
    cr_assert_not(leads());
    cr_assert_eq(qn_load(&w.word.first, QN_SEQ_CST), 0);
    end();
}

/* Nobody is asked for what lies in the ring, and nobody takes a snapshot. */
Test(memory_leader, without_memory_the_ring_is_read_later)
{
    begin(AT);
    fx_beat(&w.f, JOINER, HI, HI); /* so it hears of them */
    w.f.memory_left = 0;
    for (uint32_t k = 0; k < MANY; k++) {
        fx_later(&w.f, 10 * QN_MS);
        cr_assert_eq(fx_count(&w.f, QN_MSG_FETCH), 0);
    }
    cr_assert_eq(fx_status(&w.f).learned_hi, AT);
    w.f.memory_left = INT64_MAX;
    for (uint32_t k = 0; k < MANY; k++) {
        fx_later(&w.f, 10 * QN_MS);
    }
    cr_assert_eq(fx_status(&w.f).learned_hi, HI);
    cr_assert_eq(fx_status(&w.f).fetches, 0);
    end();
}

/* The owner of the register's epoch is known, and this node has not heard of
 * the epoch: it may take itself for the leader of an earlier one. */
Test(memory_leader, reads_the_ring_of_an_epoch_when_it_has_its_entry)
{
    begin(AT);
    qn_store(&w.word.first, LATER, QN_SEQ_CST);
    w.known = LATER;
    fx_beat(&w.f, JOINER, HI, HI); /* so it hears of them */
    for (uint32_t k = 0; k < MANY; k++) {
        fx_later(&w.f, 10 * QN_MS);
    }
    cr_assert_eq(fx_status(&w.f).learned_hi, AT);
    hear_of_later();
    for (uint32_t k = 0; k < MANY; k++) {
        fx_later(&w.f, 10 * QN_MS);
    }
    cr_assert_eq(fx_status(&w.f).learned_hi, HI);
    end();
}

/* Decided slots are missing, and the register is at an epoch of which this node
 * has not heard: it asks its only peer for the log. */
static void ask_for_the_log(void)
{
    qn_store(&w.word.first, LATER, QN_SEQ_CST);
    w.known = LATER;
    fx_beat(&w.f, JOINER, HI, HI);
    for (uint32_t k = 0; k < MANY && fx_count(&w.f, QN_MSG_FETCH) == 0; k++) {
        fx_later(&w.f, QN_MS);
    }
    cr_assert_eq(fx_to(&w.f, QN_MSG_FETCH, 0), JOINER);
}

/* The peer has dropped what is missing. */
static void answer_with_nothing(void)
{
    const struct qn_msg m = {.kind = QN_MSG_FILL,
                             .flags = QN_MSG_LAST,
                             .fill = {.log_lo = HI + 1, .hi = HI}};
    fx_recv(&w.f, JOINER, &m);
}

/* The leader may await this node, since its ring keeps what the log does not:
 * the entry has come since the log was asked for. */
Test(memory_leader, the_ring_is_looked_at_again_before_a_snapshot)
{
    begin(AT);
    ask_for_the_log();
    hear_of_later();
    answer_with_nothing();
    cr_assert_not(fx_status(&w.f).need_snapshot);
    for (uint32_t k = 0; k < MANY; k++) {
        fx_later(&w.f, QN_MS);
    }
    cr_assert_eq(fx_status(&w.f).learned_hi, HI);
    cr_assert_eq(fx_status(&w.f).fetches, 1);
    end();
}

/* Its ring will be looked at when the entry is here. */
Test(memory_leader, no_snapshot_while_a_living_owner_is_unknown)
{
    begin(AT);
    w.joiner_owns = true;
    ask_for_the_log();
    answer_with_nothing();
    cr_assert_not(fx_status(&w.f).need_snapshot);
    end();
}

Test(memory_leader, a_snapshot_if_the_unknown_owner_has_ended)
{
    begin(AT);
    ask_for_the_log();
    answer_with_nothing();
    cr_assert(fx_status(&w.f).need_snapshot);
    end();
}

/* So long, in looks of 10 ms, with somebody who wants a stamp in each. @return
 * how many slots were decided. */
static qn_slot_t stamps(qn_time_t ns)
{
    qn_slot_t before = fx_status(&w.f).learned_hi;
    for (qn_time_t passed = 0; passed < ns; passed += 10 * QN_MS) {
        fx_stamp(&w.f);
        fx_later(&w.f, 10 * QN_MS);
    }
    return fx_status(&w.f).learned_hi - before;
}

/* A ring of 64 slots, of which its follower lacks three quarters and may not be
 * given up. With a stamp in each 10 ms the rest is full in 160 ms. */
Test(memory_leader, time_goes_on_in_a_tiny_ring_while_writes_are_held)
{
    struct qn_params v = fx_params();
    v.flow = qn_flow_default(3, SLOTS, BYTES);
    begin_with(AT, v);
    chosen(1);
    ticks(MANY);
    cr_assert(leads());
    qn_slot_t hi = fx_status(&w.f).learned_hi;
    fx_beat(&w.f, JOINER, hi, hi);
    const struct qn_flow *f = qn_onepaxos_flow(w.f.p);
    for (int i = 0; i < 100; i++) { /* a second */
        (void)fx_submit(&w.f, "x");
        fx_later(&w.f, 10 * QN_MS);
    }
    cr_assert_neq(f->shut_at, 0);
    qn_slot_t some = stamps(QN_S);
    cr_assert_lt(some, 9, "%llu", (unsigned long long)some);
    cr_assert_gt(stamps(10 * QN_S), 0);
    cr_assert_gt(stamps(100 * QN_S), 0, "for minutes");
    cr_assert(f->held);
    (void)stamps(1000 * QN_S);
    cr_assert_eq(stamps(1000 * QN_S), 0, "the ring is full: time stands still");
    hi = fx_status(&w.f).learned_hi;
    cr_assert_eq(qn_flow_first(f), hi - SLOTS + 1, "and no slot is lost");
    fx_beat(&w.f, JOINER, hi, hi);
    cr_assert_gt(stamps(QN_S), 20, "until it goes on");
    end();
}

/* ---- by force ------------------------------------------------------------ */

static int recover(void)
{
    static struct qn_step_out out;
    const struct qn_input in = {.kind = QN_IN_RECOVER};
    int err = qn_onepaxos_step(w.f.p, &in, w.f.now, w.f.wall_ms, &out);
    qn_step_out_release(&out);
    return err;
}

/* The register is at an epoch of which this node, the only one that is left,
 * has not heard; it lacks what the ring of that epoch's owner does not keep. */
static void lack(void)
{
    begin(LO - 10);
    qn_store(&w.word.first, LATER, QN_SEQ_CST);
    w.known = LATER;
    fx_down(&w.f, JOINER);
}

Test(memory_leader, an_unknown_epoch_is_no_reason_against_force)
{
    lack();
    cr_assert_eq(recover(), QN_OK);
    cr_assert_eq(fx_status(&w.f).applied, HI, "the rest is void");
    fx_up(&w.f, JOINER, 40);
    fx_beat(&w.f, JOINER, 0, 0);
    hear_of_later(); /* the record of the new incarnation has them */
    chosen(LATER + 1);
    ticks(MANY);
    cr_assert(leads());
    cr_assert_eq(qn_load(&w.word.first, QN_SEQ_CST), LATER + 1);
    cr_assert_geq(qn_load(&w.word.second, QN_SEQ_CST), HI);
    end();
}

/* What lies in the old ring was decided on a state that is gone. */
Test(memory_leader, forced_it_copies_no_void_slot_whatever_others_lack)
{
    lack();
    cr_assert_eq(recover(), QN_OK);
    fx_up(&w.f, JOINER, 40);
    fx_up(&w.f, 0, 50);
    fx_beat(&w.f, 0, 1, 1); /* and where it is now cannot be read */
    hear_of_later();
    chosen(LATER + 1);
    ticks(MANY);
    cr_assert(leads());
    cr_assert_eq(qn_ring_lo(&w.shared.own), HI + 1);
    end();
}

/* It asks each one that comes for the entry. */
Test(memory_leader, forced_it_asks_for_the_entry_that_it_lacks)
{
    lack();
    cr_assert_eq(recover(), QN_OK);
    fx_up(&w.f, JOINER, 40);
    uint32_t asked = 0;
    for (uint32_t k = 0; k < MANY; k++) {
        fx_later(&w.f, QN_MS);
        asked += fx_count(&w.f, QN_MSG_U_NEED);
    }
    cr_assert_gt(asked, 0);
    end();
}

Test(memory_leader, no_force_when_it_is_not_known_whose_ring_counts)
{
    lack();
    w.known = 0;
    cr_assert_eq(recover(), QN_EBUSY);
    cr_assert_eq(fx_status(&w.f).applied, LO - 10, "nothing has changed");
    fx_up(&w.f, JOINER, 40);
    hear_of_later();
    fx_down(&w.f, JOINER);
    cr_assert_eq(recover(), QN_OK);
    end();
}

Test(memory_leader, no_force_when_the_ring_of_an_unknown_epoch_reaches_back)
{
    begin(AT);
    qn_store(&w.word.first, LATER, QN_SEQ_CST);
    w.known = LATER;
    fx_down(&w.f, JOINER);
    cr_assert_eq(recover(), QN_EBUSY);
    end();
}

/* It was stopped while it led, and takes itself for the leader. */
Test(memory_leader, a_deposed_leader_that_is_forced_on_steps_down_first)
{
    begin(HI);
    chosen(1);
    ticks(MANY);
    cr_assert(leads());
    qn_slot_t had = fx_status(&w.f).learned_hi;
    qn_store(&w.word.first, LATER, QN_SEQ_CST);
    qn_store(&w.word.second, had + 100, QN_SEQ_CST);
    w.known = LATER;
    qn_ring_begin(&w.old, had + 50);
    fx_down(&w.f, JOINER);
    cr_assert_eq(fx_submit(&w.f, "x"), QN_OK);
    cr_assert_eq(recover(), QN_OK);
    cr_assert_eq(fx_status(&w.f).role, QN_FOLLOWER);
    fx_later(&w.f, QN_MS);
    cr_assert_eq(qn_load(&w.word.second, QN_SEQ_CST), had + 100);
    cr_assert_eq(fx_status(&w.f).learned_hi, had + 100);
    end();
}
