/*
 * The word, from the top:
 *
 *     version 24 | node 6 | value 24 | check 10
 *
 * so that words are compared as numbers. The check is a hash of the rest: a
 * faulty process may overwrite its outbox, and a wrong word of a high version
 * would stay for ever.
 */
#include "kvs/config/settings.h"

#include <assert.h>

#include "kvs/config/config.h"

enum { VERSION_BITS = 24, NODE_BITS = 6, VALUE_BITS = 24, CHECK_BITS = 10 };

#define VERSION_MAX ((UINT64_C(1) << VERSION_BITS) - 1)
#define VALUE_MAX   ((UINT64_C(1) << VALUE_BITS) - 1)
#define CHECK_MASK  ((UINT64_C(1) << CHECK_BITS) - 1)

static_assert(VERSION_BITS + NODE_BITS + VALUE_BITS + CHECK_BITS == 64, "word");
static_assert(QN_NODES_MAX <= 1 << NODE_BITS, "a node fits");
static_assert(QN_LAG_TIMEOUT_MAX <= VALUE_MAX, "a time fits");
static_assert(QN_MIN_REPLICAS_MAX <= VALUE_MAX, "a number fits");

/* ---- words --------------------------------------------------------------- */

static const struct {
    const char *name;
    uint32_t min, max;
} settings[QN_SETTINGS] = {
    [QN_SETTING_LAG_TIMEOUT] = {"lag-timeout", 1, QN_LAG_TIMEOUT_MAX},
    [QN_SETTING_MIN_REPLICAS] = {"min-replicas-to-write", 0,
                                 QN_MIN_REPLICAS_MAX},
};

const char *qn_setting_name(enum qn_setting k)
{
    return settings[k].name;
}

static uint64_t check_of(uint64_t rest)
{
    return (rest >> CHECK_BITS) * 0x9e3779b97f4a7c15u >> (64 - CHECK_BITS);
}

bool qn_setting_next(uint64_t newest, qn_node_t node, uint32_t value,
                     uint64_t *word)
{
    uint64_t version = newest >> (64 - VERSION_BITS);
    if (version == VERSION_MAX) {
        return false;
    }
    uint64_t rest = (((version + 1) << NODE_BITS | node) << VALUE_BITS | value)
                    << CHECK_BITS;
    *word = rest | check_of(rest);
    return true;
}

static qn_node_t node_of(uint64_t word)
{
    return (qn_node_t)(word >> (VALUE_BITS + CHECK_BITS) &
                       ((1u << NODE_BITS) - 1));
}

uint32_t qn_setting_value(uint64_t word)
{
    return (uint32_t)(word >> CHECK_BITS & VALUE_MAX);
}

bool qn_setting_valid(enum qn_setting k, uint64_t word, uint32_t nodes)
{
    uint32_t value = qn_setting_value(word);
    return word >> (64 - VERSION_BITS) != 0 &&
           (word & CHECK_MASK) == check_of(word & ~CHECK_MASK) &&
           node_of(word) < nodes && value >= settings[k].min &&
           value <= settings[k].max;
}
