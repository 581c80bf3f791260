#ifndef QN_LOADGEN_BASE_TARGET_H
#define QN_LOADGEN_BASE_TARGET_H

/**
 * Where something is written to, the same for every subcommand: a path, or -
 * for standard output. What is written follows from the end of the path's name
 * (a.svg), if the subcommand has several forms and no option says which.
 *
 * Files to be written are tried before what is to be written is worked out: a
 * wrong path costs a line, not a measurement or a survey.
 *
 * One thread.
 */

#include <stdbool.h>
#include <stdio.h>

/** NULL, what was not named, and - are. */
bool qn_target_is_stdout(const char *path);

/** The path, or "standard output". */
const char *qn_target_name(const char *path);

/** What follows the last dot in the last part of the path: "svg"; "" without
 *  one. */
const char *qn_target_ending(const char *path);

/** Open for writing. @return NULL: errno says why. */
FILE *qn_target_open(const char *path);

/** Close; standard output is only flushed. What went wrong with any write
 *  shows here. @return 0 or an errno. */
int qn_target_close(FILE *to);

/**
 * Can `path` be written? What is there stays as it is.
 *
 * @param program  Begins the line.
 * @param option   That names it, without dashes.
 * @param folder   What to do if it is a folder.
 * @return the exit status: 0; 2 after a line on stderr.
 */
int qn_target_check(const char *program, const char *option, const char *path,
                    const char *folder);

#endif
