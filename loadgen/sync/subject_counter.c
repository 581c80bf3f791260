/* The library's counter: by fetch-and-add, and over each backend. */
#include <assert.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/sync/object/counter.h"
#include "loadgen/sync/subject.h"

static_assert(sizeof(struct qn_counter_client) <=
                  sizeof(struct qn_subject_client),
              "a client has room");

static const char *name(uint32_t i)
{
    const struct qn_delegate_type *type =
        i == 0 ? NULL : qn_subject_backend(i - 1);
    return i == 0 ? "fetch_add" : type != NULL ? type->name : NULL;
}

static bool words(const struct qn_subject *s)
{
    const struct qn_delegate_type *over = qn_delegate_find(s->name);
    return over != NULL && qn_subject_backend_words(s, over);
}

static int create(struct qn_subject *s)
{
    const struct qn_delegate_type *over = qn_delegate_find(s->name);
    struct qn_delegate_opts d = {.type = NULL};
    if (over != NULL) {
        d = qn_subject_delegate(s, over);
    }
    const struct qn_counter_opts o = {.clients = s->o.clients,
                                      .delegate = over != NULL ? &d : NULL};
    const size_t bytes = qn_counter_bytes(&o);
    if (bytes == 0) {
        return QN_EINVAL;
    }
    s->memory = qn_subject_memory(bytes);
    s->handle = qn_subject_memory(sizeof(struct qn_counter));
    if (s->memory == NULL || s->handle == NULL) {
        return QN_ENOMEM;
    }
    int rc = qn_counter_format(s->memory, &o);
    return rc == QN_OK ? qn_counter_open(s->handle, s->memory) : rc;
}

static int join_counter(const void *object, void *client,
                        const struct qn_delegate_join_opts *o)
{
    return qn_counter_join(object, client, o);
}

static int join(struct qn_subject *s, struct qn_subject_client *c)
{
    const struct qn_delegate_type *over = qn_delegate_find(s->name);
    const struct qn_subject_end e = {.join = join_counter,
                                     .object = s->handle,
                                     .client = c,
                                     .domains = over != NULL && over->domains,
                                     .port = c->port};
    return qn_subject_join_any(s, c, &e);
}

static void leave(struct qn_subject *s, struct qn_subject_client *c)
{
    (void)s;
    qn_counter_leave((struct qn_counter_client *)c);
}

static uint64_t operate(struct qn_subject *s, struct qn_subject_client *c,
                        enum qn_subject_op op, uint64_t value)
{
    uint64_t was = 0;
    (void)s;
    (void)op;
    (void)value;
    (void)qn_counter_add((struct qn_counter_client *)c, 1, &was);
    return was;
}

static void stats(struct qn_subject *s, struct qn_subject_client *c,
                  struct qn_subject_stats *out)
{
    const struct qn_delegate_stats from =
        qn_counter_stats_of((struct qn_counter_client *)c);
    (void)s;
    *out = qn_subject_stats_of(&from);
}

static bool served(const struct qn_subject *s)
{
    const struct qn_delegate_type *over = qn_delegate_find(s->name);
    return over != NULL && over->server != NULL;
}

static int serve(struct qn_subject *s)
{
    return qn_subject_serve(s, qn_counter_delegate(s->handle));
}

static void stop(struct qn_subject *s)
{
    (void)qn_delegate_stop(qn_counter_delegate(s->handle));
}

const struct qn_subject_type qn_subject_counter = {.family = "counter",
                                                   .kind = QN_SUBJECT_COUNTER,
                                                   .name = name,
                                                   .words = words,
                                                   .create = create,
                                                   .join = join,
                                                   .leave = leave,
                                                   .operate = operate,
                                                   .stats = stats,
                                                   .served = served,
                                                   .serve = serve,
                                                   .stop = stop};
