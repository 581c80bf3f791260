#include "kvs/topology.h"

#include <string.h>

#include "core/base/err.h"
#include "core/machine/topology.h"
#include "tests/support/test.h"

static struct qn_config config_of(uint32_t replicas, const char *topology)
{
    struct qn_config c = {.replicas = replicas};
    strcpy(c.topology, topology);
    return c;
}

static struct qn_machine *synthetic(const char *text)
{
    struct qn_machine *m = NULL;
    cr_assert_eq(qn_machine_synthetic(&m, text, NULL), QN_OK);
    return m;
}

static struct qn_machine *costs_on(const struct qn_machine *m, uint32_t n,
                                   const struct qn_place *place)
{
    struct qn_config c = config_of(n, "auto");
    struct qn_machine *costs = NULL;
    char why[QN_CONFIG_WHY_MAX];
    cr_assert_eq(qn_topology_costs_on(&costs, m, &c, place, why, sizeof why),
                 QN_OK);
    cr_assert_eq(qn_machine_check(costs), QN_OK);
    return costs;
}

/* Two sockets of two cores: 0 1 | 2 3. */
Test(server_topology, who_shares_more_is_nearer)
{
    struct qn_machine *m = synthetic("package:2 numa:1 l3:1 core:2 pu:1");
    const struct qn_place place[] = {{3, 1}, {0, 0}, {2, 1}, {1, 0}};
    struct qn_machine *c = costs_on(m, 4, place);
    cr_assert_lt(qn_send_cost(c, 0, 2), qn_send_cost(c, 0, 1));
    cr_assert_lt(qn_receive_cost(c, 1, 3), qn_receive_cost(c, 1, 2));
    cr_assert_eq(qn_send_cost(c, 0, 1), qn_send_cost(c, 2, 3));
    qn_machine_destroy(c);
    qn_machine_destroy(m);
}

Test(server_topology, measured_costs_are_those_of_the_cores)
{
    struct qn_machine *m = NULL;
    const struct qn_place place[] = {{2, 0}, {0, 0}, {1, 0}};
    cr_assert_eq(qn_machine_create(&m, 3), QN_OK);
    for (uint32_t i = 0; i < 9; i++) {
        m->send[i] = i % 4 == 0 ? 0 : 10 + i;
        m->receive[i] = i % 4 == 0 ? 0 : 100 + i;
    }
    struct qn_machine *c = costs_on(m, 3, place);
    cr_assert_eq(qn_send_cost(c, 0, 2), qn_send_cost(m, 2, 1));
    cr_assert_eq(qn_receive_cost(c, 1, 0), qn_receive_cost(m, 0, 2));
    qn_machine_destroy(c);
    qn_machine_destroy(m);
}

/* Bound to NUMA nodes, two to one: each is a core of its own there. */
Test(server_topology, replicas_of_a_node_sit_on_different_cores)
{
    struct qn_machine *m = synthetic("numa:2 l3:1 core:2 pu:1");
    const struct qn_place place[] = {{-1, 0}, {-1, 1}, {-1, 0}, {-1, 1}};
    struct qn_machine *c = costs_on(m, 4, place);
    cr_assert_lt(qn_send_cost(c, 0, 2), qn_send_cost(c, 0, 1));
    qn_machine_destroy(c);
    qn_machine_destroy(m);
}

static void refused(const struct qn_machine *m, const struct qn_place *place,
                    uint32_t n, const char *says)
{
    struct qn_config c = config_of(n, "m.json");
    struct qn_machine *costs = NULL;
    char why[QN_CONFIG_WHY_MAX] = "";
    cr_assert_eq(qn_topology_costs_on(&costs, m, &c, place, why, sizeof why),
                 QN_EINVAL);
    cr_assert(strstr(why, says) != NULL, "%s", why);
    cr_assert(costs == NULL);
}

Test(server_topology, a_machine_without_the_cores_is_refused)
{
    struct qn_machine *m = synthetic("numa:1 core:3 pu:1");
    const struct qn_place beyond[] = {{0, 0}, {1, 0}, {7, 0}};
    const struct qn_place full[] = {{-1, 0}, {-1, 0}, {-1, 0}, {-1, 0}};
    refused(m, beyond, 3, "core 7");
    refused(m, full, 4, "NUMA node 0");
    qn_machine_destroy(m);
}

Test(server_topology, without_a_core_each_nothing_is_planned)
{
    const struct qn_place place[] = {{0, 0}, {1, 0}, {0, 0}};
    struct qn_config c = config_of(3, "auto");
    struct qn_machine *costs = NULL;
    char why[QN_CONFIG_WHY_MAX] = "";
    cr_assert_eq(qn_topology_costs(&costs, &c, place, true, why, sizeof why),
                 QN_OK);
    cr_assert(costs == NULL);
    cr_assert_str_eq(qn_topology_name(&c), "sequential");
    c = config_of(3, "binary");
    cr_assert_eq(qn_topology_costs(&costs, &c, place, false, why, sizeof why),
                 QN_OK);
    cr_assert(costs == NULL);
    cr_assert_str_eq(qn_topology_name(&c), "binary");
    c = config_of(3, "m.json");
    cr_assert_eq(qn_topology_costs(&costs, &c, place, true, why, sizeof why),
                 QN_EINVAL);
    cr_assert(strstr(why, "use auto") != NULL, "%s", why);
}

Test(server_topology, a_file_that_is_not_there_is_named)
{
    const struct qn_place place[] = {{0, 0}, {1, 0}, {2, 0}};
    struct qn_config c = config_of(3, "/nowhere/m.json");
    struct qn_machine *costs = NULL;
    char why[QN_CONFIG_WHY_MAX] = "";
    cr_assert_neq(qn_topology_costs(&costs, &c, place, false, why, sizeof why),
                  QN_OK);
    cr_assert(strstr(why, "/nowhere/m.json") != NULL, "%s", why);
}
