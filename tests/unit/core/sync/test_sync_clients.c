/* Places of clients; every schedule of two at one place is in
 * tests/sim/explore/sync/test_clients_explore.c. */
#include "core/sync/clients.h"

#include <pthread.h>

#include "core/base/err.h"
#include "tests/support/test.h"

#define CAPACITY 5u
#define THREADS  8u
#define ROUNDS   2000u

Test(sync_clients, each_place_gives_a_node_of_its_own_until_all_are_taken)
{
    struct qn_sync_place p[CAPACITY] = {0};
    uint32_t place = 77;
    uint32_t node = 78;
    qn_sync_places_format(p, CAPACITY);
    for (uint32_t i = 0; i < CAPACITY; i++) {
        cr_assert_eq(qn_sync_join(p, CAPACITY, &place, &node), QN_OK);
        cr_assert_eq(place, i);
        cr_assert_eq(node, i);
    }
    place = 77;
    node = 78;
    cr_assert_eq(qn_sync_join(p, CAPACITY, &place, &node), QN_EAGAIN);
    cr_assert_eq(place, 77, "untouched");
    cr_assert_eq(node, 78, "untouched");
}

Test(sync_clients, the_next_client_gets_the_node_that_was_given_back)
{
    struct qn_sync_place p[2] = {0};
    uint32_t place[2];
    uint32_t node[2];
    qn_sync_places_format(p, 2);
    for (uint32_t i = 0; i < 2; i++) {
        cr_assert_eq(qn_sync_join(p, 2, &place[i], &node[i]), QN_OK);
    }
    qn_sync_leave(p, place[0], node[1]); /* as two clients of a queue swap */
    qn_sync_leave(p, place[1], node[0]);
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t now;
        uint32_t at;
        cr_assert_eq(qn_sync_join(p, 2, &at, &now), QN_OK);
        cr_assert_eq(at, i);
        cr_assert_eq(now, 1 - i);
    }
}

Test(sync_clients, a_place_that_is_free_cannot_be_given_back, .signal = SIGABRT)
{
    struct qn_sync_place p[1] = {0};
    qn_sync_places_format(p, 1);
    qn_sync_leave(p, 0, 0);
}

static struct qn_sync_place shared[CAPACITY];
static uint32_t uses[CAPACITY]; /* of each node, by its owner */

static void *come_and_go(void *arg)
{
    uint64_t *joined = arg;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        uint32_t place;
        uint32_t node;
        if (qn_sync_join(shared, CAPACITY, &place, &node) == QN_OK) {
            uses[node]++;
            ++*joined;
            qn_sync_leave(shared, place, (uint32_t)node);
        }
    }
    return NULL;
}

Test(sync_clients, a_node_has_one_owner_at_a_time, .timeout = 60)
{
    pthread_t t[THREADS];
    uint64_t joined[THREADS] = {0};
    uint64_t total = 0;
    uint64_t used = 0;
    qn_sync_places_format(shared, CAPACITY);
    for (uint32_t i = 0; i < THREADS; i++) {
        cr_assert_eq(pthread_create(&t[i], NULL, come_and_go, &joined[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_join(t[i], NULL);
        total += joined[i];
    }
    for (uint32_t i = 0; i < CAPACITY; i++) {
        used += uses[i];
    }
    cr_assert_gt(total, 0);
    cr_assert_eq(used, total);
}
