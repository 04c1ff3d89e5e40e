# One interface target carries the warnings and sanitizers; two functions make every library and
# every test, so that a new file needs no edit here and a new room needs one line.

# How much to optimise is said below, for the product's and the tests' code apart.
foreach(language C CXX)
  set(CMAKE_${language}_FLAGS_RELEASE "" CACHE STRING "" FORCE)
  set(CMAKE_${language}_FLAGS_SANITIZE "" CACHE STRING "" FORCE)
endforeach()

add_library(boyd_options INTERFACE)
target_include_directories(boyd_options INTERFACE ${PROJECT_SOURCE_DIR}/include)
target_compile_options(boyd_options INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror
  # GCC 12 sees bad copies in `"text" + std::string` once it is inlined (GCC bugs 105651, 105329);
  # AddressSanitizer would find a real one.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict;-Wno-array-bounds;-Wno-stringop-overread;-Wno-stringop-overflow>
  # A tenth of GCC's time goes to collecting its own garbage: it begins at 512 MiB, for a fifth more
  # memory at most.
  $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=524288>
  # Clang, for sanitizers and fuzzing, says these of libgit2's initialisers, of embedded texts, and
  # of files compiled as one; GCC reads the same code with its own rules of shadowing.
  $<$<CXX_COMPILER_ID:Clang>:-Wno-missing-field-initializers;-Wno-overlength-strings;-Wno-shadow>
  # A precompiled header of another build is the same to ccache only without its time.
  $<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>)
# Test programs (boyd_test) are run a few times: what is watched and measured is the product's code.
# Their own is compiled for speed of compiling. At -O1 those that compute for a minute (BUSY): the
# linker takes an inline function from the test's object, also for the library that calls it.
set(test_code $<BOOL:$<TARGET_PROPERTY:BOYD_TEST_CODE>>)
set(product_code $<NOT:${test_code}>)
# -O2: the time goes to system calls and the databases; -O3 only makes the build longer.
# Clang compiles the sanitizers' checks three times as fast as GCC, but at -O0 alone: the tests take a
# fifth longer for it. GCC gains nothing by -O0. Fuzzing is worth the slower compiler: -O1.
target_compile_options(boyd_options INTERFACE
  "$<$<AND:${product_code},$<CONFIG:Release>>:-O2;-DNDEBUG>"
  "$<$<AND:${product_code},$<CONFIG:Sanitize>>:$<IF:$<CXX_COMPILER_ID:GNU>,-Og,-O$<BOOL:${BOYD_FUZZ}>>;-g1;-fno-omit-frame-pointer>"
  "$<${test_code}:-O$<BOOL:$<TARGET_PROPERTY:BOYD_BUSY_TEST>>>")
# A sanitized program has a million addresses of its own in its data: each of the standard suite's
# thousands of starts would set them.
target_link_options(boyd_options INTERFACE
  $<$<AND:$<CONFIG:Sanitize>,$<CXX_COMPILER_ID:Clang>,$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>>:-no-pie>)
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
    target_compile_options(boyd_options INTERFACE $<${product_code}:-Wno-maybe-uninitialized>)
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

# The simulation links copies of these with planted bugs (tests/sim/planted): each is an object of
# its own.
set(BOYD_PLANTED_SOURCES
  src/queue/transitions.cpp src/queue/leases.cpp src/files/journal.cpp src/files/atomic_file.cpp
  src/state/document.cpp src/state/versioned_store.cpp src/exec/chat_loop.cpp
  actors/permits/core.cpp actors/dispatcher/core.cpp actors/dispatcher/pool_recovery.cpp
  actors/node/stopping.cpp actors/kernel/doubts.cpp actors/kernel/follow.cpp
  tests/support/sim/store_queue.cpp)

# boyd_compile_by_folder(<target> [APART files…]): with BOYD_UNITY the target's sources are compiled
# a folder at a time, at most eight in one; APART: but for these, whose names would meet.
function(boyd_compile_by_folder target)
  cmake_parse_arguments(arg "" "" "APART" ${ARGN})
  if(NOT BOYD_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # What is a file's own is, for the compiler, a header's.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  get_target_property(sources ${target} SOURCES)
  list(TRANSFORM BOYD_PLANTED_SOURCES PREPEND ${PROJECT_SOURCE_DIR}/ OUTPUT_VARIABLE apart)
  foreach(file ${arg_APART})
    get_filename_component(file ${file} ABSOLUTE)
    list(APPEND apart ${file})
  endforeach()
  foreach(source ${sources})
    get_filename_component(name ${source} ABSOLUTE)
    if(NOT name MATCHES "\\.cpp$" OR name IN_LIST apart)
      continue()
    endif()
    get_filename_component(folder ${name} DIRECTORY)
    string(MAKE_C_IDENTIFIER ${folder} key)
    math(EXPR ${key} "${${key}} + 1")
    math(EXPR part "(${${key}} - 1) / 8")
    get_filename_component(folder ${folder} NAME)
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${folder}_${part})
  endforeach()
