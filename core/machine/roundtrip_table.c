/*
 * roundtrip.csv: what a measurement knows of a pair besides its costs. The data
 * sets' folders have no such table, so it is one of ours beside theirs, written
 * only if there is something in it:
 *
 *     from,to,rtt_cycles,level_cycles,level_back_cycles,unstable
 *     0,1,290.5,400,420,0
 *
 * One row per pair, whichever of its cores comes first; the header names those
 * of the columns that are known (both levels, or none). (rtt.csv of the data
 * sets is something else: both directions, with their errors, and not equal.)
 */
#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/machine/machine_csv_internal.h"
#include "core/machine/number.h"

static const char ends[] = "from,to";
static const char *const column[] = {"rtt_cycles", "level_cycles",
                                     "level_back_cycles", "unstable"};

enum column { RTT, LEVEL, LEVEL_BACK, UNSTABLE, COLUMNS };

/* Which of them are known. */
static void known(const struct qn_machine *m, bool has[COLUMNS])
{
    size_t n = (size_t)m->n * m->n;
    has[RTT] = m->facts.round_trip != NULL;
    has[LEVEL] = has[LEVEL_BACK] = m->facts.level != NULL;
    has[UNSTABLE] =
        m->facts.unstable != NULL && memchr(m->facts.unstable, true, n) != NULL;
}

bool qn_roundtrip_table_known(const struct qn_machine *m)
{
    bool has[COLUMNS];
    known(m, has);
    return has[RTT] || has[LEVEL] || has[UNSTABLE];
}

/* ---- reading ---- */

/* Whether the line goes on with `word`, which is then behind us. */
static bool take_word(struct qn_csv *c, const char *word)
{
    size_t len = strlen(word);
    bool there = qn_csv_rest(c) >= len && memcmp(c->at, word, len) == 0;
    c->at += there ? len : 0;
    return there;
}

static int read_header(struct qn_csv *c, bool has[COLUMNS])
{
    int got = qn_csv_row(c);
    if (got < 0) {
        return got;
    }
    bool right = got > 0 && take_word(c, ends);
    for (uint32_t i = 0; i < COLUMNS; i++) {
        char word[32];
        (void)snprintf(word, sizeof word, ",%s", column[i]);
        has[i] = right && take_word(c, word);
    }
    if (!right || qn_csv_rest(c) > 0 || has[LEVEL] != has[LEVEL_BACK] ||
        !(has[RTT] || has[LEVEL] || has[UNSTABLE])) {
        return qn_parse_error_set(
            c->parse_error, c->file, QN_MAX(c->line, 1u), "header",
            "write \"%s,%s,%s,%s,%s\", or leave out those columns "
            "behind \"to\" that are not known",
            ends, column[RTT], column[LEVEL], column[LEVEL_BACK],
            column[UNSTABLE]);
    }
    return QN_OK;
}

static int make_room(struct qn_machine *m, const bool has[COLUMNS])
{
    struct qn_machine_facts *f = &m->facts;
    size_t n = (size_t)m->n * m->n;
    f->round_trip = has[RTT] ? calloc(n, sizeof *f->round_trip) : NULL;
    f->level = has[LEVEL] ? calloc(n, sizeof *f->level) : NULL;
    f->unstable = has[UNSTABLE] ? calloc(n, sizeof *f->unstable) : NULL;
    bool ok = (f->round_trip != NULL || !has[RTT]) &&
              (f->level != NULL || !has[LEVEL]) &&
              (f->unstable != NULL || !has[UNSTABLE]);
    return ok ? QN_OK : QN_ENOMEM;
}

/* `seen` [n*n]: pairs that have a row. */
static int read_row(struct qn_csv *c, struct qn_machine *m, uint32_t *from,
                    uint32_t *to, bool *seen)
{
    struct qn_machine_facts *f = &m->facts;
    (*to)++;
    int err = qn_csv_pair(c, m, from, to);
    if (err != QN_OK) {
        return err;
    }
    size_t there = (size_t)*from * m->n + *to;
    size_t back = (size_t)*to * m->n + *from;
    if (seen[there]) {
        return qn_csv_pair_again(c, m, *from, *to);
    }
    seen[there] = seen[back] = true;
    if (f->round_trip != NULL) {
        err = qn_csv_cost(c, column[RTT], &f->round_trip[there]);
        f->round_trip[back] = f->round_trip[there];
    }
    if (err == QN_OK && f->level != NULL) {
        err = qn_csv_cost(c, column[LEVEL], &f->level[there]);
    }
    if (err == QN_OK && f->level != NULL) {
        err = qn_csv_cost(c, column[LEVEL_BACK], &f->level[back]);
    }
    if (err == QN_OK && f->unstable != NULL) {
        uint32_t mark = 0;
        err = qn_csv_u32(c, column[UNSTABLE], 1, &mark);
        f->unstable[there] = f->unstable[back] = mark != 0;
    }
    return err != QN_OK ? err : qn_csv_done(c);
}

static int find_missing(const struct qn_csv *c, const struct qn_machine *m,
                        const bool *seen)
{
    for (uint32_t u = 0; u < m->n; u++) {
        for (uint32_t v = u + 1; v < m->n; v++) {
            if (!seen[(size_t)u * m->n + v]) {
                return qn_csv_pair_missing(c, m, u, v,
                                           "each pair of cores needs a row");
            }
        }
    }
    return QN_OK;
}

int qn_roundtrip_table_read(struct qn_machine *m, struct qn_csv *c)
{
    bool has[COLUMNS];
    uint32_t from = 0, to = 0;
    int err = read_header(c, has);
    bool *seen = calloc((size_t)m->n * m->n, sizeof *seen);
    if (err == QN_OK && (seen == NULL || make_room(m, has) != QN_OK)) {
        err = QN_ENOMEM;
    }
    while (err == QN_OK) {
        int got = qn_csv_row(c);
        if (got <= 0) {
            err = got < 0 ? got : find_missing(c, m, seen);
            break;
        }
        err = read_row(c, m, &from, &to, seen);
    }
    free(seen);
    return err;
}

/* ---- writing ---- */

void qn_roundtrip_table_write(const struct qn_machine *m, FILE *f)
{
    bool has[COLUMNS];
    known(m, has);
    (void)fputs(ends, f);
    for (uint32_t i = 0; i < COLUMNS; i++) {
        (void)fprintf(f, "%s%s", has[i] ? "," : "", has[i] ? column[i] : "");
    }
    (void)fputc('\n', f);
    for (uint32_t u = 0; u < m->n; u++) {
        for (uint32_t v = u + 1; v < m->n; v++) {
            size_t at = (size_t)u * m->n + v, back = (size_t)v * m->n + u;
            (void)fprintf(f, "%u,%u", m->core[u].os, m->core[v].os);
            if (has[RTT]) {
                (void)fputc(',', f);
                qn_number_write(f, m->facts.round_trip[at]);
            }
            if (has[LEVEL]) {
                (void)fputc(',', f);
                qn_number_write(f, m->facts.level[at]);
                (void)fputc(',', f);
                qn_number_write(f, m->facts.level[back]);
            }
            if (has[UNSTABLE]) {
                (void)fputs(m->facts.unstable[at] ? ",1" : ",0", f);
            }
            (void)fputc('\n', f);
        }
    }
}
