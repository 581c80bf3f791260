#include "tests/unit/transports/mpb/mpb_rounds.h"

#include "core/base/bits.h"

#define STEPS 60000u

static uint32_t at[MPB_ATTACHED]; /* round of each node */
static bool begun[MPB_ATTACHED];
static uint8_t bytes[MPB_ATTACHED][MPB_ROUND_BYTES + 1];
static uint32_t ready; /* rounds below it may begin */

/* Each byte is of its place and of the round, and none is 0. */
static uint8_t byte_of(uint32_t i, uint32_t round)
{
    return (uint8_t)(1 + (i / QN_MPB_LINE_BYTES * 16 + round) % 255);
}

/* One step of a node in its round. */
static const char *turn(const struct mpb_rounds *r, qn_node_t i)
{
    const struct mpb_round *round = &r->round[at[i]];
    if (!begun[i]) {
        memset(bytes[i], 0, sizeof bytes[i]);
        for (uint32_t b = 0; b < round->len && i == round->root; b++) {
            bytes[i][b] = byte_of(b, at[i]);
        }
        if (r->begin(i, round->root, bytes[i], round->len) != QN_OK) {
            return "begin";
        }
        begun[i] = true;
    }
    if (r->step(i) != QN_OK) {
        return NULL;
    }
    for (uint32_t b = 0; b < round->len; b++) {
        if (bytes[i][b] != byte_of(b, at[i])) {
            return "other bytes";
        }
    }
    if (bytes[i][round->len] != 0) {
        return "too many bytes";
    }
    begun[i] = false;
    at[i]++;
    return NULL;
}

/* May the next rounds begin? Up to the next one that waits for all. */
static void look_for_all(const struct mpb_rounds *r)
{
    for (qn_node_t i = 0; i < r->w->opts.nodes; i++) {
        if (at[i] < ready) {
            return;
        }
    }
    if (ready < r->count && ready > 0 && r->together != NULL) {
        r->together();
    }
    do {
        ready++;
    } while (ready < r->count && !r->round[ready].together);
}

const char *mpb_rounds_run(const struct mpb_rounds *r)
{
    uint32_t nodes = r->w->opts.nodes;
    uint64_t rng = r->seed;
    const char *wrong = NULL;
    memset(at, 0, sizeof at);
    memset(begun, 0, sizeof begun);
    ready = 0;
    uint32_t done = 0;
    for (uint32_t step = 0; done < nodes && wrong == NULL; step++) {
        rng = rng * UINT64_C(6364136223846793005) + 1442695040888963407u;
        qn_node_t i = (uint32_t)(rng >> 33) % nodes;
        look_for_all(r);
        if (at[i] < QN_MIN(ready, r->count) &&
            (r->late == NULL || !r->late(i, step))) {
            wrong = turn(r, i);
            done += at[i] == r->count && !begun[i] && wrong == NULL;
        }
        wrong = wrong == NULL && step == STEPS ? "no progress" : wrong;
    }
    for (qn_node_t i = 0; i < nodes; i++) {
        wrong = wrong == NULL ? qn_mpb_fault(r->w->node[i]) : wrong;
    }
    mpb_close_world(r->w);
    return wrong;
}
