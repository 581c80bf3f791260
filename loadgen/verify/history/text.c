#include "loadgen/verify/history/text.h"

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/*
 * The text form. Writer and parser use the same table of words, so that they
 * cannot diverge. A line is first split into words, so white space is free.
 */

static const char *const kind_name[QN_RECORD_KIND_COUNT] = {
#define X(name, text) text,
    QN_RECORD_KINDS(X)
#undef X
};

/* Numbers between the key and the arrow. */
static const unsigned argument_count[QN_RECORD_KIND_COUNT] = {
    [QN_RECORD_SET] = 1,
    [QN_RECORD_ADD] = 1,
    [QN_RECORD_CAS] = 2,
    [QN_RECORD_INCR] = 1,
};

/* A word that can follow the arrow; "#" stands for any number. */
struct answer {
    enum qn_record_kind kind;
    const char *word;
    enum qn_record_outcome outcome;
};

static const struct answer answers[] = {
    {QN_RECORD_GET, "nil", QN_RECORD_NIL},
    {QN_RECORD_GET, "#", QN_RECORD_OK},
    {QN_RECORD_SET, "ok", QN_RECORD_OK},
    {QN_RECORD_ADD, "ok", QN_RECORD_OK},
    {QN_RECORD_ADD, "failed", QN_RECORD_FAILED},
    {QN_RECORD_CAS, "ok", QN_RECORD_OK},
    {QN_RECORD_CAS, "failed", QN_RECORD_FAILED},
    {QN_RECORD_DEL, "1", QN_RECORD_OK},
    {QN_RECORD_DEL, "0", QN_RECORD_NIL},
    {QN_RECORD_INCR, "#", QN_RECORD_OK},
};

/* Field of the number of the answer. */
static int64_t *answer_number(struct qn_record *r)
{
    return r->kind == QN_RECORD_GET ? &r->value : &r->other;
}

/* ---- writing ---- */

void qn_record_key_text(uint32_t key, char out[12])
{
    snprintf(out, 12, "%c%" PRIu32, key & QN_RECORD_COUNTER ? 'c' : 'k',
             key & ~QN_RECORD_COUNTER);
}

static const char *answer_word(const struct qn_record *r)
{
    if (r->outcome == QN_RECORD_UNKNOWN) {
        return "?";
    }
    for (size_t i = 0; i < QN_ARRAY_COUNT(answers); i++) {
        if (answers[i].kind == r->kind && answers[i].outcome == r->outcome) {
            return answers[i].word;
        }
    }
    QN_ASSERT(false); /* this kind cannot have this outcome */
    return NULL;
}

void qn_record_call_text(const struct qn_record *r,
                         char out[QN_RECORD_TEXT_MAX])
{
    QN_ASSERT(r->kind < QN_RECORD_KIND_COUNT);
    char key[12];
    qn_record_key_text(r->key, key);
    size_t room = QN_RECORD_TEXT_MAX;
    int len = snprintf(out, room, "%s %s", kind_name[r->kind], key);
    if (argument_count[r->kind] == 2) {
        len += snprintf(out + len, room - (size_t)len, " %" PRId64, r->other);
    }
    if (argument_count[r->kind] >= 1) {
        len += snprintf(out + len, room - (size_t)len, " %" PRId64, r->value);
    }
    const char *word = answer_word(r);
    if (word[0] == '#') {
        struct qn_record copy = *r;
        snprintf(out + len, room - (size_t)len, " -> %" PRId64,
                 *answer_number(&copy));
    } else {
        snprintf(out + len, room - (size_t)len, " -> %s", word);
    }
}

void qn_record_text(const struct qn_record *r, char out[QN_RECORD_TEXT_MAX])
{
    char call[QN_RECORD_TEXT_MAX];
    char responded[24] = "-";
    qn_record_call_text(r, call);
    if (r->outcome != QN_RECORD_UNKNOWN) {
        snprintf(responded, sizeof responded, "%" PRIu64, r->responded);
    }
    snprintf(out, QN_RECORD_TEXT_MAX, "%u %" PRIu64 " %s %.90s", r->client,
             r->invoked, responded, call);
}

/* ---- reading ---- */

