/*
 * Where connections land: the decision on invented machines, and its program,
 * run by a small interpreter of the instructions it uses and by the kernel.
 */
#include "kvs/listen/connection_placement.h"

#include <arpa/inet.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/place/numa_map.h"
#include "tests/support/test.h"

static struct qn_numa_map map;
static struct qn_connection_placement connection_placement;
static struct sock_filter program[QN_CONNECTION_PLACEMENT_INSNS];
static uint32_t count;

/* `nodes` replicas dealt round robin over the NUMA nodes, as they sit. */
static void machine(const char *synthetic, uint32_t nodes)
{
    cr_assert_eq(qn_numa_map_read(&map, synthetic), QN_OK);
    connection_placement =
        (struct qn_connection_placement){.nodes = nodes, .map = &map};
    for (qn_node_t i = 0; i < nodes; i++) {
        connection_placement.home[i] = (int)(i % map.nodes);
    }
}

static uint64_t all_of(uint32_t nodes)
{
    return UINT64_MAX >> (64 - nodes);
}

/* What the kernel would do. */
static uint32_t run(uint32_t cpu, uint32_t random)
{
    uint32_t a = 0;
    for (uint32_t pc = 0;; pc++) {
        cr_assert_lt(pc, count);
        const struct sock_filter *i = &program[pc];
        switch (i->code) {
        case BPF_LD | BPF_W | BPF_ABS:
            cr_assert(i->k == (uint32_t)(SKF_AD_OFF + SKF_AD_CPU) ||
                      i->k == (uint32_t)(SKF_AD_OFF + SKF_AD_RANDOM));
            a = i->k == (uint32_t)(SKF_AD_OFF + SKF_AD_CPU) ? cpu : random;
            break;
        case BPF_ALU | BPF_MOD | BPF_K:
            cr_assert_neq(i->k, 0);
            a %= i->k;
            break;
        case BPF_JMP | BPF_JGE | BPF_K:
            pc += a >= i->k ? i->jt : i->jf;
            break;
        case BPF_JMP | BPF_JEQ | BPF_K:
            pc += a == i->k ? i->jt : i->jf;
            break;
        case BPF_JMP | BPF_JA:
            pc += i->k;
            break;
        case BPF_RET | BPF_K:
            return i->k;
        default:
            cr_assert_fail("instruction %u: %x", pc, i->code);
        }
    }
}

/* The program agrees with the decision for every core, and deals evenly. */
static void check_program(uint64_t open)
{
    count =
        qn_connection_placement_program(&connection_placement, open, program);
    cr_assert_gt(count, 0);
    for (uint32_t cpu = 0; cpu < map.cpus + 2; cpu++) {
        uint64_t near =
            qn_connection_placement_near(&connection_placement, cpu, open);
        uint32_t n = (uint32_t)__builtin_popcountll(near);
        uint32_t got[QN_NODES_MAX] = {0};
        cr_assert(near != 0 && (near & ~open) == 0);
        for (uint32_t r = 0; r < 4 * n; r++) {
            uint32_t to = run(cpu, 1000 * n + r);
            cr_assert(to < connection_placement.nodes && (near >> to & 1) != 0);
            got[to]++;
        }
        for (qn_node_t i = 0; i < connection_placement.nodes; i++) {
            cr_assert_eq(got[i], (near >> i & 1) != 0 ? 4 : 0);
        }
    }
}

/* Issue: at least 95 % of connections land on the near replica. All do. */
Test(connection_placement, every_connection_lands_on_its_own_numa_node)
{
    machine("numa:8 core:8 pu:2", 8);
    check_program(all_of(8));
    for (uint32_t cpu = 0; cpu < 128; cpu++) {
        cr_assert_eq(run(cpu, cpu * 7919), (uint32_t)map.node[cpu]);
    }
}

Test(connection_placement, replicas_of_one_numa_node_share_its_clients_evenly)
{
    machine("numa:2 pu:16", 6);
    check_program(all_of(6));
    cr_assert_eq(
        qn_connection_placement_near(&connection_placement, 3, all_of(6)),
        0x15);
    cr_assert_eq(
        qn_connection_placement_near(&connection_placement, 20, all_of(6)),
        0x2a);
}

/* Small machines, where clients share the replicas' cores. */
Test(connection_placement, on_one_numa_node_connections_are_spread)
{
    machine("numa:1 pu:2", 3);
    check_program(all_of(3));
    cr_assert_eq(
        qn_connection_placement_near(&connection_placement, 0, all_of(3)), 0x7);
}

Test(connection_placement,
     a_numa_node_without_a_replica_goes_to_the_nearest_ones)
{
    machine("numa:4 pu:4", 3);
    check_program(all_of(3));
    cr_assert_eq(
        qn_connection_placement_near(&connection_placement, 15, all_of(3)),
        0x7);
    map.distance[3][1] = 12;
    check_program(all_of(3));
    cr_assert_eq(
        qn_connection_placement_near(&connection_placement, 15, all_of(3)),
        0x2);
    map.distance[3][2] = 12;
    cr_assert_eq(
        qn_connection_placement_near(&connection_placement, 15, all_of(3)),
        0x6);
}

