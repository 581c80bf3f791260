#ifndef QN_TESTS_PROCESS_HOST_LOOP_H
#define QN_TESTS_PROCESS_HOST_LOOP_H

/* The loop of a host: descriptors, and what is called when they are readable.
 * What is readable at once is called in a drawn order. */

#include <stdbool.h>

enum loop_kind { LOOP_POLL, LOOP_EPOLL, LOOP_LIBUV };

struct loop; /* opaque */

typedef void loop_readable(void *ctx);

struct loop *loop_make(enum loop_kind kind);

/* @param edge  It is told when it becomes readable, not as long as it is; of
 *  the kinds only epoll can. */
void loop_add(struct loop *l, int fd, bool edge, loop_readable *call,
              void *ctx);

/* Wait until some are readable, or a signal comes, if it may sleep; and call
 * them. */
void loop_wait(struct loop *l, bool may_sleep);

void loop_free(struct loop *l);

#endif
