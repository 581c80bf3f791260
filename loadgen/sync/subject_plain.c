/* The yardstick: one counter in one line, by fetch-and-add. */
#include "core/base/err.h"
#include "loadgen/sync/subject.h"

static const char *name(uint32_t i)
{
    return i == 0 ? "fetch_add" : NULL;
}

static int create(struct qn_subject *s)
{
    s->memory = qn_subject_memory(sizeof(qn_a64));
    return s->memory != NULL ? QN_OK : QN_ENOMEM;
}

static int join(struct qn_subject *s, struct qn_subject_client *c)
{
    (void)s;
    (void)c;
    return QN_OK;
}

static void leave(struct qn_subject *s, struct qn_subject_client *c)
{
    (void)s;
    (void)c;
}

static uint64_t operate(struct qn_subject *s, struct qn_subject_client *c,
                        enum qn_subject_op op, uint64_t value)
{
    qn_a64 *count = s->memory;
    (void)c;
    (void)op;
    (void)value;
    return qn_fetch_add(count, 1, QN_SEQ_CST);
}

const struct qn_subject_type qn_subject_plain = {.family = "plain",
                                                 .kind = QN_SUBJECT_COUNTER,
                                                 .name = name,
                                                 .create = create,
                                                 .join = join,
                                                 .leave = leave,
                                                 .operate = operate};
