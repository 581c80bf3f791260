#ifndef QN_MACHINE_MACHINE_JSON_INTERNAL_H
#define QN_MACHINE_MACHINE_JSON_INTERNAL_H

/** What the two halves of the machine file's reader and writer share. */

#include <jansson.h>

#include "core/machine/json_line_internal.h"
#include "core/machine/json_matrix_internal.h"
#include "core/machine/machine.h"

struct qn_json_document {
    const char *file;
    const char *text;
    size_t len;
    const struct qn_json_matrices *taken; /* out of what jansson was given */
    struct qn_parse_error *parse_error;
};

/** A fault at a value that is up to three steps below the root. @return
 *  QN_EINVAL. */
int qn_json_fault(const struct qn_json_document *d,
                  const struct qn_json_step *steps, size_t count,
                  const char *what);
int qn_json_fault_member(const struct qn_json_document *d, const char *key,
                         const char *what);

/** The member `key`, n rows of n costs, to `to` [n*n]. QN_EINVAL, fault
 *  filled. */
int qn_json_read_matrix(const struct qn_json_document *d, json_t *root,
                        const char *key, const struct qn_machine *m,
                        double *to);
void qn_json_write_matrix(const struct qn_machine *m, const char *key,
                          const double *cost, FILE *f);

/** Is `key` a member of version 2 that version 1 does not have? */
bool qn_json_fact_known(const char *key);

/** Is anything known of m that version 1 cannot say? */
bool qn_json_has_facts(const struct qn_machine *m);

/** Fill m->facts from what is there. QN_OK, QN_EINVAL (fault filled),
 *  QN_ENOMEM. */
int qn_json_read_facts(const struct qn_json_document *d, json_t *root,
                       struct qn_machine *m);

#define QN_JSON_BANDWIDTH_HINT                                                 \
    "write a number from 0.001 to 1000, or leave it out"

/** Fill the bandwidths from the members that are there.
 *  @return QN_BANDWIDTHS; or the first one that is out of range. */
uint32_t qn_json_read_bandwidths(json_t *root, struct qn_machine_facts *f);

/** Write each fact that is known, with a comma before it. */
void qn_json_write_facts(const struct qn_machine *m, FILE *f);

#endif
