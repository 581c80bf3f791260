#ifndef QN_LOADGEN_SIMULATE_LOCKS_LOCKS_WORDS_H
#define QN_LOADGEN_SIMULATE_LOCKS_LOCKS_WORDS_H

/** A device of words for the nodes of a run: an attachment and a port of each,
 *  without doorbells, as nodes look on. Made outside of a run. */

#include "core/sync/port.h"

struct qn_locks_words {
    uint32_t nodes; /* attached */
    void *memory;
    struct qn_device **device; /* [nodes] */
    struct qn_sync_port *port; /* [nodes] */
};

/** @return QN_OK, QN_ENOMEM, or errors of attach. What was made is to be freed
 *  either way. */
int qn_locks_words_make(struct qn_locks_words *w, uint32_t nodes);

/** Of one that is zero, too. */
void qn_locks_words_free(struct qn_locks_words *w);

#endif
