#include "loadgen/workload/mix.h"

#include "core/base/err.h"
#include "core/base/suggest.h"
#include "loadgen/base/list.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[QN_OP_COUNT] = {
#define X(name, text) [QN_OP_##name] = text,
    QN_OP_MAP(X)
#undef X
};

const char *qn_mix_op_name(enum qn_op op)
{
    return names[op];
}

static int find(const char *word)
{
    for (int i = 0; i < QN_OP_COUNT; i++) {
        if (strcmp(names[i], word) == 0) {
            return i;
        }
    }
    return QN_ENOENT;
}

static int parse_weight(const char *text, uint32_t *weight)
{
    if (strspn(text, "0123456789") != strlen(text) || *text == '\0' ||
        strlen(text) > 7 || strtoul(text, NULL, 10) > QN_MIX_WEIGHT_MAX) {
        return QN_EINVAL;
    }
    *weight = (uint32_t)strtoul(text, NULL, 10);
    return QN_OK;
}

/* Parse one NAME[:WEIGHT] of `len` bytes and add it to weights. */
static int parse_item(const char *text, size_t len, uint64_t *weights,
                      char *error, size_t error_size)
{
    char item[64];
    if (len >= sizeof item) {
        snprintf(error, error_size,
                 "'%.20s...' is too long for an operation; use NAME:WEIGHT",
                 text);
        return QN_EINVAL;
    }
    memcpy(item, text, len);
    item[len] = '\0';
    char *colon = strchr(item, ':');
    uint32_t weight = 1;
    if (colon != NULL) {
        *colon = '\0';
        if (parse_weight(colon + 1, &weight) != QN_OK) {
            snprintf(error, error_size, "'%s' is not a weight from 0 to %d",
                     colon + 1, QN_MIX_WEIGHT_MAX);
            return QN_EINVAL;
        }
    }
    int op = find(item);
    if (op < 0) {
        const char *near =
            qn_suggest(item, &names[0], sizeof names[0], QN_OP_COUNT);
        if (near != NULL) {
            snprintf(error, error_size,
                     "unknown operation '%s'; did you mean '%s'?", item, near);
        } else {
            snprintf(error, error_size, "unknown operation '%s'; use %s", item,
                     QN_MIX_NAMES);
        }
        return QN_EINVAL;
    }
    weights[op] += weight;
    return QN_OK;
}

int qn_mix_parse(struct qn_mix *mix, const char *text, char *error,
                 size_t error_size)
{
    uint64_t weights[QN_OP_COUNT] = {0};
    const char *word;
    size_t len;
    while (qn_list_next(&text, &word, &len)) {
        int err = parse_item(word, len, weights, error, error_size);
        if (err != QN_OK) {
            return err;
        }
    }
    uint64_t sum = 0;
    for (int i = 0; i < QN_OP_COUNT; i++) {
        sum += weights[i];
    }
    if (sum == 0 || sum > UINT32_MAX) {
        snprintf(error, error_size,
                 "the weights add up to %" PRIu64 "; use a sum of 1 to %u", sum,
                 UINT32_MAX);
        return QN_EINVAL;
    }
    sum = 0;
    for (int i = 0; i < QN_OP_COUNT; i++) {
        sum += weights[i];
        mix->upto[i] = (uint32_t)sum;
    }
    return QN_OK;
}

struct qn_mix qn_mix_part(const struct qn_mix *m, bool reads)
{
    struct qn_mix part;
    uint32_t sum = 0;
    for (int op = 0; op < QN_OP_COUNT; op++) {
        bool in = qn_op_is_read((enum qn_op)op) == reads;
        sum += in ? qn_mix_weight(m, (enum qn_op)op) : 0;
        part.upto[op] = sum;
    }
    return part;
}
