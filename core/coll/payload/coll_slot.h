#ifndef QN_COLL_COLL_SLOT_H
#define QN_COLL_COLL_SLOT_H

/**
 * The payloads of one operation at one member: what has come down, what is
 * combined, what the caller gets. Pure; the order of operations is kept by
 * operations.h.
 *
 *     payload   comes down before all have contributed: that of a broadcast, or
 *               what is handed on after a death. In an exchange: the own
 *               contribution
 *     result    is combined on the way up, or comes down afterwards
 *     early     contributions that came before the member has started the
 *               operation: nothing says yet how to combine them
 *
 * What is gathered is a list of entries: a rank in 8 bytes, and the
 * contribution, rounded up to 8. An operator that does not commute works on
 * such a list, when it has come to the root in full.
 *
 * A payload is always kept behind room for a message's head, so it is sent
 * where it lies.
 */

#include <stdbool.h>
#include <stddef.h>

#include "core/coll/payload/coll_call.h"

/** A member among those of its view. */
struct qn_coll_place {
    uint32_t members, rank;
    bool root;
    bool exchanges; /* contributions to an all-reduction go to all members */
};

struct qn_coll_early {
    uint32_t *part_bytes; /* [links]; QN_COLL_NO_PART: not there */
    uint8_t *part;        /* [links] of `stride` bytes */
    bool *seen;           /* [members] ranks whose entries are in */
};

#define QN_COLL_NO_PART UINT32_MAX

struct qn_coll_slot {
    struct qn_coll_call call;
    bool started;     /* `call` is known */
    bool has_payload; /* the payload has come down */
    bool ordered;     /* the entries were combined */
    bool handed;      /* another view completed it: `payload` is its result */
    uint32_t payload_bytes;
    uint32_t result_bytes;
    uint8_t *payload, *result;  /* [bytes_max] */
    struct qn_coll_place place; /* when it ran */
    struct qn_coll_early early;
};

/** What the slots of a member have in common. */
struct qn_coll_sizes {
    uint32_t bytes_max;
    uint32_t stride;  /* from one buffer to the next */
    uint32_t links;   /* that contributions come by: children of the tree up, or
                         all other members */
    uint8_t *scratch; /* [bytes_max] */
};

/** Ready for another operation. */
void qn_coll_slot_clear(struct qn_coll_slot *o, const struct qn_coll_sizes *z,
                        const struct qn_coll_place *place);

/** @return QN_OK; QN_EINVAL: an input that is needed is NULL; QN_EMSGSIZE. */
int qn_coll_slot_check(const struct qn_coll_place *place, uint32_t bytes_max,
                       const struct qn_coll_call *call);

/** The member joins the operation. @return QN_OK or QN_ECORRUPT. */
int qn_coll_slot_join(struct qn_coll_slot *o, const struct qn_coll_sizes *z,
                      const struct qn_coll_call *call);

/* ---- what comes: QN_OK or QN_ECORRUPT ---- */

int qn_coll_slot_take_part(struct qn_coll_slot *o,
                           const struct qn_coll_sizes *z, uint32_t link,
                           const void *bytes, size_t len);
int qn_coll_slot_take_payload(struct qn_coll_slot *o, const void *bytes,
                              size_t len);
int qn_coll_slot_take_result(struct qn_coll_slot *o, const void *bytes,
                             size_t len);

/** Where contributions come together: what was gathered comes into order, once
 *  all of it is there. */
int qn_coll_slot_settle(struct qn_coll_slot *o, const struct qn_coll_sizes *z);

/** Another view has completed the operation, which is not complete here. A
 *  result that only this member gets is here. */
int qn_coll_slot_hand_over(struct qn_coll_slot *o,
                           const struct qn_coll_sizes *z);

/** Write the caller's output of an operation that is complete. */
int qn_coll_slot_write(struct qn_coll_slot *o, const struct qn_coll_sizes *z);

/** What another member needs to complete the operation, too: the payload or the
 *  result that all get. Empty if only the root gets one. */
uint8_t *qn_coll_slot_hand_on(struct qn_coll_slot *o, size_t *len);

#endif
