#ifndef QN_LOADGEN_VERIFY_CHECKER_MODEL_INTERNAL_H
#define QN_LOADGEN_VERIFY_CHECKER_MODEL_INTERNAL_H

/**
 * The history of one key as zones.c and search.c use it: each operation has a
 * need (state of the register before it) and an effect.
 *
 *     get -> 5          needs the value 5        keeps it
 *     get -> nil        needs it absent          keeps it
 *     set 6             needs nothing            writes 6
 *     add 6 -> ok       needs it absent          writes 6
 *     add 6 -> failed   needs it present         keeps it
 *     cas 5 6 -> ok     needs the value 5        writes 6
 *     cas 5 6 -> failed needs another than 5     keeps it
 *     del -> 1          needs it present         erases it
 *     del -> 0          needs it absent          keeps it
 *     incr 2 -> 6       needs the value 4        writes 6
 *     incr 2 -> 2       needs 0 or absent        writes 2
 *     incr 2 -> ?       needs nothing            adds 2
 *
 * A **slot** is a value that an operation needs or writes; slot 0 is "absent".
 * An operation that keeps the register is a *reader*. Operations of unknown
 * outcome are *optional*, unless an operation saw a value that only they can
 * have written.
 */

#include "loadgen/verify/checker/linear.h"
#include "loadgen/verify/history/history.h"

enum { QN_SLOT_NIL = 0, QN_SLOT_NONE = -1 };

enum qn_need {
    QN_NEED_NOTHING,
    QN_NEED_VALUE,
    QN_NEED_OTHER, /* absent, or a value other than need_slot's */
    QN_NEED_NIL,
    QN_NEED_PRESENT,
    QN_NEED_ZERO, /* absent, or the value 0 */
};

enum qn_effect {
    QN_EFFECT_KEEP,
    QN_EFFECT_WRITE,
    QN_EFFECT_ERASE,
    QN_EFFECT_ADD,
};

struct qn_model_op {
    qn_time_t inv;
    qn_time_t resp;    /* QN_TIME_NEVER: unknown */
    int64_t value;     /* written, or added */
    int32_t need_slot; /* NEED_VALUE, NEED_OTHER; NEED_NIL: QN_SLOT_NIL */
    int32_t slot;      /* EFFECT_WRITE */
    uint32_t record;   /* index of the record */
    uint8_t need;      /* enum qn_need */
    uint8_t effect;    /* enum qn_effect */
    bool must;         /* required (it has happened); false: optional */
};

/* A chain is a sequence of values, each exchanged for the next one: nothing can
 * come between its first writer and its last reader. */
struct qn_model_chain {
    qn_time_t resp_min; /* over its operations */
    qn_time_t inv_max;
    uint32_t resp_op; /* operation with resp_min */
    uint32_t inv_op;
    uint32_t mentions; /* mentions of its slots */
};

struct qn_model_slot {
    int64_t value;
    int32_t writer;    /* op; -1: none. One of several, if not `unique` */
    int32_t chain;     /* index; -1: none */
    int32_t next;      /* slot for which it is exchanged; -1: none */
    uint32_t readers;  /* required operations that need it */
    uint32_t mentions; /* operations that depend on the value being a different
                          one: refused exchanges, and optional ones */
};

enum qn_model_class {
    QN_MODEL_REGISTER, /* each value has at most one writer, no increments */
    QN_MODEL_COUNTER,  /* increments by more than 0, and gets */
    QN_MODEL_GENERAL,
};

struct qn_model {
    struct qn_model_op *op; /* [op_count] by inv */
    uint32_t op_count;
    struct qn_model_slot *slot; /* [slot_count] */
    int32_t slot_count;
    struct qn_model_chain *chain; /* [chain_count], filled by zones.c */
    int32_t chain_count;
    int32_t *table; /* [table_mask + 1] value -> slot, open addressing */
    uint64_t table_mask;
    enum qn_model_class class;
    bool erases;     /* an operation may erase it */
    bool conditions; /* an operation needs OTHER or PRESENT */
};

/** @param general  Use class GENERAL in any case.
 *  @return QN_OK; QN_ENOMEM, then there is nothing to free. */
int qn_model_init(struct qn_model *m, const struct qn_record *records, size_t n,
                  bool general);
void qn_model_fini(struct qn_model *m);

/** Slot of a value; QN_SLOT_NONE if no operation names it. */
int32_t qn_model_find(const struct qn_model *m, int64_t value);

/** True if the value of slot s cannot return after it was replaced. */
bool qn_model_leaves_for_good(const struct qn_model *m, int32_t s);

/** Class REGISTER only: builds the chains and compares their zones. Fills
 *  `out`; LINEARIZABLE is final unless the model erases or has conditions.
 *  @return QN_OK, QN_ENOMEM. */
int qn_zones_check(struct qn_model *m, struct qn_linear_result *out);

/** Any class; REGISTER after qn_zones_check found nothing. Consumes the counts
 *  of the model. @return QN_OK, QN_ENOMEM. */
int qn_search_check(struct qn_model *m, const struct qn_linear_opts *opts,
                    struct qn_linear_result *out);

#endif
