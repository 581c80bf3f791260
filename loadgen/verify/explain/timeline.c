#include "loadgen/verify/explain/timeline.h"

#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/verify/history/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/*
 * All times of the rows are sorted; the column of a time is its rank. Equal
 * times share a column, so bars that touch overlap in time. An operation
 * without an answer extends to the right edge and has no end.
 */

struct layout {
    const struct qn_witness *w;
    size_t rows;
    qn_time_t *time; /* [columns] ascending */
    size_t columns;
    qn_time_t origin;
};

static int by_time(const void *a, const void *b)
{
    qn_time_t x = *(const qn_time_t *)a;
    qn_time_t y = *(const qn_time_t *)b;
    return (x > y) - (x < y);
}

static bool open_ended(const struct qn_record *r)
{
    return r->outcome == QN_RECORD_UNKNOWN;
}

static int lay_out(struct layout *l, const struct qn_witness *w)
{
    *l =
        (struct layout){.w = w, .rows = QN_MIN(w->count, QN_TIMELINE_ROWS_MAX)};
    l->time = malloc((2 * l->rows + 1) * sizeof *l->time);
    if (l->time == NULL) {
        return QN_ENOMEM;
    }
    size_t n = 0;
    for (size_t i = 0; i < l->rows; i++) {
        const struct qn_record *r = &w->op[i].record;
        l->time[n++] = r->invoked;
        if (!open_ended(r)) {
            l->time[n++] = r->responded;
        }
    }
    qsort(l->time, n, sizeof *l->time, by_time);
    for (size_t i = 0; i < n; i++) {
        if (l->columns == 0 || l->time[l->columns - 1] != l->time[i]) {
            l->time[l->columns++] = l->time[i];
        }
    }
    l->origin = n > 0 ? l->time[0] : 0;
    return QN_OK;
}

static size_t column(const struct layout *l, qn_time_t time)
{
    const qn_time_t *at =
        bsearch(&time, l->time, l->columns, sizeof time, by_time);
    return at == NULL ? l->columns : (size_t)(at - l->time);
}

static size_t column_end(const struct layout *l, const struct qn_record *r)
{
    return open_ended(r) ? l->columns : column(l, r->responded);
}

/* Time from the origin, such as "1234.567 us", or "-". */
static void time_text(const struct layout *l, qn_time_t time, bool open,
                      char out[32])
{
    uint64_t ns = time - l->origin;
    if (open) {
        snprintf(out, 32, "-");
    } else if (ns < 10 * QN_US) {
        snprintf(out, 32, "%" PRIu64 " ns", ns);
    } else {
        snprintf(out, 32, "%" PRIu64 ".%03" PRIu64 " us", ns / QN_US,
                 ns % QN_US);
    }
}

/* The sentence above the rows. */
static void headline(const struct qn_witness *w, char *out, size_t size)
{
    char key[12] = "";
    if (w->count > 0) {
        qn_record_key_text(w->op[0].record.key, key);
    }
    int len = snprintf(out, size, "%s: %s", key, w->why);
    if (w->base != 0) {
        snprintf(out + len, size - (size_t)len, " (%" PRId64 ")", w->base);
    }
}

static void subline(const struct qn_witness *w, char *out, size_t size)
{
    snprintf(out, size, "%zu of %zu operations on this key show it%s", w->count,
             w->of,
             w->minimal ? "; each of them is needed"
                        : " (fewer may be enough)");
}

static bool any_loose(const struct qn_witness *w)
{
    for (size_t i = 0; i < w->count; i++) {
        if (w->op[i].loose) {
            return true;
        }
    }
    return false;
}

static const char loose_note[] =
    "* counts only for what it wrote, not for what it found";

/* ---- text ---- */

static void text_row(FILE *out, const struct layout *l, size_t i)
{
    const struct qn_witness_op *op = &l->w->op[i];
    const struct qn_record *r = &op->record;
    char from[32];
    char to[32];
    char call[QN_RECORD_TEXT_MAX];
    time_text(l, r->invoked, false, from);
    time_text(l, r->responded, open_ended(r), to);
    qn_record_call_text(r, call);
    fprintf(out, "  client %-5u %14s %14s  %s%-*s ", r->client, from, to, call,
            (int)(34 - QN_MIN(strlen(call), (size_t)33)), op->loose ? "*" : "");
    size_t begin = column(l, r->invoked);
    size_t end = column_end(l, r);
    for (size_t c = 0; c < begin; c++) {
        fputs("  ", out);
    }
    fputc('|', out);
    for (size_t c = begin; c < end; c++) {
        fputs(open_ended(r) ? " ." : "--", out);
    }
    fputs(open_ended(r) ? "\n" : "|\n", out);
}

int qn_timeline_text(FILE *out, const struct qn_witness *w)
{
    struct layout l;
    char line[256];
    int err = lay_out(&l, w);
    if (err != QN_OK) {
        return err;
    }
    headline(w, line, sizeof line);
    fprintf(out, "%s\n", line);
    subline(w, line, sizeof line);
    fprintf(out, "  %s:\n\n", line);
    for (size_t i = 0; i < l.rows; i++) {
        text_row(out, &l, i);
    }
    if (l.rows < w->count) {
        fprintf(out, "  ... and %zu more\n", w->count - l.rows);
    }
    if (any_loose(w)) {
        fprintf(out, "\n  %s\n", loose_note);
    }
    fputc('\n', out);
    free(l.time);
    return ferror(out) ? QN_EIO : QN_OK;
}

/* ---- SVG ---- */

