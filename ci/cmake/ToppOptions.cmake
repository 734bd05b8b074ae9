# Compile options, third-party libraries and the CUDA switch, in one place for all folders.

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_package(benchmark REQUIRED)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)

# Binary32 results must be the same on every machine: no fused multiply-add unless written.
add_library(topp_options INTERFACE)
target_include_directories(topp_options INTERFACE "${CMAKE_SOURCE_DIR}")
target_compile_definitions(topp_options INTERFACE _GNU_SOURCE)
target_compile_options(topp_options INTERFACE
  $<$<COMPILE_LANGUAGE:C>:-Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wvla
    -ffp-contract=off -fno-math-errno>
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra>)
if(TOPP_WARNINGS_AS_ERRORS)
  target_compile_options(topp_options INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:-Werror>)
endif()
if(TOPP_SANITIZE)
  target_compile_options(topp_options INTERFACE
    $<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize=address,undefined -fno-sanitize-recover=undefined
      -fno-omit-frame-pointer>)
  target_link_options(topp_options INTERFACE -fsanitize=address,undefined)
endif()

if(NOT TOPP_CUDA STREQUAL "OFF")
  include(CheckLanguage)
  if(NOT CMAKE_CUDA_COMPILER AND EXISTS /usr/local/cuda/bin/nvcc)
    set(CMAKE_CUDA_COMPILER /usr/local/cuda/bin/nvcc)
  endif()
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    if(NOT CMAKE_CUDA_ARCHITECTURES)
      set(CMAKE_CUDA_ARCHITECTURES 80-real 90-real 90-virtual)
    endif()
    enable_language(CUDA)
    find_package(CUDAToolkit 12.0 REQUIRED)
    set(TOPP_WITH_CUDA ON)
    target_compile_definitions(topp_options INTERFACE TOPP_WITH_CUDA=1)
  elseif(TOPP_CUDA STREQUAL "ON")
    message(FATAL_ERROR "TOPP_CUDA=ON, but no nvcc: put it on PATH or set CMAKE_CUDA_COMPILER")
  endif()
endif()
if(TOPP_WITH_CUDA)
  message(STATUS "topp-bench: CPU and CUDA devices (${CMAKE_CUDA_COMPILER})")
else()
  message(STATUS "topp-bench: no nvcc, the CPU device alone is built")
endif()
