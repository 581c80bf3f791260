#include "kvs/session/reply_stats.h"

#include "core/base/assert.h"

static bool is_null(struct qn_slice reply)
{
    return reply.data[0] == '_' ||
           (reply.len >= 3 && reply.data[0] == '$' && reply.data[1] == '-');
}

void qn_reply_stats_note(struct qn_info_part *part, const struct qn_cmd *cmd,
                         struct qn_slice reply)
{
    if (reply.len == 0) {
        return;
    }
    if (reply.data[0] == '-') {
        qn_info_count_error(part, reply.data, reply.len);
        if (cmd != NULL) {
            part->cmd[qn_cmd_index(cmd)].failed++;
        }
    } else if (cmd != NULL && cmd->where == QN_CMD_READ &&
               cmd->key_first == 1 && cmd->key_last == 1) {
        if (is_null(reply)) {
            part->keyspace_misses++;
        } else {
            part->keyspace_hits++;
        }
    }
}
