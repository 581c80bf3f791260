#include "kvs/config/topology.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/err.h"
#include "core/discover/topology.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"

static struct qn_config config_of(uint32_t replicas, const char *topology)
{
    struct qn_config c = {.replicas = replicas};
    strcpy(c.topology, topology);
    strcpy(c.machine, "auto");
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

/* What `quoind --topology TEXT` makes of it, on four cores, pinned. */
struct made {
    struct qn_topology t;
    struct qn_place place[4];
    char why[QN_CONFIG_WHY_MAX];
    int err;
};

static struct made make_with(const char *text, const char *machine,
                             uint32_t replicas, bool shared)
{
    struct made x = {.why = ""};
    static struct qn_config c; /* its text is kept */
    static struct qn_places places;
    c = config_of(replicas, text);
    strcpy(c.machine, machine);
    places.count = 4;
    for (uint32_t i = 0; i < 4; i++) {
        places.place[i] = (struct qn_place){(int)i, 0};
        x.place[i] = places.place[i];
    }
    const struct qn_topology_opts o = {&c, &places, x.place, shared};
    x.err = qn_topology_make(&x.t, &o, x.why, sizeof x.why);
    return x;
}

static struct made make_on(const char *text, uint32_t replicas, bool shared)
{
    return make_with(text, "auto", replicas, shared);
}

static const char *temporary(const char *text)
{
    static char path[] = "/tmp/quoin-topology-XXXXXX";
    memcpy(path + sizeof path - 7, "XXXXXX", 6);
    int fd = mkstemp(path);
    cr_assert(fd >= 0);
    cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    return path;
}

static struct made make_of_file(const char *text, uint32_t replicas)
{
    const char *path = temporary(text);
    struct made x = make_on(path, replicas, false);
    unlink(path);
    return x;
}

Test(server_topology, without_a_core_each_nothing_is_planned)
{
    struct made x = make_on("auto", 3, true);
    cr_assert_eq(x.err, QN_OK);
    cr_assert(x.t.costs == NULL && !x.t.made);
    cr_assert_str_eq(x.t.name, "sequential");
    x = make_on("m.json", 3, true);
    cr_assert_eq(x.err, QN_EINVAL);
    cr_assert(strstr(x.why, "use auto") != NULL, "%s", x.why);
    x = make_on("mst", 3, true);
    cr_assert_eq(x.err, QN_EINVAL);
    cr_assert(strstr(x.why, "use auto") != NULL, "%s", x.why);
    cr_assert_str_eq(x.t.name, "sequential"); /* what an adopted group gets */
}

Test(server_topology, a_rule_needs_no_costs)
{
    static const char *const rule[] = {"sequential", "binary", "fibonacci",
                                       "tree:k=1", "tree:k=64"};
    for (size_t i = 0; i < sizeof rule / sizeof rule[0]; i++) {
        struct made x = make_on(rule[i], 3, i % 2 == 0);
        cr_assert_eq(x.err, QN_OK, "%s", x.why);
        cr_assert(x.t.costs == NULL && !x.t.made);
        cr_assert_str_eq(x.t.name, rule[i]);
    }
}

Test(server_topology, names_are_known_and_paths_are_not)
{
    cr_assert(qn_topology_known("auto"));
    cr_assert(qn_topology_known("tree:k=3"));
    cr_assert(qn_topology_known("adaptive"));
    cr_assert(!qn_topology_known("tree:k=N"));
    cr_assert(!qn_topology_known("tree:k=0"));
    cr_assert(!qn_topology_known("tree:k=2,"));
    cr_assert(qn_topology_known("ring:k=1"));
    cr_assert(qn_topology_known("ring:k=8"));
    cr_assert(!qn_topology_known("ring:k=9"));
    cr_assert(!qn_topology_known("ring:k=0"));
    cr_assert(!qn_topology_known("ring:k=N"));
    cr_assert(!qn_topology_is_machine("ring:k=2"));
    cr_assert(!qn_topology_known("bad"));
}

Test(server_topology, vacant_seats_go_with_rules_only)
{
    static const char *const grow[] = {"auto", "sequential", "tree:k=2"};
    static const char *const stay[] = {"adaptive", "ring:k=2", "machine.txt"};
    for (size_t i = 0; i < QN_ARRAY_COUNT(grow); i++) {
        const struct qn_config c = config_of(3, grow[i]);
        cr_expect(qn_topology_grows(&c), "%s", grow[i]);
    }
    for (size_t i = 0; i < QN_ARRAY_COUNT(stay); i++) {
        const struct qn_config c = config_of(3, stay[i]);
        cr_expect_not(qn_topology_grows(&c), "%s", stay[i]);
    }
    struct qn_config c = config_of(3, "auto");
    strcpy(c.machine, "costs.txt"); /* it may choose a ring */
    cr_expect_not(qn_topology_grows(&c));
}

/* Whatever the rule, replicas sit so that parents come first, all on cores of
 * their own, and the first leader keeps its place. */
Test(server_topology, a_tree_made_once_is_in_the_order_of_the_replicas)
{
    static const char *const names[] = {"adaptive", "cluster", "mst", "mst2"};
    struct qn_machine *m = synthetic("package:2 numa:1 l3:2 core:2 pu:1");
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
        struct qn_place place[8];
        struct qn_topology t = {.name = ""};
        uint32_t seen = 0, crossings = 0;
        for (int i = 0; i < 8; i++) { /* dealt round robin over the sockets */
            place[i] = (struct qn_place){i / 2 + 4 * (i % 2), i % 2};
        }
        struct qn_machine *c = costs_on(m, 8, place);
        cr_assert_eq(qn_topology_fix(&t, names[k], c, place), QN_OK);
        qn_machine_destroy(c);
        cr_assert(t.made);
        cr_assert_eq(qn_tree_check(&t.plan), QN_OK);
        cr_assert_eq(t.plan.root, 0);
        cr_assert_eq(place[0].cpu, 0);
        for (uint32_t i = 0; i < 8; i++) {
            cr_assert(i == 0 || t.plan.parent[i] < i, "%s", names[k]);
            seen |= 1u << place[i].cpu;
            crossings +=
                place[i].numa_node != place[t.plan.parent[i]].numa_node;
        }
        cr_assert_eq(seen, 255u);
        if (k == 1 || k == 2) { /* cluster, mst: from one socket once */
            cr_assert_eq(crossings, 1, "%s", names[k]);
        }
    }
    qn_machine_destroy(m);
}

