#ifndef OUTBOX_WORLD_H
#define OUTBOX_WORLD_H

/** Outboxes of node 1 of three, and memory that runs out on demand. */

#include <stdbool.h>
#include <stddef.h>

#include "core/place/outbox.h"

#define LANE 5000u /* bytes: not a multiple of a page */

struct qn_outbox_opts outbox_opts(bool shared);

struct qn_outbox *outbox_make(bool shared);

/** errno that allocations of shared memory give, or 0; EINTR only once. */
extern int outbox_refuse;

/** Bytes of memory that a shared one has. */
size_t outbox_allocated(const struct qn_outbox *o);

/** Try all ways for a process that has the descriptor.
 *  @return a bit for each that works. */
int outbox_ways_to_write(int fd, size_t bytes);

#endif
