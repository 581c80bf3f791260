#ifndef QN_PAXOS_MACHINE_UTILITY_H
#define QN_PAXOS_MACHINE_UTILITY_H

/**
 * The utility log: which nodes lead and accept (PROTOCOL.md 4).
 *
 * Classic Paxos per index, one index at a time: no node proposes or votes at
 * index i before it knows the entries below i, and entry i - 1 names the voters
 * of index i. It is small and slow, and it is not read on the common path.
 * Entry e is the configuration of epoch e.
 *
 * One end is embedded in the machine of each node. Messages are lost when
 * memory is short, as if the channel had lost them: a proposer tries again with
 * a higher ballot after a random pause.
 *
 * Pure: no clock, IO or globals; one thread.
 */

#include "core/base/clock.h"
#include "paxos/wire/msg.h"

struct qn_step;

/* Entries kept, the newest ones; older ones are not needed (utility.c). */
#define QN_UL_KEPT 256u

/** What a voter must never forget, whatever happens to its process; with it
 *  all entries below `index` (qn_utility_entry). */
struct qn_vote {
    uint32_t index;           /* that is voted on; void once it is chosen */
    struct qn_ballot bal;     /* nothing below is answered any more */
    struct qn_ballot vbal;    /* of `value`; round 0: none */
    struct qn_ul_entry value; /* voted for */
    uint64_t since; /* not 0: no incarnation of this node from this one on has
                       voted, and those before are unknown: it votes behind the
                       entry that names one of them */
};

enum qn_utility_phase {
    QN_UTILITY_IDLE,
    QN_UTILITY_PREPARE, /* waiting for promises */
    QN_UTILITY_ACCEPT,  /* waiting for votes */
    QN_UTILITY_PAUSE,   /* a ballot was lost; the next one begins at `until` */
};

struct qn_utility_opts {
    qn_node_t self;
    uint32_t nodes;
    uint64_t self_inc;
    const struct qn_alloc *alloc;  /* kept */
    const struct qn_ul_entry *log; /* [count] borrowed, by index: entry 0, or
                                      what survived with the record, or what
                                      a snapshot begins with: the newest that
                                      a member has, if one lives */
    uint32_t count;                /* 0: nothing is known, it will be learned
                                      from the others. Until then no vote */
    const struct qn_vote *vote;    /* what survived of this node's record;
                                      borrowed. NULL: it never voted */
    bool non_voting; /* its record is lost, or a vacant seat has none: it must
                  not vote until a VOTER or SEAT entry names this incarnation */
    qn_time_t pause; /* U_BACKOFF, ns: least pause */
    uint64_t seed;   /* of the pauses */
};

/** Private but for its size. */
struct qn_utility {
    qn_node_t self;
    uint32_t nodes;
    uint64_t self_inc;
    const struct qn_alloc *alloc;
    bool non_voting;
    bool unwritten;   /* no longer mute, or removed: the record that says so is
                         not written yet */
    uint64_t since;   /* while it is mute: as in the record */
    bool removed;     /* an entry has ended the vote of this incarnation */
    uint64_t voters;  /* of index `len`, a mask: as the entry below says */
    uint32_t lo, len; /* entries kept are [lo, len) */
    struct qn_ul_entry log[QN_UL_KEPT];
    struct qn_vote vote;
    /* proposer */
    enum qn_utility_phase phase;
    struct qn_ul_entry want;  /* what this node would like at index len */
    struct qn_ul_entry value; /* what it must propose: `want`, or another's */
    struct qn_ballot bal;
    struct qn_ballot best; /* of `value`, among the promises */
    uint32_t round;        /* highest seen */
    uint32_t shown;        /* index at which `want` was put to the vote last */
    uint64_t granted;      /* mask: promises or votes for bal */
    qn_time_t until;       /* then it asks again; after a pause, anew */
    qn_time_t pause, pause_least;
    uint32_t untold; /* for lack of memory: entries from untold - 1 on were
                        chosen here, and the others do not know; 0: none */
    qn_time_t tell_at;
    uint64_t random;
};

void qn_utility_init(struct qn_utility *u, const struct qn_utility_opts *o);

/** Entries 0 .. len - 1 are known. */
static inline uint32_t qn_utility_len(const struct qn_utility *u)
{
    return u->len;
}

/** The voters of entry `len`, a mask: entry `len - 1` names them. None if no
 *  entry is known. */
static inline uint64_t qn_utility_voters(const struct qn_utility *u)
{
    return u->voters;
}

/** More than half of the voters are in `nodes`, a mask. */
bool qn_utility_majority(const struct qn_utility *u, uint64_t nodes);

/** Entry `e` may be the next one: it names the same voters, or a SEAT entry one
 *  more or less. */
