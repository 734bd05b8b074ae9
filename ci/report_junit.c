/* JUnit XML, as CI servers read it. */
#include "ci/report.h"

#include <string.h>

/* XML 1.0 has no other control characters, escaped or not. */
static void put_xml(FILE *stream, const char *text) {
    for (; *text; text++) {
        switch (*text) {
        case '&':
            fputs("&amp;", stream);
            break;
        case '<':
            fputs("&lt;", stream);
            break;
        case '>':
            fputs("&gt;", stream);
            break;
        case '"':
            fputs("&quot;", stream);
            break;
        case '\n':
            fputs("&#10;", stream);
            break;
        default:
            fputc((unsigned char)*text < 0x20 && *text != '\t' ? '?' : *text, stream);
        }
    }
}

static const char *element_of(const struct verdict *verdict, bool strict) {
    if (verdict->excused)
        return "skipped";
    switch (verdict->outcome) {
    case OUTCOME_CORRECTNESS:
    case OUTCOME_REGRESSED:
    case OUTCOME_MISSING:
        return "failure";
    case OUTCOME_INCOMPARABLE:
        return "error";
    case OUTCOME_UNDECIDED:
        return strict ? "failure" : "skipped";
    case OUTCOME_CLOCK:
    case OUTCOME_NEW:
        return "skipped";
    default:
        return NULL;
    }
}

static void put_case(const struct verdict *verdict, bool strict, FILE *stream) {
    char sentence[512];
    const char *element = element_of(verdict, strict);
    fputs("  <testcase classname=\"perfwatch\" name=\"", stream);
    put_xml(stream, verdict->name);
    if (!element) {
        fputs("\"/>\n", stream);
        return;
    }
    report_sentence(verdict, sentence, sizeof sentence);
    fprintf(stream, "\"><%s ", element);
    if (strcmp(element, "skipped") != 0)
        fprintf(stream, "type=\"%s\" ", outcome_name(verdict->outcome));
    fprintf(stream, "message=\"%s: ", outcome_name(verdict->outcome));
    put_xml(stream, sentence);
    fputs("\"/></testcase>\n", stream);
}

void report_junit(const struct report *report, FILE *stream) {
    const struct comparison *comparison = report->comparison;
    size_t failures = 0, errors = 0, skipped = 0;
    for (size_t i = 0; i < comparison->count; i++) {
        const char *element = element_of(&comparison->verdicts[i], report->options->strict);
        failures += element && !strcmp(element, "failure");
        errors += element && !strcmp(element, "error");
        skipped += element && !strcmp(element, "skipped");
    }
    bool refused = comparison->refused[0] != '\0';
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n", stream);
    fprintf(stream,
            "<testsuite name=\"perfwatch\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" "
            "skipped=\"%zu\">\n",
            comparison->count + refused, failures, errors + refused, skipped);
    if (refused) {
        fputs("  <testcase classname=\"perfwatch\" name=\"comparable\"><error type=\"refused\" "
              "message=\"",
              stream);
        put_xml(stream, comparison->refused);
        fputs("\"/></testcase>\n", stream);
    }
    for (size_t i = 0; i < comparison->count; i++)
        put_case(&comparison->verdicts[i], report->options->strict, stream);
    fputs("</testsuite>\n", stream);
}
