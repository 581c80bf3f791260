#ifndef QN_TESTS_SUPPORT_REPLAY_H
#define QN_TESTS_SUPPORT_REPLAY_H

/**
 * The command that replays the run that is under way: one of many that a seed
 * makes. If the process aborts or breaks memory (an assertion, an invariant, a
 * bound), it is the last line on stderr:
 *
 *     replay: QN_SIM_SEED=269 test_paxos_sim
 *
 * One thread. The process gets the handlers of SIGABRT and SIGSEGV for good.
 */

/** Before each run. printf's format; at most 255 bytes are kept. */
void replay_by(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** "replay: ...", for messages of checks behind the run. */
const char *replay_line(void);

#endif