enum {
    SVG_LEFT = 90,   /* px for the names of the clients */
    SVG_TOP = 70,    /* px for the headline */
    SVG_ROW = 40,    /* px per operation */
    SVG_BAR = 10,    /* px, height of a bar */
    SVG_COLUMN = 56, /* px between two times */
    SVG_CHAR = 8,    /* px, width of a character */
    SVG_RIGHT = 60,  /* px for bars without an end */
};

static const char svg_style[] =
    "<style>\n"
    "svg{color:#1a1a1a;background:#fff;font:13px ui-monospace,monospace}\n"
    "text{fill:currentColor}.h{font-weight:bold}.s{opacity:.75}\n"
    ".g{stroke:currentColor;opacity:.15}\n"
    ".b{fill:currentColor;fill-opacity:.3;stroke:currentColor}\n"
    ".r{fill:none;stroke:currentColor}\n"
    ".o{stroke-dasharray:4 3}\n"
    "@media (prefers-color-scheme:dark){"
    "svg{color:#e8e8e8;background:#16181c}}\n"
    "@media print{svg{color:#000;background:#fff}}\n"
    "</style>\n";

/* Write text with escapes for the characters that XML reserves. */
static void svg_escape(FILE *out, const char *text)
{
    for (; *text != '\0'; text++) {
        switch (*text) {
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        case '&':
            fputs("&amp;", out);
            break;
        default:
            fputc(*text, out);
        }
    }
}

static void svg_text(FILE *out, size_t x, size_t y, const char *class,
                     const char *text)
{
    fprintf(out, "<text x=\"%zu\" y=\"%zu\" class=\"%s\">", x, y, class);
    svg_escape(out, text);
    fputs("</text>\n", out);
}

static size_t svg_x(size_t c)
{
    return SVG_LEFT + c * SVG_COLUMN;
}

/* The text of a row may extend beyond the last bar. */
static size_t svg_width(const struct layout *l)
{
    char line[256];
    headline(l->w, line, sizeof line);
    size_t width = QN_MAX(svg_x(l->columns), strlen(line) * SVG_CHAR);
    for (size_t i = 0; i < l->rows; i++) {
        const struct qn_record *r = &l->w->op[i].record;
        char call[QN_RECORD_TEXT_MAX];
        qn_record_call_text(r, call);
        size_t end = svg_x(column(l, r->invoked)) + strlen(call) * SVG_CHAR;
        width = QN_MAX(width, end);
    }
    return width + SVG_RIGHT;
}

/* Writes are filled, reads are not; operations without an answer are dashed. */
static void svg_row(FILE *out, const struct layout *l, size_t i)
{
    const struct qn_record *r = &l->w->op[i].record;
    size_t y = SVG_TOP + i * SVG_ROW;
    size_t x = svg_x(column(l, r->invoked));
    size_t end = svg_x(column_end(l, r)) + (open_ended(r) ? SVG_RIGHT : 0);
    char call[QN_RECORD_TEXT_MAX];
    char name[QN_RECORD_TEXT_MAX + 40];
    char from[32];
    char to[32];
    time_text(l, r->invoked, false, from);
    time_text(l, r->responded, open_ended(r), to);
    qn_record_call_text(r, call);
    snprintf(name, sizeof name, "client %u", r->client);
    svg_text(out, 4, y + 26, "s", name);
    snprintf(name, sizeof name, "%s%s", call, l->w->op[i].loose ? " *" : "");
    svg_text(out, x, y + 14, "t", name);
    fprintf(out,
            "<rect x=\"%zu\" y=\"%zu\" width=\"%zu\" height=\"%d\" rx=\"2\" "
            "class=\"%s%s\"><title>%s .. %s</title></rect>\n",
            x, y + 18, QN_MAX(end - x, (size_t)3), SVG_BAR,
            r->kind == QN_RECORD_GET ? "r" : "b", open_ended(r) ? " o" : "",
            from, to);
}

static void svg_body(FILE *out, const struct layout *l, size_t height)
{
    char line[256];
    headline(l->w, line, sizeof line);
    svg_text(out, 4, 20, "h", line);
    subline(l->w, line, sizeof line);
    svg_text(out, 4, 40, "s", line);
    for (size_t c = 0; c < l->columns; c++) {
        fprintf(out,
                "<line x1=\"%zu\" y1=\"%d\" x2=\"%zu\" y2=\"%zu\" "
                "class=\"g\"/>\n",
                svg_x(c), SVG_TOP - 10, svg_x(c), height - 40);
    }
    for (size_t i = 0; i < l->rows; i++) {
        svg_row(out, l, i);
    }
    char more[64] = "";
    if (l->rows < l->w->count) {
        snprintf(more, sizeof more, "... and %zu more. ",
                 l->w->count - l->rows);
    }
    snprintf(line, sizeof line,
             "%stime runs to the right, not to scale; dashed to the edge: "
             "no answer%s%s",
             more, any_loose(l->w) ? "; " : "",
             any_loose(l->w) ? loose_note : "");
    svg_text(out, 4, height - 14, "s", line);
}

int qn_timeline_svg(FILE *out, const struct qn_witness *w)
{
    struct layout l;
    int err = lay_out(&l, w);
    if (err != QN_OK) {
        return err;
    }
    size_t width = QN_MAX(svg_width(&l), (size_t)900);
    size_t height = SVG_TOP + l.rows * SVG_ROW + 50;
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %zu "
            "%zu\" width=\"%zu\" height=\"%zu\">\n",
            width, height, width, height);
    fputs(svg_style, out);
    svg_body(out, &l, height);
    fputs("</svg>\n", out);
    free(l.time);
    return ferror(out) ? QN_EIO : QN_OK;
}
