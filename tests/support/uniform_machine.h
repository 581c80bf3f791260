#ifndef QN_TESTS_SUPPORT_UNIFORM_MACHINE_H
#define QN_TESTS_SUPPORT_UNIFORM_MACHINE_H

/** A machine whose cores are all as far from each other, for tests. */

#include "core/base/err.h"
#include "core/machine/machine.h"
#include "tests/support/test.h"

/** A message costs each side 100 cycles. @return to be destroyed. */
static inline struct qn_machine *uniform_machine(uint32_t n)
{
    struct qn_machine *m = NULL;
    cr_assert_eq(qn_machine_create(&m, n), QN_OK);
    for (uint32_t u = 0; u < n; u++) {
        for (uint32_t v = 0; v < n; v++) {
            m->send[u * n + v] = m->receive[u * n + v] = u == v ? 0 : 100;
        }
    }
    return m;
}

#endif
