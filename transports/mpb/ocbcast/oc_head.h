#ifndef QN_TRANSPORTS_MPB_OCBCAST_OC_HEAD_H
#define QN_TRANSPORTS_MPB_OCBCAST_OC_HEAD_H

/**
 * The head of a chunk of asynchronous OC-Bcast, a line:
 *
 *              63 ............ 32   31 ...... 16   15 ... 8   7 .... 0
 *     word 0   bytes              | place        | places              |
 *     word 1   number             | incarnation  | behind   | source   |
 *     word 3   use                | changes      | node's incarnation  |
 *
 *              63 ... 48   47 ....................................... 0
 *     word 2   version   | members                                    |
 *
 * bytes and places (chunks) are the message's, and place is the chunk's in it,
 * from 1. The source numbers its chunks; the floor is so many behind. members
 * are those of the chunk's tree. use is of the buffer, and 0 while it changes;
 * changes are of the view of the node in whose buffer the head lies.
 *
 * Words 0 to 2 are the source's and travel with the chunk; word 3 is of the
 * node in whose buffer it lies. All members hold what the source has sent up to
 * the floor. Pure.
 */

#include <stdbool.h>

#include "transports/mpb/ocbcast/oc_tree.h"

struct qn_oc_head {
    uint64_t word[4];
};

/** What the source says of a chunk. */
struct qn_oc_about {
    uint32_t bytes, place, places; /* of the message, and the chunk in it */
    uint32_t number, floor;
    uint16_t version, incarnation; /* low bits */
    qn_node_t source;
    uint64_t members;
};

#define QN_OC_MEMBERS_MAX 48u

static inline void qn_oc_head_write(struct qn_oc_head *h,
                                    const struct qn_oc_about *about)
{
    h->word[0] = (uint64_t)about->bytes << 32 | about->place << 16 |
                 (about->places & 0xffffu);
    h->word[1] =
        (uint64_t)about->number << 32 | (uint32_t)about->incarnation << 16 |
        ((about->number - about->floor) & 0xffu) << 8 | (about->source & 0xffu);
    h->word[2] = (uint64_t)about->version << QN_OC_MEMBERS_MAX | about->members;
}

static inline void qn_oc_head_read(const struct qn_oc_head *h,
                                   struct qn_oc_about *about)
{
    const uint64_t all = (UINT64_C(1) << QN_OC_MEMBERS_MAX) - 1;
    uint32_t number = (uint32_t)(h->word[1] >> 32);
    *about = (struct qn_oc_about){
        .bytes = (uint32_t)(h->word[0] >> 32),
        .place = (uint32_t)h->word[0] >> 16,
        .places = (uint32_t)h->word[0] & 0xffffu,
        .number = number,
        .floor = number - ((uint32_t)h->word[1] >> 8 & 0xffu),
        .version = (uint16_t)(h->word[2] >> QN_OC_MEMBERS_MAX),
        .incarnation = (uint16_t)((uint32_t)h->word[1] >> 16),
        .source = (qn_node_t)(h->word[1] & 0xffu),
        .members = h->word[2] & all};
}

/** Word 3. */
static inline uint64_t qn_oc_use_word(uint64_t use, uint64_t changes,
                                      uint64_t incarnation)
{
    uint64_t low = changes << 16 | (incarnation & 0xffffu);
    /* The analyzer takes a known 0 for none. */
    return use << 32 | low; /* NOLINT(clang-analyzer-core.*) */
}

static inline uint32_t qn_oc_use_of(const struct qn_oc_head *h)
{
    return (uint32_t)(h->word[3] >> 32);
}

static inline uint16_t qn_oc_changes_of(const struct qn_oc_head *h)
{
    return (uint16_t)((uint32_t)h->word[3] >> 16);
}

/** The same chunk, in the same use of the buffer of the same node? */
static inline bool qn_oc_head_same(const struct qn_oc_head *a,
                                   const struct qn_oc_head *b)
{
    const uint64_t changes = UINT64_C(0xffff0000);
    return a->word[0] == b->word[0] && a->word[1] == b->word[1] &&
           a->word[2] == b->word[2] &&
           (a->word[3] & ~changes) == (b->word[3] & ~changes);
}

#endif
