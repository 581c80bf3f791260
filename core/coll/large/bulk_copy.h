#ifndef QN_COLL_LARGE_BULK_COPY_H
#define QN_COLL_LARGE_BULK_COPY_H

/**
 * Copies of many bytes. Functions of their own, because the simulated machine
 * (core/sim/bulk_copy.c) prices each as a whole, not by its lines.
 *
 * Any thread. What is read was published, and found by an acquire load of the
 * caller; a release of the caller publishes what is written.
 */

#include <stddef.h>

/** Copy n bytes; they do not overlap. */
void qn_bulk_copy(void *to, const void *from, size_t n);

/** n bytes at `to` are about to be made of them and of n bytes at `from`, in
 *  place: as long as a copy on the simulated machine, else nothing. */
void qn_bulk_touch(const void *to, const void *from, size_t n);

#endif
