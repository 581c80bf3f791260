#include "kvs/config/args.h"

#include <string.h>
#include <strings.h>

#include "core/base/err.h"

/* True if `name` is an option that may stand alone. */
static bool is_flag(const char *name)
{
    struct qn_config_option o;
    for (uint32_t i = 0; qn_config_at(i, &o); i++) {
        if (strcasecmp(o.name, name) == 0) {
            return o.flag;
        }
    }
    return false;
}

static bool is_yes_or_no(const char *text)
{
    return text != NULL &&
           (strcasecmp(text, "yes") == 0 || strcasecmp(text, "no") == 0);
}

/* Parse an option and, if it takes one, the argument behind it. @return the
 * number of arguments used, or an error. */
static int take_option(struct qn_config *c, const char *arg, const char *next,
                       char *why, size_t cap)
{
    char name[64];
    char reason[QN_CONFIG_WHY_MAX];
    const char *equals = strchr(arg, '=');
    size_t len = equals != NULL ? (size_t)(equals - arg) : strlen(arg);
    snprintf(name, sizeof name, "%.*s", (int)QN_MIN(len, sizeof name), arg);
    const char *value = equals != NULL ? equals + 1 : next;
    int taken = equals != NULL ? 1 : 2;
    if (equals == NULL && is_flag(name) && !is_yes_or_no(next)) {
        value = "yes";
        taken = 1;
    }
    int err = qn_config_start(c, name, value == NULL ? "" : value, reason,
                              sizeof reason);
    if (err == QN_OK && value != NULL) {
        return taken;
    }
    if (err == QN_ENOENT) {
        snprintf(why, cap, "%s", reason);
    } else if (value == NULL) {
        snprintf(why, cap, "option --%s needs a value", name);
        err = QN_EINVAL;
    } else {
        snprintf(why, cap, "--%s", reason);
    }
    return err;
}

static int take_options(int argc, char **argv, struct qn_config *c,
                        enum qn_args_ask *ask, char *why, size_t cap)
{
    for (int i = 1; i < argc;) {
        int taken = 1;
        if (strcmp(argv[i], "--help") == 0) {
            *ask = QN_ARGS_HELP;
            return QN_OK;
        }
        if (strcmp(argv[i], "--version") == 0) {
            *ask = QN_ARGS_VERSION;
            return QN_OK;
        }
        if (strcmp(argv[i], "--upgrade") == 0) {
            *ask = QN_ARGS_UPGRADE;
        } else if (strncmp(argv[i], "--", 2) == 0) {
            taken = take_option(c, argv[i] + 2,
                                i + 1 < argc ? argv[i + 1] : NULL, why, cap);
        } else if (i != 1 || argv[i][0] == '-') {
            snprintf(why, cap,
                     "'%.64s' is not an option (options begin with --); a file "
                     "must come first",
                     argv[i]);
            taken = QN_EINVAL;
        }
        if (taken < 0) {
            return taken;
        }
        i += taken;
    }
    return QN_OK;
}

int qn_args_parse(int argc, char **argv, struct qn_config *c,
                  enum qn_args_ask *ask, char *why, size_t cap)
{
    *ask = QN_ARGS_RUN;
    qn_config_init(c);
    if (argc > 1 && argv[1][0] != '-') {
        int err = qn_config_file(c, argv[1], why, cap);
        if (err != QN_OK) {
            return err;
        }
    }
    return take_options(argc, argv, c, ask, why, cap);
}

void qn_args_help(FILE *to)
{
    struct qn_config_option o;
    fputs("usage: quoind [FILE] [OPTIONS]\n\n"
          "A replicated in-memory key-value server for Redis clients.\n"
          "FILE holds lines `name value`; options overrule it.\n\n",
          to);
    bool at_start = true;
    for (uint32_t i = 0; qn_config_at(i, &o); i++) {
        char left[64];
        if (o.fixed) {
            continue;
        }
        if (at_start && o.when != QN_CONFIG_AT_START) {
            at_start = false;
            fputs("\nCONFIG SET changes these while the server runs:\n", to);
        }
        snprintf(left, sizeof left, "--%s %s", o.name, o.arg);
        fprintf(to, "  %-34s %s", left, o.help);
        fprintf(to, o.initial[0] != '\0' ? " (%s)\n" : "\n", o.initial);
    }
    fprintf(to, "\n  %-34s %s\n", "--upgrade",
            "replace the running replicas by this program's, one by one");
    fputs("  --help, --version\n", to);
}
