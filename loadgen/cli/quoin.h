#ifndef QN_LOADGEN_CLI_QUOIN_H
#define QN_LOADGEN_CLI_QUOIN_H

/**
 * The subcommands of `quoin`. Each is a `main` of its own: argv[0] is the last
 * word of the subcommand, the rest is what followed it on the command line. The
 * result is the exit status: 0, 1 (it ran and failed) or 2 (wrong usage); 3 and
 * 4 are verdicts (verify.h). A new subcommand gets a prototype here, a row in
 * quoin.c and its source in CMakeLists.txt.
 */

typedef int qn_subcommand_fn(int argc, char **argv);

qn_subcommand_fn qn_load;               /* load.c */
qn_subcommand_fn qn_bench_channel;      /* bench_channel.c */
qn_subcommand_fn qn_bench_broadcast;    /* bcast/bcast_command.c */
qn_subcommand_fn qn_bench_ack;          /* bcast/bcast_command.c */
qn_subcommand_fn qn_bench_calls;        /* bench_calls.c */
qn_subcommand_fn qn_bench_reduce;       /* bcast/bcast_command.c */
qn_subcommand_fn qn_bench_barrier;      /* barrier/barrier_bench.c */
qn_subcommand_fn qn_bench_tree_barrier; /* bcast/bcast_command.c */
qn_subcommand_fn qn_bench_allreduce;    /* bcast/bcast_command.c */
qn_subcommand_fn qn_bench_2pc;          /* bcast/bcast_command.c */
qn_subcommand_fn qn_bench_lock;         /* sync/round_threads.c */
qn_subcommand_fn qn_bench_delegate;     /* sync/round_threads.c */
qn_subcommand_fn qn_bench_queue;        /* sync/round_threads.c */
qn_subcommand_fn qn_bench_stack;        /* sync/round_threads.c */
qn_subcommand_fn qn_bench_commit;       /* commit/commit_bench.c */
qn_subcommand_fn qn_bench_feed;         /* commit/feed_bench.c */
qn_subcommand_fn qn_bench_coll;         /* large/large_command.c */
qn_subcommand_fn qn_bench_collectives;  /* collective/collective_command.c */
qn_subcommand_fn qn_bench_ring;         /* collective/collective_command.c */
qn_subcommand_fn qn_bench_store;        /* bench_store.c */
qn_subcommand_fn qn_bench_stall;        /* bench_stall.c */
qn_subcommand_fn qn_verify_command;     /* verify_command.c */
qn_subcommand_fn qn_events_command;     /* events_command.c */
qn_subcommand_fn qn_recover_command;    /* recover_command.c */
qn_subcommand_fn qn_member_command;     /* member_command.c */
qn_subcommand_fn qn_sim_command;        /* sim_command.c */
qn_subcommand_fn qn_machine_command;    /* machine/machine_command.c */
qn_subcommand_fn qn_tree_command;       /* topo/tree_command.c */

/** Become quoin-sim, which lies beside this program, as it is for a subcommand
 *  in virtual time. @param program  First words of the line if that fails.
 *  @param argv  The subcommand's. @return 1, an exit status. */
int qn_sim_execute(const char *program, char *const *argv);

#endif
