/*
 * Queues of words for a run: the device that shares 118 words per core, as the
 * hardware.
 */
#include "loadgen/simulate/locks/locks_words.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"

static int attach(struct qn_locks_words *w, const struct qn_device_opts *opts,
                  uint32_t node)
{
    uint64_t incarnation[QN_WORDS_CORES_MAX];
    for (uint32_t i = 0; i < QN_WORDS_CORES_MAX; i++) {
        incarnation[i] = 1;
    }
    const struct qn_device_attach_opts o = {.memory = w->memory,
                                            .opts = opts,
                                            .self = node,
                                            .incarnation = incarnation};
    int rc = qn_words_shared.attach(&w->device[node], &o);
    if (rc == QN_OK) {
        w->nodes++;
        rc = qn_sync_port_open(&w->port[node], w->device[node]);
    }
    return rc;
}

int qn_locks_words_make(struct qn_locks_words *w, uint32_t nodes)
{
    const struct qn_device_opts opts = {.nodes = QN_MAX(nodes, 2u),
                                        .lanes = 1}; /* the least */
    *w = (struct qn_locks_words){0};
    if (nodes > QN_WORDS_CORES_MAX) {
        return QN_EINVAL;
    }
    size_t bytes = qn_words_shared.bytes(&opts);
    w->memory = aligned_alloc(QN_CACHELINE, bytes);
    w->device = calloc(nodes, sizeof *w->device);
    w->port = calloc(nodes, sizeof *w->port);
    if (w->memory == NULL || w->device == NULL || w->port == NULL) {
        return QN_ENOMEM;
    }
    memset(w->memory, 0, bytes);
    qn_words_shared.format(w->memory, &opts);
    int rc = QN_OK;
    for (uint32_t i = 0; i < nodes && rc == QN_OK; i++) {
        rc = attach(w, &opts, i);
    }
    return rc;
}

void qn_locks_words_free(struct qn_locks_words *w)
{
    for (uint32_t i = 0; i < w->nodes; i++) {
        qn_device_detach(w->device[i]);
    }
    free(w->port);
    free(w->device);
    free(w->memory);
    *w = (struct qn_locks_words){0};
}
