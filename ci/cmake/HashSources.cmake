# SHA-256 of every compiled source, taken at build time.
#
# topp_hash_sources(TARGET LIBRARIES target...): a static library TARGET that defines the tables
# of bench/sources.h for all sources of the libraries named and all headers beside them.
# The same file is the script of its own build step (cmake -P).

if(CMAKE_SCRIPT_MODE_FILE)
  # Arguments: SOURCE_DIR, LIST (a file: one source a line), OUT.
  file(STRINGS "${LIST}" files)
  set(paths "")
  foreach(file IN LISTS files)
    string(REGEX REPLACE ":.*$" "" base "${file}")
    string(REGEX REPLACE "^[^:]*:" "" name "${file}")
    if(NOT IS_ABSOLUTE "${name}")
      set(name "${base}/${name}")
    endif()
    file(RELATIVE_PATH path "${SOURCE_DIR}" "${name}")
    list(APPEND paths "${path}")
  endforeach()
  list(REMOVE_DUPLICATES paths)
  list(SORT paths)
  list(LENGTH paths count)
  set(rows "")
  foreach(path IN LISTS paths)
    file(SHA256 "${SOURCE_DIR}/${path}" hash)
    string(APPEND rows "    {\"${path}\",\n     \"${hash}\"},\n")
  endforeach()

  set(commit "")
  execute_process(COMMAND git rev-parse HEAD WORKING_DIRECTORY "${SOURCE_DIR}"
    OUTPUT_VARIABLE head ERROR_QUIET RESULT_VARIABLE failed OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT failed)
    set(commit "${head}")
    execute_process(COMMAND git status --porcelain --untracked-files=no -- kernels oracle bench
      WORKING_DIRECTORY "${SOURCE_DIR}" OUTPUT_VARIABLE changed ERROR_QUIET)
    if(changed)
      string(APPEND commit "-dirty")
    endif()
  endif()
  file(READ "${LIST}.build" build)
  string(REPLACE "@COMMIT@" "${commit}" build "${build}")
  file(WRITE "${OUT}" "#include \"bench/sources.h\"\n\n"
    "const struct source_hash topp_sources[] = {\n${rows}};\n"
    "const size_t topp_source_count = ${count};\n\n${build}")
  return()
endif()

set(TOPP_HASH_SCRIPT "${CMAKE_CURRENT_LIST_FILE}")

function(topp_hash_sources TARGET)
  cmake_parse_arguments(H "" "" "LIBRARIES" ${ARGN})
  set(list "${CMAKE_CURRENT_BINARY_DIR}/${TARGET}.list")
  set(out "${CMAKE_CURRENT_BINARY_DIR}/${TARGET}.c")
  file(GLOB_RECURSE watched CONFIGURE_DEPENDS
    "${CMAKE_SOURCE_DIR}/kernels/*.[ch]*" "${CMAKE_SOURCE_DIR}/oracle/*.[ch]*"
    "${CMAKE_SOURCE_DIR}/bench/*.[ch]*")
  set(headers ${watched})
  list(FILTER headers INCLUDE REGEX "\\.(h|cuh|hpp)$")
  if(NOT TOPP_WITH_CUDA)
    list(FILTER headers EXCLUDE REGEX "\\.cuh$|/kernels/cuda/")
  endif()
  set(content "")
  foreach(header IN LISTS headers)
    string(APPEND content ":${header}\n")
  endforeach()
  foreach(library IN LISTS H_LIBRARIES)
    # One line a source: the folder it is relative to, a colon, its name.
    set(base "$<TARGET_PROPERTY:${library},SOURCE_DIR>")
    set(files "$<FILTER:$<TARGET_PROPERTY:${library},SOURCES>,INCLUDE,[.](c|cc|cpp|cu)$>")
    string(APPEND content "${base}:$<JOIN:${files},\n${base}:>\n")
  endforeach()
  file(GENERATE OUTPUT "${list}" CONTENT "${content}")

  string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
  get_target_property(options topp_options INTERFACE_COMPILE_OPTIONS)
  string(REGEX MATCHALL "-f[a-z][^;>]*" always "${options}")
  list(REMOVE_DUPLICATES always)
  list(JOIN always " " always)
  set(fields "")
  macro(field name value)
    string(REPLACE "\\" "\\\\" escaped "${value}")
    string(REPLACE "\"" "\\\"" escaped "${escaped}")
    string(APPEND fields "    .${name} = \"${escaped}\",\n")
  endmacro()
  field(version "${PROJECT_VERSION}")
  string(APPEND fields "    .commit = \"@COMMIT@\",\n")
  field(build_type "${CMAKE_BUILD_TYPE}")
  field(c_compiler "${CMAKE_C_COMPILER_ID} ${CMAKE_C_COMPILER_VERSION}")
  string(STRIP "${CMAKE_C_FLAGS} ${CMAKE_C_FLAGS_${type}} -std=gnu11 ${always}" flags)
  field(c_flags "${flags}")
  field(cxx_compiler "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
  string(STRIP "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${type}}" flags)
  field(cxx_flags "${flags}")
  if(TOPP_WITH_CUDA)
    field(cuda_compiler "${CMAKE_CUDA_COMPILER_ID} ${CMAKE_CUDA_COMPILER_VERSION}")
    string(STRIP "${CMAKE_CUDA_FLAGS} ${CMAKE_CUDA_FLAGS_${type}} ${CMAKE_CUDA_ARCHITECTURES}" flags)
    field(cuda_flags "${flags}")
  else()
    field(cuda_compiler "")
    field(cuda_flags "")
  endif()
  field(source_dir "${CMAKE_SOURCE_DIR}")
  file(GENERATE OUTPUT "${list}.build" CONTENT
    "const struct build_info topp_build = {\n${fields}};\n")

  set(reflog "")
  if(EXISTS "${CMAKE_SOURCE_DIR}/.git/logs/HEAD")
    set(reflog "${CMAKE_SOURCE_DIR}/.git/logs/HEAD") # changes with every commit and checkout
  endif()
  add_custom_command(OUTPUT "${out}"
    COMMAND "${CMAKE_COMMAND}" "-DSOURCE_DIR=${CMAKE_SOURCE_DIR}" "-DLIST=${list}" "-DOUT=${out}"
      -P "${TOPP_HASH_SCRIPT}"
    DEPENDS ${watched} "${list}" "${list}.build" "${TOPP_HASH_SCRIPT}" ${reflog}
    COMMENT "Hashing the sources" VERBATIM)
  add_library(${TARGET} STATIC "${out}")
  target_link_libraries(${TARGET} PRIVATE topp_options)
endfunction()
