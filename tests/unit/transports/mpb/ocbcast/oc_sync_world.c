#include "core/base/bits.h"
#include "tests/unit/transports/mpb/mpb_rounds.h"
#include "tests/unit/transports/mpb/ocbcast/oc_world.h"
#include "transports/mpb/ocbcast/ocbcast.h"

#define NODES  5u
#define ROUNDS 12u

static struct mpb_world w;
static struct qn_oc oc[NODES];

static int begin(qn_node_t i, qn_node_t root, void *bytes, uint32_t len)
{
    return qn_oc_begin(&oc[i], root, bytes, len);
}

static int step(qn_node_t i)
{
    return qn_oc_step(&oc[i]);
}

static void open_world(uint64_t seed, uint32_t k, uint32_t lines,
                       uint32_t number)
{
    struct qn_mpb_layout l;
    mpb_open_world(&w, NODES, true, seed);
    cr_assert(qn_mpb_layout(&l, NODES, 1));
    for (qn_node_t i = 0; i < NODES; i++) {
        cr_assert_eq(
            qn_oc_init(&oc[i], &(struct qn_oc_opts){.chip = mpb_core(&w, i),
                                                    .first = l.broadcast,
                                                    .lines = lines,
                                                    .k = k,
                                                    .session = (uint32_t)seed}),
            QN_OK);
        if (number != 0) {
            qn_oc_number_at(&oc[i], number);
        }
    }
}

const char *oc_sync_traffic(uint64_t seed)
{
    static const uint32_t lengths[] = {1, 0, 700, 64, 33, 300, 129};
    /* Numbers wrap in the middle of it. */
    uint32_t number = seed % 3 == 0 ? UINT32_MAX - ROUNDS / 2 : 0;
    struct mpb_round round[ROUNDS];
    for (uint32_t b = 0; b < ROUNDS; b++) {
        round[b] = (struct mpb_round){
            .root = (qn_node_t)((seed + b / 2 * 2) % NODES), /* each twice */
            .len = lengths[(seed + b) % QN_ARRAY_COUNT(lengths)]};
    }
    open_world(seed, 1 + (uint32_t)seed % 4, 14 + (uint32_t)seed % 9, number);
    return mpb_rounds_run(&(struct mpb_rounds){.w = &w,
                                               .seed = seed,
                                               .round = round,
                                               .count = ROUNDS,
                                               .begin = begin,
                                               .step = step});
}

static bool first_is_late(qn_node_t i, uint32_t at_step)
{
    return i == 1 && at_step < 300;
}

const char *oc_root_change(uint64_t seed)
{
    static const struct mpb_round round[] = {
        {0, 20, false}, {2, 20, false}, {2, 20, false}};
    open_world(seed, 2, 14, 0);
    return mpb_rounds_run(&(struct mpb_rounds){.w = &w,
                                               .seed = seed,
                                               .round = round,
                                               .count = QN_ARRAY_COUNT(round),
                                               .begin = begin,
                                               .step = step,
                                               .late = first_is_late});
}

/* Almost as many broadcasts as there are between two times that lines are
 * cleared. */
static void long_after(void)
{
    for (qn_node_t i = 0; i < NODES; i++) {
        oc[i].number += QN_OC_RENEWAL - oc[i].number % QN_OC_RENEWAL - 1;
    }
}

const char *oc_old_lines(uint64_t seed)
{
    /* What 2 and its children had told each other becomes three quarters of
     * all numbers old. */
    static const struct mpb_round round[] = {
        {2, 700, false}, {2, 700, false}, {0, 20, false}, {0, 20, true},
        {0, 20, false},  {0, 20, true},   {0, 20, true},  {2, 700, false}};
    open_world(seed, 1 + (uint32_t)seed % 4, 14, 2 * QN_OC_RENEWAL);
    return mpb_rounds_run(&(struct mpb_rounds){.w = &w,
                                               .seed = seed,
                                               .round = round,
                                               .count = QN_ARRAY_COUNT(round),
                                               .begin = begin,
                                               .step = step,
                                               .together = long_after});
}
