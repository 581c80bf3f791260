#ifndef QN_LOADGEN_SIMULATE_TIMELINE_ACCOUNT_H
#define QN_LOADGEN_SIMULATE_TIMELINE_ACCOUNT_H

/** Where the virtual time of all nodes of a run went, by kind. Any thread. */

#include <jansson.h>
#include <stdio.h>

#include "core/sim/timed/timed.h"

/** One line: the kinds that took any time, in percent. @param over  What ran.
 *  Both are borrowed. The caller checks ferror(). */
void qn_account_print(const struct qn_timed_result *r, const char *over,
                      FILE *to);

/** An object: ns of each kind. @return a new reference; NULL without memory. */
json_t *qn_account_json(const struct qn_timed_result *r);

#endif
