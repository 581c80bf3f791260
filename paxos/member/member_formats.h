#ifndef QN_PAXOS_MEMBER_MEMBER_FORMATS_H
#define QN_PAXOS_MEMBER_MEMBER_FORMATS_H

/**
 * Versions of what the members of a group share, for programs that compare
 * builds before they join one. Constants.
 */

#include <assert.h>

#include "core/place/commons.h"
#include "core/place/outbox.h"
#include "paxos/member/transfer/library_state.h"
#include "paxos/member/transfer/state_transfer_chunk.h"
#include "paxos/wire/msg.h"

enum {
    QN_MEMBER_FORMAT_OUTBOX = QN_OUTBOX_VERSION,
    QN_MEMBER_FORMAT_COMMONS = QN_COMMONS_VERSION,
    QN_MEMBER_FORMAT_MESSAGES = QN_MSG_VERSION,
    QN_MEMBER_FORMAT_TRANSFER = QN_STATE_TRANSFER_VERSION,
};

static_assert(QN_LIBRARY_STATE_VERSION == 3,
              "it travels in a state transfer, whose version rises with it");

#endif
