# cmake --install DIR makes a folder that can be moved: programs in bin, the shared libraries they
# need beside them in lib, profiles and plots in share. What every Linux has (the C and C++
# run-times' own files, the loader) and what belongs to the driver stays out.
include(GNUInstallDirs)

set(TOPP_PROGRAMS bench_topp)
if(TARGET perfwatch)
  list(APPEND TOPP_PROGRAMS perfwatch)
endif()
set_target_properties(${TOPP_PROGRAMS} PROPERTIES INSTALL_RPATH "$ORIGIN/../lib")
install(TARGETS ${TOPP_PROGRAMS} RUNTIME DESTINATION bin)
install(TARGETS topp_inject LIBRARY DESTINATION lib)
install(DIRECTORY "${CMAKE_SOURCE_DIR}/docs/adapters" DESTINATION share/topp-bench
        PATTERN __pycache__ EXCLUDE)
install(DIRECTORY "${CMAKE_SOURCE_DIR}/profiles" "${CMAKE_SOURCE_DIR}/plots"
        DESTINATION share/topp-bench)
install(FILES "${CMAKE_SOURCE_DIR}/kernels/plugin.h" "${CMAKE_SOURCE_DIR}/kernels/topp.h"
              "${CMAKE_SOURCE_DIR}/kernels/gumbel.h"
        DESTINATION include/topp-bench/kernels)
install(DIRECTORY "${CMAKE_SOURCE_DIR}/docs/examples" DESTINATION share/topp-bench)
install(DIRECTORY "${CMAKE_SOURCE_DIR}/ci/slurm" DESTINATION share/topp-bench
        USE_SOURCE_PERMISSIONS)
install(FILES "${CMAKE_SOURCE_DIR}/README.md" DESTINATION share/topp-bench)

foreach(program IN LISTS TOPP_PROGRAMS)
  list(APPEND TOPP_PROGRAM_FILES "$<TARGET_FILE:${program}>")
endforeach()
string(REPLACE ";" "\" \"" TOPP_PROGRAM_FILES "${TOPP_PROGRAM_FILES}")
install(CODE "
  file(GET_RUNTIME_DEPENDENCIES
    EXECUTABLES \"${TOPP_PROGRAM_FILES}\"
    RESOLVED_DEPENDENCIES_VAR found
    UNRESOLVED_DEPENDENCIES_VAR missing
    PRE_EXCLUDE_REGEXES \"^ld-linux\" \"^lib(c|m|dl|rt|pthread|gcc_s|stdc\\\\+\\\\+)\\\\.so\"
                        \"^libcuda\\\\.so\" \"^libnvidia-ml\\\\.so\")
  if(missing)
    message(FATAL_ERROR \"shared libraries not found: \${missing}\")
  endif()
  foreach(library IN LISTS found)
    file(INSTALL \"\${library}\" DESTINATION \"\${CMAKE_INSTALL_PREFIX}/lib\"
         TYPE SHARED_LIBRARY FOLLOW_SYMLINK_CHAIN)
  endforeach()")
