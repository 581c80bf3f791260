#include "loadgen/client/stats.h"

#include <string.h>

static void merge_op(struct qn_op_stats *to, const struct qn_op_stats *from)
{
    to->ops += from->ops;
    to->misses += from->misses;
    to->errors += from->errors;
    to->wrong += from->wrong;
    qn_histogram_merge(&to->latency, &from->latency);
    qn_histogram_merge(&to->service, &from->service);
}

static void keep_first(char *to, const char *from)
{
    if (to[0] == '\0') {
        memcpy(to, from, QN_STATS_TEXT_MAX);
    }
}

void qn_stats_merge(struct qn_stats *to, const struct qn_stats *from)
{
    for (int op = 0; op < QN_OP_COUNT; op++) {
        merge_op(&to->op[op], &from->op[op]);
    }
    to->disconnects += from->disconnects;
    to->unanswered += from->unanswered;
    to->unsent += from->unsent;
    to->spent += from->spent;
    to->waiting += from->waiting;
    keep_first(to->first_error, from->first_error);
    keep_first(to->first_wrong, from->first_wrong);
}

void qn_op_stats_clear(struct qn_op_stats *o)
{
    o->ops = 0;
    o->misses = 0;
    o->errors = 0;
    o->wrong = 0;
    qn_histogram_clear(&o->latency);
    qn_histogram_clear(&o->service);
}

void qn_stats_clear(struct qn_stats *s)
{
    for (int op = 0; op < QN_OP_COUNT; op++) {
        qn_op_stats_clear(&s->op[op]);
    }
    s->disconnects = 0;
    s->unanswered = 0;
    s->unsent = 0;
    s->spent = 0;
    s->waiting = 0;
    s->first_error[0] = '\0';
    s->first_wrong[0] = '\0';
}

void qn_stats_sum(const struct qn_stats *s, struct qn_op_stats *sum)
{
    for (int op = 0; op < QN_OP_COUNT; op++) {
        merge_op(sum, &s->op[op]);
    }
}