/* 3 -> 1, 0; 1 -> 2: replicas 0 to 3 are cores 3, 1, 0, 2. */
static const char tree_csv[] = "# root=3\nparent,child,order\n3,0,1\n1,2,0\n"
                               "3,1,0\n";

static void is_that_tree(const struct made *x)
{
    cr_assert_eq(x->err, QN_OK, "%s", x->why);
    cr_assert(x->t.made && x->t.costs == NULL);
    cr_assert_eq(x->t.plan.n, 4);
    cr_assert_eq(x->t.plan.root, 0);
    cr_assert_eq(x->t.plan.parent[1], 0);
    cr_assert_eq(x->t.plan.parent[2], 0);
    cr_assert_eq(x->t.plan.parent[3], 1);
    static const int cpu[] = {3, 1, 0, 2};
    for (uint32_t i = 0; i < 4; i++) {
        cr_assert_eq(x->place[i].cpu, cpu[i], "replica %u", i);
    }
}

Test(server_topology, a_tree_from_a_file_says_who_sits_where)
{
    struct made x = make_of_file(tree_csv, 4);
    is_that_tree(&x);
    x = make_of_file(
        "{\"format\": \"quoin-tree\", \"version\": 1, \"root\": 3, \"edges\": ["
        "{\"parent\": 3, \"child\": 0, \"order\": 1},"
        "{\"parent\": 1, \"child\": 2, \"order\": 0},"
        "{\"parent\": 3, \"child\": 1, \"order\": 0}]}",
        4);
    is_that_tree(&x);
}

