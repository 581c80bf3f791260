#ifndef QN_LOADGEN_SIMULATE_LARGE_LARGE_COMMAND_H
#define QN_LOADGEN_SIMULATE_LARGE_LARGE_COMMAND_H

/** `quoin sim large`: how fast is each variant of a large collective on a
 *  described machine? argv[0] is the operation. @return the exit status. One
 *  thread. */
int qn_large_sim_command(int argc, char **argv);

#endif
