/*
 * A reservation that others come before again and again: on the simulated
 * machine, in front of each compare-and-swap of node 1 at the core of node 0,
 * node 2 sends a word there, and node 0 takes it. So there always is room, and
 * the state is never what node 1 has loaded.
 */
#include "core/sim/machine.h"
#include "tests/unit/core/words/words_world.h"

static struct {
    struct words_world words;
    uint32_t before; /* reservations of others that come before */
    uint32_t came;
    int answer;
} world;

static const struct qn_words_target other_queue = {0, 1};

static void come_before(void)
{
    uint64_t word = world.came++;
    int sent = qn_words_try_send(world.words.node[2], other_queue, &word, 1);
    int taken = qn_words_try_receive(world.words.node[0], 1, &word, 1);
    cr_assert(sent == QN_OK && taken == QN_OK && word == world.came - 1);
}

static void point(const struct qn_sim_access *a)
{
    const struct qn_words_port *p = port_of(&world.words, 0);
    if (a->kind == QN_SIM_RMW && a->at == &p->own->state &&
        world.came < world.before) {
        uint32_t self = qn_sim.self;
        qn_sim.self = QN_SIM_NO_NODE; /* these operations act at once */
        come_before();
        qn_sim.self = self;
    }
}

static void leave(void)
{
    qn_sim_end_run();
}

static void mark(enum qn_mark m)
{
    (void)m;
}

static const struct qn_sim_scheduler scheduler = {
    .point = point, .leave = leave, .mark = mark};

static void sends(uint32_t node)
{
    const uint64_t word = 42;
    (void)node;
    world.answer = qn_words_try_send(world.words.node[1],
                                     (struct qn_words_target){0, 0}, &word, 1);
}

/* Node 1 sends while `others` other nodes come before it. @return the answer.
 */
static int sends_behind(uint32_t others)
{
    world.before = others;
    world.came = 0;
    cr_assert_eq(qn_sim_reset(1, &scheduler, &qn_sim_direct, sends), QN_OK);
    qn_sim_run(0);
    cr_assert_eq(world.came, others);
    return world.answer;
}

static void begin(void)
{
    world_make(&world.words, &qn_words_shared);
}

static void end(void)
{
    world_free(&world.words);
    qn_sim_free();
}

Test(words_tries, a_send_gives_up_after_64_others_came_before_it, .init = begin,
     .fini = end, .timeout = 60)
{
    struct words_world *w = &world.words;
    uint64_t word = 0;
    cr_assert_eq(sends_behind(QN_WORDS_TRIES), QN_EAGAIN);
    cr_assert_eq(QN_WORDS_TRIES, 64); /* as docs/limits.md says */
    cr_assert(qn_words_empty(w->node[0], 0));
    cr_assert_eq(qn_load(&port_of(w, 1)->own->intent, QN_RELAXED), 0,
                 "a range that was not reserved is still named");

    cr_assert_eq(sends_behind(QN_WORDS_TRIES - 1), QN_OK);
    cr_assert_eq(qn_words_try_receive(w->node[0], 0, &word, 1), QN_OK);
    cr_assert_eq(word, 42);
    cr_assert_eq(qn_words_room(w->node[2], other_queue), QN_WORDS_SHARED_MAX);
}
