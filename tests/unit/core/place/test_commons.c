#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/err.h"
#include "core/place/outbox.h"
#include "tests/support/test.h"

Test(commons, is_zero_and_refuses_bad_sizes_of_groups)
{
    for (int shared = 0; shared < 2; shared++) {
        struct qn_commons *c = NULL;
        int fd = -2;
        cr_assert_eq(qn_commons_create(&c, 0, shared, &fd), QN_EINVAL);
        cr_assert_eq(qn_commons_create(&c, QN_NODES_MAX + 1, shared, &fd),
                     QN_EINVAL);
        cr_assert(c == NULL && fd == -2, "untouched on failure");
        cr_assert_eq(qn_commons_create(&c, QN_NODES_MAX, shared, &fd), QN_OK);
        cr_assert_eq(fd >= 0, shared);
        cr_assert_eq(qn_load(&c->read_index, QN_SEQ_CST), 0);
        cr_assert_eq(qn_load(&c->node[63].life, QN_SEQ_CST), 0);
        qn_commons_destroy(c);
        if (fd >= 0) {
            close(fd);
        }
    }
}

Test(commons, all_who_map_it_write_it)
{
    struct qn_commons *c;
    int fd;
    cr_assert_eq(qn_commons_create(&c, 3, true, &fd), QN_OK);
    pid_t pid = fork();
    if (pid == 0) {
        struct qn_commons *mine;
        if (qn_commons_map(&mine, fd, 3) != QN_OK) {
            _exit(1);
        }
        qn_fetch_max(&mine->read_index, 9);
        _exit(0);
    }
    int status;
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_assert_eq(status, 0);
    cr_assert_eq(qn_load(&c->read_index, QN_SEQ_CST), 9);
    qn_commons_destroy(c);
    close(fd);
}

Test(commons, keeps_its_size_and_its_pages)
{
    struct qn_commons *c;
    int fd;
    struct stat st;
    cr_assert_eq(qn_commons_create(&c, 3, true, &fd), QN_OK);
    cr_assert_eq(fstat(fd, &st), 0);
    cr_assert_geq(st.st_blocks * 512, st.st_size);
    cr_assert_neq(ftruncate(fd, 0), 0);
    cr_assert_neq(ftruncate(fd, st.st_size * 2), 0);
    qn_commons_destroy(c);
    close(fd);
}

Test(commons, each_damaged_field_is_found)
{
    struct qn_commons *c;
    struct qn_commons *seen = NULL;
    int fd;
    cr_assert_eq(qn_commons_create(&c, 3, true, &fd), QN_OK);
    cr_assert_eq(qn_commons_map(&seen, fd, 4), QN_ECORRUPT);
    for (size_t at = 0; at < 16; at++) {
        ((uint8_t *)c)[at] ^= 0x55;
        cr_expect_eq(qn_commons_map(&seen, fd, 3), QN_ECORRUPT, "byte %zu", at);
        ((uint8_t *)c)[at] ^= 0x55;
    }
    cr_assert_eq(qn_commons_map(&seen, fd, 3), QN_OK);
    qn_commons_destroy(seen);
    qn_commons_destroy(c);
    close(fd);
}

Test(commons, without_seals_or_of_another_size_is_refused)
{
    struct qn_commons *seen = NULL;
    int fd = memfd_create("open", MFD_ALLOW_SEALING);
    cr_assert_eq(ftruncate(fd, 4096), 0);
    cr_assert_eq(qn_commons_map(&seen, fd, 3), QN_EPERM);
    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    cr_assert_eq(qn_commons_map(&seen, fd, 3), QN_ECORRUPT);
    close(fd);
}

Test(commons, destroying_nothing_is_fine)
{
    qn_commons_destroy(NULL);
}
