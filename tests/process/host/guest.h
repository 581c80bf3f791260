#ifndef QN_TESTS_PROCESS_HOST_GUEST_H
#define QN_TESTS_PROCESS_HOST_GUEST_H

/* A group that is a guest in this program: what it replicates, and proposals,
 * barriers and changes at drawn moments. It has a loop's descriptor, or a
 * thread of the library.
 *
 * Orders and turns: the guest's thread, which is any if the library has one. */

#include <stdbool.h>
#include <stdint.h>

#include "paxos/group/group_feed.h"
#include "paxos/group/group_thread.h"

enum { GUESTS_MAX = 2 };

struct guest; /* opaque */

struct guest_opts {
    const char *name;
    uint32_t members;
    bool robust_list;
    uint32_t thread; /* not 0: the library gives it one, of which this is the
                        number of the mutex (board.h) */
};

/* @param index  Of the program's guests. */
struct guest *guest_make(int index, const struct guest_opts *opts);
void guest_leave(struct guest *g);

/* -1: it has a thread. */
int guest_fd(const struct guest *g);
/* Its descriptor is readable. */
void guest_is_due(struct guest *g);
bool guest_due(const struct guest *g);
/* Turn if it is due, or come too late. */
void guest_turn(struct guest *g);

/* Some more of what is wanted, if it is taken now. */
void guest_begin_some(struct guest *g);
/* There is more to begin. */
bool guest_wants(struct guest *g);

/* Orders; each is answered once, with its tag. */
void guest_do(struct guest *g, const char *tag, uint64_t count);
void guest_digest(struct guest *g, const char *tag);
void guest_status(struct guest *g, const char *tag);

/* In a forked child: what each call says. @return how many are wrong. */
int guests_in_child(void);

#endif
