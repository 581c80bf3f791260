/*
 * Costs are mostly written with one digit behind the point; 15 digits are
 * enough for what a person has typed, and 17 for every double.
 */
#include "core/machine/number.h"

#include <jansson.h>
#include <stdlib.h>

void qn_number_write(FILE *f, double x)
{
    char text[40];
    (void)snprintf(text, sizeof text, "%.15g", x);
    if (strtod(text, NULL) != x) {
        (void)snprintf(text, sizeof text, "%.17g", x);
    }
    (void)fputs(text, f);
}

void qn_json_write_string(FILE *f, const char *s)
{
    json_t *value = json_string(s);
    char *text = json_dumps(value, JSON_ENCODE_ANY);
    (void)fputs(text != NULL ? text : "\"?\"", f);
    free(text);
    json_decref(value);
}
