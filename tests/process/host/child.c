#include "tests/process/host/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/atomic.h"
#include "tests/process/host/board.h"
#include "tests/process/host/draw.h"
#include "tests/process/host/guest.h"
#include "tests/process/host/say.h"
#include "transports/registry.h"

static int life;
static const char *life_path;
static bool alone;    /* no other thread calls a group */
static qn_a64 forked; /* mask of places */

void child_begin(const char *path, bool one_thread)
{
    life = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    QN_ASSERT(life >= 0);
    life_path = path;
    alone = one_thread;
}

/* What the members share is not mapped; but for what another thread was just
 * mapping. */
static void see_no_mapping(void)
{
    char line[512];
    FILE *f = fopen("/proc/self/maps", "re");
    QN_ASSERT(f != NULL);
    while (fgets(line, sizeof line, f) != NULL) {
        if (strstr(line, "memfd:quoin") != NULL) {
            say_wrong(line, 0);
        }
    }
    fclose(f);
}

/* ---- a group of its own -------------------------------------------------- */

static int count;

static int on_apply(void *ctx, const struct qn_group_command *c,
                    uint64_t *result)
{
    (void)ctx;
    (void)c;
    *result = 7;
    return 0;
}

static void on_done(void *ctx, int err, uint64_t result)
{
    (void)ctx;
    count += err == 0 && result == 7;
}

static void embed(void)
{
    char name[256];
    struct qn_group *g;
    const struct qn_group_opts o = {.name = name,
                                    .application = "child",
                                    .transport = qn_transport_find("ump"),
                                    .capacity = 1,
                                    .service = {.apply = on_apply}};
    snprintf(name, sizeof name, "%s-%d", life_path, (int)getpid());
    int err = qn_group_join(&g, &o);
    bool proposed = false;
    while (err >= 0 && count == 0) {
        struct pollfd p[2] = {{.fd = qn_group_fd(g), .events = POLLIN},
                              {.fd = life}};
        (void)poll(p, 2, err == QN_GROUP_AGAIN ? 0 : -1);
        if (p[1].revents != 0) {
            _exit(0); /* the run is over */
        }
        err = qn_group_turn(g);
        proposed = proposed || qn_group_propose(g, "x", 1, QN_GROUP_FOREVER,
                                                on_done, NULL) == 0;
    }
    if (err < 0) {
        say_wrong("a group of a child", err);
    }
    qn_group_leave(g);
    unlink(name);
}

/* ---- the child ----------------------------------------------------------- */

static void be_child(enum child_where where, bool stays)
{
    close(STDIN_FILENO);
    close(STDOUT_FILENO); /* the end of the host is seen */
    if (guests_in_child() != 0) {
        say_wrong("a call in a child", (int)where);
    }
    if (alone && where != CHILD_OTHER_THREAD) {
        see_no_mapping();
    }
    if (where == CHILD_EMBEDS) {
        embed();
    }
    board_child(where);
    struct pollfd over = {.fd = life};
    while (stays && (poll(&over, 1, -1) < 0 || over.revents == 0)) {
    }
    _exit(0);
}

void child_maybe(enum child_where where)
{
    const uint64_t bit = UINT64_C(1) << where;
    const bool again = draw_one_of(2000);
    if (where == CHILD_EMBEDS && !alone) {
        return;
    }
    if ((qn_fetch_or(&forked, bit, QN_SEQ_CST) & bit) != 0 && !again) {
        return;
    }
    const bool stays = draw_one_of(2);
    pid_t pid = fork();
    QN_ASSERT(pid >= 0);
    if (pid == 0) {
        be_child(where, stays);
    }
}
