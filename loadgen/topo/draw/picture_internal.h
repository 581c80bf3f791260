#ifndef QN_LOADGEN_TOPO_DRAW_PICTURE_INTERNAL_H
#define QN_LOADGEN_TOPO_DRAW_PICTURE_INTERNAL_H

/** Parts of the picture (picture.h): each draws below `y` and says how far
 *  down it came. Pixels. */

#include "loadgen/topo/draw/layout.h"
#include "loadgen/topo/draw/picture.h"

#define QN_PICTURE_LEFT 36.0

/** How an edge is drawn: what its ends share. */
enum qn_tie { QN_TIE_CACHE, QN_TIE_NODE, QN_TIE_SOCKET, QN_TIE_FAR, QN_TIES };

/** Class of lines and of text for a tie, and its words. */
const char *qn_tie_class(enum qn_tie tie);
const char *qn_tie_words(enum qn_tie tie);

/** Which ties the picture has. @param seen [QN_TIES] filled. */
void qn_picture_ties(const struct qn_picture *p, bool *seen);

/** First and last of the times by which cores are filled. */
void qn_picture_range(const struct qn_picture *p, double *lo, double *hi);

/** Boxes, edges, cores. @return QN_OK or QN_ENOMEM. */
int qn_picture_tree(const struct qn_picture *p, const struct qn_layout *l,
                    FILE *to, double x, double y);

/** Height of the time line, and the time line. */
double qn_picture_time_height(const struct qn_picture *p);
void qn_picture_time(const struct qn_picture *p, FILE *to, double width,
                     double y);

#endif