endfunction()

# boyd_room(<name> [DEPENDS targets…] [APART files…]): static library boyd_<name> from src/<name>/*.cpp.
function(boyd_room name)
  cmake_parse_arguments(arg "" "DIRECTORY" "DEPENDS;APART" ${ARGN})
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
    list(TRANSFORM arg_APART PREPEND ${arg_DIRECTORY}/)
    boyd_compile_by_folder(${target} APART ${arg_APART})
  else()
    add_library(${target} INTERFACE)
    target_link_libraries(${target} INTERFACE boyd_options ${arg_DEPENDS})
  endif()
endfunction()

# The programs with the label "threads", in which a race is possible at all.
add_custom_target(boyd_threaded_tests)

# boyd_register_test(<name> <target> <timeout> <labels> [arguments…]): the program as a test of CTest,
# or the part of it that the arguments choose.
function(boyd_register_test name target timeout labels)
  # These start the binary again and again: the sanitized suite takes a share of their cases.
  set(share)
  if(labels MATCHES "^(e2e|acceptance|crash)$")
    set(share ${PROJECT_SOURCE_DIR}/tests/support/share.sh)
  endif()
  add_test(NAME ${name} COMMAND ${share} $<TARGET_FILE:${target}> --durations no ${ARGN})
  if(NOT timeout)
    set(timeout 120)
  endif()
  if(BOYD_SANITIZE)
    # Sanitizers cost three to ten times the time.
    math(EXPR timeout "${timeout} * 5")
  endif()
  # COST: what may take longest begins first, so that no long one is left running alone.
  set_tests_properties(${name} PROPERTIES TIMEOUT ${timeout} COST ${timeout} LABELS "${labels}"
    ENVIRONMENT "BOYD_SOURCE_DIR=${PROJECT_SOURCE_DIR};BOYD_BINARY=$<$<BOOL:${BOYD_ACTORS}>:$<TARGET_FILE:boyd>>;UBSAN_OPTIONS=print_stacktrace=1;LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/support/lsan.supp:print_suppressions=0;TSAN_OPTIONS=halt_on_error=1:handle_segv=0:suppressions=${PROJECT_SOURCE_DIR}/tests/support/tsan-node.supp")
endfunction()

# boyd_test(<target> <directory> DEPENDS targets… [TIMEOUT s] [LABELS …] [PCH header] [BUSY]
# [PART arguments…]): one Catch2 executable from all sources of a directory, registered with CTest as
# one test, or the part of it that the arguments choose. PCH: another precompiled header than that of
# all tests. BUSY: see above; it has no precompiled header, which would be one for other options. The
# label "threads": more than one thread runs in it.
function(boyd_test target directory)
  cmake_parse_arguments(arg "BUSY" "TIMEOUT;PCH" "DEPENDS;LABELS;PART" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${directory}/*.cpp)
  if(NOT sources)
    return()
  endif()
  add_executable(${target} ${sources})
  target_link_libraries(${target} PRIVATE ${arg_DEPENDS} boyd_test_support)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests ${PROJECT_SOURCE_DIR})
  set_target_properties(${target} PROPERTIES BOYD_TEST_CODE ON BOYD_BUSY_TEST ${arg_BUSY})
  # Each *_test.cpp has a namespace of its own; the helpers beside them are compiled apart.
  set(helpers ${sources})
  list(FILTER helpers EXCLUDE REGEX "_test\\.cpp$")
  boyd_compile_by_folder(${target} APART ${helpers})
  if(BOYD_PCH AND arg_PCH)
    target_precompile_headers(${target} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/${arg_PCH})
  elseif(BOYD_PCH AND NOT arg_BUSY)
    target_precompile_headers(${target} REUSE_FROM boyd_test_pch)
  endif()
  boyd_register_test(${target} ${target} "${arg_TIMEOUT}" "${arg_LABELS}" ${arg_PART})
  if("threads" IN_LIST arg_LABELS)
    add_dependencies(boyd_threaded_tests ${target})
  endif()
endfunction()
