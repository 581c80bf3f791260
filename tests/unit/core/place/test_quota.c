#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/place/place_internal.h"
#include "tests/support/test.h"

/* A mount of three groups, "/", "/a" and "/a/b", each with its cpu.max (NULL:
 * no such file). */
struct mount {
    char root[64];
};

static const char *const groups[] = {"", "/a", "/a/b"};

static void make(struct mount *m, const char *const content[3])
{
    snprintf(m->root, sizeof m->root, "/tmp/qn-quota-XXXXXX");
    cr_assert_not_null(mkdtemp(m->root));
    for (int i = 0; i < 3; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s%s", m->root, groups[i]);
        mkdir(path, 0700);
        if (content[i] != NULL) {
            snprintf(path, sizeof path, "%s%s/cpu.max", m->root, groups[i]);
            FILE *f = fopen(path, "w");
            cr_assert_not_null(f);
            fputs(content[i], f);
            fclose(f);
        }
    }
}

static void drop(const struct mount *m)
{
    for (int i = 2; i >= 0; i--) {
        char path[128];
        snprintf(path, sizeof path, "%s%s/cpu.max", m->root, groups[i]);
        unlink(path);
        snprintf(path, sizeof path, "%s%s", m->root, groups[i]);
        rmdir(path);
    }
}

static uint32_t quota(const char *path, const char *root, const char *a,
                      const char *b)
{
    struct mount m;
    make(&m, (const char *const[3]){root, a, b});
    uint32_t milli = qn_quota_of(m.root, path);
    drop(&m);
    return milli;
}

Test(quota, none_without_files_or_with_max)
{
    cr_assert_eq(quota("/a/b", NULL, NULL, NULL), 0);
    cr_assert_eq(quota("/a/b", NULL, "max 100000\n", "max 100000\n"), 0);
    cr_assert_eq(qn_quota_of("/nowhere", "/"), 0);
}

Test(quota, is_in_thousandths_of_a_core)
{
    cr_assert_eq(quota("/a", NULL, "150000 100000\n", NULL), 1500);
    cr_assert_eq(quota("/a", NULL, "10000 100000\n", NULL), 100);
    cr_assert_eq(quota("/a", NULL, "1 1000000\n", NULL), 1, "never 0");
}

Test(quota, the_smallest_on_the_way_up_counts)
{
    cr_assert_eq(quota("/a/b", NULL, "100000 100000", "400000 100000"), 1000);
    cr_assert_eq(quota("/a/b", NULL, "400000 100000", "100000 100000"), 1000);
    cr_assert_eq(quota("/a", NULL, "400000 100000", "100000 100000"), 4000);
}

Test(quota, a_containers_root_has_one)
{
    cr_assert_eq(quota("/", "200000 100000\n", NULL, NULL), 2000);
}

Test(quota, nonsense_is_no_quota)
{
    cr_assert_eq(quota("/a", NULL, "", NULL), 0);
    cr_assert_eq(quota("/a", NULL, "100000\n", NULL), 0);
    cr_assert_eq(quota("/a", NULL, "100000 0\n", NULL), 0);
    cr_assert_eq(quota("/a", NULL, "18446744073709551615 1\n", NULL), 0);
}
