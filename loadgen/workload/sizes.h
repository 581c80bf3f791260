#ifndef QN_LOADGEN_WORKLOAD_SIZES_H
#define QN_LOADGEN_WORKLOAD_SIZES_H

/**
 * Sizes of keys and of values, in bytes. A size is a function of the key, so
 * that a reader knows the size of a value without having seen the write.
 *
 *     100          all sizes equal; accepts k, m, ki, mi
 *     16..4096     all sizes of the range with the same probability
 *     etc          as in Facebook's ETC pool
 *     mixed        most are small, few are large, half of all bytes are in
 *                  the large ones; bounds 16..1mi, others as in
 *                  mixed:16..64ki
 *
 * Mixed is a Pareto distribution of exponent 1/2 between its bounds L and H: a
 * size is above s with a probability of about sqrt(L/s), and the mean is sqrt(L
 * H), 4096 bytes for 16..1mi.
 *
 * ETC: B. Atikoglu, Y. Xu, E. Frachtenberg, S. Jiang, M. Paleczny, "Workload
 * Analysis of a Large-Scale Key-Value Store", SIGMETRICS 2012, section 5. Keys:
 * generalized extreme value (mu 30.7984, sigma 8.20449, k 0.078688), at most
 * 250 bytes. Values: 0 to 14 bytes with the probabilities of table 5 (together
 * 0.44), else 15 plus a generalized Pareto number (sigma 214.476, k 0.348238),
 * at most 1 MiB. Truncation: fractions are cut off; a size out of bounds
 * becomes the bound (values: 3 in 10^10; keys: 5 in 10^7 above, and 2 in 10^5
 * below 13 bytes, for key numbers that need as many).
 *
 * Pure, any thread.
 */

#include <stddef.h>
#include <stdint.h>

#define QN_SIZES_ETC_KEY_MAX   250
#define QN_SIZES_ETC_VALUE_MAX (UINT64_C(1) << 20)
#define QN_SIZES_MIXED_MIN     16
#define QN_SIZES_MIXED_MAX     (UINT64_C(1) << 20)

enum qn_sizes_kind {
    QN_SIZES_FIXED,
    QN_SIZES_RANGE,
    QN_SIZES_MIXED,
    QN_SIZES_ETC_KEY,
    QN_SIZES_ETC_VALUE
};

struct qn_sizes {
    enum qn_sizes_kind kind;
    uint64_t min; /* bytes; smallest size */
    uint64_t max; /* bytes; largest size; FIXED: == min */
};

/** All sizes equal. */
struct qn_sizes qn_sizes_fixed(uint64_t size);

/** Mixed, with the upper bound lowered so that `count` sizes have a mean total
 *  of at most `bytes`. */
struct qn_sizes qn_sizes_mixed_within(uint64_t count, uint64_t bytes);

/** Sizes of keys or of values in ETC, within the limits above. */
struct qn_sizes qn_sizes_etc(enum qn_sizes_kind kind);

/**
 * Parse one of the forms above.
 *
 * @param etc    Meaning of "etc": QN_SIZES_ETC_KEY or QN_SIZES_ETC_VALUE.
 * @param max    Largest size to accept.
 * @param error  [error_size] Filled on failure: what is wrong; no newline.
 * @return QN_OK; QN_EINVAL.
 */
int qn_sizes_parse(struct qn_sizes *s, enum qn_sizes_kind etc, const char *text,
                   uint64_t max, char *error, size_t error_size);

#define QN_SIZES_TEXT_MAX 48

/** Text in the form that qn_sizes_parse accepts, in bytes. */
void qn_sizes_print(const struct qn_sizes *s, char text[QN_SIZES_TEXT_MAX]);

/** The size for 64 bits of a hash. The same bits give the same size. */
uint64_t qn_sizes_at(const struct qn_sizes *s, uint64_t hash);

/** The mean, in bytes, rounded up; for ETC without its truncation. */
uint64_t qn_sizes_mean(const struct qn_sizes *s);

#endif