Test(server_topology, a_tree_that_does_not_fit_is_refused)
{
    static const struct {
        const char *text;
        uint32_t replicas;
        const char *says;
    } row[] = {
        {tree_csv, 3, "a tree over 4 cores, for 3 replicas"},
        {"# root=0\nparent,child,order\n0,1,0\n", 3,
         "a tree over 2 cores, for 3 replicas"},
        {"parent,child,order\n0,9,0\n", 2, "quoind may not use core 9"},
        {"parent,child,order\n0,1,0\n1,0,0\n", 2, "cycle"},
        {"parent,child,order\n0,1,1\n", 2, "order"},
        {"logical,core\n0,1\n", 2, "parent,child,order"},
        {"{\"format\": \"quoin-plan\", \"version\": 1, \"ring\": {}}", 2,
         "is no tree"},
        {"{\"format\": \"quoin-tree\", ", 2, ":1: "},
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        struct made x = make_of_file(row[i].text, row[i].replicas);
        cr_assert_neq(x.err, QN_OK, "row %zu", i);
        cr_assert(strstr(x.why, row[i].says) != NULL, "%zu: %s", i, x.why);
        cr_assert(strchr(x.why, '\n') == NULL && !x.t.made);
    }
}

/* Four cores: 0 -> 2 -> 3 -> 1 is cheap, everything else dear. */
static struct qn_machine *chain_machine(char *folder)
{
    struct qn_machine *m = NULL;
    static const uint32_t next[] = {2, 9, 3, 1};
    cr_assert_eq(qn_machine_create(&m, 4), QN_OK);
    for (uint32_t u = 0; u < 4; u++) {
        for (uint32_t v = 0; v < 4; v++) {
            double cost = u == v ? 0 : v == next[u] ? 1 + u : 1000;
            m->send[(size_t)u * 4 + v] = m->receive[(size_t)u * 4 + v] = cost;
        }
    }
    m->facts.clock_ghz = 2;
    cr_assert_not_null(mkdtemp(folder));
    cr_assert_eq(qn_machine_save_csv(m, folder, NULL), QN_OK);
    return m;
}

/* ---- rings --------------------------------------------------------------- */

Test(server_topology, a_ring_stands_beside_the_tree_of_auto)
{
    struct made x = make_on("ring:k=2", 3, true);
    cr_assert_eq(x.err, QN_OK, "%s", x.why);
    cr_assert_eq(x.t.ring, 2u);
    cr_assert_eq(x.t.ring_from, 1u);
    cr_assert(x.t.no_ring == NULL && x.t.costs == NULL);
    cr_assert_str_eq(x.t.name, "sequential");
    x = make_on("ring:k=1", 2, true);
    cr_assert_eq(x.err, QN_EINVAL);
    cr_assert(strstr(x.why, "arity 1 needs 3 replicas; there are 2") != NULL,
              "%s", x.why);
    x = make_on("ring:k=4", 4, true);
    cr_assert(strstr(x.why, "arity 4 needs 5 replicas; there are 4") != NULL,
              "%s", x.why);
    cr_assert_eq(x.t.ring, 0u);
    x = make_on("auto", 3, true);
    cr_assert_eq(x.t.ring, 0u);
    cr_assert(strstr(x.t.no_ring, "without measured costs") != NULL);
    x = make_on("binary", 3, true);
    cr_assert(x.t.no_ring == NULL);
}

/* Sending is dear: a long pipeline is faster over a ring. It costs nothing: it
 * is not. */
static void auto_chooses(double send, double receive, bool ring)
{
    char folder[] = "/tmp/quoin-machine-XXXXXX";
    struct qn_machine *m = NULL;
    cr_assert_eq(qn_machine_create(&m, 4), QN_OK);
    for (uint32_t i = 0; i < 16; i++) {
        m->send[i] = i % 5 == 0 ? 0 : send;
        m->receive[i] = i % 5 == 0 ? 0 : receive;
    }
    cr_assert_not_null(mkdtemp(folder));
    cr_assert_eq(qn_machine_save_csv(m, folder, NULL), QN_OK);
    const char *const names[] = {"auto", folder};
    for (uint32_t k = 0; k < 2; k++) {
        struct made x = make_with(names[k], k == 0 ? folder : "auto", 4, false);
        cr_assert_eq(x.err, QN_OK, "%s", x.why);
        cr_assert_eq(x.t.ring != 0, ring);
        cr_assert_eq(x.t.ring_from > 1, ring);
        cr_assert_eq(x.t.no_ring == NULL, ring);
        qn_topology_fini(&x.t);
    }
    struct made x = make_with("ring:k=3", folder, 4, false);
    cr_assert(x.t.measured && x.t.anew);
    cr_assert_eq(x.t.ring, 3u);
    qn_topology_fini(&x.t);
    cr_assert_eq(folder_remove(folder), 3);
    qn_machine_destroy(m);
}

