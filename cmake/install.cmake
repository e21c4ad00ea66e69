# What the program knows of its build.
set_property(SOURCE ${CMAKE_SOURCE_DIR}/src/cli/version.cc APPEND PROPERTY COMPILE_DEFINITIONS
             ORTHRUS_VERSION="${PROJECT_VERSION}")
set_property(SOURCE ${CMAKE_SOURCE_DIR}/src/engine/model_registry.cc APPEND PROPERTY COMPILE_DEFINITIONS
             ORTHRUS_SOURCE_MODELS="${CMAKE_SOURCE_DIR}/models")
