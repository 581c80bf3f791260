#ifndef QN_KVS_CONFIG_ARGS_H
#define QN_KVS_CONFIG_ARGS_H

/**
 * The command line of `quoind`:
 *
 *     quoind [FILE] [--option value | --option=value | --flag]... [--upgrade]
 *
 * FILE comes first, so that options overrule it. Options are those of
 * kvs/config/config.h. Any thread; blocks only to read FILE.
 */

#include <stdio.h>

#include "kvs/config/config.h"

enum qn_args_ask {
    QN_ARGS_RUN,
    QN_ARGS_UPGRADE, /* run, with --upgrade */
    QN_ARGS_HELP,    /* --help */
    QN_ARGS_VERSION, /* --version */
};

/**
 * Parse argv[1..argc).
 *
 * @param c    Filled, beginning with the defaults; undefined on failure.
 * @param ask  Filled: what to do.
 * @param why  [cap] Filled on failure: one line.
 * @return QN_OK; QN_EINVAL: a bad value or word; QN_ENOENT: no such option;
 *         QN_EIO: FILE cannot be read.
 */
int qn_args_parse(int argc, char **argv, struct qn_config *c,
                  enum qn_args_ask *ask, char *why, size_t cap);

/** Print the help: all options with their defaults. */
void qn_args_help(FILE *to);

#endif
