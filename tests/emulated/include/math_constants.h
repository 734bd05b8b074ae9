/* Of the CUDA toolkit, for the emulated device. */
#ifndef TOPP_TESTS_EMULATED_MATH_CONSTANTS_H
#define TOPP_TESTS_EMULATED_MATH_CONSTANTS_H

#define CUDART_INF_F __builtin_inff()
#define CUDART_NAN_F __builtin_nanf("")

#endif
