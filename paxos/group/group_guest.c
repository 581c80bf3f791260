/*
 * What a group has to do with its thread.
 *
 * Inside of calls the thread is not cancelled, and a failed assertion is told
 * to the group's hook. Both are given back, for a callback of one group may
 * call another one. What a callback proposes to its own group finds both as
 * they are to be: they are a large part of what a proposal costs.
 *
 * A thread that ends without leaving is seen by the destructor of a key: the
 * members that it was end as if they had failed, and the others are told. Any
 * thread may leave the group then. A thread that ends inside of a callback
 * (pthread_exit; callbacks must not do that) leaves the group in the middle of
 * a turn: its end is marked, and nothing of it is touched any more.
 *
 * The key has no value in a thread that is no member. So nothing of the library
 * is called by a thread that has left, also if its code was unloaded since. It
 * is deleted with the last group of the process: a plugin that is loaded again
 * and again does not use up the keys.
 */
#include <pthread.h>

#include "core/base/err.h"
#include "paxos/group/group_internal.h"

_Thread_local const struct qn_group *qn_group_inside;

void qn_group_call_enter(const struct qn_group *g, struct qn_group_call *c)
{
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &c->cancel);
    c->failed = qn_assert_hook_set(g->o.failed);
    c->outer = qn_group_inside;
    qn_group_inside = g;
}

void qn_group_call_leave(const struct qn_group_call *c)
{
    int cancel;
    qn_group_inside = c->outer;
    (void)qn_assert_hook_set(c->failed);
    (void)pthread_setcancelstate(c->cancel, &cancel);
}

/* ---- the end of a thread ------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t key; /* the first group of the thread, */
static uint64_t groups;   /* ... which is there while this is not 0 */

static void end(struct qn_group *g)
{
    struct qn_group_call c;
    g->listed = false;
    if (!qn_fork_mark_is_own(&g->own)) {
        return; /* its parent's */
    }
    if (g->turning) {
        g->jumped = true;
        g->open = false;
        if (g->member != NULL) {
            qn_member_mark_end(g->member);
            qn_group_ends_tell(g);
        }
        return;
    }
    qn_group_call_begin(g, &c);
    (void)qn_group_fail(g, QN_EABORTED, "its thread has ended");
    qn_group_call_end(&c);
}

static void on_thread_end(void *first)
{
    struct qn_group *g = first;
    while (g != NULL) {
        struct qn_group *next = g->next;
        end(g);
        g = next;
    }
}

int qn_group_threads_init(struct qn_group *g)
{
    (void)pthread_mutex_lock(&lock);
    g->has_key = groups > 0 || pthread_key_create(&key, on_thread_end) == 0;
    groups += g->has_key;
    (void)pthread_mutex_unlock(&lock);
    return g->has_key ? QN_OK : QN_ENOMEM;
}

void qn_group_threads_fini(struct qn_group *g)
{
    if (!g->has_key) {
        return;
    }
    (void)pthread_mutex_lock(&lock);
    groups--;
    if (groups == 0) {
        (void)pthread_key_delete(key);
    }
    (void)pthread_mutex_unlock(&lock);
    g->has_key = false;
}

void qn_group_thread_add(struct qn_group *g)
{
    g->next = pthread_getspecific(key);
    g->listed = pthread_setspecific(key, g) == 0;
}

void qn_group_thread_remove(struct qn_group *g)
{
    struct qn_group *first = pthread_getspecific(key);
    struct qn_group **at = &first;
    if (!g->listed) {
        return; /* its thread has ended, or it has made no turn */
    }
    while (*at != NULL && *at != g) {
        at = &(*at)->next;
    }
    if (*at != NULL) {
        *at = g->next;
        (void)pthread_setspecific(key, first);
    }
    g->listed = false;
}
