#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/cli/quoin.h"
#include "tests/support/test.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * `quoin verify` on the recorded histories: every one in good/ must pass, every
 * one in bad/ must be rejected. A new file needs no change here.
 */

static int verify(const char *path)
{
    char *argv[] = {(char[]){"verify"}, (char *)(uintptr_t)path, NULL};
    return qn_verify_command(2, argv);
}

/* Every file of a folder gives this status; returns the number of files. */
static size_t all_give(const char *pattern, int status)
{
    glob_t files;
    cr_assert_eq(glob(pattern, 0, NULL, &files), 0);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        int got = verify(files.gl_pathv[i]);
        cr_expect_eq(got, status, "%s: want %d, got %d", files.gl_pathv[i],
                     status, got);
    }
    size_t count = files.gl_pathc;
    globfree(&files);
    return count;
}

Test(verify_files, every_seeded_defect_is_found)
{
    cr_assert(all_give(QN_HISTORIES "/bad/*.txt", 3) >= 22);
}

Test(verify_files, good_histories_pass)
{
    cr_assert(all_give(QN_HISTORIES "/good/*.txt", 0) >= 9);
}

/* Creates a file with these lines in the temporary directory; the caller
 * removes it. */
static void write_file(char path[32], const char *text)
{
    snprintf(path, 32, "/tmp/qn-verify-XXXXXX");
    int fd = mkstemp(path);
    cr_assert(fd >= 0);
    FILE *f = fdopen(fd, "w");
    fputs(text, f);
    fclose(f);
}

Test(verify_files, an_invalid_line_is_bad_input)
{
    char path[32];
    write_file(path, "1 1 2 set k1 1 -> ok\nnonsense\n");
    cr_expect_eq(verify(path), 2);
    unlink(path);
    cr_expect_eq(verify("/nonexistent/history"), 2);
    char *none[] = {(char[]){"verify"}, NULL};
    cr_expect_eq(qn_verify_command(1, none), 2);
}

/* Three concurrent writes and a read of a fourth value that only the search can
 * exclude because of a deletion: with a budget of one step the result is
 * undecided. */
Test(verify_files, an_undecided_history_does_not_pass)
{
    char path[32];
    write_file(path, "1 1 9 set k1 1 -> ok\n2 1 9 set k1 2 -> ok\n"
                     "3 1 9 del k1 -> 1\n1 10 11 get k1 -> nil\n");
    char *argv[] = {(char[]){"verify"}, (char[]){"--steps=1"}, path, NULL};
    cr_expect_eq(qn_verify_command(3, argv), 4);
    cr_expect_eq(verify(path), 0);
    unlink(path);
}

Test(verify_files, parts_of_one_history_are_checked_together)
{
    char one[32];
    char two[32];
    write_file(one, "1 1 2 set k1 1 -> ok\n");
    write_file(two, "2 5 6 get k1 -> 1\n");
    char *argv[] = {(char[]){"verify"}, one, two, NULL};
    cr_expect_eq(qn_verify_command(3, argv), 0);
    cr_expect_eq(verify(two), 3);
    unlink(one);
    unlink(two);
}

Test(verify_files, draws_the_first_violation)
{
    char svg[32];
    char option[64];
    write_file(svg, "");
    snprintf(option, sizeof option, "--svg=%s", svg);
    char *argv[] = {(char[]){"verify"}, option,
                    (char[]){QN_HISTORIES "/bad/stale_read.txt"}, NULL};
    cr_expect_eq(qn_verify_command(3, argv), 3);
    char text[5] = "";
    FILE *f = fopen(svg, "r");
    cr_assert_eq(fread(text, 1, 4, f), 4);
    fclose(f);
    cr_expect_str_eq(text, "<svg");
    unlink(svg);
}
