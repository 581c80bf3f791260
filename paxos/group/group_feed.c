/* The change feed of the member: see group_feed.h. */
#include "paxos/group/group_feed.h"

#include "core/base/err.h"
#include "paxos/group/group_internal.h"

/* @return QN_OK: *f is there. */
static int feed_of(struct qn_group *g, struct qn_feed **f)
{
    if (!qn_fork_mark_is_own(&g->own)) {
        return QN_EPERM;
    }
    if (g->step == QN_STEP_FAILED) {
        return g->err;
    }
    if (g->o.feed == NULL) {
        return QN_ENOSYS;
    }
    if (g->applying) {
        return QN_EBUSY;
    }
    *f = g->driver != NULL ? qn_member_feed(g->member) : NULL;
    return *f != NULL ? QN_OK : QN_EAGAIN;
}

/* The same, for a program that takes a copy of its state now. */
static int feed_with_state(struct qn_group *g, bool copies, struct qn_feed **f)
{
    int err = feed_of(g, f);
    return err == QN_OK && copies && !g->complete ? QN_EAGAIN : err;
}

int qn_group_feed_subscribe(struct qn_group *g,
                            const struct qn_feed_position *from, uint32_t *id)
{
    struct qn_feed *f = NULL;
    int err = feed_with_state(g, from == NULL, &f);
    return err == QN_OK ? qn_feed_subscribe(f, from, id) : err;
}

int qn_group_feed_seek(struct qn_group *g, uint32_t id,
                       const struct qn_feed_position *to)
{
    struct qn_feed *f = NULL;
    int err = feed_with_state(g, to == NULL, &f);
    return err == QN_OK ? qn_feed_seek(f, id, to) : err;
}

int qn_group_feed_read(struct qn_group *g, uint32_t id,
                       struct qn_feed_record *r)
{
    struct qn_feed *f = NULL;
    int err = feed_of(g, &f);
    return err == QN_OK ? qn_feed_read(f, id, r) : err;
}

int qn_group_feed_position(struct qn_group *g, uint32_t id,
                           struct qn_feed_position *out)
{
    struct qn_feed *f = NULL;
    int err = feed_of(g, &f);
    if (err == QN_OK) {
        *out = qn_feed_position(f, id);
    }
    return err;
}

int qn_group_feed_unsubscribe(struct qn_group *g, uint32_t id)
{
    struct qn_feed *f = NULL;
    int err = feed_of(g, &f);
    if (err == QN_OK) {
        qn_feed_unsubscribe(f, id);
    }
    return err;
}

int qn_group_feed_status(struct qn_group *g, struct qn_feed_status *out)
{
    struct qn_feed *f = NULL;
    int err = feed_of(g, &f);
    if (err == QN_OK) {
        qn_feed_status(f, out);
    }
    return err;
}
