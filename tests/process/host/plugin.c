#include "tests/process/host/plugin.h"

#include <poll.h>
#include <semaphore.h>
#include <stdint.h>

#include "core/base/err.h"
#include "paxos/group/group_thread.h"
#include "transports/ump/ump.h"

static struct qn_group *group;
static struct qn_group_thread *thread;
static sem_t applied;

static int on_apply(void *ctx, const struct qn_group_command *c,
                    uint64_t *result)
{
    (void)ctx;
    (void)c;
    *result = 1;
    return QN_OK;
}

static void on_done(void *ctx, int err, uint64_t result)
{
    *(int *)ctx = err == QN_OK && result == 1 ? QN_OK : QN_EIO;
    sem_post(&applied);
}

static struct qn_group_opts options(const char *name)
{
    return (struct qn_group_opts){.name = name,
                                  .application = "plugin",
                                  .transport = &qn_ump,
                                  .capacity = 1,
                                  .service = {.apply = on_apply}};
}

static int join(const char *name)
{
    const struct qn_group_opts o = options(name);
    int err = qn_group_join(&group, &o), end = 1;
    sem_init(&applied, 0, 0);
    while (err >= 0 && end == 1) {
        struct pollfd p = {.fd = qn_group_fd(group), .events = POLLIN};
        (void)poll(&p, 1, err == QN_GROUP_AGAIN ? 0 : -1);
        err = qn_group_turn(group);
        (void)qn_group_propose(group, "x", 1, QN_GROUP_FOREVER, on_done, &end);
    }
    return err < 0 ? err : end;
}

static int join_in_thread(const char *name)
{
    const struct qn_group_opts o = options(name);
    const struct qn_group_thread_opts t = {.group = &o};
    int end = 1;
    int err = qn_group_thread_start(&thread, &t);
    sem_init(&applied, 0, 0);
    if (err == QN_OK) {
        err = qn_group_thread_propose(thread, "x", 1, QN_GROUP_FOREVER, on_done,
                                      &end);
    }
    while (err == QN_OK && sem_wait(&applied) != 0) {
    }
    return err < 0 ? err : end;
}

static int turn(void)
{
    return qn_group_turn(group);
}

static void leave(void)
{
    qn_group_leave(group);
    qn_group_thread_stop(thread);
    group = NULL;
    thread = NULL;
}

extern const struct plugin plugin;
const struct plugin plugin = {join, join_in_thread, turn, leave};
