#ifndef QN_KVS_CONFIG_CONFIG_INTERNAL_H
#define QN_KVS_CONFIG_CONFIG_INTERNAL_H

/**
 * What the parts of the configuration share:
 *
 *     config.c        the table, what is known of an option
 *     config_value.c  a value as text, read and written
 *     config_set.c    set at start, set by CONFIG SET, told by CONFIG GET
 */

#include "kvs/config/config.h"

enum qn_config_storage {
    QN_CONFIG_FIXED, /* none: it cannot be changed */
    QN_CONFIG_BOOL,
    QN_CONFIG_U32,
    QN_CONFIG_U64,    /* a size */
    QN_CONFIG_OUTPUT, /* a limit of output, see qn_config_start */
    QN_CONFIG_TEXT,
};

/** A word that may be written in place of a number. */
struct qn_config_word {
    const char *name; /* NULL: end of the list */
    uint64_t value;
};

struct qn_config_row {
    const char *name;
    const char *arg;
    const char *initial;
    const char *help;
    enum qn_config_storage storage;
    size_t at;                         /* offset in struct qn_config */
    uint64_t min, max;                 /* of a number; max 0: words only */
    const struct qn_config_word *word; /* NULL: none */
    enum qn_config_when when;
};

/** By name, any case; NULL. */
const struct qn_config_row *qn_config_find(const char *name);

/** The i-th; NULL past the last one. */
const struct qn_config_row *qn_config_row(uint32_t i);

/** Fill `why` [cap]: no such option, and the nearest name. */
void qn_config_why_unknown(const char *name, char *why, size_t cap);

/** Store what `text` says. @return QN_OK; QN_EINVAL: `why` [cap] filled, *c
 *  untouched. */
int qn_config_read(const struct qn_config_row *r, struct qn_config *c,
                   const char *text, char *why, size_t cap);

/** The value of the row's option as text; `room` [QN_CONFIG_NUMBER_MAX] is
 *  used for numbers. */
const char *qn_config_write(const struct qn_config_row *r,
                            const struct qn_config *c, char *room);

/** Fill `why` [cap] with the values that the option accepts. `parsed`: the
 *  text had the right form, but was out of range. */
void qn_config_why(const struct qn_config_row *r, bool parsed, char *why,
                   size_t cap);

#endif
