#ifndef QN_MACHINE_JSON_MATRIX_INTERNAL_H
#define QN_MACHINE_JSON_MATRIX_INTERNAL_H

/** The matrices of a machine file, read without a value per number. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Members of a machine file that are matrices. */
#define QN_JSON_MATRICES 4u

struct qn_json_matrix {
    double *cost; /* [n*n] row-major, in range: the diagonal 0, all others above
                     0 and up to QN_COST_MAX. NULL: not taken */
    uint32_t n;
};

struct qn_json_matrices {
    char *rest; /* [len] the document with `[]` where a matrix was taken; each
                   line keeps its number */
    size_t len;
    struct qn_json_matrix of[QN_JSON_MATRICES]; /* as qn_json_matrix_key */
};

/** "send", "receive", "round_trip", "level"; i < QN_JSON_MATRICES. */
const char *qn_json_matrix_key(uint32_t i);

/**
 * Take out those matrices that are beyond doubt: square, of numbers as JSON
 * writes them, in range. What is not stays in `rest`, for a parser that can say
 * what is wrong. `rest` is valid JSON if and only if text is.
 *
 * @param text  [len] any bytes.
 * @param out   Filled; freed by qn_json_matrices_fini.
 * @return QN_OK or QN_ENOMEM.
 *
 * Any thread. O(len).
 */
int qn_json_matrices_take(const char *text, size_t len,
                          struct qn_json_matrices *out);

/** What was taken of the member `key`, NULL if nothing was. */
const struct qn_json_matrix *qn_json_matrices_find(
    const struct qn_json_matrices *t, const char *key);

void qn_json_matrices_fini(struct qn_json_matrices *t);

#endif
