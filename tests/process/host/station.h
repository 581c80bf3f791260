#ifndef QN_TESTS_PROCESS_HOST_STATION_H
#define QN_TESTS_PROCESS_HOST_STATION_H

/* A thread of the host with a loop: in it are its guests, a timer at which
 * something is asked of them, a descriptor that has nothing to do with them,
 * and a pipe with orders. */

#include <stdbool.h>
#include <stdint.h>

#include "tests/process/host/guest.h"
#include "tests/process/host/loop.h"

struct station; /* opaque */

enum order_verb { ORDER_DO, ORDER_DIGEST, ORDER_STATUS, ORDER_LEAVE };

struct order {
    enum order_verb verb;
    int guest; /* the station's, by number */
    uint64_t count;
    char tag[16];
};

struct station *station_make(enum loop_kind kind);
/* With a thread of the library it is only asked here. */
void station_add(struct station *s, struct guest *g);
/* A descriptor of another kind. */
void station_hear(struct station *s, int fd, loop_readable *call, void *ctx);

/* Any thread. */
void station_order(struct station *s, const struct order *o);

/* Until it is told to leave: its guests have left then. */
void station_run(struct station *s);
void station_free(struct station *s);

/* The other descriptor of the calling thread's loop, if it has one, may become
 * readable now. */
void station_noise(void);

#endif
