#ifndef QN_TESTS_SIM_TIMED_WORLDS_H
#define QN_TESTS_SIM_TIMED_WORLDS_H

/** Every machine file of the repository, for tests on the timed machine. */

#include "core/machine/machine.h"

/** Call `each` with every machine of tests/data/machines and machines/, in the
 *  order of their names. @return how many. */
unsigned worlds_each(void (*each)(const struct qn_machine *m));

#endif
