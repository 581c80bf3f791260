#include "kvs/resources/resource_check.h"

#include <sys/resource.h>
#include <unistd.h>

#include "core/base/err.h"
#include "core/place/commons.h"
#include "core/place/outbox.h"
#include "tests/support/test.h"

#define LANE ((size_t)65536)

static const struct qn_transport_bytes channels = {.lane = LANE};
static char why[QN_CONFIG_WHY_MAX];

static struct qn_config config(uint32_t replicas)
{
    struct qn_config c;
    qn_config_init(&c);
    c.replicas = replicas;
    return c;
}

Test(resource_check, are_read_from_the_kernel)
{
    struct qn_resource_limits l;
    qn_resource_check_read(&l);
    cr_assert_gt(l.memory, 0);
    cr_assert_gt(l.files, 0);
}

Test(resource_check, few_replicas_get_long_lanes_and_many_short_ones)
{
    cr_assert_eq(qn_resource_check_cells(1), 4096);
    cr_assert_eq(qn_resource_check_cells(3), 4096);
    cr_assert_eq(qn_resource_check_cells(8), 4096); /* 28 MiB */
    cr_assert_eq(qn_resource_check_cells(9), 2048);
    cr_assert_eq(qn_resource_check_cells(16), 1024);
    cr_assert_eq(qn_resource_check_cells(64), 1024);
}

Test(resource_check, memory_counts_all_that_is_allocated_at_start)
{
    const struct qn_outbox_opts o = {.nodes = 3, .lane_bytes = LANE};
    const uint64_t need =
        3 * (8u << 20) + 3 * qn_outbox_bytes_fixed(&o) + qn_commons_bytes(3, 0);
    cr_assert_gt(qn_outbox_bytes_fixed(&o), 2 * 2 * LANE);
    struct qn_config c = config(3);
    struct qn_resource_limits l = {.memory = need, .files = 1 << 20};
    cr_assert_eq(qn_resource_check_fit(&l, &c, &channels, why, sizeof why),
                 QN_OK);
    l.memory = need - 1;
    cr_assert_eq(qn_resource_check_fit(&l, &c, &channels, why, sizeof why),
                 QN_ENOMEM);
    cr_assert(strstr(why, "use fewer --replicas or --cells") != NULL, "%s",
              why);
    l.memory = 0;
    cr_assert_eq(qn_resource_check_fit(&l, &c, &channels, why, sizeof why),
                 QN_OK, "unknown is no reason to refuse");
}

Test(resource_check, maxclients_is_lowered_to_the_open_files)
{
    const uint32_t reserved = 32 + 6 * 3;
    struct qn_config c = config(3);
    struct qn_resource_limits l = {.memory = 0, .files = 10000 + reserved};
    cr_assert_eq(qn_resource_check_fit(&l, &c, &channels, why, sizeof why),
                 QN_OK);
    cr_assert_eq(c.maxclients, 10000);
    l.files = 10000 + reserved - 1;
    cr_assert_eq(qn_resource_check_fit(&l, &c, &channels, why, sizeof why),
                 QN_OK);
    cr_assert_eq(c.maxclients, 9999);
    l.files = reserved + 1;
    cr_assert_eq(qn_resource_check_fit(&l, &c, &channels, why, sizeof why),
                 QN_OK);
    cr_assert_eq(c.maxclients, 1);
    l.files = reserved;
    cr_assert_eq(qn_resource_check_fit(&l, &c, &channels, why, sizeof why),
                 QN_EMFILE);
}

Test(resource_check, the_soft_limit_of_files_is_raised_and_never_lowered)
{
    struct rlimit r;
    struct qn_config c = config(3);
    getrlimit(RLIMIT_NOFILE, &r);
    r.rlim_cur = 100;
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &r), 0);
    c.maxclients = 200;
    qn_resource_check_raise_files(&c);
    getrlimit(RLIMIT_NOFILE, &r);
    cr_assert_eq(r.rlim_cur, 200 + 32 + 6 * 3);
    c.maxclients = 1;
    qn_resource_check_raise_files(&c);
    getrlimit(RLIMIT_NOFILE, &r);
    cr_assert_eq(r.rlim_cur, 200 + 32 + 6 * 3);
}
