#include "tests/unit/transports/mpb/twosided/rival_world.h"

#include "core/base/bits.h"
#include "tests/unit/transports/mpb/mpb_rounds.h"
#include "transports/mpb/twosided/rivals.h"

#define ROUNDS    12u
/* Counts of 24 bits begin there in a third of the seeds. */
#define NEAR_WRAP 0xfffffdu

static struct mpb_world w;
static struct qn_rival rival[MPB_ATTACHED];

static int begin(qn_node_t i, qn_node_t root, void *bytes, uint32_t len)
{
    return qn_rival_begin(&rival[i], root, bytes, len);
}

static int step(qn_node_t i)
{
    return qn_rival_step(&rival[i]);
}

/* Two nodes or more; the flags of all, and chunks of 1 to 5 lines. */
static void open_world(uint64_t seed, uint32_t nodes)
{
    mpb_open_world(&w, nodes, true, seed);
    for (qn_node_t i = 0; i < nodes; i++) {
        cr_assert_eq(
            qn_rival_init(&rival[i],
                          seed / 2 % 2 == 0 ? QN_RIVAL_BINOMIAL
                                            : QN_RIVAL_SCATTER_ALLGATHER,
                          &(struct qn_two_opts){.chip = mpb_core(&w, i),
                                                .first = 200,
                                                .lines = 3 + (uint32_t)seed % 4,
                                                .session = (uint32_t)seed}),
            QN_OK);
        for (qn_node_t peer = 0; peer < nodes && seed % 3 == 0; peer++) {
            rival[i].two.sent[peer] = NEAR_WRAP;
            rival[i].two.got[peer] = NEAR_WRAP;
        }
    }
}

const char *rival_traffic(uint64_t seed)
{
    static const uint32_t lengths[] = {1, 0, 1200, 64, 33, 300, 129};
    uint32_t nodes = 2 + (uint32_t)seed % (MPB_ATTACHED - 1);
    struct mpb_round round[ROUNDS];
    for (uint32_t b = 0; b < ROUNDS; b++) {
        round[b] = (struct mpb_round){
            .root = (qn_node_t)((seed + b / 2 * 2) % nodes),
            .len = lengths[(seed + b) % QN_ARRAY_COUNT(lengths)]};
    }
    open_world(seed, nodes);
    return mpb_rounds_run(&(struct mpb_rounds){.w = &w,
                                               .seed = seed,
                                               .round = round,
                                               .count = ROUNDS,
                                               .begin = begin,
                                               .step = step});
}
