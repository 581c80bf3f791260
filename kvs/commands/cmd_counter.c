/*
 * Counters: INCR, DECR, INCRBY, DECRBY, INCRBYFLOAT.
 *
 * A counter is stored as its decimal text, like any other value; parsing and
 * formatting 20 digits costs less than a second kind of value would. A missing
 * key counts from 0. The key's deadline stays.
 *
 * Redis subtracts by adding the negated amount. So DECRBY of INT64_MIN has its
 * own error, and the addition finds every other overflow.
 */
#include "kvs/commands/cmd_internal.h"

#include <math.h>

#include "kvs/base/number.h"

static int add(struct qn_store *s, const struct qn_cmd_call *c, int64_t by)
{
    struct qn_found old;
    int64_t v = 0;
    if (qn_cmd_lookup(s, c, c->argv[1], &old) &&
        !qn_number_parse(old.value, &v)) {
        qn_reply_error(c->reply, QN_CMD_ERR_INTEGER);
        return QN_OK;
    }
    if (by < 0 ? v < INT64_MIN - by : v > INT64_MAX - by) {
        qn_reply_error(c->reply, "ERR increment or decrement would overflow");
        return QN_OK;
    }
    v += by;
    char text[QN_NUMBER_CHARS];
    const struct qn_slice value = {(const uint8_t *)text,
                                   qn_number_format(text, v)};
    qn_reply_int(c->reply, v);
    return qn_cmd_put(s, c, c->argv[1], old.deadline_ms, &value, 1);
}

int qn_cmd_incr(struct qn_store *s, const struct qn_cmd_call *c)
{
    return add(s, c, 1);
}

int qn_cmd_decr(struct qn_store *s, const struct qn_cmd_call *c)
{
    return add(s, c, -1);
}

int qn_cmd_incrby(struct qn_store *s, const struct qn_cmd_call *c)
{
    int64_t by;
    if (!qn_number_parse(c->argv[2], &by)) {
        qn_reply_error(c->reply, QN_CMD_ERR_INTEGER);
        return QN_OK;
    }
    return add(s, c, by);
}

int qn_cmd_decrby(struct qn_store *s, const struct qn_cmd_call *c)
{
    int64_t by;
    if (!qn_number_parse(c->argv[2], &by)) {
        qn_reply_error(c->reply, QN_CMD_ERR_INTEGER);
        return QN_OK;
    }
    if (by == INT64_MIN) {
        qn_reply_error(c->reply, "ERR decrement would overflow");
        return QN_OK;
    }
    return add(s, c, -by);
}

int qn_cmd_incrbyfloat(struct qn_store *s, const struct qn_cmd_call *c)
{
    struct qn_found old;
    long double v = 0, by;
    bool found = qn_cmd_lookup(s, c, c->argv[1], &old);
    if ((found && !qn_number_parse_float(old.value, &v)) ||
        !qn_number_parse_float(c->argv[2], &by)) {
        qn_reply_error(c->reply, "ERR value is not a valid float");
        return QN_OK;
    }
    v += by;
    if (!isfinite(v)) {
        qn_reply_error(c->reply, "ERR increment would produce NaN or Infinity");
        return QN_OK;
    }
    char text[QN_NUMBER_FLOAT_CHARS];
    const struct qn_slice value = {(const uint8_t *)text,
                                   qn_number_format_float(text, v)};
    qn_reply_bulk(c->reply, value.data, value.len);
    return qn_cmd_put(s, c, c->argv[1], old.deadline_ms, &value, 1);
}
