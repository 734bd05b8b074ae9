/* Read by clang-tidy alone, before each file: its analyzer does not see into another file, and
 * would follow paths on which a failure returns TB_OK. Here the functions that report an error
 * show the code that they return. */
#ifndef TOPP_CI_TIDY_H
#define TOPP_CI_TIDY_H

#include "bench/json_source.h"
#include "oracle/status.h"

#define tb_fail(error, code, ...) ((void)(tb_fail)((error), (code), __VA_ARGS__), (code))
#define tb_fail_at(error, code, ...) ((void)(tb_fail_at)((error), (code), __VA_ARGS__), (code))
#define json_fail(place, code, ...) ((void)(json_fail)((place), (code), __VA_ARGS__), (code))

#endif
