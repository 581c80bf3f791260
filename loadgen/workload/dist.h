#ifndef QN_LOADGEN_WORKLOAD_DIST_H
#define QN_LOADGEN_WORKLOAD_DIST_H

/**
 * Which keys are asked for: a distribution over key numbers [0, n), shared by
 * all clients, and each client's walk through it.
 *
 *     uniform             every key alike
 *     zipf:THETA          the i-th hottest in proportion to i^-THETA, exactly
 *     hotspot:REQ:KEYS    REQ % of the requests go to KEYS % of the keys
 *     latest[:THETA]      zipf over how recently a key was inserted (0.99)
 *     sequential          one after the other, dealt to the clients in turn
 *
 * The hot keys of zipf and hotspot are spread over the key space: rank i is key
 * i * a mod n, a being prime to n and near n / golden ratio. That is one to
 * one, so the distribution stays exact; the hottest key is key 0.
 *
 * Inserted keys have the numbers from n on, dealt to the clients in turn.
 * `latest` means, to a client, its own insertions and then the first n keys,
 * newest first: so what it asks depends on its seed alone, not on how fast the
 * others are, and finds what was inserted. The other distributions keep to the
 * first n keys.
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
 *               right name, no newline.
 * @return QN_OK; QN_EINVAL.
 */
int qn_dist_parse(struct qn_dist_spec *spec, const char *text, char *error,
                  size_t error_size);

/** Immutable after init: any thread. */
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

/** The key of a rank, both in [0, n); rank 0 is the hottest. One to one. */
uint64_t qn_dist_key(const struct qn_dist *d, uint64_t rank);

/** One client's way through the keys. Private. One thread. */
struct qn_walk {
    const struct qn_dist *dist;
    uint64_t number;     /* of this client */
    uint64_t clients;    /* all of them */
    uint64_t random;     /* its stream */
    uint64_t next;       /* sequential */
    uint64_t inserted;   /* keys, by this client */
    struct qn_zipf zipf; /* latest: over n + inserted */
};

/** @param dist     Kept.
 *  @param number   This client, < clients.
 *  @param seed     What it will draw. */
void qn_walk_init(struct qn_walk *w, const struct qn_dist *dist,
                  uint64_t number, uint64_t clients, uint64_t seed);

/** The next key to ask for. */
uint64_t qn_walk_next(struct qn_walk *w);

/** The next key to insert: n or more, no other client's, never the same. */
uint64_t qn_walk_insert(struct qn_walk *w);

#endif
