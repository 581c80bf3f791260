#ifndef QN_LOADGEN_SIMULATE_LOCKS_AUTO_COMMAND_H
#define QN_LOADGEN_SIMULATE_LOCKS_AUTO_COMMAND_H

/** `quoin sim auto`: how close is `auto` to the best backend that it chooses
 *  from? argv[0] is the operation. @return the exit status. One thread. */
int qn_auto_command(int argc, char **argv);

#endif
