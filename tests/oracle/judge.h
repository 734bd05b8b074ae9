/* Asks the independent Python judge (python_judge.py) about rows or sums. */
#ifndef TOPP_TESTS_ORACLE_JUDGE_H
#define TOPP_TESTS_ORACLE_JUDGE_H

#include <stdio.h>

/* An unlinked temporary file, open for reading and writing; fails the test if there is none. */
FILE *judge_requests(void);

/* Feeds what was written to requests to `python_judge.py MODE` and opens its answers for reading.
 */
FILE *judge_ask(FILE *requests, const char *mode);

/* Closes requests and answers; the judge must have ended well. */
void judge_close(FILE *requests, FILE *answers);

#endif
