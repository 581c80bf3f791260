#ifndef QN_TESTS_SIM_VIEWS_VIEW_NET_INTERNAL_H
#define QN_TESTS_SIM_VIEWS_VIEW_NET_INTERNAL_H

/** The net of one run, shared by the files of this folder. */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "tests/sim/views/view_net.h"
#include "tests/support/replay.h"
#include "tests/support/test.h"

#define MAX        VIEW_NET_MAX
#define LONG       65000u /* bytes of a long message */
#define ROUNDS_MAX 60000u
#define CONTROLS   16u
#define HEARD_ROUNDS                                                           \
    60u /* it takes to hear of a death: of the telling, or of                  \
           the decider's question */

enum sort { FLOW, REQUEST, SORTS };

struct message {
    uint16_t view;
    bool stable; /* on a request lane: from the root */
    struct qn_flow_head head;
    uint32_t len;
    uint64_t visible; /* round */
    uint8_t *bytes;
};

struct lane {
    struct message message[VIEW_NET_ROOM];
    uint32_t head, tail;
    uint64_t last; /* visible */
};

/* From the decider. */
struct control {
    uint64_t visible;
    uint16_t attempt;
    bool enters;
    struct qn_view view;
    struct qn_wiring *wiring; /* enters: given */
};

struct member {
    struct net *net;
    qn_node_t self;
    bool alive, in_view;
    uint32_t incarnation;
    struct qn_sequence *s;
    struct qn_wiring *wiring;
    uint16_t view;
    bool left;
    qn_node_t root;
    uint64_t submitted, ended;
    struct qn_tag *log; /* [delivered] by number - 1 */
    uint32_t delivered, log_size;
    uint64_t tell_at[MAX]; /* of a death; 0: no */
    uint64_t hears_by;     /* round; 0: no death in its view */
    struct control control[CONTROLS];
    uint32_t first_control, last_control;
    uint64_t last_visible;
};

struct net {
    uint64_t random, round;
    uint32_t n, window, room, credit, len_max, delay, target, kills, joins;
    struct member member[MAX];
    struct lane lane[MAX][MAX][SORTS]; /* [from][to] */
    uint32_t fuse; /* actions until the member that acts is killed; 0: none */
    struct view_coverage *c;
    /* The decider. */
    bool deciding;
    uint64_t decide_at; /* it has heard of a death; 0: no */
    uint16_t attempt;
    bool member_of[MAX], reported[MAX];
    struct qn_view_report report[MAX];
    uint64_t report_at[MAX];
    uint32_t entering; /* members that have been told, and have not entered */
};

static inline uint32_t view_draw(struct net *net, uint32_t bound)
{
    QN_ASSERT(bound > 0);
    net->random = net->random * UINT64_C(6364136223846793005) + 1442695;
    return (uint32_t)(net->random >> 33) % bound;
}

static inline uint64_t view_soon(struct net *net)
{
    return net->round + 1 + view_draw(net, net->delay);
}

/* ---- view_lanes.c ---- */

struct message *view_first_of(struct lane *l);
void view_pop(struct lane *l);
bool view_has_room(const struct net *net, const struct lane *l);
void view_put(struct net *net, struct lane *l, const struct message *m,
              const uint8_t *bytes);
void view_empty(struct lane *l);
uint32_t view_length_of(const struct net *net, const struct qn_tag *t);
uint8_t view_byte_of(const struct qn_tag *t, uint32_t i);

/* ---- view_lives.c ---- */

uint64_t view_last_of(const struct member *m, uint32_t source,
                      uint32_t incarnation);
void view_append(struct member *m, const struct qn_tag *t);
void view_on_deliver(void *ctx, uint32_t number,
                     const struct qn_retained_message *msg);
void view_check_ended(struct member *m);
void view_check_heard(struct net *net);
uint32_t view_living(const struct net *net);
void view_end_member(struct member *m);
bool view_survives(struct member *m);

/* ---- view_decider.c ---- */

struct member *view_make_member(struct net *net, uint32_t v, uint32_t delivered,
                                const struct qn_tag *tag);
void view_decider(struct net *net);

/* ---- view_member.c ---- */

void view_turn(struct member *m);

#endif
