#ifndef QN_SYNC_DELEGATE_BACKENDS_H
#define QN_SYNC_DELEGATE_BACKENDS_H

/**
 * All backends, one line each; qn_delegate_types lists those of a program.
 */

#include "core/sync/delegate/delegate.h"

extern const struct qn_delegate_type qn_delegate_under_lock; /* under_lock.c */
extern const struct qn_delegate_type qn_delegate_cc_synch;   /* cc_synch.c */
extern const struct qn_delegate_type qn_delegate_h_synch;    /* h_synch.c */
extern const struct qn_delegate_type qn_delegate_hyb_comb;   /* hyb_comb.c */
extern const struct qn_delegate_type qn_delegate_auto;       /* auto.c */
extern const struct qn_delegate_type qn_delegate_mp_server;  /* mp_server.c */
extern const struct qn_delegate_type qn_delegate_shm_server; /* shm_server.c */

#endif
