#ifndef QN_TESTS_UNIT_PAXOS_DRIVER_GROUP_H
#define QN_TESTS_UNIT_PAXOS_DRIVER_GROUP_H

/**
 * Drivers of a whole group in one thread, over the real transport and private
 * outboxes, in virtual time: each round gives every running node one turn.
 * Nobody suspects anybody, and no incarnation follows another; for that there
 * is driver_world.h. Process acceptor.
 */

#include "core/place/commons.h"
#include "core/place/outbox.h"
#include "core/wait/doorbell.h"
#include "paxos/driver/driver.h"

enum { MAX = 5, CELLS = 64, LOG_MAX = 4096 };

struct logged {
    qn_node_t origin;
    uint64_t seq;
    uint64_t first8; /* first bytes of the command */
    size_t len;
    qn_slot_t slot;
    uint64_t stamp_ms;
};

struct node {
    struct qn_driver *driver;
    struct qn_outbox *own;
    struct qn_outbox *view[MAX];
    struct qn_qp *direct[MAX], *tree[MAX];
    struct qn_doorbell doorbell;
    struct qn_doorbell_handle ringer[MAX]; /* [p] rings node p */
    struct logged log[LOG_MAX];
    uint32_t logged;
    uint64_t mine; /* own commands applied */
    bool stopped;
    uint32_t told;
    char told_text[16];
};

extern struct node node[MAX];
extern uint8_t flight[MAX][QN_FLIGHT_BYTES(QN_FLIGHT_ENTRIES)];
extern qn_time_t now;
extern uint32_t work;       /* of a command, as apply says */
extern bool peers_are_wild; /* and write into what they have sent */

void group_start(uint32_t n);
void group_stop(void);

/** @return true if something could not be sent. */
bool one_turn(uint32_t i);
void rounds(uint32_t count); /* 100 us each */

/** @return false: refused. */
bool submit(uint32_t i, const void *bytes, size_t len);
void submit_number(uint32_t i, uint64_t x);
void check_equal_logs(uint32_t expected); /* commands, at all nodes */

#endif
