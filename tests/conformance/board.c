#include "tests/conformance/board.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#include "core/base/assert.h"
#include "core/base/err.h"

void *board_map(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) {
        return NULL;
    }
    qn_store(&((struct board *)at)->attempt, 1, QN_RELAXED);
    return at;
}

bool board_lives(const struct board *b, qn_node_t v)
{
    return qn_load(&b->ended[v], QN_ACQUIRE) == 0;
}

void board_ring_all(struct board_node *n)
{
    for (qn_node_t v = 0; v < n->n; v++) {
        if (v != n->end->self) {
            qn_doorbell_ring(&n->end->ringer[v]);
        }
    }
}

/* What threads leave behind that end without a word: it is not freed, as it is
 * not where a process is killed. */
static struct board_node *abandoned;

void board_end_here(struct board_node *n)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    qn_store(&n->board->ended[n->end->self], 1, QN_RELEASE);
    board_ring_all(n);
    if (n->processes) {
        (void)raise(SIGKILL);
    }
    pthread_mutex_lock(&lock);
    n->left_behind = *n->end;
    n->next = abandoned;
    abandoned = n;
    pthread_mutex_unlock(&lock);
    pthread_exit(NULL);
}

static void hear_of_deaths(struct board_node *n)
{
    for (qn_node_t v = 0; v < n->n; v++) {
        if (v != n->end->self && !n->told[v] && !board_lives(n->board, v)) {
            n->told[v] = true;
            n->user->down(n->ctx, v);
            qn_mesh_down(n->end, v);
        }
    }
}

static bool decides(const struct board_node *n)
{
    qn_node_t v = 0;
    while (!board_lives(n->board, v)) {
        v++;
    }
    return v == n->end->self;
}

/* A death that no attempt knows of begins one. */
static void begin_attempt(struct board_node *n)
{
    uint32_t dead = 0;
    for (qn_node_t v = 0; v < n->n; v++) {
        dead += n->told[v];
    }
    const uint32_t attempt = qn_load(&n->board->attempt, QN_ACQUIRE);
    if (attempt < dead + 1) {
        qn_store(&n->board->attempt, dead + 1, QN_RELEASE);
        board_ring_all(n);
    }
}

static void decide(struct board_node *n)
{
    struct qn_view_report report[BOARD_NODES_MAX];
    struct board_slot *out = &n->board->view[n->attempt % BOARD_ATTEMPTS];
    uint32_t count = 0;
    for (qn_node_t v = 0; v < n->n; v++) {
        struct board_slot *s =
            &n->board->report[n->attempt % BOARD_ATTEMPTS][v];
        if (n->told[v]) {
            continue;
        }
        if (qn_load(&s->is_there, QN_ACQUIRE) == 0) {
            return;
        }
        report[count++] = s->of.report;
    }
    int rc = qn_view_decide(&out->of.view, (uint16_t)n->attempt, report, count);
    QN_ASSERT(rc == QN_OK);
    qn_store(&out->is_there, 1, QN_RELEASE);
    board_ring_all(n);
}

static void leave(struct board_node *n, uint32_t attempt)
{
    struct board_slot *s =
        &n->board->report[attempt % BOARD_ATTEMPTS][n->end->self];
    n->attempt = attempt;
    n->in_view = false;
    n->user->leave(n->ctx, &s->of.report);
    n->user->left(n->ctx);
    qn_store(&s->is_there, 1, QN_RELEASE);
    board_ring_all(n);
}

bool board_look(struct board_node *n)
{
    const uint32_t before = n->attempt;
    const bool was_in_view = n->in_view;
    hear_of_deaths(n);
    if (decides(n)) {
        begin_attempt(n);
    }
    const uint32_t attempt = qn_load(&n->board->attempt, QN_ACQUIRE);
    if (attempt > n->attempt) {
        leave(n, attempt);
    }
    struct board_slot *view = &n->board->view[n->attempt % BOARD_ATTEMPTS];
    if (!n->in_view && decides(n) &&
        qn_load(&view->is_there, QN_ACQUIRE) == 0) {
        decide(n);
    }
    if (!n->in_view && qn_load(&view->is_there, QN_ACQUIRE) != 0) {
        hear_of_deaths(n); /* of each that the view is without */
        n->in_view = true;
        n->user->enter(n->ctx, &view->of.view);
    }
    return n->attempt != before || n->in_view != was_in_view;
}

bool board_all_done(const struct board_node *n)
{
    bool all = true;
    for (qn_node_t v = 0; v < n->n; v++) {
        all = all && (!board_lives(n->board, v) ||
                      qn_load(&n->board->done[v], QN_ACQUIRE) != 0);
    }
    return all;
}

void board_say_done(struct board_node *n)
{
    const qn_node_t self = n->end->self;
    if (qn_load(&n->board->done[self], QN_RELAXED) == 0) {
        /* release -> acquire in board_all_done */
        qn_store(&n->board->done[self], 1, QN_RELEASE);
        board_ring_all(n);
    }
}
