#ifndef QN_TESTS_SUPPORT_ALIKE_PROGRAM_H
#define QN_TESTS_SUPPORT_ALIKE_PROGRAM_H

/**
 * A program of collective operations: of operation k, its number says the kind,
 * the operator and the size. What a member contributes depends on the view that
 * it has started the operation in, so a result says which members took part,
 * and when. Pure; any thread.
 */

#include <stdint.h>

#include "core/coll/coll.h"

struct alike_program {
    uint64_t seed;
    uint32_t members;                 /* of a view, at most */
    uint32_t bytes_max;               /* of a payload */
    const struct qn_operator *adding; /* of sums; NULL: qn_sum_u64 */
};

/** The members of a view. */
struct alike_party {
    const qn_node_t *rank; /* [members] in order */
    uint32_t members;
    qn_node_t root; /* of the trees */
};

#define ALIKE_SHORT_MAX 3u /* words of a member's part, in short programs */

/** Whether payloads are as long as they can be: up to 64 KiB. */
static inline bool alike_is_long(const struct alike_program *p)
{
    return p->bytes_max == QN_COLL_PAYLOAD_MAX;
}

enum qn_coll_what alike_what(const struct alike_program *p, uint32_t k);
uint32_t alike_words(const struct alike_program *p, uint32_t k); /* of a part */

/** The longest payload of a message of operation k. */
uint32_t alike_bytes(const struct alike_program *p, uint32_t k);

/** @param in   [bytes_max / 8] filled: what v contributes; kept.
 *  @param out  Kept. */
struct qn_coll_call alike_call(const struct alike_program *p, uint32_t k,
                               qn_node_t v, uint32_t view, uint64_t *in,
                               uint64_t *out);

/** What a member gets of operation k, if it ran in a view.
 *  @param out  [bytes_max / 8]
 *  @return its words; 0: it gets nothing. */
uint32_t alike_expected(const struct alike_program *p, uint32_t k,
                        const struct alike_party *party, uint32_t view,
                        qn_node_t self, uint64_t *out);

/** Chance without a state. */
uint64_t alike_mixed(uint64_t a, uint64_t b, uint64_t c);

#endif
