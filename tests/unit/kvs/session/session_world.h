#ifndef QN_TESTS_UNIT_KVS_SESSION_SESSION_WORLD_H
#define QN_TESTS_UNIT_KVS_SESSION_SESSION_WORLD_H

/**
 * A front end without sockets: clients whose bytes lie in memory, one turn for
 * all of them, and a replica that applies when the test says so.
 *
 * world_turn() does what kvs/frontend does in a turn, in the same order. The
 * bytes of a turn lie in memory of their own that is overwritten and freed at
 * its end, so a session that keeps a pointer to them is found.
 */

#include "kvs/session/turn.h"

enum { WORLD_CLIENTS = QN_SESSION_AHEAD + 2 };

struct client {
    struct qn_client_session session;
    struct qn_buf socket;   /* sent by the client, not yet read */
    size_t socket_at;       /* bytes of it that were read */
    bool sent_eof;          /* no more will come */
    size_t chunk;           /* bytes that one read takes at most */
    struct qn_buf received; /* replies */
    size_t accepts;         /* bytes of replies that its socket takes */
    struct qn_buf sending;  /* what it did not take */
    int error;              /* why it was closed: QN_EPERM, QN_ENOMEM; 0 */
    bool dropped;           /* closed, since its replies did not fit */
    uint64_t runs;          /* turns in which its requests were run */
    uint8_t *input;         /* bytes of this turn, or NULL */
    size_t input_len;
};

/** What the replica says. */
struct fake_replica {
    uint32_t room;          /* submissions that it still takes */
    bool unavailable;       /* nothing is started */
    bool no_memory;         /* a submission fails */
    bool has_store;         /* false: LOADING */
    qn_slot_t read_index;   /* of the next turn */
    qn_slot_t applied;      /* of the next turn */
    uint32_t tick;          /* the time, for commit-timeout */
    uint32_t tick_limit;    /* commit-timeout */
    qn_slot_t index_wanted; /* of the last wait_index() ... */
    uint32_t index_waits;   /* ... and how many there were */
    uint32_t ticks_asked;   /* calls of tick() */
    uint64_t submissions;   /* taken so far */
    uint64_t reads;         /* run at once */
    uint32_t aheads;        /* calls of prefetch() ... */
    char ahead[64];         /* ... the keys of the last one, in a row ... */
    uint64_t ahead_reads;   /* ... and the reads that had run */
    uint64_t last_index;    /* index of the last deferred read */
    bool late_now;   /* INFO: replies late, with an error, before it returns */
    bool late_fails; /* INFO: cannot be asked */
    struct client *kills; /* INFO: closes this one while it runs */
};

struct world {
    struct qn_turn turn;
    struct qn_info_part part;
    struct qn_resp_limits limits;
    struct client client[WORLD_CLIENTS];
    struct fake_replica replica;
    struct qn_store *store;
};

extern struct world world;

/** Everything is there, nothing is slow. */
void world_setup(void);
void world_teardown(void);

/** The client sends bytes. */
void client_send(struct client *c, const char *text);
void client_send_bytes(struct client *c, const void *bytes, size_t n);
/** It sends an array request of words separated by blanks, n times. */
void client_call(struct client *c, const char *words, unsigned n);
/** It sends nothing more. */
void client_eof(struct client *c);
/** It reads `n` bytes of what its socket did not take before. */
void client_reads(struct client *c, size_t n);

/** Read the sockets of all clients, run, flush. */
void world_turn(void);
/** Turns until no session wants another one at once. */
void world_settle(void);
/** The replica applies the oldest `n` submissions, and completes them. */
void world_apply(unsigned n);
/** The oldest submission completes with an error: it was given up. */
void world_give_up(void);
/** The oldest submission completes, and there was no memory for its reply. */
void world_complete_without_memory(void);
/** Bytes that were sent and not read. */
size_t client_unread(const struct client *c);
/** INFO gets its late reply. */
void world_answer(struct client *c, const char *text);

/** Compare with all replies since the last look. */
#define expect_replies(c, text)                                                \
    do {                                                                       \
        struct qn_buf *got_ = &(c)->received;                                  \
        cr_assert(                                                             \
            got_->len == strlen(text) &&                                       \
                (got_->len == 0 || memcmp(got_->data, text, got_->len) == 0),  \
            "expected \"%s\", got \"%.*s\"", text, (int)got_->len,             \
            got_->len == 0 ? "" : (const char *)got_->data);                   \
        got_->len = 0;                                                         \
    } while (0)

#define expect_state(c, state_, reason_)                                       \
    do {                                                                       \
        cr_assert((c)->session.state == (state_), "state %d",                  \
                  (int)(c)->session.state);                                    \
        cr_assert((c)->session.reason == (reason_), "blocked for %d",          \
                  (int)(c)->session.reason);                                   \
    } while (0)

#define expect_running(c)    expect_state(c, QN_SESSION_RUN, QN_NOT_BLOCKED)
#define expect_blocked(c, r) expect_state(c, QN_SESSION_BLOCKED, r)
#define expect_closed(c)     expect_state(c, QN_SESSION_CLOSED, QN_NOT_BLOCKED)

#endif
