/* Areas: memory that all nodes of a group may write. */
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/base/err.h"
#include "core/place/area.h"
#include "tests/support/test.h"

Test(area, fresh_memory_is_zero_and_of_whole_pages)
{
    for (int shared = 0; shared < 2; shared++) {
        struct qn_area a;
        cr_assert_eq(qn_area_create(&a, "quoin-area", 5000, shared != 0),
                     QN_OK);
        cr_assert_eq(a.bytes % (size_t)sysconf(_SC_PAGESIZE), 0);
        cr_assert_geq(a.bytes, 5000);
        const char *byte = a.memory;
        for (size_t i = 0; i < a.bytes; i++) {
            cr_assert_eq(byte[i], 0);
        }
        cr_assert_eq(a.fd >= 0, shared != 0);
        qn_area_destroy(&a);
        cr_assert_null(a.memory);
    }
}

Test(area, what_one_mapping_writes_the_other_reads)
{
    struct qn_area a, b;
    cr_assert_eq(qn_area_create(&a, "quoin-area", 100, true), QN_OK);
    cr_assert_eq(qn_area_map(&b, a.fd, 100), QN_OK);
    memcpy(a.memory, "there", 6);
    cr_assert_str_eq(b.memory, "there");
    memcpy(b.memory, "back", 5);
    cr_assert_str_eq(a.memory, "back");
    qn_area_destroy(&b);
    qn_area_destroy(&a);
}

Test(area, another_size_or_a_file_that_may_shrink_is_refused)
{
    struct qn_area a, b;
    cr_assert_eq(qn_area_create(&a, "quoin-area", 100, true), QN_OK);
    cr_assert_eq(qn_area_map(&b, a.fd, a.bytes + 1), QN_ECORRUPT);
    cr_assert_null(b.memory);
    cr_assert_neq(ftruncate(a.fd, 0), 0, "sealed");
    int fd = memfd_create("open", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    cr_assert_eq(ftruncate(fd, (off_t)a.bytes), 0);
    cr_assert_eq(qn_area_map(&b, fd, a.bytes), QN_EPERM);
    close(fd);
    qn_area_destroy(&a);
}

Test(area, no_bytes_and_too_many_are_refused)
{
    struct qn_area a;
    cr_assert_eq(qn_area_create(&a, "quoin-area", 0, true), QN_EINVAL);
    cr_assert_eq(qn_area_create(&a, "quoin-area", SIZE_MAX, true), QN_EINVAL);
    cr_assert_eq(qn_area_create(&a, "quoin-area", QN_AREA_BYTES_MAX + 1, true),
                 QN_EINVAL);
    cr_assert_eq(a.fd, -1);
    qn_area_destroy(&a);
}

/* And no signal: a program of others may have set the limit. */
Test(area, more_than_a_file_may_have_is_refused)
{
    struct qn_area a;
    struct rlimit was, l;
    cr_assert_eq(getrlimit(RLIMIT_FSIZE, &was), 0);
    l = was;
    l.rlim_cur = (rlim_t)sysconf(_SC_PAGESIZE);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &l), 0);
    const int one = qn_area_create(&a, "quoin-area", 100, true);
    qn_area_destroy(&a);
    const int two = qn_area_create(&a, "quoin-area", l.rlim_cur + 1, true);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &was), 0);
    cr_expect_eq(one, QN_OK);
    cr_expect_eq(two, QN_ENOMEM);
}
