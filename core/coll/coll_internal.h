#ifndef QN_COLL_COLL_INTERNAL_H
#define QN_COLL_COLL_INTERNAL_H

/** Messages to and from the neighbours, and what they are told when an
 *  operation has failed. For this folder only. */

#include <assert.h>

#include "core/base/assert.h"
#include "core/base/err.h"
#include "core/coll/coll.h"

#define QN_COLL_END UINT16_MAX /* of a list of neighbours */

/** What a message is. A contribution names its kind of operation. */
enum qn_coll_what {
    QN_COLL_UP_REDUCE,
    QN_COLL_UP_ALLREDUCE,
    QN_COLL_DOWN,
    QN_COLL_FAIL
};

#define QN_COLL_HEAD_BYTES offsetof(struct qn_coll_message, word)

static_assert(sizeof(struct qn_coll_message) == QN_INPLACE_MAX,
              "a message is one cell");
static_assert(QN_COLL_HEAD_BYTES == 8, "no padding");
static_assert((int)QN_COLL_UP_REDUCE == (int)QN_COLL_REDUCE &&
                  (int)QN_COLL_UP_ALLREDUCE == (int)QN_COLL_ALLREDUCE,
              "contributions are numbered as the kinds");

/** Send a message, as qn_qp_try_send. */
int qn_coll_send(struct qn_coll *c, struct qn_coll_peer *p,
                 const struct qn_coll_message *m);

/** The next message of a neighbour that lives, into c->in.
 *  @return QN_OK; QN_EAGAIN: none; QN_EPEERDEAD: it said FAIL, has given up
 *  this instance, or its queuepair is down; QN_ECORRUPT. */
int qn_coll_receive(struct qn_coll *c, struct qn_coll_peer *p);

/** c->in is a message of this sort, of the operation in progress. */
static inline bool qn_coll_belongs(const struct qn_coll *c,
                                   enum qn_coll_what what)
{
    return c->in.what == (uint8_t)what && c->in.number == c->number &&
           c->in.count == c->mine.count;
}

/** No operation can start any more; the first error counts. */
void qn_coll_set_error(struct qn_coll *c, int err);

/** Say FAIL to the neighbours that have not been told, as far as there is room.
 *  An error is set, and no operation is in progress. */
void qn_coll_tell(struct qn_coll *c);

/** True if qn_coll_tell would tell a neighbour. */
bool qn_coll_can_tell(struct qn_coll *c);

#endif
