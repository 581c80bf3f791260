/*
 * A walk through JSON that only looks for brackets, strings and commas. It is
 * run after a fault was found, on text that jansson has accepted; on any other
 * bytes it stays inside the text and its answer means nothing.
 */
#include "core/machine/json_line_internal.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct walk {
    const char *at;
    const char *end;
};

static bool in_set(char c, const char *set)
{
    return c != '\0' && strchr(set, c) != NULL;
}

static void skip_space(struct walk *w)
{
    while (w->at < w->end && in_set(*w->at, " \t\r\n")) {
        w->at++;
    }
}

/* At a quote: go behind its partner. */
static void skip_string(struct walk *w)
{
    w->at++;
    while (w->at < w->end && *w->at != '"') {
        w->at += *w->at == '\\' && w->end - w->at > 1 ? 2 : 1;
    }
    w->at += w->at < w->end;
}

/* Go behind one value: brackets are counted, strings skipped as a whole. */
static void skip_value(struct walk *w)
{
    size_t depth = 0;
    while (w->at < w->end) {
        if (*w->at == '"') {
            skip_string(w);
        } else if (depth == 0 && in_set(*w->at, ",]} \t\r\n")) {
            return;
        } else {
            depth += in_set(*w->at, "[{") ? 1 : 0;
            depth -= in_set(*w->at, "]}") ? 1 : 0;
            w->at++;
        }
        if (depth == 0 && w->at < w->end && in_set(w->at[-1], "]}\"")) {
            return;
        }
    }
}

const char *qn_json_skip_value(const char *at, const char *end)
{
    struct walk w = {at, end};
    skip_value(&w);
    return w.at;
}

/* At a quote: whether this name is `key`; ends at the member's value. */
static bool name_is(struct walk *w, const char *key)
{
    const char *name = w->at + 1;
    skip_string(w);
    size_t len = w->at > name ? (size_t)(w->at - name) - 1 : 0;
    skip_space(w);
    w->at += w->at < w->end; /* the colon */
    skip_space(w);
    return len == strlen(key) && memcmp(name, key, len) == 0;
}

/* At a value: go to its member or element. */
static bool enter(struct walk *w, const struct qn_json_step *step)
{
    if (w->at == w->end || *w->at != (step->key != NULL ? '{' : '[')) {
        return false;
    }
    w->at++;
    for (size_t i = 0; w->at < w->end; i++) {
        skip_space(w);
        if (w->at == w->end || in_set(*w->at, "]}")) {
            return false;
        }
        if (step->key != NULL ? name_is(w, step->key) : i == step->index) {
            return true;
        }
        skip_value(w);
        skip_space(w);
        w->at += w->at < w->end && *w->at == ',';
    }
    return false;
}

/* ---- from a place to its name ---- */

struct frame {
    const char *key; /* of an object's member; NULL: none yet, or an array */
    int key_len;
    size_t index; /* of an array's element */
    bool array;
};

/* Deeper ones are counted, and not told. */
#define FRAMES 4

struct place {
    struct frame frame[FRAMES];
    size_t depth;
    bool expects_key;
};

static struct frame *top(struct place *p)
{
    return p->depth > 0 && p->depth <= FRAMES ? &p->frame[p->depth - 1] : NULL;
}

static void enter_value(struct place *p, bool array)
{
    p->depth++;
    if (top(p) != NULL) {
        *top(p) = (struct frame){.array = array};
    }
    p->expects_key = !array;
}

static void take_mark(struct place *p, char c)
{
    struct frame *f = top(p);
    if (c == '[' || c == '{') {
        enter_value(p, c == '[');
    } else if (c == ']' || c == '}') {
        p->depth -= p->depth > 0;
        p->expects_key = false;
    } else if (c == ',' && f != NULL) {
        f->index += f->array;
        p->expects_key = !f->array;
    } else if (c == ':') {
        p->expects_key = false;
    }
}

static void find_place(struct place *p, struct walk *w, const char *target)
{
    while (w->at < target) {
        const char *from = w->at;
        if (*from != '"') {
            take_mark(p, *from);
            w->at++;
            continue;
        }
        skip_string(w);
        if (w->at <= target && p->expects_key && top(p) != NULL) {
            top(p)->key = from + 1;
            top(p)->key_len = (int)(w->at - from) - 2;
        }
    }
}

void qn_json_name(const char *text, size_t len, size_t offset, char *name,
                  size_t size)
{
    struct place p = {.depth = 0};
    struct walk w = {text, text + len};
    find_place(&p, &w, text + (offset < len ? offset : len));
    size_t n = 0;
    name[0] = '\0';
    for (size_t i = 0; i < p.depth && i < FRAMES && n + 1 < size; i++) {
        const struct frame *f = &p.frame[i];
        int wrote = 0;
        if (f->array) {
            wrote = snprintf(name + n, size - n, "[%zu]", f->index);
        } else if (f->key != NULL) {
            wrote = snprintf(name + n, size - n, "%s%.*s", n > 0 ? "." : "",
                             f->key_len, f->key);
        }
        n += wrote > 0 ? (size_t)wrote : 0;
    }
}

uint32_t qn_json_line(const char *text, size_t len,
                      const struct qn_json_step *steps, size_t count)
{
    struct walk w = {text, text + len};
    skip_space(&w);
    for (size_t i = 0; i < count; i++) {
        struct walk inner = w;
        if (!enter(&inner, &steps[i])) {
            break;
        }
        w = inner;
    }
    uint32_t line = 1;
    for (const char *p = text; p < w.at; p++) {
        line += *p == '\n';
    }
    return line;
}
