#ifndef QN_KVS_CONFIG_SETTINGS_H
#define QN_KVS_CONFIG_SETTINGS_H

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
 * Pure; any thread. What a replica does with them:
 * kvs/server/server_settings.h.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/node.h"

/** What a replica publishes in its outbox: indices of `counters` in struct
 *  qn_outbox_state. The words of the settings are read in every turn of all
 *  peers, and stand on a line that is seldom written. */
enum {
    QN_COUNTER_CLIENTS = 0,  /* how many it serves (kvs/frontend/admit.h) */
    QN_COUNTER_SETTINGS = 2, /* [QN_SETTINGS] words */
};

enum qn_setting {
    QN_SETTING_LAG_TIMEOUT,  /* ms */
    QN_SETTING_MIN_REPLICAS, /* followers */
    QN_SETTINGS
};

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

#endif
