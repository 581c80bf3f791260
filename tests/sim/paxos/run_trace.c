/*
 * See run_trace.h. What a slot holds is remembered for each incarnation, so
 * that a line names the slots that changed only. A slot that the log has
 * dropped was applied, so it stays what it was.
 */
#include "tests/sim/paxos/run_trace.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "paxos/machine/onepaxos_internal.h"

#define LIVES_MAX 1024u
#define SLOTS_MAX 65536u
#define LINE_MAX  512u

struct slot_seen {
    uint64_t hash;
    uint32_t state; /* enum qn_slot_state */
};

struct life {
    qn_node_t node;
    uint64_t inc;
    qn_epoch_t st_from;   /* of the staged set that was written */
    uint32_t ring_tenure; /* of the own ring, of which ... */
    qn_slot_t ring_end;   /* ... the slots below are written */
    char last[LINE_MAX];
    struct slot_seen *slot; /* [SLOTS_MAX] */
};

struct run_trace {
    FILE *f;
    uint32_t entries, lives;
    struct life life[LIVES_MAX];
};

struct run_trace *run_trace_open(FILE *f)
{
    struct run_trace *r = calloc(1, sizeof *r);
    QN_ASSERT(r != NULL);
    r->f = f;
    return r;
}

void run_trace_close(struct run_trace *r)
{
    for (uint32_t i = 0; i < r->lives; i++) {
        free(r->life[i].slot);
    }
    free(r);
}

static struct life *life_of(struct run_trace *r, const struct qn_onepaxos *p)
{
    uint64_t inc = p->incarnation[p->self];
    for (uint32_t i = r->lives; i-- > 0;) {
        if (r->life[i].node == p->self && r->life[i].inc == inc) {
            return &r->life[i];
        }
    }
    QN_ASSERT(r->lives < LIVES_MAX);
    struct life *x = &r->life[r->lives++];
    *x = (struct life){.node = p->self, .inc = inc, .st_from = QN_EPOCH_NONE};
    x->slot = calloc(SLOTS_MAX, sizeof *x->slot);
    QN_ASSERT(x->slot != NULL);
    return x;
}

static uint64_t hash_of(struct qn_slice bytes)
{
    return XXH3_64bits(bytes.data, bytes.len);
}

/* --------------------------------------------------------------- state -- */

static const char *epoch_text(char *at, qn_epoch_t e)
{
    if (e == QN_EPOCH_NONE) {
        return "-";
    }
    sprintf(at, "%u", e);
    return at;
}

/** The entry that this node proposes now, if it names a role. */
static void write_wish(const struct qn_onepaxos *p, char *line, size_t len)
{
    const struct qn_ul_entry *w = &p->ul.want;
    bool roles = w->kind == QN_UL_LEADER || w->kind == QN_UL_ACCEPTOR;
    if (!qn_utility_proposing(&p->ul) || !roles) {
        snprintf(line, len, "-");
        return;
    }
    snprintf(line, len, "%u/%u/%u.%" PRIu64, p->ul.len, w->kind, w->acceptor,
             w->acceptor_inc);
}

/** Memory acceptor: the register, the own ring, a copy under way. */
static void write_memory(const struct qn_onepaxos *p, char *line, size_t len)
{
    char copy[16];
    if (p->memory == NULL) {
        line[0] = 0;
        return;
    }
    const struct qn_ring *own = &p->memory->own;
    struct qn_accept_register w = qn_memory_acceptor_load(p->memory);
    snprintf(line, len,
             " register=%" PRIu64 "/%" PRIu64 " lo=%" PRIu64 " copy=%s"
             " copied=%" PRIu64 " applied=%" PRIu64,
             w.epoch, w.hi, own->lo, epoch_text(copy, p->change.copy_epoch),
             p->change.copy_next, p->applied);
}

/** All but the slots. */
static void write_state(const struct qn_onepaxos *p, char *line)
{
    char memory[128];
    char cep[16], st[16], wish[64];
    const struct qn_reconfiguration *c = &p->change;
    const struct qn_acceptor *a = &p->acceptor;
    write_wish(p, wish, sizeof wish);
    write_memory(p, memory, sizeof memory);
    int n = snprintf(
        line, LINE_MAX,
        "idx=%u leader=%u.%" PRIu64 " acceptor=%u.%" PRIu64 " tenure=%u"
        " role=%d ep=%u cep=%s next=%" PRIu64 " learned=%" PRIu64
        " on=%d my_tenure=%u promised=%u hi=%" PRIu64 " st_from=%s"
        " st_base=%" PRIu64 " st_hi=%" PRIu64 " wish=%s%s",
        p->cfg.index, p->cfg.leader, p->cfg.leader_inc, p->cfg.acceptor,
        p->cfg.acceptor_inc, p->cfg.tenure, p->leader.role, p->leader.ep,
        epoch_text(cep, c->cep), p->leader.next, p->learned_hi, a->active,
        a->tenure, a->promised, a->hi, epoch_text(st, c->st_from), c->st_base,
        c->st_hi, wish, memory);
    QN_ASSERT(n < (int)LINE_MAX);
}

