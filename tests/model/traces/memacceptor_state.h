/* What replay_memacceptor.pml compares (replay.h). */
#define FIELDS(X)                                                              \
    X(IDX, "pk", now.pk[me])                                                   \
    X(ACT, "act", now.act[me])                                                 \
    X(EP, "ep", now.ep[me])                                                    \
    X(NXT, "nxt", now.nxt[me])                                                 \
    X(WE, "we", now.we)                                                        \
    X(WH, "wh", now.wh)                                                        \
    X(APP, "app", now.app[me])                                                 \
    X(LO, "lo", now.lo[now.ob[me]] > 1 ? now.lo[now.ob[me]] : 1)

/* Batches that it has learned, and that are in its ring; whether it copies, and
 * how far; the leader of its newest entry. */
#define GUIDES(X)                                                              \
    X(LRN)                                                                     \
    X(LRN1)                                                                    \
    X(RING)                                                                    \
    X(RING1)                                                                   \
    X(COPY)                                                                    \
    X(TC)                                                                      \
    X(LEADER)

#include "replay.h"

/** The batch of slot s + 1 in the model is the decided one if, and only if, it
 *  is in the machine. */
static void expect_batch(struct comparison *c, const char *name, int machine,
                         int is_decided, int s)
{
    int known = machine != 0 && machine != SOME_BATCH && now.bid[s + 1] != 0;
    if (known && now.dec[s + 1] != 0) {
        expect(c, name, machine == now.bid[s + 1], is_decided);
    }
}

/* A leader writes a slot in vain if another one has taken over, and that one
 * may decide the same commands there, which their origin has sent to both. So
 * the machine's ring may have what is decided though the model's has not. */
static void expect_ring(struct comparison *c, int machine, int in_model, int s)
{
    if (in_model || machine != now.bid[s + 1]) {
        expect_batch(c, "the ring has what is decided", machine, in_model, s);
    }
}

static void expect_more(struct comparison *c, const struct record *r)
{
    const int me = r->me, ob = now.ob[me];
    for (int s = 0; s < 2; s++) {
        int kept = now.lo[ob] <= s + 1;
        if (now.app[me] > s) {
            expect_batch(c, "learned is decided", r->state[F_LRN + s], 1, s);
        }
        if (kept) {
            expect_ring(c, r->state[F_RING + s],
                        now.rg[ob * 2 + (s + 1) % 2] == now.dec[s + 1], s);
        }
    }
    expect(c, "leader of the entry", r->state[F_LEADER], now.ulL[now.pk[me]]);
}

/** Is the entry that was put the one that is chosen? */
static int compare_entry(int pos)
{
    struct comparison c = {0};
    expect(&c, "leader of the entry", records[pos].state[F_LEADER],
           now.ulL[now.ull - 1]);
    return settle(pos, &c);
}
