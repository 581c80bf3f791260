/* All nodes take part in each broadcast, each at its own pace. */
#include "core/base/bits.h"
#include "tests/unit/transports/mpb/mpb_world.h"
#include "tests/unit/transports/mpb/ocbcast/oc_world.h"
#include "transports/mpb/ocbcast/ocbcast.h"

#define NODES      5u
#define BROADCASTS 12u
#define BYTES      700u
#define STEPS      40000u

static struct mpb_world w;
static struct qn_oc oc[NODES];
static uint32_t at[NODES]; /* broadcast, from 0; BROADCASTS: done */
static bool begun[NODES];
static uint8_t bytes[NODES][BYTES];
static uint64_t rng;

static uint32_t draw(uint32_t n)
{
    rng = rng * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)(rng >> 33) % n;
}

static uint32_t length_of(uint64_t seed, uint32_t b)
{
    static const uint32_t lengths[] = {1, 0, 700, 64, 33, 300, 129};
    return lengths[(seed + b) % QN_ARRAY_COUNT(lengths)];
}

static void open_world(uint64_t seed, uint32_t k, uint32_t lines)
{
    struct qn_mpb_layout l;
    mpb_open_world(&w, NODES, true, seed);
    cr_assert(qn_mpb_layout(&l, NODES, 1));
    rng = seed;
    for (qn_node_t i = 0; i < NODES; i++) {
        at[i] = 0;
        begun[i] = false;
        cr_assert_eq(
            qn_oc_init(&oc[i], &(struct qn_oc_opts){.chip = mpb_core(&w, i),
                                                    .first = l.broadcast,
                                                    .lines = lines,
                                                    .k = k,
                                                    .session = (uint32_t)seed}),
            QN_OK);
    }
}

static const char *close_world(const char *wrong)
{
    for (qn_node_t i = 0; i < NODES; i++) {
        wrong = wrong == NULL ? qn_mpb_fault(w.node[i]) : wrong;
    }
    mpb_close_world(&w);
    return wrong;
}

/* One step of node i in its broadcast. */
static const char *turn(qn_node_t i, qn_node_t root, uint32_t len)
{
    if (!begun[i]) {
        memset(bytes[i], i == root ? (int)at[i] + 1 : 0, BYTES);
        if (qn_oc_begin(&oc[i], root, bytes[i], len) != QN_OK) {
            return "begin";
        }
        begun[i] = true;
    }
    if (qn_oc_step(&oc[i]) != QN_OK) {
        return NULL;
    }
    for (uint32_t b = 0; b < len; b++) {
        if (bytes[i][b] != at[i] + 1) {
            return "other bytes";
        }
    }
    if (i != root && bytes[i][len] != 0) {
        return "too many bytes";
    }
    begun[i] = false;
    at[i]++;
    return NULL;
}

static qn_node_t root_of(uint64_t seed, uint32_t b)
{
    return (qn_node_t)((seed + b / 2 * 2) % NODES); /* each twice */
}

const char *oc_sync_traffic(uint64_t seed)
{
    const char *wrong = NULL;
    uint32_t done = 0;
    open_world(seed, 1 + (uint32_t)seed % 4, 14 + (uint32_t)seed % 9);
    for (uint32_t step = 0; done < NODES && wrong == NULL; step++) {
        qn_node_t i = draw(NODES);
        if (at[i] < BROADCASTS) {
            /* One byte less than there is, to see that nothing is behind it. */
            uint32_t len = QN_MIN(length_of(seed, at[i]), BYTES - 1);
            wrong = turn(i, root_of(seed, at[i]), len);
            done += at[i] == BROADCASTS;
        }
        wrong = step == STEPS ? "no progress" : wrong;
    }
    return close_world(wrong);
}

const char *oc_root_change(uint64_t seed)
{
    static const qn_node_t roots[] = {0, 2, 2};
    const char *wrong = NULL;
    uint32_t done = 0;
    open_world(seed, 2, 14);
    for (uint32_t step = 0; done < NODES && wrong == NULL; step++) {
        qn_node_t i = draw(NODES);
        bool late = i == 1 && step < 300;
        if (at[i] < QN_ARRAY_COUNT(roots) && !late) {
            wrong = turn(i, roots[at[i]], 20);
            done += at[i] == QN_ARRAY_COUNT(roots);
        }
        wrong = step == STEPS ? "no progress" : wrong;
    }
    return close_world(wrong);
}