Test(server_topology, auto_takes_a_ring_where_measured_costs_say_so)
{
    auto_chooses(300, 50, true);
    auto_chooses(1, 300, false);
}

/* Whoever makes the tree: INFO's prediction is by the costs of the cores where
 * the replicas are in the end, and the driver plans only what is planned. */
Test(server_topology, a_measured_machine_goes_with_every_topology)
{
    char folder[] = "/tmp/quoin-machine-XXXXXX";
    struct qn_machine *m = chain_machine(folder);
    const char *tree = temporary(tree_csv);
    const char *const names[] = {"auto", "mst",    "adaptive",   "cluster",
                                 "mst2", "binary", "sequential", tree};
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
        struct made x = make_with(names[k], folder, 4, false);
        cr_assert_eq(x.err, QN_OK, "%s: %s", names[k], x.why);
        cr_assert(x.t.measured && x.t.costs != NULL, "%s", names[k]);
        cr_assert_eq(x.t.anew, k == 0, "%s", names[k]);
        cr_assert_eq(x.t.made, k != 0 && k != 5 && k != 6, "%s", names[k]);
        cr_assert_eq(x.t.costs->facts.clock_ghz, 2);
        for (uint32_t i = 0; i < 16; i++) {
            uint32_t u = (uint32_t)x.place[i / 4].cpu;
            uint32_t v = (uint32_t)x.place[i % 4].cpu;
            cr_assert_eq(x.t.costs->send[i], qn_send_cost(m, u, v), "%s",
                         names[k]);
        }
        qn_topology_fini(&x.t);
    }
    unlink(tree);
    cr_assert_eq(folder_remove(folder), 3);
    qn_machine_destroy(m);
}

Test(server_topology, a_tree_made_once_is_by_costs_as_measured)
{
    char folder[] = "/tmp/quoin-machine-XXXXXX";
    struct qn_machine *m = chain_machine(folder);
    struct made x = make_with("mst", folder, 4, false);
    static const int chain[] = {0, 2, 3, 1};
    for (uint32_t i = 0; i < 4; i++) {
        cr_assert_eq(x.place[i].cpu, chain[i]);
        cr_assert_eq(x.t.plan.parent[i], i > 0 ? i - 1 : 0);
    }
    qn_topology_fini(&x.t);
    struct made shared = make_with("auto", folder, 4, true);
    cr_assert_eq(shared.err, QN_OK);
    cr_assert(shared.t.costs == NULL && !shared.t.measured && !shared.t.anew);
    for (int on_one_core = 0; on_one_core < 2; on_one_core++) {
        struct made none =
            make_with("binary", "/nowhere/m.json", 4, on_one_core);
        cr_assert_neq(none.err, QN_OK);
        cr_assert(strstr(none.why, "/nowhere/m.json") != NULL, "%s", none.why);
    }
    cr_assert_eq(folder_remove(folder), 3);
    qn_machine_destroy(m);
}

Test(server_topology, a_tree_tells_the_number_of_replicas)
{
    const char *path = temporary(tree_csv);
    struct qn_config c = config_of(QN_REPLICAS_AUTO, path);
    cr_assert_eq(qn_topology_replicas(&c), 4);
    unlink(path);
    cr_assert_eq(qn_topology_replicas(&c), 0);
    c = config_of(QN_REPLICAS_AUTO, "binary");
    cr_assert_eq(qn_topology_replicas(&c), 0);
}

Test(server_topology, a_file_that_is_not_there_is_named)
{
    struct made x = make_on("/nowhere/m.json", 3, false);
    cr_assert_neq(x.err, QN_OK);
    cr_assert(strstr(x.why, "/nowhere/m.json") != NULL, "%s", x.why);
}
