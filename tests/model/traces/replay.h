/*
 * What a replay needs of C: it reads the trace, compares a node of the model
 * with what the trace says of it, and reports how far it came. Included by the
 * verifier that spin makes, behind its state `now`.
 *
 * The trace, made by check_traces.py, is named by QN_TRACE: one record per
 * line, of RECORD_INTS numbers. ANY: not compared.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANY        (-1)
#define SOME_BATCH 255 /* LRN: learned with a snapshot */

/* What of a node is compared, in the order of the trace, and behind it what
 * only guides the model: FIELDS(X) and GUIDES(X) of onepaxos_state.h or
 * memacceptor_state.h. */
enum field { /* with a prefix: spin has names like these */
#define X(name, text, model) F_##name,
             FIELDS(X)
#undef X
#define X(name) F_##name,
                 GUIDES(X)
#undef X
                     F_ALL
};

struct record {
    int line; /* of the trace of the machine */
    int what, me, in, from, a, b, c;
    int state[F_ALL];
};

#define RECORD_INTS ((int)(sizeof(struct record) / sizeof(int)))

static struct record *records;
static int record_count;
static int furthest = -1, fewest = 1 << 30; /* differences there */
static const char *stage = "";
static char nearest[1024];
static int is_accepted;
static int left_alone[16]; /* messages that the model did not take, by kind */

static void ignored(int in)
{
    left_alone[in & 15]++;
}

/** The records, then how many messages of each kind the model took. */
static void report_accepted(void)
{
    int taken[16] = {0};
    for (int i = 0; i < record_count; i++) {
        taken[records[i].in & 15]++;
    }
    printf("accepted %d", record_count);
    for (int k = 1; k < 16; k++) {
        printf(" %d", taken[k] - left_alone[k]);
    }
    printf("\n");
}

static void report(void)
{
    if (is_accepted) {
        report_accepted();
    } else if (furthest >= 0 && furthest < record_count) {
        printf("refused line %d: %s\n", records[furthest].line, nearest);
    }
    fflush(stdout);
}

static void open_trace(void)
{
    const char *name = getenv("QN_TRACE");
    FILE *f = name != NULL ? fopen(name, "r") : NULL;
    int most = 0, value, n = 0;
    if (records != NULL) { /* the search came back to the beginning */
        return;
    }
    if (f == NULL) {
        fprintf(stderr, "replay: no trace %s\n", name != NULL ? name : "");
        exit(2);
    }
    while (fscanf(f, "%d", &value) == 1) {
        if (n == most * RECORD_INTS) {
            most = most == 0 ? 64 : 2 * most;
            records = realloc(records, (size_t)most * sizeof *records);
        }
        ((int *)records)[n++] = value;
    }
    fclose(f);
    if (n == 0 || n % RECORD_INTS != 0) {
        fprintf(stderr, "replay: %d numbers are no records\n", n);
        exit(2);
    }
    record_count = n / RECORD_INTS;
    atexit(report);
}

static const struct record *record_at(int pos)
{
    return &records[pos];
}

static void accepted(int pos)
{
    is_accepted = pos + 1 == record_count;
    exit(0);
}

/** The model came to this point; kept if no way came further. */
static void come(int pos, int differences, const char *text)
{
    if (pos > furthest || (pos == furthest && differences <= fewest)) {
        furthest = pos;
        fewest = differences;
        snprintf(nearest, sizeof nearest, "%s", text);
    }
}

/** What comes next in this record may be impossible. */
static void at(int pos, const char *what)
{
    char text[256];
    stage = what;
    snprintf(text, sizeof text, "the model has no such step: %s", what);
    come(pos, 1 << 20, text);
}

static void broken(int pos, int line)
{
    char text[256];
    snprintf(text, sizeof text, "%s violates the assertion in line %d", stage,
             line);
    come(pos, 1 << 19, text);
}

struct comparison {
    int differences;
    size_t len;
    char text[1024];
};

static void expect(struct comparison *c, const char *name, int machine,
                   int model)
{
    int learned = machine == SOME_BATCH && strncmp(name, "lrn", 3) == 0;
    if (machine == ANY || machine == model || (learned && model != 0)) {
        return;
    }
    c->differences++;
    c->len += (size_t)snprintf(c->text + c->len, sizeof c->text - c->len,
                               "%s%s is %d, in the model %d",
                               c->len != 0 ? "; " : "", name, machine, model);
    if (c->len >= sizeof c->text) {
        c->len = sizeof c->text - 1;
    }
}

/** What is no field: of onepaxos_state.h or memacceptor_state.h. */
static void expect_more(struct comparison *c, const struct record *r);

static int settle(int pos, const struct comparison *c)
{
    if (c->differences != 0) {
        come(pos, c->differences, c->text);
    }
    return c->differences == 0;
}

/** Is the model's node what the trace says? */
static int compare_node(int pos)
{
    const struct record *r = &records[pos];
    const int me = r->me;
    struct comparison c = {0};
#define X(name, text, model) expect(&c, text, r->state[F_##name], model);
    FIELDS(X)
#undef X
    expect_more(&c, r);
    return settle(pos, &c);
}
