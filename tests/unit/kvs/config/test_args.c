#include "kvs/config/args.h"

#include <stdlib.h>
#include <unistd.h>

#include "core/base/err.h"
#include "tests/support/test.h"

#define ARGS_MAX 8

static char why[QN_CONFIG_WHY_MAX];
static enum qn_args_ask ask;

/* The words after the program's name, NULL at the end. */
static int parse(struct qn_config *c, const char *const *word)
{
    char *argv[ARGS_MAX + 1] = {(char *)(uintptr_t) "quoind"};
    int argc = 1;
    for (; word[argc - 1] != NULL; argc++) {
        argv[argc] = (char *)(uintptr_t)word[argc - 1];
    }
    why[0] = '\0';
    return qn_args_parse(argc, argv, c, &ask, why, sizeof why);
}

#define PARSE(c, ...) parse((c), (const char *const[]){__VA_ARGS__, NULL})

Test(args, none_are_the_defaults)
{
    struct qn_config c;
    cr_assert_eq(parse(&c, (const char *const[]){NULL}), QN_OK);
    cr_assert_eq(ask, QN_ARGS_RUN);
    cr_assert_eq(c.port, 7379);
}

Test(args, values_stand_behind_or_after_an_equals_sign)
{
    struct qn_config c;
    cr_assert_eq(PARSE(&c, "--port", "7000", "--replicas=5", "--bind=::1"),
                 QN_OK, "%s", why);
    cr_assert_eq(c.port, 7000);
    cr_assert_eq(c.replicas, 5);
    cr_assert_str_eq(c.bind, "::1");
}

Test(args, a_flag_alone_means_yes)
{
    struct qn_config c;
    cr_assert_eq(PARSE(&c, "--enable-debug-command"), QN_OK);
    cr_assert(c.enable_debug_command);
    cr_assert_eq(PARSE(&c, "--enable-debug-command", "--port", "1"), QN_OK);
    cr_assert(c.enable_debug_command && c.port == 1);
    cr_assert_eq(PARSE(&c, "--enable-debug-command", "no"), QN_OK);
    cr_assert_not(c.enable_debug_command);
    cr_assert_eq(PARSE(&c, "--enable-debug-command=no"), QN_OK);
    cr_assert_not(c.enable_debug_command);
}

Test(args, help_and_version_are_asked_for)
{
    struct qn_config c;
    cr_assert_eq(PARSE(&c, "--help"), QN_OK);
    cr_assert_eq(ask, QN_ARGS_HELP);
    cr_assert_eq(PARSE(&c, "--port", "1", "--version"), QN_OK);
    cr_assert_eq(ask, QN_ARGS_VERSION);
}

Test(args, errors_are_one_line_that_says_what_to_do)
{
    struct qn_config c;
    cr_assert_eq(PARSE(&c, "--prt", "1"), QN_ENOENT);
    cr_assert_str_eq(why, "no option 'prt'; did you mean 'port'?");
    cr_assert_eq(PARSE(&c, "--port"), QN_EINVAL);
    cr_assert_str_eq(why, "option --port needs a value");
    cr_assert_eq(PARSE(&c, "--unixsocket"), QN_EINVAL);
    cr_assert_str_eq(why, "option --unixsocket needs a value");
    cr_assert_eq(PARSE(&c, "--replicas", "0"), QN_EINVAL);
    cr_assert_str_eq(why, "--replicas '0': argument must be one of: auto, or "
                          "between 1 and 64");
    cr_assert_eq(PARSE(&c, "--port", "1", "stray"), QN_EINVAL);
    cr_assert_eq(PARSE(&c, "-p", "1"), QN_EINVAL);
    cr_assert_eq(PARSE(&c, "-h"), QN_EINVAL);
    cr_assert_eq(PARSE(&c, "--"), QN_ENOENT);
    cr_assert_eq(PARSE(&c, "--=1"), QN_ENOENT);
}

Test(args, options_overrule_the_file)
{
    struct qn_config c;
    char path[] = "/tmp/qn-args-XXXXXX";
    int fd = mkstemp(path);
    cr_assert_eq(write(fd, "port 1\nreplicas 4\n", 18), 18);
    close(fd);
    int err = PARSE(&c, path, "--port", "2");
    unlink(path);
    cr_assert_eq(err, QN_OK, "%s", why);
    cr_assert(c.port == 2 && c.replicas == 4);
    cr_assert_eq(PARSE(&c, path), QN_EIO, "it is gone");
}

Test(args, the_help_names_every_option_that_can_be_given)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&text, &bytes);
    struct qn_config_option o;
    qn_args_help(to);
    fclose(to);
    for (uint32_t i = 0; qn_config_at(i, &o); i++) {
        char name[64];
        snprintf(name, sizeof name, "  --%s ", o.name);
        const char *at = strstr(text, name);
        cr_expect_eq(at != NULL, !o.fixed, "%s", o.name);
        /* Those that CONFIG SET changes stand behind the line that says so. */
        cr_expect(o.fixed || (at > strstr(text, "CONFIG SET changes these")) ==
                                 (o.when != QN_CONFIG_AT_START),
                  "%s", o.name);
    }
    free(text);
}