bool qn_utility_follows(const struct qn_utility *u,
                        const struct qn_ul_entry *e);

/** This incarnation was a voter, and is none any more: it is no member. For
 *  ever: its node may be taken again by another incarnation only. */
static inline bool qn_utility_removed(const struct qn_utility *u)
{
    return u->removed;
}

/** Entry `index`; NULL: not known, or no longer kept. */
const struct qn_ul_entry *qn_utility_entry(const struct qn_utility *u,
                                           uint32_t index);

/** This node may propose: it votes on the next entry, or is mute and one of
 *  its voters; or it knows no entry yet, and its proposal is a question. */
bool qn_utility_may_propose(const struct qn_utility *u);

/**
 * Propose `value` for the next index; its index field is filled in. The
 * proposal ends when that index is chosen, whichever proposer won it: the
 * caller sees qn_utility_len grow, and decides anew what it wants.
 *
 * @return false: this node may not, or the leader that the entry names would
 *         have no vote. Nothing is proposed.
 */
bool qn_utility_propose(struct qn_utility *u, struct qn_step *t,
                        const struct qn_ul_entry *value);

static inline bool qn_utility_proposing(const struct qn_utility *u)
{
    return u->phase != QN_UTILITY_IDLE;
}

/**
 * Propose nothing more at this index: what this node wanted there was never put
 * to the vote, so it will not be chosen.
 *
 * @return false: it was, and may be chosen. Nothing has changed.
 */
bool qn_utility_withdraw(struct qn_utility *u);

/** It proposes no roles, but voters: that can wait for any other entry. */
static inline bool qn_utility_proposing_voter(const struct qn_utility *u)
{
    return qn_utility_proposing(u) && !qn_ul_begins_epoch(&u->want);
}

/**
 * A voter whose record is lost: propose that this incarnation votes from the
 * next entry on. Its former incarnations have ended, and none of them knew that
 * entry, so none has voted beyond it. Their votes below it do not bind this one
 * above it (T16).
 *
 * @param roles  Borrowed: the newest entry that names roles; the entry repeats
 *         them.
 * @return as qn_utility_propose.
 */
bool qn_utility_propose_voter(struct qn_utility *u, struct qn_step *t,
                              const struct qn_ul_entry *roles);

/**
 * Propose that incarnation `inc` of `node` votes from the next entry on, or
 * that it does not any more: the other one of both is so now.
 *
 * @param roles  Borrowed: the newest entry that names roles; the entry repeats
 *         them.
 * @return as qn_utility_propose: false if `node` leads, too.
 */
bool qn_utility_propose_seat(struct qn_utility *u, struct qn_step *t,
                             const struct qn_ul_entry *roles, qn_node_t node,
                             uint64_t inc);

/** One of the U_* messages. Entries that it brings are learned. */
void qn_utility_on_msg(struct qn_utility *u, struct qn_step *t, qn_node_t from,
                       const struct qn_msg *m);

/** Learn the entries of a body (checked by the codec): those that continue
 *  what is known, in order. If QN_UL_KEPT of them begin later than what is
 *  known, no node keeps earlier ones, and the gap is skipped. An entry that
 *  is known must be the same (asserted). */
void qn_utility_learn(struct qn_utility *u, struct qn_slice entries);

/**
 * Entries of a snapshot: consecutive ones. If there is a gap before them, the
 * known ones are forgotten: those of the snapshot are newer.
 *
 * @param log  [count >= 1] borrowed.
 * @return QN_OK; QN_EINVAL: they are not consecutive, or one of them is known
 *         to be another. Then nothing has changed.
 */
int qn_utility_adopt(struct qn_utility *u, const struct qn_ul_entry *log,
                     uint32_t count);

/** Entries from `first` on (or the oldest kept), for a message's body: one
 *  reference; NULL: no memory. */
struct qn_refbuf *qn_utility_suffix(const struct qn_utility *u, uint32_t first);

/** Ask `peer` for the entries that are missing here. */
void qn_utility_ask(const struct qn_utility *u, struct qn_step *t,
                    qn_node_t peer);

/** `peer` has started and may vote: if this node proposes, it asks the peer,
 *  too. A proposer in a pause goes on at the next tick. A ballot under way
 *  goes on, because what was granted to it stays granted. */
void qn_utility_up(struct qn_utility *u, struct qn_step *t, qn_node_t peer);

void qn_utility_tick(struct qn_utility *u, struct qn_step *t);

/** ns; tick then at the latest, or QN_TIME_NEVER. */
qn_time_t qn_utility_deadline(const struct qn_utility *u);

/** Order of ballots: < 0, 0, > 0. */
int qn_ballot_compare(const struct qn_ballot *a, const struct qn_ballot *b);

#endif
