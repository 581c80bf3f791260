#include "core/base/err.h"
#include "loadgen/report/load_plot.h"
#include "loadgen/report/report.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

/*
 * Expected texts of one small load: 2 GETs of 1 and 2 us, one missed, an error;
 * a SET of 5 ms. README.md and load.schema.json describe the formats.
 */

static struct qn_stats stats;
static struct qn_op_stats sum;
static struct qn_report_second second;
static struct qn_report_second empty;
static struct qn_report report;

static void make(void)
{
    stats = (struct qn_stats){.unanswered = 3, .disconnects = 1, .waiting = 7};
    struct qn_op_stats *get = &stats.op[QN_OP_GET];
    get->ops = 2;
    get->misses = 1;
    get->errors = 1;
    qn_histogram_record(&get->latency, 1000);
    qn_histogram_record(&get->latency, 2000);
    stats.op[QN_OP_SET].ops = 1;
    qn_histogram_record(&stats.op[QN_OP_SET].latency, 5000000);
    strcpy(stats.first_error, "OOM \377 <no> \"memory\"");
    second = (struct qn_report_second){.run = 1, .at = 3, .intended = 8};
    qn_report_second(&second, &stats, 0.5, &sum);
    struct qn_stats *none = calloc(1, sizeof *none);
    empty = (struct qn_report_second){.at = 4};
    qn_report_second(&empty, none, 1, &sum);
    free(none);
    report = (struct qn_report){.addresses = "127.0.0.1:1",
                                .mix = "get:2,set",
                                .connections = 1,
                                .pipeline = 2,
                                .threads = 1,
                                .keys = 10,
                                .dist = "uniform",
                                .key_size = "16",
                                .value_size = "4",
                                .seed = UINT64_MAX,
                                .seconds = 0.5,
                                .own_cpu_ns = 3000,
                                .total = &stats,
                                .run = &second,
                                .run_count = 1};
}

static char *text;
static size_t size;
static FILE *out;

static void begin(void)
{
    text = NULL;
    out = open_memstream(&text, &size);
}

static void expect(const char *golden)
{
    fclose(out);
    cr_assert(strcmp(text, golden) == 0, "expected:\n%s\ngot:\n%s", golden,
              text);
    free(text);
}

static void expect_inside(const char *part)
{
    cr_assert_not_null(strstr(text, part), "no '%s' in\n%s", part, text);
}

Test(report, a_progress_line_shows_the_last_second)
{
    make();
    begin();
    qn_report_live(out, "", &second);
    qn_report_live(out, "preload", &empty);
    expect("   3.0 s         6 ops/s  p50 2.0 us  p99 5000.0 us  errors 1  "
           "unanswered 3  waiting 7\n"
           "preload   4.0 s         0 ops/s  errors 0  unanswered 0  "
           "waiting 0\n");
}

Test(report, csv_has_a_row_per_kind_and_one_for_all)
{
    make();
    begin();
    qn_report_csv_header(out);
    qn_report_csv_second(out, &second);
    qn_report_csv_second(out, &empty);
    expect("run,at_s,seconds,kind,intended_per_s,ops_per_s,ops,misses,errors,"
           "wrong,p50_us,p90_us,p95_us,p99_us,p99.9_us,p99.99_us,max_us,"
           "unanswered,waiting,disconnects\n"
           "1,3.000,0.500,get,,4.0,2,1,1,0,1.000,2.000,2.000,2.000,2.000,"
           "2.000,2.000,,,\n"
           "1,3.000,0.500,set,,2.0,1,0,0,0,5000.000,5000.000,5000.000,"
           "5000.000,5000.000,5000.000,5000.000,,,\n"
           "1,3.000,0.500,all,8.0,6.0,3,1,1,0,2.000,5000.000,5000.000,"
           "5000.000,5000.000,5000.000,5000.000,3,7,1\n"
           "0,4.000,1.000,all,,0.0,0,0,0,0,,,,,,,,0,0,0\n");
}

Test(report, json_without_a_reply_has_no_latency)
{
    make();
    begin();
    cr_assert_eq(qn_report_json_second(out, &empty), QN_OK);
    expect("{\"type\":\"second\",\"run\":0,\"at\":4.0,\"seconds\":1.0,"
           "\"intended_per_s\":null,\"ops_per_s\":0.0,\"ops\":0,\"misses\":0,"
           "\"errors\":0,\"wrong\":0,\"latency_us\":{\"p50\":null,\"p90\":null,"
           "\"p95\":null,\"p99\":null,\"p99.9\":null,\"p99.99\":null,"
           "\"max\":null},\"unanswered\":0,\"waiting\":0,\"disconnects\":0,"
           "\"kinds\":{}}\n");
}

