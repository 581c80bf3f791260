#ifndef QN_TESTS_CONFORMANCE_BOARD_H
#define QN_TESTS_CONFORMANCE_BOARD_H

/**
 * Views between real threads and real processes, of which some end without a
 * word: by SIGKILL, or by pthread_exit. What a supervisor does (it says which
 * nodes live, asks for reports, and tells the next view) is a board in shared
 * memory: the living node with the lowest number decides, and the node that
 * ends says so itself, at the last moment. Every change of the board rings all
 * doorbells, and nodes sleep without a deadline: a lost wake-up is a hang.
 */

#include "core/coll/coll_view.h"
#include "tests/conformance/mesh_of.h"

#define BOARD_NODES_MAX 8u
#define BOARD_ATTEMPTS  8u

struct board_slot {
    qn_a32 is_there; /* release -> acquire: the rest */
    union {
        struct qn_view_report report;
        struct qn_view view;
    } of;
};

struct board {
    qn_a32 ended[BOARD_NODES_MAX]; /* by node */
    qn_a32 done[BOARD_NODES_MAX];
    qn_a32 attempt; /* the view that is being decided, or the present one; the
                       first, which is not on the board, is 1 */
    struct board_slot report[BOARD_ATTEMPTS][BOARD_NODES_MAX];
    struct board_slot view[BOARD_ATTEMPTS];
};

/** What the node does of its own. */
struct board_user {
    void (*down)(void *ctx, qn_node_t v); /* v has ended: take what it has sent,
                                             and end the view */
    void (*leave)(void *ctx, struct qn_view_report *out);
    void (*left)(void *ctx); /* before the report is told */
    void (*enter)(void *ctx, const struct qn_view *view);
};

struct board_node {
    struct board *board;
    struct qn_mesh_end *end;
    uint32_t n;
    bool processes;
    const struct board_user *user;
    void *ctx;
    uint32_t attempt; /* this node's */
    bool told[BOARD_NODES_MAX];
    bool in_view;
    struct qn_mesh_end left_behind;
    struct board_node *next;
};

/** A board for processes that are forked; NULL at the end of memory. */
void *board_map(size_t bytes);

bool board_lives(const struct board *b, qn_node_t v);
void board_ring_all(struct board_node *n);

/** This node ends here, without a word but to the board. */
void board_end_here(struct board_node *n);

/** Hear of deaths, leave, decide, enter. @return true: something has changed.
 */
bool board_look(struct board_node *n);

/** This node is done. */
void board_say_done(struct board_node *n);
/** All living nodes are. */
bool board_all_done(const struct board_node *n);

#endif
