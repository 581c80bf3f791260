/* The run-time folder: whose it must be, names, locks. */
#include "kvs/config/rundir.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/err.h"
#include "tests/support/test.h"

static struct qn_config c;
static char dir[64];

static void setup(void)
{
    char home[] = "/tmp/qn-rundir-XXXXXX";
    cr_assert_not_null(mkdtemp(home));
    snprintf(dir, sizeof dir, "%s/q", home);
    qn_config_init(&c);
    snprintf(c.run_dir, sizeof c.run_dir, "%s", dir);
}

static void teardown(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %.60s", dir);
    *strrchr(command, '/') = '\0';
    cr_assert_eq(system(command), 0);
}

Test(rundir, is_made_for_this_user_alone, .init = setup, .fini = teardown)
{
    struct stat st;
    char path[QN_RUNDIR_PATH_MAX];
    cr_assert_eq(qn_rundir_path(&c, "127.0.0.1 7379", "r1", path), QN_OK);
    cr_assert_eq(lstat(dir, &st), 0);
    cr_assert_eq(st.st_mode & 0777, 0700);
    cr_assert_eq(strncmp(path, dir, strlen(dir)), 0);
    cr_assert_not_null(strstr(path, "/127.0.0.1-7379-"));
    cr_assert_str_eq(path + strlen(path) - 3, ".r1");
}

/* Whoever may write there could take a name first. */
Test(rundir, of_others_is_refused, .init = setup, .fini = teardown)
{
    static const mode_t modes[] = {0770, 0707, 0777};
    char path[QN_RUNDIR_PATH_MAX];
    for (size_t i = 0; i < 3; i++) {
        cr_assert_eq(mkdir(dir, 0700), 0);
        cr_assert_eq(chmod(dir, modes[i]), 0);
        cr_expect_eq(qn_rundir_path(&c, "a", "s", path), QN_EPERM, "%o",
                     (unsigned)modes[i]);
        rmdir(dir);
    }
    cr_assert_eq(symlink("/tmp", dir), 0);
    cr_expect_eq(qn_rundir_path(&c, "a", "s", path), QN_EPERM, "a link");
    unlink(dir);
    if (geteuid() == 0) {
        cr_assert_eq(mkdir(dir, 0700), 0);
        cr_assert_eq(chown(dir, 65534, 65534), 0);
        cr_expect_eq(qn_rundir_path(&c, "a", "s", path), QN_EPERM,
                     "owned by another user");
    }
}

Test(rundir, what_cannot_be_made_or_is_too_long_is_an_error)
{
    char path[QN_RUNDIR_PATH_MAX];
    qn_config_init(&c);
    snprintf(c.run_dir, sizeof c.run_dir, "/nowhere/q");
    cr_assert_eq(qn_rundir_path(&c, "a", "s", path), QN_ENOENT);
    snprintf(c.run_dir, sizeof c.run_dir, "/%090d/q", 0);
    cr_assert_eq(qn_rundir_path(&c, "a", "s", path), QN_ENOENT);
    snprintf(c.run_dir, sizeof c.run_dir, "/%0104d", 0);
    cr_assert_eq(qn_rundir_path(&c, "a", "s", path), QN_EMSGSIZE);
}

/* Names that begin alike, and those of which nothing can be shown. */
Test(rundir, names_do_not_meet, .init = setup, .fini = teardown)
{
    static const char *const names[] = {"127.0.0.1 7379",
                                        "127.0.0.1-7379",
                                        "unix 1:2 aaaaaaaaaaaaaaaaaaaaaaaaab",
                                        "unix 1:2 aaaaaaaaaaaaaaaaaaaaaaaaac",
                                        "../../x",
                                        ""};
    char path[6][QN_RUNDIR_PATH_MAX];
    for (int i = 0; i < 6; i++) {
        cr_assert_eq(qn_rundir_path(&c, names[i], "r63", path[i]), QN_OK);
        cr_assert_null(strchr(path[i] + strlen(dir) + 1, '/'));
        for (int k = 0; k < i; k++) {
            cr_assert(strcmp(path[i], path[k]) != 0);
        }
    }
}

/* Also by whom it was given to; and not longer. */
Test(rundir, a_lock_lasts_as_long_as_anybody_holds_it, .init = setup,
     .fini = teardown)
{
    char path[QN_RUNDIR_PATH_MAX];
    int go[2];
    cr_assert_eq(qn_rundir_path(&c, "a", "server", path), QN_OK);
    cr_assert_eq(pipe(go), 0);
    int fd = qn_rundir_lock(path);
    cr_assert_geq(fd, 0);
    cr_assert_eq(qn_rundir_lock(path), QN_EADDRINUSE);
    pid_t pid = fork();
    if (pid == 0) {
        char byte;
        close(go[1]);
        _exit(read(go[0], &byte, 1) == 0 ? 0 : 1);
    }
    close(fd);
    cr_assert_eq(qn_rundir_lock(path), QN_EADDRINUSE, "the child has it");
    close(go[1]);
    cr_assert_eq(waitpid(pid, NULL, 0), pid);
    fd = qn_rundir_lock(path);
    cr_assert_geq(fd, 0);
    close(fd);
}