/** Put the slots that changed behind the line. @return true: there are some. */
static bool write_slots(struct life *x, const struct qn_onepaxos *p, FILE *line)
{
    bool any = false;
    for (qn_slot_t s = p->log.lo; s < p->log.end; s++) {
        const struct qn_log_entry *e = qn_log_at(&p->log, s);
        struct slot_seen now = {.state = e->state};
        QN_ASSERT(s < SLOTS_MAX);
        if (e->state != QN_SLOT_EMPTY) {
            now.hash = XXH3_64bits(e->batch->bytes, e->batch->len);
        }
        if (now.state != x->slot[s].state || now.hash != x->slot[s].hash) {
            fprintf(line, " %" PRIu64 ":%c:%016" PRIx64, s, "EPL"[now.state],
                    now.hash);
            x->slot[s] = now;
            any = true;
        }
    }
    return any;
}

static void write_staged(struct life *x, const struct qn_onepaxos *p,
                         FILE *line)
{
    const struct qn_reconfiguration *c = &p->change;
    bool fresh = c->st_from != x->st_from && c->st_from != QN_EPOCH_NONE;
    x->st_from = c->st_from;
    for (qn_slot_t s = c->st_base + 1; fresh && s <= c->st_hi; s++) {
        const struct qn_refbuf *b = qn_log_at(&c->staged, s)->batch;
        fprintf(line, " %" PRIu64 ":S:%016" PRIx64, s,
                XXH3_64bits(b->bytes, b->len));
    }
}

/** What was written into the own ring since the last line. */
static void write_ring(struct life *x, const struct qn_onepaxos *p, FILE *line)
{
    if (p->memory == NULL) {
        return;
    }
    const struct qn_ring *own = &p->memory->own;
    bool again = x->ring_tenure != own->tenure;
    qn_slot_t s = again ? own->lo : QN_MAX(x->ring_end, own->lo);
    for (; s < own->end; s++) {
        struct qn_refbuf *b = NULL;
        qn_epoch_t epoch;
        if (qn_ring_read(own, s, &qn_alloc_malloc, &epoch, &b) == QN_OK) {
            fprintf(line, " %" PRIu64 ":R:%016" PRIx64, s,
                    XXH3_64bits(b->bytes, b->len));
            qn_refbuf_unref(b);
        }
    }
    x->ring_tenure = own->tenure;
    x->ring_end = own->end;
}

/** Entries that no incarnation has known before. */
static void write_entries(struct run_trace *r, const struct qn_onepaxos *p)
{
    for (; r->entries < qn_utility_len(&p->ul); r->entries++) {
        const struct qn_ul_entry *e = qn_utility_entry(&p->ul, r->entries);
        if (e != NULL) {
            fprintf(r->f, "entry %u %u %u.%" PRIu64 " %u.%" PRIu64 " %u %u\n",
                    e->index, e->kind, e->leader, e->leader_inc, e->acceptor,
                    e->acceptor_inc, e->tenure, e->from);
        }
    }
}

/* --------------------------------------------------------------- lines -- */

/** Messages that are in the model. A long answer counts when it is whole. */
static bool in_model(const struct qn_msg *m)
{
    switch (m->kind) {
    case QN_MSG_ACCEPT:
    case QN_MSG_ACCEPTED:
    case QN_MSG_PREPARE:
    case QN_MSG_SEAL:
        return true;
    case QN_MSG_LEARN:
        return m->body.len != 0;
    case QN_MSG_PREPARED:
    case QN_MSG_SEALED:
        return (m->flags & QN_MSG_LAST) != 0;
    case QN_MSG_STAGE:
        return (m->flags & (QN_MSG_LAST | QN_MSG_UL)) != 0;
    case QN_MSG_STAGED:
        return (m->flags & QN_MSG_OK) != 0;
    default:
        return false;
    }
}

static void write_input(const struct qn_onepaxos *p, const struct qn_input *in,
                        FILE *line)
{
    const struct qn_msg *m = in->recv.msg;
    if (in->kind != QN_IN_RECV || !in_model(m)) {
        fprintf(line, "other");
        return;
    }
    bool ul = m->kind == QN_MSG_STAGE && (m->flags & QN_MSG_UL) != 0;
    uint32_t target = m->kind == QN_MSG_SEAL     ? m->seal.target
                      : m->kind == QN_MSG_SEALED ? m->sealed.target
                                                 : 0;
    fprintf(line,
            "recv %u.%" PRIu64 " %s%s epoch=%u slot=%" PRIu64
            " target=%u ok=%d",
            in->recv.from, p->incarnation[in->recv.from], qn_msg_name(m->kind),
            ul ? "_UL" : "", m->epoch, m->slot, target,
            (m->flags & QN_MSG_OK) != 0);
    if (m->kind == QN_MSG_ACCEPT) {
        fprintf(line, " batch=%016" PRIx64, hash_of(m->body));
    }
}

