#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/text.h"
#include "loadgen/plot/plot.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

/*
 * SVG as plain text, with one style sheet for all pictures. Colours are
 * classes, because only a style sheet can follow the colour scheme of the
 * reader. The dark rules apply to screens only, so paper stays white. No
 * script, no font file, no link: a picture is one self-contained file.
 *
 * The colours of series differ in lightness, too, so that they differ in a
 * photocopy. The caller adds a label at the end of each line, so that no legend
 * is needed.
 */

static const char style[] =
    "text{font-family:system-ui,'Segoe UI','DejaVu Sans',Helvetica,Arial,"
    "sans-serif;font-size:12px;fill:#222}\n"
    ".title{font-size:19px;font-weight:600}\n"
    ".head{font-size:13px;font-weight:600}\n"
    ".note{fill:#555}\n"
    ".tick{font-size:11px;fill:#555}\n"
    ".strong{font-weight:600}\n"
    ".mid{text-anchor:middle}\n"
    ".end{text-anchor:end}\n"
    ".halo{paint-order:stroke;stroke:#fff;stroke-width:4px;"
    "stroke-linejoin:round}\n"
    ".back{fill:#fff}\n"
    ".fill{fill:#1f5fae;fill-opacity:.13}\n"
    ".alarm{fill:#d3242f;fill-opacity:.2}\n"
    "path,line{fill:none;stroke-linejoin:round}\n"
    ".grid{stroke:#e4e4e4;stroke-width:1}\n"
    ".axis{stroke:#777;stroke-width:1}\n"
    ".line{stroke-width:1.6}\n"
    ".bold{stroke-width:2.4}\n"
    ".thin{stroke-width:1}\n"
    ".dash{stroke-dasharray:6 4}\n";

/* Series colours: light scheme, dark scheme. */
static const struct {
    const char *name;
    const char *light;
    const char *dark;
} colour[] = {
    {"ink", "#222", "#e6e6e6"},   {"c0", "#1f5fae", "#6cb0ff"},
    {"c1", "#c2500f", "#ff9d5c"}, {"c2", "#11805a", "#4fd0a0"},
    {"c3", "#8b3a94", "#e19ae8"}, {"c4", "#8a6a00", "#e3c04a"},
    {"c5", "#5b6b7a", "#a9bccd"},
};

static const char dark_style[] =
    "text{fill:#e6e6e6}.note,.tick{fill:#a8a8a8}.halo{stroke:#16181d}\n"
    ".back{fill:#16181d}.fill{fill:#6cb0ff;fill-opacity:.16}\n"
    ".alarm{fill:#ff6b73;fill-opacity:.28}\n"
    ".grid{stroke:#31353d}.axis{stroke:#8a8a8a}\n";

static void write_colours(FILE *to, bool is_dark)
{
    for (size_t i = 0; i < QN_ARRAY_COUNT(colour); i++) {
        const char *c = is_dark ? colour[i].dark : colour[i].light;
        const char *n = colour[i].name;
        fprintf(to, "path.%s,line.%s{stroke:%s}text.%s,circle.%s{fill:%s}\n", n,
                n, c, n, n, c);
    }
}

static void write_escaped(FILE *to, const char *text)
{
    const char *s = text;
    while (*s != '\0') {
        unsigned char c = (unsigned char)*s;
        size_t n = qn_utf8_length(s);
        if (*s == '<') {
            fputs("&lt;", to);
        } else if (*s == '&') {
            fputs("&amp;", to);
        } else if (*s == '>') {
            fputs("&gt;", to);
        } else if (n == 0 || c < 0x20 || c == 0x7f) {
            fputc('?', to);
        } else {
            fwrite(s, 1, n, to);
        }
        s += QN_MAX(n, (size_t)1);
    }
}

