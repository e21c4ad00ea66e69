# `make` alone lists the targets. SETUP=no skips the installation of Debian packages.
SHELL := /bin/bash
JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 60
DEMO_MODEL := smollm2-135m
CXX_FILES = $(shell git ls-files 'include/*.h' '*.cc' 'src/*.h' 'trainer/*.h' 'tests/*.h' 'bench/*.h' 'fuzz/*.h')
UNIT_TESTS := ^(base|formats|text|grammar|hub|kernels|cache|model|decode|engine|server|cli)$$

.DEFAULT_GOAL := help
.PHONY: help build build-all with-trainer train demo demo-serve test test-aarch64 bench bench-sizes bench-serve bench-peers soak fuzz sanitize sanitize-address \
  sanitize-thread lint format clean pull

help:
	@echo "make build     the program, at build/orthrus (installs missing Debian packages first)"
	@echo "make train     the trainer, at build/orthrus-train (docs/training.md)"
	@echo "make demo      fetch the demo model, generate on it with both views and compare"
	@echo "make demo-serve serve the demo model: OpenAI API and a chat page"
	@echo "make test      every test"
	@echo "make test-aarch64 kernels and tiny models, cross-compiled for AArch64, under qemu"
	@echo "make bench     measure this machine and the engine in five minutes; results in build/bench/"
	@echo "make bench-sizes measure load, memory and speed of SIZES_CASES, models beyond the demo with random weights"
	@echo "make bench-serve measure the server under load; results in build/bench/load/"
	@echo "make bench-peers race llama.cpp, OpenVINO and CTranslate2 on the same weights; results in build/peers/"
	@echo "make soak      the long tests: the whole lossless matrix (up to two hours, resumable)"
	@echo "make fuzz      run every fuzz target for FUZZ_SECONDS (60)"
	@echo "make sanitize  unit tests under the address, undefined and thread sanitizers"
	@echo "make lint      formatting, static analysis and include directions"
	@echo "make format    format the C++ files"
	@echo "make clean     remove everything that was built"

build/.setup: scripts/setup.sh scripts/apt-packages.txt
ifneq ($(SETUP),no)
	@bash scripts/setup.sh
endif
	@mkdir -p build && touch $@

build: build/.setup
	@cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release >build/cmake.log || { cat build/cmake.log; exit 1; }
	@cmake --build build -j $(JOBS) --target orthrus

with-trainer: build
	@cmake -S . -B build -DORTHRUS_TRAINER=ON >build/cmake.log || { cat build/cmake.log; exit 1; }

build-all: with-trainer
	@cmake --build build -j $(JOBS)

# The trainer stands beside the program, which makes its data.
train: with-trainer
	@cmake --build build -j $(JOBS) --target orthrus-train

.venv/.setup: scripts/requirements-test.txt build/.setup
	@python3 -m venv .venv
	@.venv/bin/python -m pip install -q --disable-pip-version-check -r scripts/requirements-test.txt
	@touch $@

pull: build
	@build/orthrus pull $(DEMO_MODEL)

demo: pull
	@bash scripts/demo.sh

demo-serve: pull
	@bash scripts/demo_serve.sh

# The summary of ctest is the last that this prints.
test: build-all .venv/.setup pull
	@ctest --test-dir build --output-on-failure -LE soak

test-aarch64: build/.setup
	@SETUP=$(SETUP) bash scripts/test_aarch64.sh $(JOBS)

bench: pull
	@bash bench/run_all.sh

# The figures of docs/benchmarks.md, "Sizes beyond the demo". The checkpoints are made in SIZES_FOLDER and stay there (4 and 19 GB).
SIZES_CASES ?= qwen3-1.7b:q4:32768 qwen3-1.7b:bf16 qwen3-8b:q4
SIZES_FOLDER ?= build/sizes
bench-sizes: build
	@mkdir -p build/bench
	@python3 bench/sizes.py build/orthrus $(SIZES_FOLDER) $(SIZES_CASES) >build/bench/sizes.part
	@mv build/bench/sizes.part build/bench/sizes.md && cat build/bench/sizes.md

# The figures of docs/benchmarks.md, "Serving".
bench-serve: pull
	@cmake --build build -j $(JOBS) --target orthrus_engine_bench
	@bash bench/load/run_all.sh

# The figures of docs/benchmarks.md, "The race".
bench-peers: pull
	@cmake --build build -j $(JOBS) --target orthrus_race_worker
	@bash bench/peers/run_all.sh

soak: build-all pull
	@bash scripts/soak.sh

fuzz: build/.setup
	@mkdir -p build-fuzz
	@cmake -S . -B build-fuzz -G Ninja -DCMAKE_CXX_COMPILER=clang++-14 -DORTHRUS_FUZZ=ON -DORTHRUS_TESTS=OFF \
	  >build-fuzz/cmake.log || { cat build-fuzz/cmake.log; exit 1; }
	@cmake --build build-fuzz -j $(JOBS) --target fuzz_all
	@FUZZ_SECONDS=$(FUZZ_SECONDS) bash scripts/fuzz.sh

# Figures of quality and speed say nothing about memory and threads, and would take an hour here.
SANITIZE_FILTER := -*AcceptanceGuard*:*KeepsItsQuality*:*GoldenCounts:TokenizerSpeed*

sanitize: sanitize-address sanitize-thread

sanitize-address: pull
	@cmake -S . -B build-asan -G Ninja -DORTHRUS_SANITIZE=address,undefined >/dev/null
	@cmake --build build-asan -j $(JOBS)
	@GTEST_FILTER='$(SANITIZE_FILTER)' ctest --test-dir build-asan --output-on-failure -R '$(UNIT_TESTS)'

# clang's thread sanitizer needs addresses as they are without randomisation.
sanitize-thread: pull
	@cmake -S . -B build-tsan -G Ninja -DCMAKE_CXX_COMPILER=clang++-14 -DORTHRUS_SANITIZE=thread >/dev/null
	@cmake --build build-tsan -j $(JOBS)
	@GTEST_FILTER='$(SANITIZE_FILTER)' setarch -R ctest --test-dir build-tsan --output-on-failure -R '$(UNIT_TESTS)'

lint: build/.setup
	@clang-format-14 --dry-run --Werror $(CXX_FILES)
	@cppcheck --quiet --std=c++20 --language=c++ --enable=warning,portability \
	  --suppressions-list=scripts/cppcheck-suppressions.txt --error-exitcode=1 -I include -I src -I . -j $(JOBS) \
	  -i trainer/tests src trainer
	@python3 tests/include_directions.py .

format: build/.setup
	@clang-format-14 -i $(CXX_FILES)

clean:
	@rm -rf build build-asan build-tsan build-fuzz build-aarch64 .venv
