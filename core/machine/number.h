#ifndef QN_MACHINE_NUMBER_H
#define QN_MACHINE_NUMBER_H

/** Numbers and names as our files write them. */

#include <stdio.h>

/** Write x with as few digits as read back to the same double. */
void qn_number_write(FILE *f, double x);

/** Write a string as JSON, with quotes; not UTF-8 comes out as "?". */
void qn_json_write_string(FILE *f, const char *s);

#endif
