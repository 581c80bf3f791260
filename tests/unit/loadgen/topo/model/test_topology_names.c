/* Lists of topologies, as options have them. */
#include "loadgen/topo/model/topology_names.h"

#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "tests/support/test.h"

static void check(const char *const *list, const char *const *names,
                  size_t count)
{
    struct qn_topology_names n = {NULL, 0};
    const char *name = NULL;
    for (; *list != NULL; list++) {
        cr_assert_eq(qn_topology_names_add(&n, *list), QN_OK);
    }
    for (size_t i = 0; i < count; i++) {
        name = qn_topology_names_next(&n, name);
        cr_assert_neq(name, NULL, "%s is missing", names[i]);
        cr_assert_str_eq(name, names[i]);
    }
    cr_assert_eq(name != NULL || count == 0, true);
    cr_assert_eq(qn_topology_names_next(&n, name), NULL);
    qn_topology_names_fini(&n);
}

Test(topology_names, none)
{
    check((const char *const[]){NULL}, NULL, 0);
}

Test(topology_names, options_stay_with_their_topology)
{
    check((const char *const[]){"auto,ring:k=2,full,companion,map=a.csv,mst",
                                NULL},
          (const char *const[]){"auto", "ring:k=2,full,companion,map=a.csv",
                                "mst"},
          3);
    check((const char *const[]){"down.csv,up=up.csv,fully,fibonacci", NULL},
          (const char *const[]){"down.csv,up=up.csv", "fully", "fibonacci"}, 3);
}

Test(topology_names, lists_are_appended)
{
    check((const char *const[]){"auto", "mst,", "ring:k=1,full", NULL},
          (const char *const[]){"auto", "mst", "", "ring:k=1,full"}, 4);
}
