/*
 * A node sleeps when it found nothing to do, as core/qp.c does it: it declares
 * sleep, flushes, looks once more. It is scheduled again only when it was rung.
 * If all sleep with messages missing, something was not seen.
 *
 * For some seeds a node that sends looks at nothing else, as one in qn_qp_send:
 * node 0 sends all, then node 1.
 */
#include "tests/unit/transports/mpb/strict_traffic.h"

#include "tests/unit/transports/mpb/mpb_world.h"

#define MESSAGES 60u
#define STEPS    20000u

struct node {
    struct qn_qp *qp;
    uint32_t sent, received;
    bool held; /* peeked and not released */
    bool asleep;
};

static struct mpb_world w;
static struct node nodes[2];
static uint64_t rng;
static const char *wrong;
static bool phases; /* a node sends or receives, not both */

static uint32_t draw(uint32_t n)
{
    rng = rng * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)(rng >> 33) % n;
}

static uint32_t length_of(uint32_t number)
{
    return number % 7 == 6 ? 900 : number * 13 % 57;
}

static bool sends(uint32_t i)
{
    const struct node *n = &nodes[i];
    return n->sent < MESSAGES && (!phases || i == 0 || n->received == MESSAGES);
}

static bool receives(uint32_t i)
{
    return !phases || !sends(i);
}

static bool send(uint32_t i)
{
    uint8_t msg[900];
    struct node *n = &nodes[i];
    memset(msg, (int)(n->sent + i * 100), sizeof msg);
    if (!sends(i) || qn_qp_try_send(n->qp, msg, length_of(n->sent)) != QN_OK) {
        return false;
    }
    n->sent++;
    return true;
}

static bool receive(uint32_t i)
{
    const void *at;
    size_t len;
    struct node *n = &nodes[i];
    if (n->held) {
        n->held = false;
        n->received++;
        qn_qp_release(n->qp);
        return true;
    }
    int rc = receives(i) ? qn_qp_peek(n->qp, &at, &len) : QN_EAGAIN;
    if (rc == QN_EAGAIN) {
        return false;
    }
    if (rc != QN_OK || len != length_of(n->received)) {
        wrong = "damage";
        return false;
    }
    for (size_t b = 0; b < len; b++) {
        if (((const uint8_t *)at)[b] != n->received + (1 - i) * 100) {
            wrong = "other bytes";
        }
    }
    n->held = true;
    return true;
}

static bool done(const struct node *n)
{
    return n->sent == MESSAGES && n->received == MESSAGES;
}

/* Nothing to do: sleep, unless there is something in the last look. */
static void sleep_if_idle(uint32_t i)
{
    struct node *n = &nodes[i];
    qn_doorbell_arm(&w.doorbell[i]);
    (void)qn_qp_flush(n->qp);
    const void *at;
    size_t len;
    bool look = receives(i) && qn_qp_peek(n->qp, &at, &len) != QN_EAGAIN;
    n->asleep = !look && (!sends(i) || qn_qp_room(n->qp) == 0);
    if (!n->asleep) {
        qn_doorbell_disarm(&w.doorbell[i]);
    }
}

static void turn(uint32_t i)
{
    struct node *n = &nodes[i];
    if (n->asleep && qn_load(&w.line[i].epoch, QN_SEQ_CST) % 2 != 0) {
        return; /* it was not rung */
    }
    n->asleep = false;
    switch (draw(4)) {
    case 0:
        (void)send(i);
        break;
    case 1:
        (void)receive(i);
        break;
    case 2:
        (void)qn_qp_flush(n->qp);
        break;
    default:
        if (!send(i) && !receive(i)) {
            sleep_if_idle(i);
        }
    }
}

const char *strict_traffic(uint64_t seed)
{
    uint32_t steps = 0;
    mpb_open_world(&w, seed % 2 == 0 ? 2 : 48, true, seed);
    rng = seed;
    phases = seed % 3 == 0;
    wrong = NULL;
    for (uint32_t i = 0; i < 2; i++) {
        nodes[i] = (struct node){.qp = mpb_open_qp(&w, i, 1 - i, 0)};
    }
    while (wrong == NULL && !(done(&nodes[0]) && done(&nodes[1]))) {
        turn(draw(2));
        if (++steps == STEPS) {
            wrong = "no progress";
        }
    }
    for (uint32_t i = 0; i < 2; i++) {
        if (wrong == NULL) {
            wrong = qn_mpb_fault(w.node[i]);
        }
        qn_qp_close(nodes[i].qp);
    }
    mpb_close_world(&w);
    return wrong;
}
