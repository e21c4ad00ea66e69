// A warm decode step makes no heap allocation: every operator new of this program is counted.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "engine/test_models.h"

namespace {
std::atomic<int64_t> allocations{0};

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

class Allocation : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(
    All, Allocation,
    testing::Values(Case{"ar_f32", WeightFormat::kF32, 0, 0},
                    Case{"ar_q8", WeightFormat::kQ8, 0, 0.8},
                    Case{"dual_bf16", WeightFormat::kBF16, 7, 0},
                    Case{"dual_q4", WeightFormat::kQ4, 7, 0.8},
                    Case{"auto_bf16", WeightFormat::kBF16, -1, 0.8},
                    Case{"rejection_bf16", WeightFormat::kBF16, 7, 0.8, Consensus::kRejection},
                    Case{"kl_bf16", WeightFormat::kBF16, 7, 0, Consensus::kKl}),
    [](const auto& param) { return std::string(param.param.name); });

TEST_P(Allocation, WarmStepsMakeNone) {
  const Case& c = GetParam();
  Generator generator(tiny_options(c.format));
  const auto prompt =
      read_jsonl("tiny/generate.jsonl")[0].at("prompt_ids").get<std::vector<int32_t>>();
  GenerateOptions options;
  options.ignore_eos = true;
  options.max_new_tokens = 300;
  options.draft_max = c.draft_max;
  options.consensus = c.consensus;
  options.sampling.temperature = c.temperature;
  options.sampling.top_p = 0.95;
  options.sampling.repeat_penalty = 1.1;
  // Once through, so that everything that grows has grown: pass buffers, scratch blocks.
  generator.generate(prompt, options, nullptr, nullptr, {});

  BlockTable table(generator.block_pool());
  table.reserve(static_cast<int64_t>(prompt.size()) + options.max_new_tokens);
  DecodeLoop loop(generator.forward(), generator.cost_model());
  Decoder::Setup setup{};
  setup.model = &generator.loaded().model;
  setup.table = &table;
  setup.prompt = prompt;
  setup.options = &options;
  setup.max_seq_len = generator.max_seq_len();
  setup.prefill_chunk = 512;
  setup.cost = &generator.cost_model();
  Decoder decoder(setup);
  Decoder* const one = &decoder;
  DecodeLoop::Times times;
  for (int i = 0; i < 60; ++i) loop.step({&one, 1}, {&times, 1});
  ASSERT_FALSE(decoder.finished());
  const int64_t before = allocations.load();
  int steps = 0;
  for (; steps < 20 && !decoder.finished(); ++steps) loop.step({&one, 1}, {&times, 1});
  EXPECT_EQ(allocations.load() - before, 0) << "in " << steps << " steps";
  EXPECT_GT(steps, 5);
}

}  // namespace
}  // namespace orthrus
