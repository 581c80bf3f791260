#ifndef QN_KVS_WIDE_H
#define QN_KVS_WIDE_H

/** Commands that mean the whole server: each replica answers its part (over
 *  kvs/ask.h), and the replica whose client asked makes one reply of them. */

#include "kvs/ask.h"
#include "kvs/frontend.h"

void qn_wide_info(struct qn_conn *c, struct qn_cmd_call *call);
void qn_wide_client_info(struct qn_conn *c, struct qn_cmd_call *call);
void qn_wide_client_list(struct qn_conn *c, struct qn_cmd_call *call);
void qn_wide_client_kill(struct qn_conn *c, struct qn_cmd_call *call);

/** For struct qn_ask_opts; ctx is the struct qn_server. */
void qn_wide_answer(void *ctx, uint8_t what, struct qn_slice question,
                    struct qn_buf *out);
void qn_wide_finish(void *ctx, struct qn_asked *done);

#endif
