#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/place/place_internal.h"
#include "core/place/quota.h"
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

/* ---- memory -------------------------------------------------------------- */

#define MIB ((uint64_t)1 << 20)

static void put(const struct mount *m, const char *group, const char *name,
                const char *content)
{
    char path[192];
    snprintf(path, sizeof path, "%s%s/%s", m->root, group, name);
    if (content == NULL) {
        unlink(path);
        return;
    }
    FILE *f = fopen(path, "w");
    cr_assert_not_null(f);
    fputs(content, f);
    fclose(f);
}

static void begin(struct mount *m)
{
    make(m, (const char *const[3]){NULL, NULL, NULL});
}

static void end(struct mount *m)
{
    static const char *const names[] = {"memory.max", "memory.current",
                                        "memory.stat", "memory.limit_in_bytes",
                                        "memory.usage_in_bytes"};
    for (size_t i = 0; i < 3 * 5; i++) {
        put(m, groups[i / 5], names[i % 5], NULL);
    }
    drop(m);
}

Test(quota, memory_of_version_2_is_what_the_limit_leaves)
{
    struct mount m;
    begin(&m);
    cr_assert_eq(qn_quota_memory_of(m.root, "/a/b", 2), QN_QUOTA_NONE);
    put(&m, "/a/b", "memory.max", "max\n");
    cr_assert_eq(qn_quota_memory_of(m.root, "/a/b", 2), QN_QUOTA_NONE);
    put(&m, "/a/b", "memory.max", "104857600\n");
    cr_assert_eq(qn_quota_memory_of(m.root, "/a/b", 2), 100 * MIB);
    put(&m, "/a/b", "memory.current", "62914560\n");
    cr_assert_eq(qn_quota_memory_of(m.root, "/a/b", 2), 40 * MIB);
    put(&m, "/a/b", "memory.stat",
        "anon 1\nfile 2\ninactive_file 10485760\nactive_file 20971520\n"
        "total_inactive_file 99\n");
    cr_assert_eq(qn_quota_memory_of(m.root, "/a/b", 2), 70 * MIB);
    put(&m, "/a/b", "memory.current", "209715200\n");
    cr_assert_eq(qn_quota_memory_of(m.root, "/a/b", 2), 0, "lowered since");
    end(&m);
}

Test(quota, memory_of_version_1_has_other_names)
{
    struct mount m;
    begin(&m);
    put(&m, "", "memory.limit_in_bytes", "9223372036854771712\n");
    put(&m, "/a", "memory.limit_in_bytes", "104857600\n");
    put(&m, "/a", "memory.usage_in_bytes", "62914560\n");
    put(&m, "/a", "memory.stat",
        "inactive_file 1\nactive_file 2\ntotal_inactive_file 10485760\n"
        "total_active_file 20971520\n");
    cr_assert_eq(qn_quota_memory_of(m.root, "/", 1), QN_QUOTA_NONE);
    cr_assert_eq(qn_quota_memory_of(m.root, "/a", 1), 70 * MIB);
    cr_assert_eq(qn_quota_memory_of(m.root, "/a/b", 1), 70 * MIB, "above");
    cr_assert_eq(qn_quota_memory_of(m.root, "/a", 2), QN_QUOTA_NONE);
    end(&m);
}

Test(quota, memory_of_the_tightest_group_on_the_way_up_counts)
{
    struct mount m;
    begin(&m);
    put(&m, "", "memory.max", "419430400\n");
    put(&m, "/a", "memory.max", "104857600\n");
    put(&m, "/a/b", "memory.max", "209715200\n");
    cr_assert_eq(qn_quota_memory_of(m.root, "/a/b", 2), 100 * MIB);
    cr_assert_eq(qn_quota_memory_of(m.root, "/nowhere", 2), 400 * MIB,
                 "the root of a container's mount");
    cr_assert_eq(qn_quota_memory_of(m.root, "/", 2), 400 * MIB);
    end(&m);
}

Test(quota, memory_of_this_process_can_be_asked)
{
    const uint64_t all =
        (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    cr_assert_gt(qn_quota_memory(), 0);
    cr_assert(qn_quota_machine_memory() > MIB &&
              qn_quota_machine_memory() <= all);
}
