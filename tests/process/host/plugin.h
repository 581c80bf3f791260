#ifndef QN_TESTS_PROCESS_HOST_PLUGIN_H
#define QN_TESTS_PROCESS_HOST_PLUGIN_H

/* What a plugin that embeds a group shows to the program that loads it. The
 * thread that joins is the member, or one of the library. */

struct plugin {
    /* Found a group at a name, and have a command applied. @return QN_OK. */
    int (*join)(const char *name);
    int (*join_in_thread)(const char *name);
    /* @return what the next turn of the first one says. */
    int (*turn)(void);
    void (*leave)(void); /* both */
};

#define PLUGIN_SYMBOL "plugin"

#endif
