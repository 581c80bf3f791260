#ifndef QN_LOADGEN_BARRIER_SUBJECT_H
#define QN_LOADGEN_BARRIER_SUBJECT_H

/**
 * The barriers that `quoin bench barrier` measures in threads and processes of
 * its own: those of core/barrier, of the system, and simple ones, as one writes
 * them without a library. All of them lie in shared memory.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/barrier/barrier.h"

#define QN_BARRIER_SUBJECTS_MAX 18u

struct qn_barrier_kind;

struct qn_barrier_subject {
    char name[32];
    const struct qn_barrier_kind *kind;
    const char *form; /* of core/barrier; NULL: it chooses */
    bool own_cores;
};

/** A member of a subject. Fields are private. */
struct qn_barrier_client {
    const struct qn_barrier_subject *subject;
    void *memory;
    uint32_t member, members;
    uint32_t episode;
    struct qn_barrier_member me; /* of core/barrier */
};

/** @param out      [QN_BARRIER_SUBJECTS_MAX] filled; the first is what
 *                  core/barrier chooses.
 *  @param members  Own cores are promised if there is one for each.
 *  @return their number. */
uint32_t qn_barrier_subjects(struct qn_barrier_subject *out, uint32_t members,
                             uint32_t cores);

/** @return bytes, a multiple of QN_CACHELINE. */
size_t qn_barrier_subject_bytes(const struct qn_barrier_subject *s,
                                uint32_t members);

/** @param memory  Zeroed. @return QN_OK, or why it cannot be made. */
int qn_barrier_subject_format(const struct qn_barrier_subject *s, void *memory,
                              uint32_t members, uint32_t cores);

/** @return QN_OK, or why the member cannot join. */
int qn_barrier_subject_join(const struct qn_barrier_subject *s, void *memory,
                            uint32_t member, uint32_t members,
                            struct qn_barrier_client *c);

/** Of struct qn_barrier_client. A qn_barrier_pass_fn. */
void qn_barrier_subject_pass(void *client);

#endif
