#ifndef QN_MACHINE_MACHINE_CSV_INTERNAL_H
#define QN_MACHINE_MACHINE_CSV_INTERNAL_H

/** What the readers of a folder's tables share. */

#include "core/machine/csv.h"
#include "core/machine/machine.h"

#define QN_TRIPS_FILE "roundtrip.csv"

/** The next two fields, the cores of a pair, different ones. *from and *to are
 *  the indices that are expected, and become those that are there. @return
 *  QN_OK, or QN_EINVAL, fault filled. */
int qn_csv_pair(struct qn_csv *c, const struct qn_machine *m, uint32_t *from,
                uint32_t *to);

/** QN_EINVAL: the pair has a row already. */
int qn_csv_pair_again(const struct qn_csv *c, const struct qn_machine *m,
                      uint32_t u, uint32_t v);

/** QN_EINVAL: the file ends without a row for the pair. */
int qn_csv_pair_missing(const struct qn_csv *c, const struct qn_machine *m,
                        uint32_t u, uint32_t v, const char *rule);

/** Is anything known of m that roundtrip.csv holds? */
bool qn_roundtrip_table_known(const struct qn_machine *m);

/** Fill m->facts from roundtrip.csv. QN_OK; QN_EINVAL, fault filled;
 *  QN_ENOMEM. */
int qn_roundtrip_table_read(struct qn_machine *m, struct qn_csv *c);

void qn_roundtrip_table_write(const struct qn_machine *m, FILE *f);

#endif
