# One interface target carries the warnings and sanitizers; two functions make every library and
# every test, so that a new file needs no edit here and a new room needs one line.

# -O2: the time goes to system calls and the databases; -O3 only makes the build longer.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG" CACHE STRING "" FORCE)
# -Og: at -O0 the simulation and the real binary run several times longer than this compiles, and
# -O1 compiles a quarter longer.
set(CMAKE_CXX_FLAGS_SANITIZE "-Og -g1 -fno-omit-frame-pointer" CACHE STRING "" FORCE)
set(CMAKE_C_FLAGS_SANITIZE "-Og -g1 -fno-omit-frame-pointer" CACHE STRING "" FORCE)

add_library(boyd_options INTERFACE)
target_include_directories(boyd_options INTERFACE ${PROJECT_SOURCE_DIR}/include)
target_compile_options(boyd_options INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror
  # GCC 12 sees bad copies in `"text" + std::string` once it is inlined (GCC bugs 105651, 105329);
  # AddressSanitizer would find a real one.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict;-Wno-array-bounds;-Wno-stringop-overread;-Wno-stringop-overflow>)
# Test programs (boyd_test) are compiled once and run once: what is watched and measured is the
# product's code.
set(test_code $<BOOL:$<TARGET_PROPERTY:BOYD_TEST_CODE>>)
set(product_code $<NOT:${test_code}>)
if(BOYD_SANITIZE)
  # ThreadSanitizer must see both sides of a race; the others watch the product's side alone.
  if(BOYD_SANITIZE MATCHES thread)
    target_compile_options(boyd_options INTERFACE -fsanitize=thread)
  else()
    target_compile_options(boyd_options INTERFACE
      "$<${product_code}:-fsanitize=${BOYD_SANITIZE};-fno-sanitize-recover=undefined>")
  endif()
  target_link_options(boyd_options INTERFACE -fsanitize=${BOYD_SANITIZE})
  if(BOYD_SANITIZE MATCHES undefined)
    # AddressSanitizer finds what these would, and they make the longest compilations half as long
    # again.
    target_compile_options(boyd_options INTERFACE
      "$<${product_code}:-fno-sanitize=null,object-size,vptr,alignment,pointer-overflow>")
  endif()
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES Clang)
    # GCC 12 reports false positives of this under -fsanitize.
    target_compile_options(boyd_options INTERFACE -Wno-maybe-uninitialized)
  endif()
endif()
if(BOYD_FUZZ)
  target_compile_options(boyd_options INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(BOYD_COVERAGE)
  target_compile_options(boyd_options INTERFACE
    "$<${product_code}:--coverage;-fprofile-abs-path;-fprofile-update=atomic>")
  target_link_options(boyd_options INTERFACE --coverage)
endif()

# boyd_room(<name> [DEPENDS targets…]): static library boyd_<name> from src/<name>/*.cpp.
function(boyd_room name)
  cmake_parse_arguments(arg "" "DIRECTORY" "DEPENDS" ${ARGN})
  if(NOT arg_DIRECTORY)
    set(arg_DIRECTORY ${PROJECT_SOURCE_DIR}/src/${name})
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${arg_DIRECTORY}/*.cpp)
  string(REPLACE "/" "_" target boyd_${name})
  if(sources)
    add_library(${target} STATIC ${sources})
    target_link_libraries(${target} PUBLIC boyd_options ${arg_DEPENDS})
    if(BOYD_PCH)
      target_precompile_headers(${target} REUSE_FROM boyd_room_pch)
    endif()
  else()
    add_library(${target} INTERFACE)
    target_link_libraries(${target} INTERFACE boyd_options ${arg_DEPENDS})
  endif()
endfunction()

# boyd_test(<target> <directory> DEPENDS targets… [TIMEOUT s] [LABELS …] [PCH header]): one Catch2
# executable from all sources of a directory, registered with CTest as one test. PCH: another
# precompiled header than that of all tests.
function(boyd_test target directory)
  cmake_parse_arguments(arg "" "TIMEOUT;PCH" "DEPENDS;LABELS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${directory}/*.cpp)
  if(NOT sources)
    return()
  endif()
  add_executable(${target} ${sources})
  target_link_libraries(${target} PRIVATE ${arg_DEPENDS} boyd_test_support)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests ${PROJECT_SOURCE_DIR})
  # Half the time to compile; what the tests' own code costs is not what they wait for.
  target_compile_options(${target} PRIVATE -O0)
  set_target_properties(${target} PROPERTIES BOYD_TEST_CODE ON)
  if(BOYD_SANITIZE)
    # The compiler's own macro is not there: test code is not instrumented.
    target_compile_definitions(${target} PRIVATE BOYD_SANITIZED)
  endif()
  if(BOYD_PCH AND arg_PCH)
    target_precompile_headers(${target} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/${arg_PCH})
  elseif(BOYD_PCH)
    target_precompile_headers(${target} REUSE_FROM boyd_test_pch)
  endif()
  add_test(NAME ${target} COMMAND ${target} --durations no)
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  if(BOYD_SANITIZE)
    # Sanitizers cost three to ten times the time.
    math(EXPR arg_TIMEOUT "${arg_TIMEOUT} * 5")
  endif()
  set_tests_properties(${target} PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS "${arg_LABELS}"
    ENVIRONMENT "BOYD_SOURCE_DIR=${PROJECT_SOURCE_DIR};BOYD_BINARY=$<$<BOOL:${BOYD_ACTORS}>:$<TARGET_FILE:boyd>>;UBSAN_OPTIONS=print_stacktrace=1;LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/support/lsan.supp:print_suppressions=0;TSAN_OPTIONS=halt_on_error=1:handle_segv=0:suppressions=${PROJECT_SOURCE_DIR}/tests/support/tsan-node.supp")
endfunction()
