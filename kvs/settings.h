#ifndef QN_KVS_SETTINGS_H
#define QN_KVS_SETTINGS_H

/**
 * Settings beside the log: `lag-timeout` and `min-replicas-to-write`. They say
 * when writes wait for a replica, so an operator must be able to change them in
 * the whole group while no write is decided.
 *
 * For each setting a replica publishes one word in its outbox: {version, node,
 * value}. The newest word wins. A replica that sees a newer word in the outbox
 * of a peer takes it into its own and goes by it. So no message is sent that
 * could be lost, and no replica is woken: a replica looks at the words in each
 * turn, before it runs a request or fills a slot.
 *
 *     a stopped replica    looks when it goes on
 *     a new life, joiner   looks in its first turn; its own outbox is empty
 *     the setter has ended its peers look at its outbox once more when they
 *                          hear of its end
 *     a later leader       has it, as every replica has
 *     all have ended       the options of the command line are in force again
 *
 * CONFIG SET takes a version above all that the asked replica can see, so it
 * overrides what was set before. Of two at the same moment at two replicas the
 * one of the higher node wins, in all replicas; other settings are not touched.
 *
 * Threads: the first part is pure; the second is the loop's.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/node.h"

/** Where the words are: indices of `counters` in struct qn_outbox_state. They
 *  are read in every turn of all peers, and stand on a line that is seldom
 *  written. */
enum { QN_COUNTER_SETTINGS = 2 };

enum qn_setting {
    QN_SETTING_LAG_TIMEOUT,  /* ms */
    QN_SETTING_MIN_REPLICAS, /* followers */
    QN_SETTINGS
};

/* ---- words --------------------------------------------------------------- */

/** The word that overrides `newest` (0: none is known); *word filled, larger
 *  than `newest`. @return false: there is no higher version. */
bool qn_setting_next(uint64_t newest, qn_node_t node, uint32_t value,
                     uint64_t *word);

/** Has qn_setting_next made this word, from a value that `k` can have in a
 * group of `nodes`? False for 0, and for a word that a faulty process has
 * written. */
bool qn_setting_valid(enum qn_setting k, uint64_t word, uint32_t nodes);

/** Of a valid word. */
uint32_t qn_setting_value(uint64_t word);

/** The option's name. */
const char *qn_setting_name(enum qn_setting k);

/* ---- in a replica -------------------------------------------------------- */

struct qn_server;
struct qn_outbox;
struct qn_conn;
struct qn_cmd_call;

/** Take what is newer in the outboxes of the peers. At the beginning of a turn,
 *  before requests are run and slots are filled. */
void qn_settings_turn(struct qn_server *s);

/** Take what is newer in that outbox: its life has ended. */
void qn_settings_take(struct qn_server *s, const struct qn_outbox *o);

/** CONFIG SET of options that change beside the log, as qn_local_run. When it
 *  is answered +OK this replica goes by them, and each peer does from its next
 *  turn on, also if this replica has ended by then. */
void qn_settings_set(struct qn_conn *c, struct qn_cmd_call *call);

#endif
