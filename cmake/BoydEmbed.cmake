# boyd_embed(<target> <name> <file>): compiles the text of a data file into a library. The library's
# code declares `extern const char* const <name>;` in namespace boyd::embedded. A changed file makes
# CMake run again.
function(boyd_embed target name path)
  file(READ ${path} content)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
  set(output ${CMAKE_CURRENT_BINARY_DIR}/embedded/${target}_${name}.cpp)
  file(CONFIGURE OUTPUT ${output} @ONLY CONTENT
"namespace boyd::embedded {
extern const char* const @name@;
const char* const @name@ = R\"boyd_data(@content@)boyd_data\";
} // namespace boyd::embedded
")
  target_sources(${target} PRIVATE ${output})
endfunction()

# boyd_embed_migrations(<target> <name> <folder>): the steps of a database's schema, one file each,
# 01_some_name.sql, as boyd::adapters::<name>::migrations(). A new file makes CMake run again.
function(boyd_embed_migrations target name folder)
  file(GLOB paths CONFIGURE_DEPENDS ${folder}/*.sql)
  set(all "")
  set(version 0)
  foreach(path IN LISTS paths)
    math(EXPR version "${version} + 1")
    get_filename_component(stem ${path} NAME_WE)
    if(NOT stem MATCHES "^0*${version}_([a-z_]+)$")
      message(FATAL_ERROR "${path}: the next migration is ${version}: name it so, 0${version}_words.sql")
    endif()
    string(REPLACE "_" " " title "${CMAKE_MATCH_1}")
    file(READ ${path} content)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
    string(APPEND all "      {${version}, \"${title}\", R\"boyd_data(${content})boyd_data\"},\n")
  endforeach()
  set(output ${CMAKE_CURRENT_BINARY_DIR}/embedded/${target}_migrations.cpp)
  file(CONFIGURE OUTPUT ${output} @ONLY CONTENT
"#include \"boyd/queue/migration.hpp\"

#include <vector>

namespace boyd::adapters::@name@ {
const std::vector<queue::migration>& migrations();
const std::vector<queue::migration>& migrations() {
  static const std::vector<queue::migration> all{
@all@  };
  return all;
}
} // namespace boyd::adapters::@name@
")
  target_sources(${target} PRIVATE ${output})
endfunction()
