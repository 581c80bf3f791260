#ifndef QN_SIM_EXPLORE_C11_INTERNAL_H
#define QN_SIM_EXPLORE_C11_INTERNAL_H

/**
 * What c11.c and c11_bytes.c share. Inside of the folder only.
 *
 * A view is a vector: first the clock of each node (accesses of its own that it
 * has made, and those of others that happen before this moment), then for each
 * atomic variable the number of a store. The variables of a run are numbered as
 * they are met, so an entry behind `used` is 0. Numbers are signed words of 16
 * bits, of which a vector instruction takes eight maxima at once.
 */

#include <string.h>

#include "core/base/bits.h"
#include "core/sim/explore/c11.h"
#include "core/sim/explore/explore.h"

#define QN_C11_VIEW  512u /* clocks and atomic variables */
#define QN_C11_WORDS 8192u
#define QN_C11_WORD  8u /* bytes */

struct qn_c11_view {
    uint32_t used;
    int16_t at[QN_C11_VIEW];
};

/* The last accesses of each node, by its clock, to four bytes. */
struct qn_c11_races {
    int16_t write[QN_EXPLORE_NODES], plain_write[QN_EXPLORE_NODES];
    int16_t read[QN_EXPLORE_NODES], plain_read[QN_EXPLORE_NODES];
};

/* A store of plain bytes, for checked copies. */
struct qn_c11_bytes {
    uint64_t value;
    int16_t clock;
    int8_t node;   /* -1: before the run */
    int16_t fence; /* its node's last release fence; 0: none */
};

/* Eight bytes of memory. */
struct qn_c11_word {
    uintptr_t at;
    uint16_t variable[2]; /* that covers this half; 0: none */
    int16_t newest;       /* of bytes */
    struct qn_c11_races half[2];
    struct qn_c11_bytes bytes[QN_C11_HISTORY];
};

enum qn_c11_access {
    QN_C11_READ,
    QN_C11_WRITE,
    QN_C11_PLAIN_READ,
    QN_C11_PLAIN_WRITE,
};

static inline void qn_c11_join(struct qn_c11_view *to,
                               const struct qn_c11_view *from)
{
    uint32_t both = QN_MIN(to->used, from->used);
    for (uint32_t i = 0; i < both; i++) {
        to->at[i] = QN_MAX(to->at[i], from->at[i]);
    }
    if (to->used < from->used) {
        memcpy(to->at + both, from->at + both,
               (from->used - both) * sizeof to->at[0]);
        to->used = from->used;
    }
}

static inline void qn_c11_copy(struct qn_c11_view *to,
                               const struct qn_c11_view *from)
{
    to->used = from->used;
    memcpy(to->at, from->at, from->used * sizeof to->at[0]);
}

/** An access of the running node begins. @return its view. */
struct qn_c11_view *qn_c11_tick(void);

/** The view that was fenced by release fence number `fence`. */
const struct qn_c11_view *qn_c11_fenced(int16_t fence);

/** Last release fence of the running node; 0: none. */
int16_t qn_c11_last_fence(void);

/** For the next acquire fence of the running node. */
void qn_c11_found(const struct qn_c11_view *carried);

/** Bytes of a variable were written as plain ones. */
void qn_c11_overwritten(uint16_t variable);

void qn_c11_bytes_reset(void);

/** The word that `at` lies in. */
struct qn_c11_word *qn_c11_word_of(uintptr_t at);

/** Note an access of the running node, whose view is `now`, to the word's bytes
 *  [from, to); it must be ordered with those of others. */
void qn_c11_ordered(struct qn_c11_word *w, const struct qn_c11_view *now,
                    uint32_t from, uint32_t to, enum qn_c11_access kind);

/* The operations of struct qn_sim_memory. */
void qn_c11_copy_in(void *to, const void *from, size_t n);
void qn_c11_copy_checked(void *to, const void *from, size_t n);
void qn_c11_copy_out(void *at, const void *bytes, size_t n);
void qn_c11_touch(const void *at, size_t n, bool written);

#endif
