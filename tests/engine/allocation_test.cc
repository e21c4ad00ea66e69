// A warm decode step allocates nothing: every operator new of this program is counted, and every
// mmap, from which AlignedBuffer (base/aligned_buffer.h) takes the large pieces.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>

#include "base/aligned_buffer.h"
#include "engine/test_models.h"

namespace {
std::atomic<int64_t> allocations{0};
std::atomic<int64_t> mappings{0};

void* counted(std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void* counted(std::size_t size, std::align_val_t alignment) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  const auto align = static_cast<std::size_t>(alignment);
  if (void* memory = std::aligned_alloc(align, (size + align - 1) / align * align)) return memory;
  throw std::bad_alloc();
}
}  // namespace

// Takes the C library's place for all of this program's own code.
extern "C" void* mmap(void* address, size_t length, int protection, int flags, int file,
                      off_t offset) noexcept {
  mappings.fetch_add(1, std::memory_order_relaxed);
  return reinterpret_cast<void*>(
      syscall(SYS_mmap, address, length, protection, flags, file, offset));
}

void* operator new(std::size_t size) { return counted(size); }
void* operator new[](std::size_t size) { return counted(size); }
void* operator new(std::size_t size, std::align_val_t a) { return counted(size, a); }
void* operator new[](std::size_t size, std::align_val_t a) { return counted(size, a); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace orthrus {
namespace {

struct Case {
  const char* name;
  WeightFormat format;
  int64_t draft_max;
  double temperature;
  Consensus consensus = Consensus::kExact;
};

class WarmSteps : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(
    All, WarmSteps,
    testing::Values(Case{"ar_f32", WeightFormat::kF32, 0, 0},
                    Case{"ar_q8", WeightFormat::kQ8, 0, 0.8},
                    Case{"dual_bf16", WeightFormat::kBF16, 7, 0},
                    Case{"dual_q4", WeightFormat::kQ4, 7, 0.8},
                    Case{"auto_bf16", WeightFormat::kBF16, -1, 0.8},
                    Case{"rejection_bf16", WeightFormat::kBF16, 7, 0.8, Consensus::kRejection},
                    Case{"kl_bf16", WeightFormat::kBF16, 7, 0, Consensus::kKl}),
    [](const auto& param) { return std::string(param.param.name); });

/// One generation by hand, step by step.
struct Generation {
  Generation(Generator& g, const std::vector<int32_t>& prompt, const GenerateOptions& options)
      : table(g.block_pool()), loop(g.forward(), g.cost_model()) {
    table.reserve(static_cast<int64_t>(prompt.size()) + options.max_new_tokens);
    Decoder::Setup setup{};
    setup.model = &g.loaded().model;
    setup.table = &table;
    setup.prompt = prompt;
    setup.options = &options;
    setup.max_seq_len = g.max_seq_len();
    setup.prefill_chunk = 512;
    setup.cost = &g.cost_model();
    decoder = std::make_unique<Decoder>(setup);
  }

  void step() {
    Decoder* const one = decoder.get();
    loop.step({&one, 1}, {&times, 1});
  }

  BlockTable table;
  DecodeLoop loop;
  std::unique_ptr<Decoder> decoder;
  DecodeLoop::Times times;
};

std::vector<int32_t> tiny_prompt() {
  return read_jsonl("tiny/generate.jsonl")[0].at("prompt_ids").get<std::vector<int32_t>>();
}

GenerateOptions generate_options(const Case& c, int64_t tokens) {
  GenerateOptions options;
  options.ignore_eos = true;
  options.max_new_tokens = tokens;
  options.draft_max = c.draft_max;
  options.consensus = c.consensus;
  options.sampling.temperature = c.temperature;
  options.sampling.top_p = 0.95;
  options.sampling.repeat_penalty = 1.1;
  return options;
}

TEST_P(WarmSteps, AllocateNothing) {
  Generator generator(tiny_options(GetParam().format));
  const auto prompt = tiny_prompt();
  const GenerateOptions options = generate_options(GetParam(), 300);
  // Once through, so that everything that grows has grown: pass buffers, scratch blocks.
  generator.generate(prompt, options, nullptr, nullptr, {});

  Generation run(generator, prompt, options);
  for (int i = 0; i < 60; ++i) run.step();
  ASSERT_FALSE(run.decoder->finished());
  const int64_t before = allocations.load();
  const int64_t mapped_before = mappings.load();
  int steps = 0;
  for (; steps < 20 && !run.decoder->finished(); ++steps) run.step();
  EXPECT_EQ(allocations.load() - before, 0) << "in " << steps << " steps";
  EXPECT_EQ(mappings.load() - mapped_before, 0) << "in " << steps << " steps";
  EXPECT_GT(steps, 5);
}

// Attention's workspace grows with the context, by a quarter at least each time: a few mappings on
// the way to the context limit, and none on any later way there.
TEST(Allocation, AGrowingContextMapsRarelyAndOnce) {
  Generator generator(tiny_options(WeightFormat::kBF16));
  const auto prompt = tiny_prompt();
  const auto room = generator.max_seq_len() - static_cast<int64_t>(prompt.size());
  const GenerateOptions options = generate_options({"", WeightFormat::kBF16, 7, 0}, room);
  for (int64_t most : {3, 0}) {
    Generation run(generator, prompt, options);
    for (int i = 0; i < 5; ++i) run.step();
    const int64_t first = run.table.length();
    const int64_t mapped_before = mappings.load();
    while (!run.decoder->finished()) run.step();
    EXPECT_LE(mappings.load() - mapped_before, most);
    EXPECT_GT(run.table.length() - first, 600);
  }
}

// Were the counter not in the way of AlignedBuffer, both tests would pass whatever happens.
TEST(Allocation, CountersSeeHeapAndMappings) {
  const int64_t before = mappings.load();
  AlignedBuffer buffer(100000);
  EXPECT_EQ(mappings.load() - before, 1);
  const int64_t heap_before = allocations.load();
  EXPECT_EQ(*std::make_unique<int>(3), 3);
  EXPECT_GE(allocations.load() - heap_before, 1);
}

}  // namespace
}  // namespace orthrus