void qn_svg_begin(FILE *to, double width, double height, const char *title,
                  const char *description)
{
    fprintf(to,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%g\" "
            "height=\"%g\" viewBox=\"0 0 %g %g\" role=\"img\">\n<title>",
            width, height, width, height);
    write_escaped(to, title);
    fputs("</title>\n<desc>", to);
    write_escaped(to, description);
    fprintf(to, "</desc>\n<style>\n%s", style);
    write_colours(to, false);
    fprintf(to, "@media screen and (prefers-color-scheme:dark){\n%s",
            dark_style);
    write_colours(to, true);
    fputs("}\n</style>\n", to);
    qn_svg_rect(to, "back", 0, 0, width, height);
}

void qn_svg_end(FILE *to)
{
    fputs("</svg>\n", to);
}

void qn_svg_text(FILE *to, const char *classes, double x, double y,
                 const char *text)
{
    fprintf(to, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">", classes, x, y);
    write_escaped(to, text);
    fputs("</text>\n", to);
}

/* Remove half a character at the end of a text that was cut. */
static void drop_partial(char *text)
{
    size_t end = strlen(text);
    while (end > 0 && ((unsigned char)text[end - 1] & 0xc0) == 0x80) {
        end--;
    }
    if (end > 0 && (unsigned char)text[end - 1] >= 0xc0 &&
        qn_utf8_length(text + end - 1) == 0) {
        text[end - 1] = '\0';
    }
}

void qn_svg_printf(FILE *to, const char *classes, double x, double y,
                   const char *format, ...)
{
    char text[300];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (len >= (int)sizeof text) {
        drop_partial(text);
    }
    qn_svg_text(to, classes, x, y, text);
}

void qn_svg_line(FILE *to, const char *classes, double x1, double y1, double x2,
                 double y2)
{
    fprintf(to,
            "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" "
            "y2=\"%.1f\"/>\n",
            classes, x1, y1, x2, y2);
}

void qn_svg_rect(FILE *to, const char *classes, double x, double y,
                 double width, double height)
{
    fprintf(to,
            "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
            "height=\"%.1f\"/>\n",
            classes, x, y, width, height);
}

void qn_svg_dot(FILE *to, const char *classes, double x, double y)
{
    fprintf(to, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\"/>\n",
            classes, x, y);
}

void qn_svg_style(FILE *to, const char *light, const char *dark)
{
    fprintf(to,
            "<style>\n%s@media screen and (prefers-color-scheme:dark){\n%s}"
            "\n</style>\n",
            light, dark);
}

/* ---- paths ---- */

void qn_svg_path_begin(struct qn_svg_path *p, FILE *to, const char *classes)
{
    *p = (struct qn_svg_path){.to = to};
    fprintf(to, "<path class=\"%s\" d=\"", classes);
}

static void write_point(struct qn_svg_path *p, double y)
{
    fprintf(p->to, "%c%.1f %.1f", p->down ? 'L' : 'M', p->x, y);
    p->alone = !p->down;
    p->down = true;
}

/* Write the open column: first, extremes, last, without repeats. */
static void flush_column(struct qn_svg_path *p)
{
    if (p->points == 0) {
        return;
    }
    write_point(p, p->first);
    if (p->least < QN_MIN(p->first, p->last)) {
        write_point(p, p->least);
    }
    if (p->largest > QN_MAX(p->first, p->last)) {
        write_point(p, p->largest);
    }
    if (p->points > 1 && p->last != p->first) {
        write_point(p, p->last);
    }
    p->points = 0;
}

void qn_svg_path_point(struct qn_svg_path *p, double x, double y)
{
    double column = floor(x * 2);
    if (p->points > 0 && column != p->column) {
        flush_column(p);
    }
    if (p->points == 0) {
        p->column = column;
        p->x = x;
        p->first = y;
        p->least = y;
        p->largest = y;
    }
    p->least = QN_MIN(p->least, y);
    p->largest = QN_MAX(p->largest, y);
    p->last = y;
    p->points++;
}

void qn_svg_path_gap(struct qn_svg_path *p)
{
    flush_column(p);
    if (p->down && p->alone) {
        fputs("h.5", p->to); /* a single point would not be visible */
    }
    p->down = false;
}

void qn_svg_path_end(struct qn_svg_path *p)
{
    qn_svg_path_gap(p);
    fputs("\"/>\n", p->to);
}
