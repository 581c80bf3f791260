#ifndef QN_SYNC_OBJECT_COLLECTION_INTERNAL_H
#define QN_SYNC_OBJECT_COLLECTION_INTERNAL_H

/** For collections that are made of delegates. */

#include "core/sync/object/collection.h"

/** What an operation on a delegate returns for "nothing": empty, or full. */
#define QN_NOTHING (QN_VALUE_MAX + 1)

_Static_assert(QN_NOTHING == QN_DELEGATE_VALUE, "the largest result");

/** The options of a collection's delegates. */
struct qn_delegate_opts qn_collection_delegate(
    const struct qn_collection_opts *o);

/** Make `count` delegates, one behind the other. @return QN_OK, QN_EINVAL. */
int qn_collection_delegates_format(void *memory, uint32_t count,
                                   const struct qn_collection_opts *o);

/** Open or join `count` delegates: all, or none. @return as the delegate's. */
int qn_collection_delegates_open(struct qn_collection *q, void *memory,
                                 size_t each, uint32_t count,
                                 qn_delegate_fn *run, void *ctx);
int qn_collection_delegates_join(struct qn_collection_client *c, uint32_t count,
                                 const struct qn_collection_join_opts *o);
void qn_collection_delegates_leave(struct qn_collection_client *c,
                                   uint32_t count);

/** Have an operation run at an end. @return QN_OK; QN_EAGAIN: "nothing";
 *  QN_EDEADLK. */
int qn_collection_call(struct qn_collection_client *c, uint32_t end,
                       uint32_t op, uint64_t arg, uint64_t *result);

#endif
