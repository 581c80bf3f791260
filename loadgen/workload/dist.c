#include "loadgen/workload/dist.h"

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/base/suggest.h"
#include "loadgen/base/random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Multiplication by a number that is prime to n permutes [0, n). Near the
 * golden section, consecutive ranks fall as far as possible from all earlier
 * ones, so any set of the hottest keys is spread evenly. YCSB hashes ranks
 * instead; then some keys get the load of several ranks, and a third of the
 * keys get none.
 *
 * The remainder needs no division: with ratio = floor(a * 2^32 / n), the
 * estimate q = rank * ratio / 2^32 of rank * a / n is at most one too small
 * (Shoup).
 */

static const char *const names[] = {"uniform", "zipf", "hotspot", "latest",
                                    "sequential"};

#define THETA_DEFAULT 0.99 /* as in YCSB */

/* A decimal number in [0, max] that ends at `stop`. */
static int parse_number(const char **text, char stop, double max, double *out)
{
    char *end;
    if (**text < '0' || **text > '9') { /* rejects signs, spaces, inf and nan */
        return QN_EINVAL;
    }
    double x = strtod(*text, &end);
    if (*end != stop || !(x <= max)) {
        return QN_EINVAL;
    }
    *text = end;
    *out = x;
    return QN_OK;
}

static int parse_theta(struct qn_dist_spec *spec, const char *arg, char *error,
                       size_t error_size)
{
    if (arg == NULL && spec->kind == QN_DIST_LATEST) {
        spec->theta = THETA_DEFAULT;
        return QN_OK;
    }
    if (arg == NULL ||
        parse_number(&arg, '\0', QN_ZIPF_THETA_MAX, &spec->theta) != QN_OK) {
        snprintf(error, error_size,
                 "'%s' is not a theta between 0 and %g; for example: %s:%g",
                 arg == NULL ? "" : arg, QN_ZIPF_THETA_MAX, names[spec->kind],
                 THETA_DEFAULT);
        return QN_EINVAL;
    }
    return QN_OK;
}

static int parse_hotspot(struct qn_dist_spec *spec, const char *arg,
                         char *error, size_t error_size)
{
    double requests;
    double keys;
    const char *p = arg;
    if (p == NULL || parse_number(&p, ':', 100, &requests) != QN_OK ||
        (p++, parse_number(&p, '\0', 100, &keys)) != QN_OK || requests == 0 ||
        keys == 0) {
        snprintf(error, error_size,
                 "'%s' is not a pair of percentages; for example hotspot:80:20 "
                 "for 80 %% of the requests to 20 %% of the keys",
                 arg == NULL ? "" : arg);
        return QN_EINVAL;
    }
    if (requests < keys) {
        snprintf(
            error, error_size,
            "%g %% of the requests to %g %% of the keys is not a hot spot; "
            "did you mean hotspot:%g:%g?",
            requests, keys, keys, requests);
        return QN_EINVAL;
    }
    spec->hot_requests = requests / 100;
    spec->hot_keys = keys / 100;
    return QN_OK;
}

static int find_kind(const char *word, char *error, size_t error_size)
{
    for (int i = 0; i < (int)QN_ARRAY_COUNT(names); i++) {
        if (strcmp(names[i], word) == 0) {
            return i;
        }
    }
    const char *near =
        qn_suggest(word, &names[0], sizeof names[0], QN_ARRAY_COUNT(names));
    if (near != NULL) {
        snprintf(error, error_size,
                 "unknown distribution '%s'; did you mean '%s'?", word, near);
    } else {
        snprintf(error, error_size,
                 "unknown distribution '%s'; use one of uniform zipf:0.99 "
                 "hotspot:80:20 latest sequential",
                 word);
    }
    return QN_EINVAL;
}

