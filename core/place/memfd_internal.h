#ifndef QN_PLACE_MEMFD_INTERNAL_H
#define QN_PLACE_MEMFD_INTERNAL_H

/** Anonymous files that are allocated in full and sealed: what outboxes and
 *  the commons have in common. Any thread. */

#include <stddef.h>

/** A memfd of `bytes`, empty of pages yet, that can be sealed.
 *  @return the descriptor; QN_ENOMEM (also: beyond RLIMIT_FSIZE), QN_EMFILE,
 *  QN_ENOSYS. */
int qn_memfd_open(const char *name, size_t bytes);

/** Allocate `bytes` at `from`, so that no access there can ever fail. Where
 * pages are, they stay as they are. QN_ENOMEM: of what was not there, nothing
 * is. */
int qn_memfd_fill(int fd, size_t from, size_t bytes);

/** Add `seals` (F_SEAL_*). QN_ENOSYS if the kernel does not know them. */
int qn_memfd_seal(int fd, int seals);

/** Check seals and size of a descriptor that was received.
 *  @return QN_OK; QN_EPERM if one of `seals` is missing; QN_ECORRUPT if the
 *  size differs. */
int qn_memfd_check(int fd, size_t bytes, int seals);

/** Map it shared from the start. `prot` as for mmap. QN_EPERM, QN_ENOMEM. */
int qn_memfd_map(void **out, int fd, size_t bytes, int prot);

#endif
