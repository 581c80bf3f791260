#ifndef QN_KVS_COMMANDS_CMD_SYNTAX_H
#define QN_KVS_COMMANDS_CMD_SYNTAX_H

/**
 * The table's notation for a command's arguments, which is that of manual
 * pages, and its translation for COMMAND DOCS and HELP.
 *
 *   key  start:integer      an argument and its type; none: string, and `key`
 *                           is a key
 *   NX                      a token
 *   EX seconds:integer      a token with its argument
 *   (a b)                   a block
 *   (A|B)                   one of them
 *   [..]                    the same, optional
 *   x...                    one or more times
 *
 * Pure, any thread. A syntax is text of the table: an error in it is an
 * assertion.
 */

#include <stddef.h>
#include <stdint.h>

#include "kvs/base/buf.h"

#define QN_CMD_SYNTAX_HELP_MAX 256u

/** Append the value of "arguments" in COMMAND DOCS: an array of maps. */
void qn_cmd_syntax_reply(struct qn_buf *reply, uint8_t proto,
                         const char *syntax);

/** The syntax without types, for human readers, NUL-terminated.
 *  @param to  [QN_CMD_SYNTAX_HELP_MAX] filled. */
void qn_cmd_syntax_help(const char *syntax, char *to);

#endif
