include(GNUInstallDirs)

# What the program knows of its build.
set_property(SOURCE ${CMAKE_SOURCE_DIR}/src/cli/version.cc APPEND PROPERTY COMPILE_DEFINITIONS
             ORTHRUS_VERSION="${PROJECT_VERSION}")
set_property(SOURCE ${CMAKE_SOURCE_DIR}/src/engine/model_registry.cc APPEND PROPERTY COMPILE_DEFINITIONS
             ORTHRUS_INSTALLED_MODELS="${CMAKE_INSTALL_FULL_DATADIR}/orthrus/models"
             ORTHRUS_SOURCE_MODELS="${CMAKE_SOURCE_DIR}/models")

# `cmake --install`: the program, the library with its public headers and CMake package, the adapters.
include(CMakePackageConfigHelpers)
set(ORTHRUS_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/orthrus)

# Users see the public headers only; src/ is for the build.
foreach(module base formats text grammar kernels cache model decode engine)
  set_target_properties(orthrus_${module} PROPERTIES EXPORT_NAME ${module}
    INTERFACE_INCLUDE_DIRECTORIES
    "$<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include;${CMAKE_SOURCE_DIR}/src>;$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
  install(TARGETS orthrus_${module} EXPORT orthrusTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
endforeach()
install(EXPORT orthrusTargets NAMESPACE orthrus:: DESTINATION ${ORTHRUS_CMAKE_DIR})

configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/orthrusConfig.cmake.in
                              ${CMAKE_BINARY_DIR}/orthrusConfig.cmake INSTALL_DESTINATION ${ORTHRUS_CMAKE_DIR})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/orthrusConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/orthrusConfig.cmake ${CMAKE_BINARY_DIR}/orthrusConfigVersion.cmake
        DESTINATION ${ORTHRUS_CMAKE_DIR})
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/orthrus DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY ${CMAKE_SOURCE_DIR}/models DESTINATION ${CMAKE_INSTALL_DATADIR}/orthrus)
if(TARGET orthrus)
  install(TARGETS orthrus RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