Test(report, json_of_a_second_has_its_kinds)
{
    make();
    begin();
    cr_assert_eq(qn_report_json_second(out, &second), QN_OK);
    fclose(out);
    expect_inside("{\"type\":\"second\",\"run\":1,\"at\":3.0,\"seconds\":0.5,"
                  "\"intended_per_s\":8.0,\"ops_per_s\":6.0,\"ops\":3,");
    expect_inside("\"unanswered\":3,\"waiting\":7,\"disconnects\":1,\"kinds\":{"
                  "\"get\":{\"ops_per_s\":4.0,\"ops\":2,\"misses\":1,"
                  "\"errors\":1,\"wrong\":0,\"latency_us\":{\"p50\":1.0,");
    cr_assert_null(strstr(text, "service_us"), "closed loop");
    cr_assert_eq(strchr(text, '\n'), text + size - 1, "one line");
    free(text);
}

Test(report, service_time_is_shown_where_it_differs)
{
    make();
    qn_histogram_record(&stats.op[QN_OP_SET].service, 1000000);
    qn_report_second(&second, &stats, 0.5, &sum);
    begin();
    cr_assert_eq(qn_report_json_second(out, &second), QN_OK);
    fclose(out);
    expect_inside("\"max\":5000.0},\"service_us\":{\"p50\":1000.0,");
    free(text);
}

Test(report, a_cell_of_the_table_keeps_its_width)
{
    make();
    stats.op[QN_OP_SET].ops = 2;
    qn_histogram_record(&stats.op[QN_OP_SET].latency, UINT64_C(90000000000));
    begin();
    cr_assert_eq(qn_report_table(out, &report), QN_OK);
    fclose(out);
    expect_inside("us         ops/s      p50      p90      p95      p99    "
                  "p99.9   p99.99      max\n"
                  "get            4      1.0      2.0      2.0      2.0      "
                  "2.0      2.0      2.0\n"
                  "set            4   5001.2 90000000 90000000 90000000 "
                  "90000000 90000000 90000000\n");
    expect_inside("seed 18446744073709551615\n");
    expect_inside("1 error replies; the first: OOM");
    expect_inside("3 requests were never answered\n");
    free(text);
}

/* A server may reply with any bytes; JSON must not contain them. */
Test(report, the_summary_is_one_line_of_valid_json)
{
    make();
    begin();
    cr_assert_eq(qn_report_json_summary(out, &report), QN_OK);
    fclose(out);
    expect_inside("{\"type\":\"summary\",\"seconds\":0.5,\"ops_per_s\":6.0,");
    expect_inside("\"first_error\":\"OOM ? <no> \\\"memory\\\"\"");
    expect_inside("\"cpu_us_per_op\":null,\"own_cpu_us_per_op\":1.0,");
    expect_inside("\"rate\":null,\"arrivals\":null,\"connections\":1,");
    expect_inside("\"seed\":\"18446744073709551615\"}}\n");
    cr_assert_eq(strchr(text, '\n'), text + size - 1, "one line");
    free(text);
}

Test(report, unopened_connections_appear_in_every_format)
{
    make();
    static const char *const address[] = {"a:1", "b:2"};
    static struct qn_report_opened opened[] = {{25, 25, false}, {25, 5, true}};
    cr_assert_eq(qn_unavailability_create(
                     (struct qn_unavailability **)&report.unavailability,
                     &(struct qn_mix){0}, 2),
                 QN_OK);
    report.address = address;
    report.address_count = 2;
    report.connections = 50;
    report.opened = opened;
    cr_assert_eq(qn_report_missing(&report), 20);
    begin();
    cr_assert_eq(qn_report_table(out, &report), QN_OK);
    fclose(out);
    expect_inside("50 connections (30 of 50 opened), pipeline 2");
    expect_inside("b:2: 5 of 25 connections opened;");
    cr_assert_null(strstr(text, "a:1: "));
    free(text);
    begin();
    cr_assert_eq(qn_report_json_summary(out, &report), QN_OK);
    fclose(out);
    expect_inside("\"connections\":[{\"to\":\"a:1\",\"wanted\":25,"
                  "\"opened\":25},{\"to\":\"b:2\",\"wanted\":25,"
                  "\"opened\":5}],");
    free(text);
    struct qn_stats *none = calloc(1, sizeof *none);
    report.total = none;
    begin();
    cr_assert_eq(qn_load_plot_write(out, &report, NULL, 0), QN_OK);
    fclose(out);
    expect_inside("50 connections (30 of 50 opened)");
    expect_inside("connections lost: 0, never opened: 20");
    free(text);
    free(none);
    /* A run that ended before all connections were open was short, not
     * wrong. */
    opened[1].failed = false;
    cr_assert_eq(qn_report_missing(&report), 0);
    qn_unavailability_destroy(
        (struct qn_unavailability *)report.unavailability);
}

