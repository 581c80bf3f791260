#include "paxos/group/fork_mark.h"

#include <sys/wait.h>
#include <unistd.h>

#include "core/base/err.h"
#include "tests/support/test.h"

/* As the parent sees it, then each generation of children. */
Test(fork_mark, a_child_and_its_child_are_not_the_parent)
{
    struct qn_fork_mark m = {NULL};
    int status;
    cr_assert_eq(qn_fork_mark_make(&m), QN_OK);
    cr_assert(qn_fork_mark_is_own(&m));
    pid_t pid = fork();
    if (pid == 0) {
        bool own = qn_fork_mark_is_own(&m);
        pid_t next = fork();
        if (next == 0) {
            _exit(qn_fork_mark_is_own(&m));
        }
        waitpid(next, &status, 0);
        _exit(own || !WIFEXITED(status) || WEXITSTATUS(status) != 0);
    }
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    cr_assert(qn_fork_mark_is_own(&m), "and the parent stays it");
    qn_fork_mark_drop(&m);
    qn_fork_mark_drop(&m);
}