Test(connection_placement, who_is_out_gets_none)
{
    machine("numa:4 pu:4", 8);
    for (uint64_t open = 1; open < 256; open++) {
        check_program(open);
    }
    cr_assert_eq(
        qn_connection_placement_near(&connection_placement, 0, 0xff ^ 0x01),
        0x10);
}

Test(connection_placement, an_unknown_core_and_an_unknown_home_are_equally_far)
{
    machine("numa:2 pu:2", 3);
    cr_assert_eq(qn_connection_placement_near(&connection_placement, 4, 0x7),
                 0x7);
    cr_assert_eq(
        qn_connection_placement_near(&connection_placement, UINT32_MAX, 0x5),
        0x5);
    for (qn_node_t i = 0; i < 3; i++) {
        connection_placement.home[i] = -1;
    }
    cr_assert_eq(qn_connection_placement_near(&connection_placement, 0, 0x7),
                 0x7);
    connection_placement.map = NULL;
    cr_assert_eq(qn_connection_placement_near(&connection_placement, 0, 0x6),
                 0x6);
    check_program(0x6);
}

/* Cores numbered round robin over the NUMA nodes: the longest program. */
Test(connection_placement, the_largest_machine_fits)
{
    machine("numa:64 pu:16", 64);
    map.cpus = QN_PLACES_MAX;
    for (uint32_t cpu = 0; cpu < map.cpus; cpu++) {
        map.node[cpu] = (int16_t)(cpu % 64);
    }
    check_program(all_of(64));
    for (qn_node_t i = 0; i < 64; i++) {
        connection_placement.home[i] = 0; /* and nobody at 1 to 63 */
    }
    check_program(all_of(64));
}

/* ---- the kernel ---------------------------------------------------------- */

enum { GROUP = 3, CONNECTIONS = 60 };

static int member[GROUP];
static struct sockaddr_in at;

static void group_open(void)
{
    socklen_t bytes = sizeof at;
    int on = 1;
    at = (struct sockaddr_in){.sin_family = AF_INET,
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    for (int i = 0; i < GROUP; i++) {
        member[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        setsockopt(member[i], SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
        cr_assert_eq(bind(member[i], (struct sockaddr *)&at, sizeof at), 0);
        cr_assert_eq(listen(member[i], 2 * CONNECTIONS), 0);
        cr_assert_eq(getsockname(member[0], (struct sockaddr *)&at, &bytes), 0);
    }
}

static void group_close(void)
{
    for (int i = 0; i < GROUP; i++) {
        close(member[i]);
    }
}

/* Connect from the present core; [GROUP] filled: where they landed. */
static void dial(uint32_t *landed)
{
    int client[CONNECTIONS];
    for (int i = 0; i < CONNECTIONS; i++) {
        client[i] = socket(AF_INET, SOCK_STREAM, 0);
        cr_assert_eq(connect(client[i], (struct sockaddr *)&at, sizeof at), 0);
    }
    for (int i = 0; i < GROUP; i++) {
        int fd;
        landed[i] = 0;
        while ((fd = accept(member[i], NULL, NULL)) >= 0) {
            landed[i]++;
            close(fd);
        }
    }
    for (int i = 0; i < CONNECTIONS; i++) {
        close(client[i]);
    }
}

static bool run_on(uint32_t cpu)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    return sched_setaffinity(0, sizeof one, &one) == 0;
}

/* As if each of the two first cores were a NUMA node of its own. */
Test(connection_placement, the_kernel_follows_the_program)
{
    uint32_t landed[GROUP];
    machine("numa:2 pu:1", GROUP);
    connection_placement.home[2] = 1;
    group_open();
    count =
        qn_connection_placement_program(&connection_placement, 0x7, program);
    if (!qn_connection_placement_attach(member[1], program, count)) {
        group_close();
        return; /* a kernel or sandbox without it */
    }
    for (uint32_t cpu = 0; cpu < 2; cpu++) {
        if (run_on(cpu)) {
            dial(landed);
            cr_expect_eq(landed[0], cpu == 0 ? CONNECTIONS : 0);
            cr_expect_eq(landed[1] + landed[2], cpu == 0 ? 0 : CONNECTIONS);
        }
    }
    count =
        qn_connection_placement_program(&connection_placement, 0x4, program);
    cr_assert(qn_connection_placement_attach(member[0], program, count));
    dial(landed);
    cr_expect_eq(landed[2], CONNECTIONS);
    cr_assert(qn_connection_placement_attach(member[0], NULL, 0));
    cr_assert(qn_connection_placement_attach(member[0], NULL, 0), "once more");
    dial(landed);
    cr_expect_neq(landed[2], CONNECTIONS, "all of them by chance: 3^-60");
    group_close();
}
