#ifndef QN_TRANSPORTS_REGISTRY_H
#define QN_TRANSPORTS_REGISTRY_H

/** Backends of core/qp.h by name. Pure, any thread. */

#include "core/qp.h"

/** @return the transport of that name, or NULL. */
const struct qn_transport *qn_transport_find(const char *name);

/** @return the i-th transport, or NULL past the last one. */
const struct qn_transport *qn_transport_at(uint32_t i);

#endif