int qn_dist_parse(struct qn_dist_spec *spec, const char *text, char *error,
                  size_t error_size)
{
    char word[32];
    size_t len = strcspn(text, ":");
    snprintf(word, sizeof word, "%.*s", (int)QN_MIN(len, sizeof word), text);
    const char *arg = text[len] == ':' ? text + len + 1 : NULL;
    int kind = find_kind(word, error, error_size);
    if (kind < 0) {
        return kind;
    }
    struct qn_dist_spec got = {.kind = (enum qn_dist_kind)kind};
    int err = QN_OK;
    if (kind == QN_DIST_ZIPF || kind == QN_DIST_LATEST) {
        err = parse_theta(&got, arg, error, error_size);
    } else if (kind == QN_DIST_HOTSPOT) {
        err = parse_hotspot(&got, arg, error, error_size);
    } else if (arg != NULL) {
        snprintf(error, error_size, "%s takes no parameter; remove ':%.20s'",
                 word, arg);
        err = QN_EINVAL;
    }
    if (err == QN_OK) {
        *spec = got;
    }
    return err;
}

static uint64_t gcd(uint64_t a, uint64_t b)
{
    while (b > 0) {
        uint64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

void qn_dist_init(struct qn_dist *d, const struct qn_dist_spec *spec,
                  uint64_t n)
{
    QN_ASSERT(n >= 1 && n <= QN_DIST_N_MAX);
    *d = (struct qn_dist){.spec = *spec, .n = n};
    double hot = floor((double)n * spec->hot_keys + 0.5);
    d->hot = QN_MIN(QN_MAX((uint64_t)hot, UINT64_C(1)), n);
    qn_zipf_init(&d->zipf, n, spec->theta);
    uint64_t a = (uint64_t)((double)n * 0.6180339887498949);
    while (gcd(a, n) != 1) { /* ends at a prime below n at the latest */
        a++;
    }
    d->spread = a;
    d->spread_ratio = (a << 32) / n;
}

uint64_t qn_dist_key(const struct qn_dist *d, uint64_t rank)
{
    QN_DASSERT(rank < d->n);
    uint64_t quotient = (rank * d->spread_ratio) >> 32;
    uint64_t key = rank * d->spread - quotient * d->n;
    return key < d->n ? key : key - d->n;
}

void qn_walk_init(struct qn_walk *w, const struct qn_dist *dist,
                  uint64_t number, uint64_t clients, uint64_t seed)
{
    QN_ASSERT(number < clients);
    *w = (struct qn_walk){
        .dist = dist,
        .number = number,
        .clients = clients,
        .random = seed,
        .next = number % dist->n,
        .zipf = dist->zipf,
    };
}

static uint64_t draw_hotspot(const struct qn_dist *d, uint64_t *random)
{
    bool hot =
        qn_random_fraction(qn_random_next(random)) < d->spec.hot_requests;
    if (hot || d->hot == d->n) {
        return qn_random_below(random, d->hot);
    }
    return d->hot + qn_random_below(random, d->n - d->hot);
}

/* The key that was inserted `age` insertions ago, by the order of this
 * client. */
static uint64_t key_of_age(const struct qn_walk *w, uint64_t age)
{
    if (age < w->inserted) {
        return w->dist->n + w->number + (w->inserted - 1 - age) * w->clients;
    }
    return w->dist->n - 1 - (age - w->inserted);
}

static uint64_t next_in_turn(struct qn_walk *w)
{
    uint64_t key = w->next;
    w->next = (key + w->clients) % w->dist->n;
    return key;
}

uint64_t qn_walk_next(struct qn_walk *w)
{
    const struct qn_dist *d = w->dist;
    switch (d->spec.kind) {
    case QN_DIST_ZIPF:
        return qn_dist_key(d, qn_zipf_draw(&d->zipf, &w->random));
    case QN_DIST_HOTSPOT:
        return qn_dist_key(d, draw_hotspot(d, &w->random));
    case QN_DIST_LATEST:
        return key_of_age(w, qn_zipf_draw(&w->zipf, &w->random));
    case QN_DIST_SEQUENTIAL:
        return next_in_turn(w);
    case QN_DIST_UNIFORM:
        break;
    }
    return qn_random_below(&w->random, d->n);
}

uint64_t qn_walk_insert(struct qn_walk *w)
{
    uint64_t key = w->dist->n + w->number + w->inserted * w->clients;
    w->inserted++;
    if (w->dist->spec.kind == QN_DIST_LATEST) {
        qn_zipf_init(&w->zipf, w->dist->n + w->inserted, w->dist->spec.theta);
    }
    return key;
}