Test(report, wrong_values_of_a_get_come_with_a_hint)
{
    make();
    stats.op[QN_OP_GET].wrong = 2;
    for (int preload = 0; preload <= 1; preload++) {
        report.preload = preload != 0;
        begin();
        cr_assert_eq(qn_report_table(out, &report), QN_OK);
        fclose(out);
        expect_inside("2 wrong replies");
        cr_assert_eq(strstr(text, "use --preload to") == NULL, report.preload,
                     "%s", text);
        free(text);
    }
}

Test(report, a_verdict_is_in_the_summary)
{
    make();
    begin();
    cr_assert_eq(qn_report_json_summary(out, &report), QN_OK);
    fclose(out);
    expect_inside(",\"verify\":null,\"setup\":{");
    free(text);
    static const struct qn_report_verdict v = {"undecided", 12, 5, 0, 1};
    report.verdict = &v;
    stats.spent = 3;
    begin();
    cr_assert_eq(qn_report_json_summary(out, &report), QN_OK);
    fclose(out);
    expect_inside("\"verify\":{\"verdict\":\"undecided\",\"operations\":12,"
                  "\"keys\":5,\"violations\":0,\"undecided\":1,"
                  "\"stopped_early\":3},");
    free(text);
}

Test(report, an_interrupted_run_is_reported)
{
    make();
    stats.spent = 3;
    begin();
    cr_assert_eq(qn_report_table(out, &report), QN_OK);
    fclose(out);
    expect_inside("\n3 connections stopped early, since --verify can record "
                  "no more operations\n");
    free(text);
}

Test(report, the_settings_are_one_line)
{
    make();
    report.rate = "5k..9k";
    report.poisson = true;
    char about[QN_REPORT_ABOUT_MAX];
    qn_report_about(&report, about);
    cr_assert_str_eq(
        about,
        "127.0.0.1:1: get:2,set, open loop 5k..9k/s, poisson, 1 "
        "connection, pipeline 2, 1 thread; 10 keys (uniform) "
        "of 16 bytes, values of 4 bytes, seed 18446744073709551615",
        "%s", about);
}

/* ---- the picture ---- */

static void draw(const struct qn_load_plot_second *s, uint32_t count)
{
    begin();
    cr_assert_eq(qn_load_plot_write(out, &report, s, count), QN_OK);
    fclose(out);
    cr_assert_null(strstr(text, "nan"));
    cr_assert_null(strstr(text, "inf"));
    cr_assert_str_eq(text + size - 7, "</svg>\n");
}

Test(figure, no_request_was_answered)
{
    make();
    struct qn_stats *none = calloc(1, sizeof *none);
    report.total = none;
    draw(NULL, 0);
    free(text);
    struct qn_load_plot_second s = qn_load_plot_second(&empty);
    draw(&s, 1);
    free(text);
    free(none);
}

Test(figure, a_second_with_errors_is_marked)
{
    make();
    report.addresses = "unix:/a<&>b";
    struct qn_load_plot_second s = qn_load_plot_second(&second);
    cr_assert_eq(s.trouble, 1 + 3 + 1);
    draw(&s, 1);
    expect_inside("unix:/a&lt;&amp;&gt;b");
    expect_inside("errors: 1, requests lost: 3, connections lost: 1");
    expect_inside("<rect class=\"alarm\" x=\"499.3\" y=\"122.0\"");
    expect_inside(">p50 2 \302\265s</text>");
    cr_assert_null(strstr(text, ">p99 "), "three requests have no p99");
    free(text);
}

/* A second without replies between two others: the latency lines have a gap
 * there. */
Test(figure, a_second_without_replies_is_a_gap)
{
    make();
    struct qn_load_plot_second s[3];
    for (uint32_t i = 0; i < 3; i++) {
        s[i] = (struct qn_load_plot_second){.at = i + 1,
                                            .seconds = 1,
                                            .ops = 5,
                                            .p50_ns = 1000,
                                            .p99_ns = 1000,
                                            .max_ns = 1000};
    }
    draw(s, 3);
    expect_inside("<path class=\"bold ink\" d=\"M66.0 588.0L239.3 588.0"
                  "L412.7 588.0L586.0 588.0\"/>");
    free(text);
    s[1].ops = s[1].p50_ns = s[1].p99_ns = s[1].max_ns = 0;
    draw(s, 3);
    expect_inside("<path class=\"bold ink\" d=\"M66.0 588.0L239.3 588.0"
                  "M412.7 588.0L586.0 588.0\"/>");
    free(text);
}
