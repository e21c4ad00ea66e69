# libtorch as it lies in an installed PyTorch wheel (-DTorch_DIR=scripts/gpu/torch_wheel), without what the wheel's own
# TorchConfig.cmake asks for beside it: the CUDA toolkit, which this project compiles nothing with. ORTHRUS_TORCH_ROOT is the
# folder torch/ of the wheel; by default the one that python3 imports.
if(NOT ORTHRUS_TORCH_ROOT)
  execute_process(
    COMMAND python3 -c "import torch, os; print(os.path.dirname(torch.__file__), end='')"
    OUTPUT_VARIABLE ORTHRUS_TORCH_ROOT RESULT_VARIABLE torch_found ERROR_QUIET)
  if(NOT torch_found EQUAL 0)
    message(FATAL_ERROR "python3 imports no torch: install a PyTorch wheel or set ORTHRUS_TORCH_ROOT")
  endif()
endif()

# Older wheels had the old ABI of std::string, which Debian's libraries do not share.
file(READ ${ORTHRUS_TORCH_ROOT}/version.py torch_version)
string(REGEX MATCH "__version__ = '([0-9]+)\\.([0-9]+)" torch_version "${torch_version}")
if(CMAKE_MATCH_1 LESS 2 OR (CMAKE_MATCH_1 EQUAL 2 AND CMAKE_MATCH_2 LESS 7))
  message(FATAL_ERROR "${ORTHRUS_TORCH_ROOT}: PyTorch ${CMAKE_MATCH_1}.${CMAKE_MATCH_2}, expected 2.7 or newer (C++11 ABI)")
endif()

set(TORCH_INCLUDE_DIRS ${ORTHRUS_TORCH_ROOT}/include ${ORTHRUS_TORCH_ROOT}/include/torch/csrc/api/include)
# The CUDA half registers itself when it is loaded: no symbol of it is asked for by name. What it needs in turn (cuBLAS, NCCL)
# is found through the wheel's own run paths.
set(TORCH_LIBRARIES "-Wl,--no-as-needed" ${ORTHRUS_TORCH_ROOT}/lib/libtorch.so ${ORTHRUS_TORCH_ROOT}/lib/libtorch_cpu.so)
if(EXISTS ${ORTHRUS_TORCH_ROOT}/lib/libtorch_cuda.so)
  list(APPEND TORCH_LIBRARIES ${ORTHRUS_TORCH_ROOT}/lib/libtorch_cuda.so ${ORTHRUS_TORCH_ROOT}/lib/libc10_cuda.so)
endif()
list(APPEND TORCH_LIBRARIES ${ORTHRUS_TORCH_ROOT}/lib/libc10.so "-Wl,--as-needed" "-Wl,--unresolved-symbols=ignore-in-shared-libs")
set(Torch_FOUND TRUE)
