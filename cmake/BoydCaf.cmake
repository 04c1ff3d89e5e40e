# CAF::core from its source, with the sanitizers of this build, instead of the distribution's
# library: ThreadSanitizer sees the edges between actors only when it sees the mailboxes' atomics,
# and half of those are compiled into the library. BOYD_CAF_SOURCE is the top of CAF's source tree,
# of the same version as the installed headers, which stay the ones in use (scripts/tsan-node).
find_path(CAF_INCLUDE_DIR caf/actor_system.hpp REQUIRED)
file(STRINGS "${CAF_INCLUDE_DIR}/caf/config.hpp" caf_installed REGEX "#define CAF_VERSION ")
file(STRINGS "${BOYD_CAF_SOURCE}/libcaf_core/caf/config.hpp" caf_given REGEX "#define CAF_VERSION ")
if(NOT caf_installed STREQUAL caf_given)
  message(FATAL_ERROR "BOYD_CAF_SOURCE is not the installed CAF: ${caf_given}; installed: ${caf_installed}")
endif()

file(GLOB_RECURSE caf_sources ${BOYD_CAF_SOURCE}/libcaf_core/src/*.cpp)
add_library(boyd_caf_core STATIC ${caf_sources})
target_include_directories(boyd_caf_core SYSTEM PUBLIC ${CAF_INCLUDE_DIR})
# Not ours to warn about; and it does not know the newer standards.
target_compile_options(boyd_caf_core PRIVATE -w -fsanitize=${BOYD_SANITIZE})
set_target_properties(boyd_caf_core PROPERTIES CXX_STANDARD 14)
target_link_libraries(boyd_caf_core PUBLIC Threads::Threads)
add_library(CAF::core ALIAS boyd_caf_core)
