/* Which process lives as a node: locks that the kernel takes back. */
#include "core/place/hold.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/err.h"
#include "core/place/commons.h"
#include "tests/support/test.h"

enum { NODES = 3 };

static struct qn_node_hold hold[3]; /* of this process */

static int make(void)
{
    struct qn_commons *c;
    int fd;
    cr_assert_eq(qn_commons_create(&c, NODES, 0, true, &fd), QN_OK);
    qn_commons_destroy(c);
    return fd;
}

/* A child that holds `node` and stays. */
static pid_t holder(int fd, qn_node_t node)
{
    int said[2];
    char byte;
    cr_assert_eq(pipe(said), 0);
    pid_t pid = fork();
    if (pid == 0) {
        byte = (char)(qn_hold_take(&hold[0], fd, node, 1) == QN_OK);
        (void)!write(said[1], &byte, 1);
        for (;;) {
            pause();
        }
    }
    cr_assert_eq(read(said[0], &byte, 1), 1);
    cr_assert_eq(byte, 1, "it holds it");
    close(said[0]);
    close(said[1]);
    return pid;
}

static void end(pid_t pid)
{
    kill(pid, SIGKILL);
    cr_assert_eq(waitpid(pid, NULL, 0), pid);
}

Test(hold, one_process_per_node_and_it_is_named)
{
    int fd = make();
    pid_t pid = holder(fd, 1);
    pid_t who = -1;
    cr_assert(qn_hold_look(fd, 1, &who));
    cr_assert_eq(who, pid);
    cr_assert_eq(qn_hold_take(&hold[0], fd, 1, 1), QN_EBUSY);
    cr_assert_not(qn_hold_look(fd, 0, &who), "another node");
    cr_assert_eq(qn_hold_take(&hold[0], fd, 2, 1), QN_OK);
    cr_assert_eq(qn_hold_take(&hold[1], fd, 2, 2), QN_OK, "it has it");
    end(pid);
    close(fd);
}

/* Neither a stop nor the end of another process that has the descriptor. */
Test(hold, lasts_as_long_as_its_process)
{
    int fd = make();
    pid_t pid = holder(fd, 1);
    pid_t who;
    kill(pid, SIGSTOP);
    cr_assert_eq(waitpid(pid, NULL, WUNTRACED), pid);
    end(holder(fd, 2));
    cr_assert(qn_hold_look(fd, 1, &who), "only stopped");
    end(pid);
    cr_assert_not(qn_hold_look(fd, 1, &who));
    cr_assert_eq(qn_hold_take(&hold[0], fd, 1, 1), QN_OK);
    close(fd);
}

Test(hold, a_child_does_not_inherit_it)
{
    int fd = make();
    int status;
    cr_assert_eq(qn_hold_take(&hold[0], fd, 0, 1), QN_OK);
    pid_t pid = fork();
    if (pid == 0) {
        _exit(qn_hold_take(&hold[1], fd, 0, 2) == QN_EBUSY ? 0 : 1);
    }
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_assert_eq(status, 0);
    close(fd);
}

Test(hold, what_is_no_file_that_can_be_locked_is_an_error)
{
    pid_t who;
    cr_assert_eq(qn_hold_take(&hold[0], -1, 0, 1), QN_EIO);
    qn_hold_release(&hold[0]); /* of none */
    cr_assert_not(qn_hold_look(-1, 0, &who));
}

/* An id alone says nothing: this process lives, and holds no node. */
Test(hold, a_process_is_known_by_what_it_holds)
{
    int fd = make();
    pid_t pid = holder(fd, 1);
    cr_assert(qn_hold_by(fd, 1, pid));
    cr_assert_not(qn_hold_by(fd, 1, getppid()), "another process");
    cr_assert_not(qn_hold_by(fd, 1, 0), "unknown");
    cr_assert_not(qn_hold_by(fd, 0, pid), "another node");
    end(pid);
    cr_assert_not(qn_hold_by(fd, 1, pid), "it has ended");
    close(fd);
}

/* As another process sees it. */
static bool is_held(int fd, qn_node_t node)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        pid_t who;
        _exit(qn_hold_look(fd, node, &who) ? 1 : 0);
    }
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_assert(WIFEXITED(status));
    return WEXITSTATUS(status) == 1;
}

