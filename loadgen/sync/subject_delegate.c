/*
 * Delegation: a counter of plain memory by each backend.
 */
#include <assert.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/base/mark.h"
#include "core/sync/delegate/delegate.h"
#include "loadgen/sync/subject.h"

static_assert(sizeof(struct qn_delegate_client) <=
                  sizeof(struct qn_subject_client),
              "a client has room");

static uint64_t run(void *ctx, uint32_t op, uint64_t arg)
{
    struct qn_subject *s = ctx;
    (void)op;
    (void)arg;
    qn_work(s->o.call_ps / 1000);
    return qn_subject_work(s);
}

static const char *name(uint32_t i)
{
    const struct qn_delegate_type *type = qn_subject_backend(i);
    return type != NULL ? type->name : NULL;
}

static bool words(const struct qn_subject *s)
{
    return qn_subject_backend_words(s, qn_delegate_find(s->name));
}

static bool served(const struct qn_subject *s)
{
    return qn_delegate_find(s->name)->server != NULL;
}

static int serve(struct qn_subject *s)
{
    return qn_subject_serve(s, s->handle);
}

static void stop(struct qn_subject *s)
{
    (void)qn_delegate_stop(s->handle);
}

static int create(struct qn_subject *s)
{
    const struct qn_delegate_opts o =
        qn_subject_delegate(s, qn_delegate_find(s->name));
    const size_t bytes = qn_delegate_bytes(&o);
    if (bytes == 0) {
        return QN_EINVAL;
    }
    s->memory = qn_subject_memory(bytes);
    s->handle = qn_subject_memory(sizeof(struct qn_delegate));
    if (s->memory == NULL || s->handle == NULL) {
        return QN_ENOMEM;
    }
    int rc = qn_delegate_format(s->memory, &o);
    return rc == QN_OK ? qn_delegate_open(s->handle, s->memory, run, s) : rc;
}

static int join(struct qn_subject *s, struct qn_subject_client *c)
{
    return qn_subject_join_delegate(s, c, c->port, s->handle,
                                    (struct qn_delegate_client *)c);
}

static void leave(struct qn_subject *s, struct qn_subject_client *c)
{
    qn_delegate_leave(s->handle, (struct qn_delegate_client *)c);
}

static uint64_t operate(struct qn_subject *s, struct qn_subject_client *c,
                        enum qn_subject_op op, uint64_t value)
{
    uint64_t was = 0;
    (void)op;
    /* It fails only from inside an operation. */
    (void)qn_delegate(s->handle, (struct qn_delegate_client *)c, 0, value,
                      &was);
    return was;
}

static int submit(struct qn_subject *s, struct qn_subject_client *c)
{
    return qn_delegate_submit(s->handle, (struct qn_delegate_client *)c, 0, 0);
}

static int collect(struct qn_subject *s, struct qn_subject_client *c,
                   uint64_t *was)
{
    return qn_delegate_collect(s->handle, (struct qn_delegate_client *)c, was);
}

static void stats(struct qn_subject *s, struct qn_subject_client *c,
                  struct qn_subject_stats *out)
{
    const struct qn_delegate_stats from =
        qn_delegate_stats_of(s->handle, (struct qn_delegate_client *)c);
    *out = qn_subject_stats_of(&from);
}

const struct qn_subject_type qn_subject_delegation = {
    .family = "delegate",
    .kind = QN_SUBJECT_COUNTER,
    .plain = true,
    .name = name,
    .words = words,
    .create = create,
    .join = join,
    .leave = leave,
    .operate = operate,
    .stats = stats,
    .submit = submit,
    .collect = collect,
    .served = served,
    .serve = serve,
    .stop = stop,
};
