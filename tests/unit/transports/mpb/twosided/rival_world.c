/* All nodes take part in each broadcast, each at its own pace. */
#include "tests/unit/transports/mpb/twosided/rival_world.h"

#include "core/base/bits.h"
#include "tests/unit/transports/mpb/mpb_world.h"
#include "transports/mpb/twosided/rivals.h"

#define NODES_MAX  MPB_ATTACHED
#define BROADCASTS 12u
#define BYTES      1200u
#define STEPS      60000u
/* Counts of 24 bits begin there in a third of the seeds. */
#define NEAR_WRAP  0xfffffdu

static struct mpb_world w;
static struct qn_rival rival[NODES_MAX];
static uint32_t nodes;
static uint32_t at[NODES_MAX]; /* broadcast, from 0; BROADCASTS: done */
static bool begun[NODES_MAX];
static uint8_t bytes[NODES_MAX][BYTES + 1];
static uint64_t rng;

static uint32_t draw(uint32_t n)
{
    rng = rng * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)(rng >> 33) % n;
}

static uint32_t length_of(uint64_t seed, uint32_t b)
{
    static const uint32_t lengths[] = {1, 0, 1200, 64, 33, 300, 129};
    return lengths[(seed + b) % QN_ARRAY_COUNT(lengths)];
}

/* Two nodes or more; the flags of all, and chunks of 1 to 5 lines. */
static void open_world(uint64_t seed)
{
    const uint32_t first = 200;
    nodes = 2 + (uint32_t)seed % (NODES_MAX - 1);
    mpb_open_world(&w, nodes, true, seed);
    rng = seed;
    for (qn_node_t i = 0; i < nodes; i++) {
        at[i] = 0;
        begun[i] = false;
        cr_assert_eq(
            qn_rival_init(&rival[i],
                          seed / 2 % 2 == 0 ? QN_RIVAL_BINOMIAL
                                            : QN_RIVAL_SCATTER_ALLGATHER,
                          &(struct qn_two_opts){.chip = mpb_core(&w, i),
                                                .first = first,
                                                .lines = 3 + (uint32_t)seed % 4,
                                                .session = (uint32_t)seed}),
            QN_OK);
        for (qn_node_t peer = 0; peer < nodes && seed % 3 == 0; peer++) {
            rival[i].two.sent[peer] = NEAR_WRAP;
            rival[i].two.got[peer] = NEAR_WRAP;
        }
    }
}

static const char *close_world(const char *wrong)
{
    for (qn_node_t i = 0; i < nodes; i++) {
        wrong = wrong == NULL ? qn_mpb_fault(w.node[i]) : wrong;
    }
    mpb_close_world(&w);
    return wrong;
}

/* Each byte is of its place and of the broadcast. */
static uint8_t byte_of(uint32_t i, uint32_t broadcast)
{
    return (uint8_t)(i / QN_MPB_LINE_BYTES * 16 + broadcast + 1);
}

/* One step of node i in its broadcast. */
static const char *turn(qn_node_t i, qn_node_t root, uint32_t len)
{
    if (!begun[i]) {
        memset(bytes[i], 0, sizeof bytes[i]);
        for (uint32_t b = 0; b < len && i == root; b++) {
            bytes[i][b] = byte_of(b, at[i]);
        }
        if (qn_rival_begin(&rival[i], root, bytes[i], len) != QN_OK) {
            return "begin";
        }
        begun[i] = true;
    }
    if (qn_rival_step(&rival[i]) != QN_OK) {
        return NULL;
    }
    for (uint32_t b = 0; b < len; b++) {
        if (bytes[i][b] != byte_of(b, at[i])) {
            return "other bytes";
        }
    }
    if (bytes[i][len] != 0) {
        return "too many bytes";
    }
    begun[i] = false;
    at[i]++;
    return NULL;
}

const char *rival_traffic(uint64_t seed)
{
    const char *wrong = NULL;
    uint32_t done = 0;
    open_world(seed);
    for (uint32_t step = 0; done < nodes && wrong == NULL; step++) {
        qn_node_t i = draw(nodes);
        if (at[i] < BROADCASTS) {
            qn_node_t root = (qn_node_t)((seed + at[i] / 2 * 2) % nodes);
            wrong = turn(i, root, length_of(seed, at[i]));
            done += at[i] == BROADCASTS;
        }
        wrong = wrong == NULL && step == STEPS ? "no progress" : wrong;
    }
    return close_world(wrong);
}
