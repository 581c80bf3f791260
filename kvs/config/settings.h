#ifndef QN_KVS_CONFIG_SETTINGS_H
#define QN_KVS_CONFIG_SETTINGS_H

/**
 * Settings beside the log: `lag-timeout` and `min-replicas-to-write`. They say
 * when writes wait for a replica, so an operator must be able to change them in
 * the whole group while no write is decided.
 *
 * For each setting a replica publishes one word in its outbox: {version, node,
 * value}. The newest word wins. A replica that sees a newer word in the outbox
 * of a peer copies it into its own and obeys it. No message is sent that could
 * be lost, and no replica is woken: a replica looks at the words in each turn,
 * before it runs a request or fills a slot.
 *
 *     a stalled replica    looks when it resumes
 *     a new incarnation    looks in its first turn; its own outbox is empty
 *     the setter ended     its peers look at its outbox once more when they
 *                          learn of its end
 *     a later leader       has the words, as every replica has
 *     all have ended       the options of the command line are in force again
 *
 * Where no outbox is read (`--shared-state no`) the words are a part of what a
 * replica says of itself in messages: at once when they change, and to each new
 * incarnation.
 *
 * CONFIG SET takes a version above all that the asked replica can see, so it
 * overrides what was set before. Of two words set at the same moment at two
 * replicas, the word of the higher node wins in all replicas; other settings
 * are not touched.
 *
 * Pure, any thread, wait-free. What a replica does with the words:
 * kvs/server/server_settings.h.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/node.h"

/** What a replica publishes in its outbox: indices of `counters` in struct
 *  qn_outbox_state. All peers read the words of the settings in every turn,
 *  so these are on a cache line that is seldom written. */
enum {
    QN_COUNTER_CLIENTS = 0,  /* clients that it serves (kvs/frontend/admit.h) */
    QN_COUNTER_SETTINGS = 2, /* [QN_SETTINGS] words */
};

enum qn_setting {
    QN_SETTING_LAG_TIMEOUT,  /* ms */
    QN_SETTING_MIN_REPLICAS, /* followers */
    QN_SETTINGS
};

/** Make the word that overrides `newest` (0: none is known).
 *  @param word  Filled: larger than `newest`.
 *  @return false: there is no higher version; *word is untouched. */
bool qn_setting_next(uint64_t newest, qn_node_t node, uint32_t value,
                     uint64_t *word);

/** True if qn_setting_next made this word, from a value that `k` can have in
 *  a group of `nodes`. False for 0, and for a word that a faulty process has
 *  written. */
bool qn_setting_valid(enum qn_setting k, uint64_t word, uint32_t nodes);

/** The value of a valid word. */
uint32_t qn_setting_value(uint64_t word);

/** The name of the option. */
const char *qn_setting_name(enum qn_setting k);

#endif
