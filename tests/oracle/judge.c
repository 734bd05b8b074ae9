#include "tests/oracle/judge.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <unistd.h>

FILE *judge_requests(void) {
    FILE *const file = tmpfile();
    assert_non_null(file);
    return file;
}

FILE *judge_ask(FILE *requests, const char *mode) {
    char command[1024];
    assert_int_equal(fflush(requests), 0);
    rewind(requests);
    snprintf(command, sizeof command, "'%s' '%s/tests/oracle/python_judge.py' %s < /dev/fd/%d",
             TOPP_PYTHON, TOPP_SOURCE_DIR, mode, fileno(requests));
    FILE *const answers = popen(command, "r");
    assert_non_null(answers);
    return answers;
}

void judge_close(FILE *requests, FILE *answers) {
    assert_int_equal(pclose(answers), 0);
    fclose(requests);
}
