#ifndef QN_LOADGEN_TOPO_DRAW_PICTURE_INTERNAL_H
#define QN_LOADGEN_TOPO_DRAW_PICTURE_INTERNAL_H

/** Parts of the picture (picture.h). Each draws below `y`. Pixels. */

#include "loadgen/topo/draw/layout.h"
#include "loadgen/topo/draw/picture.h"

#define QN_PICTURE_LEFT 36.0

/** What the ends of an edge share; decides how it is drawn. */
enum qn_tie { QN_TIE_CACHE, QN_TIE_NODE, QN_TIE_SOCKET, QN_TIE_FAR, QN_TIES };

/** Class of lines and of text for a tie, and its description. */
const char *qn_tie_class(enum qn_tie tie);
const char *qn_tie_words(enum qn_tie tie);

/** Ties that occur in the picture. @param seen [QN_TIES] Filled. */
void qn_picture_ties(const struct qn_picture *p, bool *seen);

/** First and last of the times that fill the cores. */
void qn_picture_range(const struct qn_picture *p, double *lo, double *hi);

/** Draw boxes, edges and cores. @return QN_OK or QN_ENOMEM. */
int qn_picture_tree(const struct qn_picture *p, const struct qn_layout *l,
                    FILE *to, double x, double y);

/** Height of the timeline; draw the timeline. */
double qn_picture_time_height(const struct qn_picture *p);
void qn_picture_time(const struct qn_picture *p, FILE *to, double width,
                     double y);

#endif
