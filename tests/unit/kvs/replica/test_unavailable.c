/* Which error says why nothing is started: each fact alone, and each pair of
 * facts of which one is said first. */
#include <string.h>

#include "kvs/replica/unavailable.h"
#include "tests/support/test.h"

enum { /* a bit for each field */
       REMOVED = 1,
       HELD = 2,
       HALTED = 4,
       INCOMPLETE = 8,
       DAMAGED = 16,
       MEMORY = 32,
       WAITING = 64,
       NEEDS = 128
};

#define STOPPED    "CLUSTERDOWN the group has stopped: its leader "
#define LOADING    "LOADING Redis is loading the dataset in memory"
#define NOREPLICAS "NOREPLICAS too few replicas keep up to take a write "
#define GONE       "CLUSTERDOWN this replica was removed from the group: "
#define WAITS      "CLUSTERDOWN the leader was lost, and a stalled replica may "

/* The text begins so. */
static const struct {
    unsigned facts;
    const char *text;
} rows[] = {
    {0, "CLUSTERDOWN no quorum of replicas"},
    {MEMORY, "CLUSTERDOWN no quorum of replicas"},
    {REMOVED, GONE},
    {REMOVED | HELD | HALTED | INCOMPLETE | DAMAGED | MEMORY | WAITING | NEEDS,
     GONE},
    {HELD, NOREPLICAS},
    {HELD | MEMORY, NOREPLICAS},
    {HELD | WAITING, NOREPLICAS},
    {HELD | NEEDS, NOREPLICAS},
    {HALTED, STOPPED "and acceptor were lost together;"},
    {HALTED | HELD, STOPPED "and acceptor were lost together;"},
    {HALTED | NEEDS, STOPPED "and acceptor were lost together;"},
    {HALTED | INCOMPLETE, STOPPED "and acceptor were lost, and a part of"},
    {HALTED | INCOMPLETE | HELD, STOPPED "and acceptor were lost, and a part"},
    {HALTED | MEMORY, STOPPED "was lost with slots that no other replica has;"},
    {HALTED | MEMORY | WAITING, STOPPED "was lost with slots that no other"},
    {HALTED | MEMORY | NEEDS, STOPPED "was lost with slots that no other"},
    {HALTED | MEMORY | DAMAGED, STOPPED "has overwritten the accept register;"},
    {MEMORY | WAITING, WAITS},
    {MEMORY | WAITING | NEEDS, WAITS},
    {NEEDS, LOADING},
    {MEMORY | NEEDS, LOADING},
};

Test(unavailable, the_first_fact_that_holds_is_said)
{
    for (size_t i = 0; i < QN_ARRAY_COUNT(rows); i++) {
        const unsigned f = rows[i].facts;
        const struct qn_unavailable u = {.removed = (f & REMOVED) != 0,
                                         .held = (f & HELD) != 0,
                                         .halted = (f & HALTED) != 0,
                                         .log_incomplete =
                                             (f & INCOMPLETE) != 0,
                                         .register_damaged = (f & DAMAGED) != 0,
                                         .memory_acceptor = (f & MEMORY) != 0,
                                         .waiting = (f & WAITING) != 0,
                                         .needs_snapshot = (f & NEEDS) != 0};
        const char *got = qn_unavailable_reason(&u);
        cr_expect(strncmp(got, rows[i].text, strlen(rows[i].text)) == 0,
                  "facts %u: \"%s\", expected \"%s...\"", f, got, rows[i].text);
    }
}
