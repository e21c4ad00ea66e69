# Cross-compiles for AArch64 Linux with Debian's compiler and runs tests under qemu-user. The
# libraries lie in the folder ORTHRUS_SYSROOT, which scripts/aarch64_sysroot.sh fills.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)

set(ORTHRUS_SYSROOT "" CACHE PATH "Root of an arm64 Debian with the libraries of scripts/apt-packages.txt")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES ORTHRUS_SYSROOT)
set(CMAKE_SYSROOT ${ORTHRUS_SYSROOT})
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${ORTHRUS_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR}
    ${ORTHRUS_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${ORTHRUS_SYSROOT}/usr/share/pkgconfig)

set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L ${ORTHRUS_SYSROOT} -cpu max)
