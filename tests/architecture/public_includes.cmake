# cmake -D ROOT=<source tree> -P public_includes.cmake
#
# Fails unless every #include of every public header names a standard C++ header or one of ours.

set(folders runtime format reshard verify cli)
list(TRANSFORM folders PREPEND ${ROOT}/)
list(TRANSFORM folders APPEND /*.hpp)
file(GLOB_RECURSE headers ${folders})
list(FILTER headers INCLUDE REGEX "/include/")
if(NOT headers)
  message(FATAL_ERROR "there are no public headers below ${ROOT}")
endif()

set(bad 0)
foreach(header IN LISTS headers)
  file(STRINGS ${header} includes REGEX "^[ \t]*#[ \t]*include")
  foreach(include IN LISTS includes)
    if(NOT include MATCHES "^#include (<[a-z_]+>|\"remesh/[a-z_0-9]+/[a-z_0-9]+\\.hpp\")$")
      message(NOTICE "${header}: ${include}")
      math(EXPR bad "${bad} + 1")
    endif()
  endforeach()
endforeach()
if(bad)
  message(FATAL_ERROR "public headers have ${bad} includes of libraries")
endif()
