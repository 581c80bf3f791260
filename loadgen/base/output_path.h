#ifndef QN_LOADGEN_BASE_OUTPUT_PATH_H
#define QN_LOADGEN_BASE_OUTPUT_PATH_H

/**
 * Output paths, the same for every subcommand: a path, or - for standard
 * output. If a subcommand has several output formats and no option chooses one,
 * the extension of the path (a.svg) does.
 *
 * Output paths are checked before the work begins, so that a wrong path costs
 * one line and not a measurement.
 *
 * One thread.
 */

#include <stdbool.h>
#include <stdio.h>

/** True for NULL (no path was given) and for "-". */
bool qn_output_path_is_stdout(const char *path);

/** The path, or "standard output". */
const char *qn_output_path_name(const char *path);

/** The extension: the text after the last dot of the last path component, for
 *  example "svg"; "" if there is none. */
const char *qn_output_path_ending(const char *path);

/** Open for writing. @return NULL on failure; errno is set. */
FILE *qn_output_path_open(const char *path);

/** Close the file; standard output is flushed and stays open. Reports errors of
 *  earlier writes, too. @return 0 or an errno. */
int qn_output_path_close(FILE *to);

/**
 * Check that `path` can be written; existing content is not changed.
 *
 * @param program  First word of the error line.
 * @param option   Name of the option that gave the path, without dashes.
 * @param folder   Text for the error line if the path is a folder: what to do.
 * @return the exit status: 0, or 2 after an error line on stderr.
 */
int qn_output_path_check(const char *program, const char *option,
                         const char *path, const char *folder);

#endif
