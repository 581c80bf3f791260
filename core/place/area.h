#ifndef QN_PLACE_AREA_H
#define QN_PLACE_AREA_H

/**
 * Areas: memory that is written by more than one process. All nodes of a group
 * may write a device (core/device.h), or lanes that both ends write; one after
 * the other the incarnations of a node write what must outlive each of them.
 * Between processes it is a memfd, allocated in
 * full and sealed against another size; threads use private pages. Fresh memory
 * is zero. Any thread.
 */

#include <stdbool.h>
#include <stddef.h>

#define QN_AREA_BYTES_MAX ((size_t)1 << 30)

struct qn_area {
    void *memory; /* page aligned; NULL: none */
    size_t bytes;
    int fd; /* to pass to other processes; -1: private pages, or mapped */
};

#define QN_AREA_NONE ((struct qn_area){.fd = -1})

/** @param name    Of the memfd, as /proc shows it: "quoin-area".
 *  @param bytes   1 .. QN_AREA_BYTES_MAX; rounded up to pages.
 *  @param shared  A memfd, else private pages.
 *  @return QN_OK; QN_EINVAL, QN_ENOMEM, QN_EMFILE, QN_ENOSYS: *out is
 *          QN_AREA_NONE. */
int qn_area_create(struct qn_area *out, const char *name, size_t bytes,
                   bool shared);

/** Map another process' area of so many bytes. `fd` is borrowed.
 *  @return QN_OK; QN_EPERM a seal is missing; QN_ECORRUPT another size;
 *          QN_ENOMEM. */
int qn_area_map(struct qn_area *out, int fd, size_t bytes);

/** A child of fork(2) does not have the mapping: from here on, and but for
 *  memory for it. */
void qn_area_keep_from_children(const struct qn_area *a);

/** Unmap, close the own descriptor. QN_AREA_NONE is fine. */
void qn_area_destroy(struct qn_area *a);

#endif