enum { WORDS_MAX = 9 }; /* client, two times, cas key old new -> answer */

struct words {
    char text[QN_RECORD_TEXT_MAX];
    const char *word[WORDS_MAX + 1];
    unsigned count;
};

static int wrong(char *error, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static int wrong(char *error, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(error, size, format, args);
    va_end(args);
    return QN_EINVAL;
}

/* Returns false for more words or bytes than a record has. */
static bool cut(struct words *w, const char *line)
{
    w->count = 0;
    size_t len = strcspn(line, "#\r\n");
    while (len > 0 && isspace((unsigned char)line[len - 1])) {
        len--;
    }
    if (len >= sizeof w->text) {
        return false;
    }
    memcpy(w->text, line, len);
    w->text[len] = '\0';
    char *save;
    for (char *p = strtok_r(w->text, " \t", &save); p != NULL;
         p = strtok_r(NULL, " \t", &save)) {
        if (w->count == WORDS_MAX) {
            return false;
        }
        w->word[w->count++] = p;
    }
    return true;
}

static bool to_unsigned(const char *text, uint64_t max, uint64_t *out)
{
    char *end;
    errno = 0;
    unsigned long long n = strtoull(text, &end, 10);
    if (!isdigit((unsigned char)text[0]) || *end != '\0' || errno != 0 ||
        n > max) {
        return false;
    }
    *out = n;
    return true;
}

static bool to_signed(const char *text, int64_t *out)
{
    char *end;
    errno = 0;
    long long n = strtoll(text, &end, 10);
    bool digit = isdigit((unsigned char)text[text[0] == '-']);
    if (!digit || *end != '\0' || errno != 0) {
        return false;
    }
    *out = n;
    return true;
}

static bool to_key(const char *text, uint32_t *out)
{
    uint64_t n;
    if ((text[0] != 'k' && text[0] != 'c') ||
        !to_unsigned(text + 1, QN_RECORD_COUNTER - 1, &n)) {
        return false;
    }
    *out = (uint32_t)n | (text[0] == 'c' ? QN_RECORD_COUNTER : 0);
    return true;
}

static bool to_kind(const char *text, uint8_t *out)
{
    for (unsigned k = 0; k < QN_RECORD_KIND_COUNT; k++) {
        if (strcmp(text, kind_name[k]) == 0) {
            *out = (uint8_t)k;
            return true;
        }
    }
    return false;
}

static bool to_answer(const char *text, struct qn_record *r)
{
    if (strcmp(text, "?") == 0) {
        r->outcome = QN_RECORD_UNKNOWN;
        return true;
    }
    for (size_t i = 0; i < QN_ARRAY_COUNT(answers); i++) {
        const struct answer *a = &answers[i];
        bool number = a->word[0] == '#';
        if (a->kind == r->kind && (number ? to_signed(text, answer_number(r))
                                          : strcmp(text, a->word) == 0)) {
            r->outcome = (uint8_t)a->outcome;
            return true;
        }
    }
    return false;
}

/* Parse client and times, the first three words. */
static int parse_when(const struct words *w, struct qn_record *r, char *error,
                      size_t size)
{
    uint64_t client;
    if (!to_unsigned(w->word[0], UINT16_MAX, &client)) {
        return wrong(error, size, "'%s' is not a client; expected 0 to 65535",
                     w->word[0]);
    }
    r->client = (uint16_t)client;
    if (!to_unsigned(w->word[1], QN_TIME_NEVER - 1, &r->invoked)) {
        return wrong(error, size, "'%s' is not a time; expected ns",
                     w->word[1]);
    }
    if (strcmp(w->word[2], "-") == 0) {
        r->responded = QN_TIME_NEVER;
    } else if (!to_unsigned(w->word[2], QN_TIME_NEVER - 1, &r->responded)) {
        return wrong(error, size, "'%s' is not a time; expected ns or -",
                     w->word[2]);
    } else if (r->responded < r->invoked) {
        return wrong(error, size,
                     "responded at %" PRIu64 ", before it was invoked",
                     r->responded);
    }
    return QN_OK;
}

/* Parse kind, key and numbers, and check that two words follow. */
static int parse_call(const struct words *w, struct qn_record *r, char *error,
                      size_t size)
{
    if (!to_kind(w->word[3], &r->kind)) {
        return wrong(
            error, size,
            "unknown operation '%s'; expected get, set, add, cas, del or incr",
            w->word[3]);
    }
    unsigned want = argument_count[r->kind];
    if (w->count != 7 + want) {
        return wrong(error, size,
                     "%s needs a key, %u number%s, -> and an answer",
                     w->word[3], want, want == 1 ? "" : "s");
    }
    if (!to_key(w->word[4], &r->key)) {
        return wrong(
            error, size,
            "'%s' is not a key; expected k or c and a number below 2^31",
            w->word[4]);
    }
    int64_t *to[] = {&r->other, &r->value};
    for (unsigned i = 0; i < want; i++) {
        if (!to_signed(w->word[5 + i], to[2 - want + i])) {
            return wrong(error, size, "'%s' is not a value; expected a number",
                         w->word[5 + i]);
        }
    }
    return QN_OK;
}

int qn_record_parse(const char *line, struct qn_record *out, char *error,
                    size_t error_size)
{
    struct words w;
    if (!cut(&w, line)) {
        return wrong(error, error_size, "too many words for a record");
    }
    if (w.count == 0) {
        return 0;
    }
    if (w.count < 5) {
        return wrong(error, error_size,
                     "expected: client invoked responded operation -> answer");
    }
    struct qn_record r = {0};
    int err = parse_when(&w, &r, error, error_size);
    if (err == QN_OK) {
        err = parse_call(&w, &r, error, error_size);
    }
    if (err != QN_OK) {
        return err;
    }
    unsigned arrow = w.count - 2;
    if (strcmp(w.word[arrow], "->") != 0) {
        return wrong(error, error_size, "'%s' instead of ->", w.word[arrow]);
    }
    if (!to_answer(w.word[arrow + 1], &r)) {
        return wrong(error, error_size, "'%s' is not an answer of %s",
                     w.word[arrow + 1], w.word[3]);
    }
    if ((r.outcome == QN_RECORD_UNKNOWN) != (r.responded == QN_TIME_NEVER)) {
        return wrong(error, error_size,
                     "a time of - needs an answer of ?, and vice versa");
    }
    *out = r;
    return 1;
}

static int add(struct qn_recorder *rec, const struct qn_record *r)
{
    struct qn_record *to =
        qn_recorder_add(rec, r->client, r->key, (enum qn_record_kind)r->kind);
    if (to == NULL) {
        return QN_ENOMEM;
    }
    *to = *r;
    return QN_OK;
}

int qn_history_read(FILE *file, struct qn_recorder *rec, uint64_t *line,
                    char *error, size_t error_size)
{
    char *text = NULL;
    size_t room = 0;
    int err = QN_OK;
    *line = 0;
    while (err == QN_OK && getline(&text, &room, file) > 0) {
        struct qn_record r = {0};
        (*line)++;
        int got = qn_record_parse(text, &r, error, error_size);
        err = got == 1 ? add(rec, &r) : got;
    }
    free(text);
    if (err == QN_OK && ferror(file)) {
        err = QN_EIO;
    }
    if (err == QN_ENOMEM || err == QN_EIO) {
        snprintf(error, error_size, "%s", qn_strerror(err));
    }
    return err;
}

static int write_key(FILE *file, const struct qn_history *h, uint64_t i)
{
    uint64_t n = h->key[i].count;
    struct qn_record *records = malloc(n * sizeof *records);
    if (records == NULL) {
        return QN_ENOMEM;
    }
    qn_history_records(h, i, records);
    for (uint64_t k = 0; k < n; k++) {
        char line[QN_RECORD_TEXT_MAX];
        qn_record_text(&records[k], line);
        fprintf(file, "%s\n", line);
    }
    free(records);
    return ferror(file) ? QN_EIO : QN_OK;
}

int qn_history_write(FILE *file, const struct qn_history *h)
{
    int err = QN_OK;
    for (uint64_t i = 0; i < h->key_count && err == QN_OK; i++) {
        err = write_key(file, h, i);
    }
    return err;
}
