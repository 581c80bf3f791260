#ifndef QN_LOADGEN_SIMULATE_ROW_REPLAY_ROW_H
#define QN_LOADGEN_SIMULATE_ROW_REPLAY_ROW_H

/** A row of a replay: what was published or claimed, and what came out. Pure
 *  but for the FILE; any thread. */

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

struct qn_replay_row {
    const char *id; /* of its group: "L6" */
    char what[160];
    const char *published; /* the figure in print; NULL: a claim of ours */
    const char *why;       /* if it does not hold: the reason; or NULL */
    double limit;          /* at least; if `most`, at most */
    bool most;
    double got;
};

/** What a replay says of a row before it runs; as of qn_replay_row. */
struct qn_replay_claim {
    const char *id, *published, *why;
    bool most;
    double limit;
};

/** @param what  A format, of `args`; cut where `what` of a row ends. */
void qn_replay_row_of(struct qn_replay_row *r, const struct qn_replay_claim *c,
                      double got, const char *what, va_list args)
    __attribute__((format(printf, 4, 0)));

/** Called for each row, in order. */
typedef void qn_replay_row_fn(void *ctx, const struct qn_replay_row *r);

static inline bool qn_replay_row_holds(const struct qn_replay_row *r)
{
    return r->most ? r->got <= r->limit : r->got >= r->limit;
}

/** @return true if it holds. */
bool qn_replay_row_print(const struct qn_replay_row *r, FILE *to);

#endif
