/* Locks: a counter of plain memory under each. */
#include <assert.h>

#include "core/base/err.h"
#include "core/sync/lock/lock.h"
#include "loadgen/sync/subject.h"

#define DEADLINE_NS (5 * QN_US) /* below and above a short wait */

static_assert(sizeof(struct qn_lock_client) <= sizeof(struct qn_subject_client),
              "a client has room");

static const char *name(uint32_t i)
{
    const struct qn_lock_type *type = qn_lock_types[i];
    return type != NULL ? type->name : NULL;
}

static bool words(const struct qn_subject *s)
{
    return qn_lock_find(s->name)->words;
}

static int create(struct qn_subject *s)
{
    const struct qn_lock_type *type = qn_lock_find(s->name);
    const struct qn_lock_opts o = {.clients = s->o.clients,
                                   .own_cores = s->o.own_cores};
    const size_t bytes = qn_lock_bytes(type, &o);
    if (bytes == 0) {
        return QN_EINVAL;
    }
    s->memory = qn_subject_memory(bytes);
    return s->memory != NULL ? qn_lock_format(type, s->memory, &o) : QN_ENOMEM;
}

static int join(struct qn_subject *s, struct qn_subject_client *c)
{
    return qn_lock_join(qn_lock_find(s->name), s->memory, c->port,
                        (struct qn_lock_client *)c);
}

static void leave(struct qn_subject *s, struct qn_subject_client *c)
{
    (void)s;
    qn_lock_leave((struct qn_lock_client *)c);
}

/* Of all ways the first one that succeeds. */
static void acquire(struct qn_subject *s, struct qn_lock_client *c)
{
    if (!s->o.tries ||
        (!qn_lock_try_acquire(c) &&
         qn_lock_acquire_until(c, qn_clock_now() + DEADLINE_NS) != QN_OK)) {
        qn_lock_acquire(c);
    }
}

static uint64_t operate(struct qn_subject *s, struct qn_subject_client *c,
                        enum qn_subject_op op, uint64_t value)
{
    (void)op;
    (void)value;
    acquire(s, (struct qn_lock_client *)c);
    const uint64_t was = qn_subject_work(s);
    qn_lock_release((struct qn_lock_client *)c);
    return was;
}

static void stats(struct qn_subject *s, struct qn_subject_client *c,
                  struct qn_subject_stats *out)
{
    const struct qn_lock_stats *from = &((struct qn_lock_client *)c)->stats;
    (void)s;
    *out = (struct qn_subject_stats){.cas = from->cas,
                                     .cas_failed = from->cas_failed,
                                     .parks = from->waits.parks,
                                     .wakes = from->waits.wakes,
                                     .yields = from->waits.yields};
}

const struct qn_subject_type qn_subject_lock = {.family = "lock",
                                                .kind = QN_SUBJECT_COUNTER,
                                                .plain = true,
                                                .name = name,
                                                .words = words,
                                                .create = create,
                                                .join = join,
                                                .leave = leave,
                                                .operate = operate,
                                                .stats = stats};
