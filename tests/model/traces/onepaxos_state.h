/* What replay_onepaxos.pml compares (replay.h). */
#define FIELDS(X)                                                              \
    X(IDX, "idx", now.n[me].idx)                                               \
    X(ROLE, "role", now.n[me].role)                                            \
    X(EP, "ep", now.n[me].ep)                                                  \
    X(CEP, "cep", now.n[me].cep)                                               \
    X(NEXT, "next", now.n[me].next)                                            \
    X(ON, "on", now.n[me].on)                                                  \
    X(TENURE, "tenure", now.n[me].tenure)                                      \
    X(PROMISED, "promised", now.n[me].promised)                                \
    X(ACC, "acc[0]", now.n[me].acc[0])                                         \
    X(ACC1, "acc[1]", now.n[me].acc[1])                                        \
    X(ST_FROM, "st_from", now.n[me].st_from)                                   \
    X(STAGED, "staged[0]", now.n[me].staged[0])                                \
    X(STAGED1, "staged[1]", now.n[me].staged[1])                               \
    X(LRN, "lrn[0]", now.n[me].lrn[0])                                         \
    X(LRN1, "lrn[1]", now.n[me].lrn[1])                                        \
    X(LOG, "log[0]", now.n[me].log[0])                                         \
    X(LOG1, "log[1]", now.n[me].log[1])

/* What the machine has in these slots; roles of its newest entry. */
#define GUIDES(X)                                                              \
    X(PROPOSED)                                                                \
    X(PROPOSED1)                                                               \
    X(LEADER)                                                                  \
    X(ACCEPTOR)                                                                \
    X(ENTRY_TENURE)

#include "replay.h"

static void expect_entry(struct comparison *c, const struct record *r, int e)
{
    expect(c, "leader of the entry", r->state[F_LEADER], now.ulL[e]);
    expect(c, "acceptor of the entry", r->state[F_ACCEPTOR], now.ulA[e]);
    expect(c, "tenure of the entry", r->state[F_ENTRY_TENURE], now.ulT[e]);
}

static void expect_more(struct comparison *c, const struct record *r)
{
    expect_entry(c, r, now.n[r->me].idx);
}

/** Is the entry that was put the one that is chosen? */
static int compare_entry(int pos)
{
    struct comparison c = {0};
    expect_entry(&c, &records[pos], now.ullen - 1);
    return settle(pos, &c);
}
