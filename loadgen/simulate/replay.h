#ifndef QN_LOADGEN_SIMULATE_REPLAY_H
#define QN_LOADGEN_SIMULATE_REPLAY_H

/** `quoin sim replay GROUP`: published claims, replayed on simulated machines,
 *  row by row: published, simulated, and whether it holds. One thread. */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "loadgen/simulate/row/replay_row.h"

struct qn_machine;

struct qn_replay_opts {
    const char *machines[2]; /* folders of machine files; S1: or of one */
    bool every;              /* every group size, not only powers of two */
    bool longer;             /* also plans of about one second */
    const char *plot;        /* a picture, of scc; NULL: none */
    const char *only;        /* rings: machines with this in their name; locks:
                                rows of this figure */
    bool check_seeds;        /* locks: with other seeds, too */
    uint64_t seed;           /* locks */
    double jitter;           /* locks: of each price, 0 to 1 */
    FILE *to;
};

/** S1: the planned tree against every static tree, on all machines. Of these
 *  trees those run that can be the fastest, by their prediction.
 *  @param missed  Filled: rows that do not hold. @return the exit status. */
int qn_replay_s1(const struct qn_replay_opts *o, uint32_t *missed);

/** S2: barriers over planned trees beside the dissemination and the MCS
 *  barrier, on three machines of the first folder. As qn_replay_s1. */
int qn_replay_s2(const struct qn_replay_opts *o, uint32_t *missed);

/** S3: 1Paxos over a planned tree against sequential sending; beside a bare
 *  broadcast; and with growing clients on 8 memory nodes. On seven machines of
 *  the first folder. As qn_replay_s1. */
int qn_replay_s3(const struct qn_replay_opts *o, uint32_t *missed);

/** R1: diamond rings by arity, latency and rate, beside balanced trees; as
 * tasks and over queuepairs. On three machines of the first folder, or those
 * that `only` names. As qn_replay_s1. */
int qn_replay_rings(const struct qn_replay_opts *o, uint32_t *missed);

/* ---- of S1 --------------------------------------------------------------- */

#define QN_REPLAY_LONGER_MOVES 1000000u /* about one second */

/** What is compared with the best static tree. */
enum qn_replay_plan {
    QN_REPLAY_PLAN,   /* planned by default */
    QN_REPLAY_LONGER, /* with QN_REPLAY_LONGER_MOVES */
    QN_REPLAY_OWN,    /* commits: the tree of a driver, by costs */
    QN_REPLAY_PLANS
};

/** The worst of all groups of a machine and an operation. */
struct qn_replay_worst {
    double ratio[QN_REPLAY_PLANS]; /* best static / plan */
    uint32_t n[QN_REPLAY_PLANS];   /* nodes of that group; 0: none was run */
    uint32_t groups;
};

/** Note a group. @param ns  [QN_REPLAY_PLANS] time of each; 0: not run. */
void qn_replay_worst_note(struct qn_replay_worst *w, const double *ns,
                          double best_static, uint32_t n);

/** Is it a tree that knows nothing of costs, or is not planned by them? */
bool qn_replay_static(const char *name);

/** Commits. @return the exit status. (replay_s1_commit.c) */
int qn_replay_s1_commit(const struct qn_machine *m,
                        const struct qn_replay_opts *o,
                        struct qn_replay_worst *w);

/* ---- of S2 --------------------------------------------------------------- */

/**
 * A barrier on shared lines (core/barrier): all members begin; until the last
 * one has left it. They have cores of their own.
 *
 * @param m     Each core has a member; only transfers are priced.
 * @param form  Of core/barrier; NULL: what core/barrier/selection chooses.
 * @param ghz   Of its clock.
 * @param link  Share of a transfer for which it occupies the link between two
 *              sockets, which carries one at a time, 0 to 1; 0: links are wide.
 * @param ns    Filled: the median of some barriers.
 * @return QN_OK; QN_EINVAL: no such form, or one core; QN_ENOMEM; QN_ECORRUPT:
 *         a member did not come back. The tree of `tree` is planned.
 */
int qn_replay_s2_shared(const struct qn_machine *m, const char *form,
                        double ghz, double link, double *ns);

#endif