Test(hold, the_last_of_a_node_in_a_process_gives_it_back)
{
    int fd = make();
    int other = make();
    cr_assert_eq(qn_hold_take(&hold[0], fd, 1, 1), QN_OK);
    cr_assert_eq(qn_hold_take(&hold[1], fd, 1, 2), QN_OK);
    cr_assert_eq(qn_hold_take(&hold[2], other, 1, 1), QN_OK, "another group's");
    qn_hold_release(&hold[0]);
    cr_assert(is_held(fd, 1));
    qn_hold_release(&hold[1]);
    cr_assert_not(is_held(fd, 1));
    cr_assert(is_held(other, 1));
    qn_hold_release(&hold[2]);
    cr_assert_not(is_held(other, 1));
    end(holder(fd, 1));
    cr_assert_eq(qn_hold_take(&hold[0], fd, 1, 1), QN_OK);
    cr_assert(is_held(fd, 1));
    qn_hold_release(&hold[0]);
    close(fd);
    close(other);
}

/* Of one process, that is what names them. */
Test(hold, an_incarnation_is_held_once)
{
    int fd = make();
    int other = make();
    cr_assert_eq(qn_hold_take(&hold[0], fd, 1, 5), QN_OK);
    cr_assert_eq(qn_hold_take(&hold[1], fd, 1, 5), QN_EBUSY);
    cr_assert_eq(qn_hold_take(&hold[1], fd, 1, 4), QN_EBUSY, "an earlier one");
    cr_assert_eq(qn_hold_take(&hold[1], fd, 2, 5), QN_OK, "another node");
    qn_hold_release(&hold[1]);
    cr_assert_eq(qn_hold_take(&hold[1], other, 1, 5), QN_OK, "another group's");
    qn_hold_release(&hold[1]);
    cr_assert_eq(qn_hold_take(&hold[1], fd, 1, 6), QN_OK);
    qn_hold_release(&hold[0]);
    cr_assert_eq(qn_hold_take(&hold[0], fd, 1, 6), QN_EBUSY);
    qn_hold_release(&hold[1]);
    cr_assert_eq(qn_hold_take(&hold[0], fd, 1, 5), QN_OK, "none is held");
    qn_hold_release(&hold[0]);
    close(fd);
    close(other);
}

/* A child finds its parent's in its memory: they do not count there. */
Test(hold, a_child_gives_back_what_its_parent_had)
{
    int fd = make();
    int go[2];
    int status;
    char byte = 0;
    cr_assert_eq(pipe(go), 0);
    cr_assert_eq(qn_hold_take(&hold[0], fd, 0, 1), QN_OK);
    pid_t pid = fork();
    if (pid == 0) {
        bool took = read(go[0], &byte, 1) == 1 &&
                    qn_hold_take(&hold[1], fd, 0, 1) == QN_OK &&
                    qn_hold_is_own(&hold[1]) && !qn_hold_is_own(&hold[0]);
        qn_hold_release(&hold[0]); /* the parent's */
        took = took && is_held(fd, 0);
        qn_hold_release(&hold[1]);
        _exit(took && !is_held(fd, 0) ? 0 : 1);
    }
    qn_hold_release(&hold[0]);
    cr_assert_eq(write(go[1], &byte, 1), 1);
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_assert_eq(status, 0);
    close(go[0]);
    close(go[1]);
    close(fd);
}

/* What the process itself holds counts, though the kernel does not tell it. */
Test(hold, it_is_taken_until_its_process_has_ended)
{
    int fd = make();
    cr_assert_not(qn_hold_taken(fd, 1));
    pid_t pid = holder(fd, 1);
    cr_assert(qn_hold_taken(fd, 1));
    cr_assert_not(qn_hold_taken(fd, 2), "another node");
    end(pid);
    cr_assert_not(qn_hold_taken(fd, 1));
    cr_assert_eq(qn_hold_take(&hold[0], fd, 1, 1), QN_OK);
    cr_assert(qn_hold_taken(fd, 1), "by this one");
    pid = fork();
    if (pid == 0) {
        _exit(qn_hold_taken(fd, 1) ? 0 : 1);
    }
    int status;
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_assert_eq(status, 0, "by the parent");
    qn_hold_release(&hold[0]);
    cr_assert_not(qn_hold_taken(fd, 1));
    cr_assert(qn_hold_taken(-1, 1), "nothing is known");
    close(fd);
}
