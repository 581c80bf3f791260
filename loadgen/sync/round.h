#ifndef QN_LOADGEN_SYNC_ROUND_H
#define QN_LOADGEN_SYNC_ROUND_H

/**
 * One round of `quoin bench lock|delegate|queue|stack`: threads operate on one
 * new subject for a while, each with a random pause between operations, and
 * what they have seen is checked.
 *
 * On a counter each operation is an addition; on a queue or a stack puts and
 * takes alternate, so there is always something to take, and never more than
 * one value per thread.
 *
 * A host runs rounds: this machine (round_threads.c), or a simulated one in
 * virtual time (loadgen/simulate/locks/locks_round.c). One at a time.
 */

#include "core/base/clock.h"
#include "core/base/histogram.h"
#include "loadgen/sync/subject.h"

#define QN_SYNC_ROUND_THREADS_MAX 255u

struct qn_sync_round_opts {
    struct qn_subject_name subject;
    struct qn_subject_opts o; /* but for clients and capacity */
    uint32_t threads;         /* 1 .. QN_SYNC_ROUND_THREADS_MAX */
    uint32_t pause_max;       /* turns of a loop; a pause is random */
    qn_time_t duration;       /* ns */
    uint64_t seed;            /* of the pauses */
    struct qn_histogram *ns;  /* each operation is timed; NULL: none is */
};

/** What a round has given; sums over all threads. */
struct qn_sync_round {
    uint64_t elapsed_ns;
    uint64_t operations, least, most; /* that count, of all; of one thread */
    uint64_t all;                     /* those too that do not count */
    uint64_t failed;                  /* puts and takes that found no room or
                                         nothing, which must not happen */
    struct qn_subject_stats stats;
    double stalled; /* simulated: the largest share of its time that a node,
                       or the server, waited for lines and fences; else NAN */
};

/** What a host is opened with. */
struct qn_sync_host_opts {
    const char *program; /* begins each line about an error */
    const char *machine; /* a file or folder; NULL: this one */
    bool unpinned;       /* threads run on any core */
    char *const *argv;   /* the command's, NULL at its end; [0] names it */
};

struct qn_sync_host {
    bool simulated; /* times are virtual */
    qn_time_t duration;
    uint32_t rounds; /* what suits it, of `rounds` and `duration` */
    /** @param cores  Filled: those that threads run on.
     *  @return exit status: 0, or after a line on stderr another one. */
    int (*open)(const struct qn_sync_host_opts *o, uint32_t *cores);
    void (*close)(void);
    /**
     * @param out  Filled.
     * @return QN_OK; QN_ECORRUPT: an operation is lost, was done twice, or two
     *         of one thread are in the wrong order; QN_EAGAIN: a thread could
     *         not be made; QN_EINVAL, QN_ENOSYS: there is no such subject with
     *         these options, or here; QN_ETIMEDOUT: in virtual time threads
     *         do not come to an end; QN_ENOMEM.
     */
    int (*round)(const struct qn_sync_round_opts *o, struct qn_sync_round *out);
};

extern const struct qn_sync_host qn_sync_threads; /* round_threads.c */

#endif
