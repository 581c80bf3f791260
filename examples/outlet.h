#ifndef QN_EXAMPLES_OUTLET_H
#define QN_EXAMPLES_OUTLET_H

/*
 * The changes of store.c for a process beside it (follow.c): a socket at which
 * that process says where it is, and gets frames. One process at a time, the
 * newest. If it does not read, its subscription lags behind and is cut: no
 * member waits for it.
 */
#include <stdint.h>

#include "examples/items.h"
#include "paxos/group/group_feed.h"

enum frame_kind {
    FRAME_COMMAND = 1,
    FRAME_GAP, /* what lies from `at` to before `to` is not to be had; then
                  comes: */
    FRAME_COPY /* the items as of `to`, each as in a snapshot */
};

/* Then come `len` bytes. What follows belongs to position `to`. */
struct frame {
    uint64_t kind;
    struct qn_feed_position at, to;
    uint64_t stamp_ms, seat, incarnation, number; /* of a command */
    uint64_t len;
};

/* Listen at `path`. The process says struct qn_feed_position first; slot 0: a
 * copy, and what follows it. @return what to poll for POLLIN; -1: errno. */
int outlet_open(struct qn_group *g, const char *path);
/* It was readable. */
void outlet_hear(void);
/* After each turn of the group, whose state is `now`. */
void outlet_turn(const struct items *now);
/* Before the group is left. */
void outlet_close(void);

#endif
