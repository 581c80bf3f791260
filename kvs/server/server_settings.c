/*
 * Settings beside the log, in a replica: what it says and what its peers say
 * (kvs/config/settings.h).
 */
#include "kvs/server/server_settings.h"

#include <assert.h>

#include "core/base/assert.h"
#include "core/base/log.h"
#include "kvs/config/settings.h"
#include "kvs/resp/reply.h"
#include "kvs/server/server.h"
#include "paxos/wire/peer_state.h"

static_assert(QN_MEMBER_COUNTER_LINE(QN_COUNTER_CLIENTS) !=
                      QN_MEMBER_COUNTER_LINE(QN_COUNTER_SETTINGS) &&
                  QN_MEMBER_COUNTER_LINE(QN_COUNTER_SETTINGS) ==
                      QN_MEMBER_COUNTER_LINE((int)QN_COUNTER_SETTINGS +
                                             (int)QN_SETTINGS - 1),
              "a line of their own");
static_assert(QN_COUNTER_CLIENTS < QN_PEER_STATE_COUNTERS, "said by message");
static_assert(QN_COUNTER_SETTINGS >= QN_PEER_STATE_AT_ONCE, "said at once");
static_assert((int)QN_COUNTER_SETTINGS + (int)QN_SETTINGS <=
                  (int)QN_PEER_STATE_COUNTERS,
              "said by message");

static uint64_t word_of(const struct qn_server *s, qn_node_t i,
                        enum qn_setting k)
{
    return qn_member_counter(s->member, i, QN_COUNTER_SETTINGS + k);
}

static uint64_t own_word(const struct qn_server *s, enum qn_setting k)
{
    return word_of(s, s->boot->self, k);
}

/* Of the configuration that this replica goes by, or will. */
static void values_of(const struct qn_config *c, uint32_t value[QN_SETTINGS])
{
    value[QN_SETTING_LAG_TIMEOUT] = c->lag_timeout;
    value[QN_SETTING_MIN_REPLICAS] = c->min_replicas_to_write;
}

/* Publish it and go by it. */
static void go_by(struct qn_server *s, enum qn_setting k, uint64_t word)
{
    uint32_t value[QN_SETTINGS];
    QN_ASSERT(word > own_word(s, k)); /* the newest word wins */
    QN_ASSERT(qn_setting_valid(k, word, s->boot->nodes));
    values_of(qn_replica_config(s->replica), value);
    value[k] = qn_setting_value(word);
    qn_member_counter_set(s->member, QN_COUNTER_SETTINGS + k, word);
    qn_replica_limits(s->replica, value[QN_SETTING_LAG_TIMEOUT],
                      value[QN_SETTING_MIN_REPLICAS]);
}

void qn_settings_take(struct qn_server *s, qn_node_t peer)
{
    for (enum qn_setting k = 0; k < QN_SETTINGS; k++) {
        uint64_t word = word_of(s, peer, k);
        if (word > own_word(s, k) &&
            qn_setting_valid(k, word, s->boot->nodes)) {
            go_by(s, k, word);
        }
    }
}

void qn_settings_turn(struct qn_server *s)
{
    for (uint64_t m = qn_member_peers(s->member); m != 0; m &= m - 1) {
        qn_settings_take(s, (qn_node_t)__builtin_ctzll(m));
    }
}

bool qn_settings_min_is_auto(const struct qn_server *s)
{
    return s->boot->config->min_replicas_auto &&
           own_word(s, QN_SETTING_MIN_REPLICAS) == 0;
}

void qn_settings_voters(struct qn_server *s, uint32_t voters)
{
    if (qn_settings_min_is_auto(s)) {
        qn_replica_limits(s->replica,
                          qn_replica_config(s->replica)->lag_timeout,
                          qn_config_min_auto(voters));
    }
}

/* ---- CONFIG SET ---------------------------------------------------------- */

/* All of them, or none. */
static bool publish(struct qn_server *s, const uint32_t before[QN_SETTINGS],
                    const uint32_t value[QN_SETTINGS])
{
    uint64_t word[QN_SETTINGS];
    for (enum qn_setting k = 0; k < QN_SETTINGS; k++) {
        if (value[k] != before[k] &&
            !qn_setting_next(own_word(s, k), s->boot->self, value[k],
                             &word[k])) {
            return false;
        }
    }
    for (enum qn_setting k = 0; k < QN_SETTINGS; k++) {
        if (value[k] != before[k]) {
            go_by(s, k, word[k]);
            qn_log(QN_LOG_INFO, "replica %u: CONFIG SET %s %u (it was %u)",
                   s->boot->self, qn_setting_name(k), value[k], before[k]);
        }
    }
    return true;
}

void qn_settings_set(struct qn_conn *c, struct qn_cmd_call *call)
{
    struct qn_server *s = c->fe->o.ctx;
    char why[QN_CONFIG_WHY_MAX];
    uint32_t before[QN_SETTINGS], value[QN_SETTINGS];
    if (call->argc % 2 != 0) {
        qn_reply_error(call->reply, "ERR syntax error");
        return;
    }
    qn_settings_turn(s); /* the new version is above all that can be seen */
    struct qn_config next = *qn_replica_config(s->replica);
    values_of(&next, before);
    if (qn_config_set_all(&next, QN_CONFIG_BESIDE_LOG, call->argv + 2,
                          call->argc - 2, why, sizeof why) != QN_OK) {
        qn_reply_error(call->reply, "ERR %s", why);
        return;
    }
    values_of(&next, value);
    if (!publish(s, before, value)) {
        qn_reply_error(call->reply,
                       "ERR CONFIG SET failed - it was set too often; start "
                       "the server again with other options");
        return;
    }
    qn_reply_ok(call->reply);
}
