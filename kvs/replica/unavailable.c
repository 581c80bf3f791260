/*
 * Texts of errors that say why nothing is started.
 *
 * What concerns the whole group, and needs an operator, is said before what
 * passes by itself. A replica that needs a snapshot says LOADING, with which
 * clients wait or connect elsewhere: its group may well have a quorum. It may
 * also have none, which this replica finds out once it has its snapshot.
 */
#include "kvs/replica/unavailable.h"

#include "kvs/resp/reply.h"

const char *qn_unavailable_reason(const struct qn_unavailable *u)
{
    return u->removed
               ? "CLUSTERDOWN this replica was removed from the group: connect "
                 "to another one"
           : u->held && !u->halted
               ? "NOREPLICAS too few replicas keep up to take a write "
                 "(min-replicas-to-write): resume the stopped replicas, or end "
                 "them"
           : u->log_incomplete
               ? "CLUSTERDOWN the group has stopped: its leader and acceptor "
                 "were lost, and a part of their log with them; run quoin "
                 "recover"
           : u->register_damaged
               ? "CLUSTERDOWN the group has stopped: its leader has "
                 "overwritten the accept register; see the server's log"
           : u->halted && u->memory_acceptor
               ? "CLUSTERDOWN the group has stopped: its leader was lost "
                 "with slots that no other replica has; run quoin recover"
           : u->halted ? "CLUSTERDOWN the group has stopped: its leader and "
                         "acceptor were lost together; run quoin recover"
           : u->waiting
               ? "CLUSTERDOWN the leader was lost, and a stalled replica may "
                 "have slots that the others lack: resume it, or end it"
           : u->needs_snapshot ? QN_REPLY_LOADING
                               : "CLUSTERDOWN no quorum of replicas";
}
