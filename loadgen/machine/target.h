#ifndef QN_LOADGEN_MACHINE_TARGET_H
#define QN_LOADGEN_MACHINE_TARGET_H

/**
 * Files to be written are tried before what is to be written is worked out: a
 * wrong path costs a line, not a measurement or a survey.
 */

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