static void put(struct run_trace *r, const struct qn_onepaxos *p,
                const struct qn_input *in)
{
    struct life *x = life_of(r, p);
    char *text = NULL, state[LINE_MAX];
    size_t len = 0;
    FILE *line = open_memstream(&text, &len);
    QN_ASSERT(line != NULL);
    fprintf(line, "%s %u.%" PRIu64 " ", in == NULL ? "begin" : "step", x->node,
            x->inc);
    if (in != NULL) {
        write_input(p, in, line);
        fputc(' ', line);
    }
    write_state(p, state);
    fputs(state, line);
    write_staged(x, p, line);
    write_ring(x, p, line);
    bool slots = write_slots(x, p, line);
    bool model =
        in == NULL || (in->kind == QN_IN_RECV && in_model(in->recv.msg));
    fclose(line);
    write_entries(r, p);
    if (model || slots || strcmp(state, x->last) != 0) {
        memcpy(x->last, state, sizeof state);
        fprintf(r->f, "%s\n", text);
    }
    fflush(r->f);
    free(text);
}

/* ---------------------------------------------------------- utility log -- */

static const char *ballot_text(char *at, size_t len, const struct qn_ballot *b)
{
    if (b->round == 0) {
        return "-";
    }
    snprintf(at, len, "%u.%u.%" PRIu64, b->round, b->node, b->inc);
    return at;
}

/** The end of a line: ballots, and the value, an encoded entry. */
static void write_ballots(struct run_trace *r, const struct qn_ballot *bal,
                          const struct qn_ballot *vbal, struct qn_slice value)
{
    char at[48], voted[48];
    fprintf(r->f, " %s %s ", ballot_text(at, sizeof at, bal),
            ballot_text(voted, sizeof voted, vbal));
    if (value.len == 0) {
        fprintf(r->f, "-\n");
    } else {
        fprintf(r->f, "%016" PRIx64 "\n", hash_of(value));
    }
}

static void write_vote(struct run_trace *r, const struct qn_onepaxos *p,
                       const struct qn_vote *v)
{
    uint8_t bytes[QN_UL_BYTES];
    qn_ul_encode(&v->value, bytes);
    fprintf(r->f, "vote %u.%" PRIu64 " %u", p->self, p->incarnation[p->self],
            v->index);
    write_ballots(
        r, &v->bal, &v->vbal,
        (struct qn_slice){bytes, v->vbal.round == 0 ? 0 : sizeof bytes});
}

static void write_sent(struct run_trace *r, const struct qn_onepaxos *p,
                       const struct qn_msg *m)
{
    static const struct qn_ballot none;
    const bool chosen = m->kind == QN_MSG_U_CHOSEN;
    const size_t entries = chosen ? m->body.len / QN_UL_BYTES : 1;
    for (uint32_t i = 0; i < entries; i++) {
        struct qn_slice value = m->body;
        fprintf(r->f, "send %u.%" PRIu64 " %s %u", p->self,
                p->incarnation[p->self], qn_msg_name(m->kind), m->epoch + i);
        if (chosen) {
            value = (struct qn_slice){m->body.data + (size_t)i * QN_UL_BYTES,
                                      QN_UL_BYTES};
        }
        write_ballots(r, chosen ? &none : &m->u.bal,
                      m->kind == QN_MSG_U_PROMISE ? &m->u.vbal : &none, value);
    }
}

void run_trace_output(struct run_trace *r, const struct qn_onepaxos *p,
                      const struct qn_out *o)
{
    if (o->kind == QN_OUT_PERSIST) {
        write_vote(r, p, &o->vote);
    } else if (o->kind == QN_OUT_SEND || o->kind == QN_OUT_SEND_ALL) {
        switch (o->msg.kind) {
        case QN_MSG_U_PREPARE:
        case QN_MSG_U_PROMISE:
        case QN_MSG_U_ACCEPT:
        case QN_MSG_U_ACCEPTED:
        case QN_MSG_U_CHOSEN:
            write_sent(r, p, &o->msg);
            break;
        default:
            break;
        }
    }
    fflush(r->f);
}

/** Which promises a proposer has decides what it may propose. */
static void write_promise(struct run_trace *r, const struct qn_onepaxos *p,
                          const struct qn_input *in)
{
    const struct qn_msg *m = in->recv.msg;
    char bal[48];
    if (in->kind == QN_IN_RECV && m->kind == QN_MSG_U_PROMISE) {
        fprintf(r->f, "take %u.%" PRIu64 " %s %u %s %u\n", p->self,
                p->incarnation[p->self], qn_msg_name(m->kind), m->epoch,
                ballot_text(bal, sizeof bal, &m->u.bal), in->recv.from);
    }
}

/* ----------------------------------------------------------------- runs -- */

void run_trace_begins(struct run_trace *r, const struct qn_onepaxos *p)
{
    put(r, p, NULL);
}

void run_trace_step(struct run_trace *r, const struct qn_onepaxos *p,
                    const struct qn_input *in, int err)
{
    if (err == QN_OK) { /* else the machine has taken nothing */
        write_promise(r, p, in);
        put(r, p, in);
    }
}

void run_trace_ends(struct run_trace *r, const struct qn_onepaxos *p)
{
    fprintf(r->f, "end %u.%" PRIu64 "\n", p->self, p->incarnation[p->self]);
    fflush(r->f);
}
