/*
 * One row per backend. Programs name a backend on their command line; the
 * conformance suite and the channel benchmark walk the table, so that a new
 * row is all it takes to be tested and measured.
 */
#include "transports/registry.h"

#include <string.h>

#include "core/base/bits.h"
#include "transports/ffq/ffq.h"
#include "transports/mpb/mpb.h"
#include "transports/udn/udn.h"
#include "transports/ump/ump.h"

static const struct qn_transport *const table[] = {
    &qn_ump, &qn_ffq, &qn_ffq_shared, &qn_mpb, &qn_udn,
};

const struct qn_transport *qn_transport_at(uint32_t i)
{
    return i < QN_ARRAY_COUNT(table) ? table[i] : NULL;
}

const struct qn_transport *qn_transport_find(const char *name)
{
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(table); i++) {
        if (strcmp(table[i]->name, name) == 0) {
            return table[i];
        }
    }
    return NULL;
}
