#ifndef QN_LOADGEN_WORKLOAD_DIST_H
#define QN_LOADGEN_WORKLOAD_DIST_H

/**
 * Key distribution: which of the key numbers [0, n) are used, shared by all
 * clients, and the walk of each client through it.
 *
 *     uniform             all keys with the same probability
 *     zipf:THETA          the i-th hottest in proportion to i^-THETA, exactly
 *     hotspot:REQ:KEYS    REQ % of the requests go to KEYS % of the keys
 *     latest[:THETA]      zipf over how recently a key was inserted (0.99)
 *     sequential          one key after the other, dealt to the clients in turn
 *
 * The hot keys of zipf and hotspot are spread over the key space: rank i is key
 * i * a mod n, where a is prime to n and near n / golden ratio. The mapping is
 * one to one, so the distribution stays exact; the hottest key is key 0.
 *
 * Inserted keys have the numbers from n on, dealt to the clients in turn. For
 * `latest`, a client orders its own insertions before the first n keys, newest
 * first. So its requests depend on its seed alone, not on the speed of other
 * clients, and find what was inserted. The other distributions use the first n
 * keys only.
 */

#include "loadgen/workload/zipf.h"

#include <stddef.h>
#include <stdint.h>

#define QN_DIST_N_MAX (UINT64_C(1) << 32)

enum qn_dist_kind {
    QN_DIST_UNIFORM,
    QN_DIST_ZIPF,
    QN_DIST_HOTSPOT,
    QN_DIST_LATEST,
    QN_DIST_SEQUENTIAL
};

/** All zero is uniform. */
struct qn_dist_spec {
    enum qn_dist_kind kind;
    double theta;        /* zipf, latest: 0..QN_ZIPF_THETA_MAX */
    double hot_requests; /* hotspot: fraction in (0, 1] */
    double hot_keys;     /* hotspot: fraction in (0, hot_requests] */
};

/**
 * Parse one of the forms above.
 *
 * @param spec   Filled.
 * @param error  [error_size] Filled on failure: what is wrong, with the nearest
 *               valid name; no newline.
 * @return QN_OK; QN_EINVAL.
 */
int qn_dist_parse(struct qn_dist_spec *spec, const char *text, char *error,
                  size_t error_size);

/** Immutable after init; any thread. */
struct qn_dist {
    struct qn_dist_spec spec;
    uint64_t n;
    uint64_t hot; /* keys of the hotspot, 1..n */
    struct qn_zipf zipf;
    uint64_t spread;       /* a */
    uint64_t spread_ratio; /* floor(a * 2^32 / n) */
};

/** @param n  Keys, 1..QN_DIST_N_MAX. */
void qn_dist_init(struct qn_dist *d, const struct qn_dist_spec *spec,
                  uint64_t n);

/** Key of a rank, both in [0, n); rank 0 is the hottest. One to one. */
uint64_t qn_dist_key(const struct qn_dist *d, uint64_t rank);

/** Walk of one client through the keys. Private. One thread. */
struct qn_walk {
    const struct qn_dist *dist;
    uint64_t number;     /* number of this client */
    uint64_t clients;    /* number of clients */
    uint64_t random;     /* random stream of the client */
    uint64_t next;       /* sequential */
    uint64_t inserted;   /* keys inserted by this client */
    struct qn_zipf zipf; /* latest: over n + inserted */
};

/** @param dist     Kept.
 *  @param number   Number of this client, < clients.
 *  @param seed     Seed of its random stream. */
void qn_walk_init(struct qn_walk *w, const struct qn_dist *dist,
                  uint64_t number, uint64_t clients, uint64_t seed);

/** The next key to use. */
uint64_t qn_walk_next(struct qn_walk *w);

/** The next key to insert: n or more, unique over all clients and calls. */
uint64_t qn_walk_insert(struct qn_walk *w);

#endif
