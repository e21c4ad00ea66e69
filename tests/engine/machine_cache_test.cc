#include "engine/machine_cache.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>
#include <vector>

namespace orthrus {
namespace {

namespace fs = std::filesystem;

class MachineCache : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        fs::temp_directory_path() / ("orthrus_cache_" + std::to_string(std::random_device()()));
    fs::create_directories(folder_);
    path_ = (folder_ / "orthrus" / "machine.json").string();
  }
  void TearDown() override { fs::remove_all(folder_); }

  void write(const std::string& text) {
    fs::create_directories(fs::path(path_).parent_path());
    std::ofstream(path_) << text;
  }

  fs::path folder_;
  std::string path_;
};

TEST_F(MachineCache, ReadsBackWhatItWroteByCpuIsaAndThreads) {
  ASSERT_TRUE(write_machine_limits(path_, {"A CPU", "avx2", 2, 10.5, 100, 200, 150}));
  ASSERT_TRUE(write_machine_limits(path_, {"A CPU", "avx2", 4, 20.5, 300, 400, 350}));
  ASSERT_TRUE(write_machine_limits(path_, {"B CPU", "avx2", 2, 30.5, 500, 600, 550}));
  const auto found = read_machine_limits(path_, "A CPU", "avx2", 2);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->read_gbps, 10.5);
  EXPECT_EQ(found->fma_gflops, 100);
  EXPECT_EQ(found->int8_gops, 200);
  EXPECT_EQ(found->bf16_gflops, 150);
  EXPECT_EQ(read_machine_limits(path_, "A CPU", "avx2", 4)->read_gbps, 20.5);
  EXPECT_EQ(read_machine_limits(path_, "B CPU", "avx2", 2)->int8_gops, 600);
  EXPECT_FALSE(read_machine_limits(path_, "A CPU", "avx512", 2));
  EXPECT_FALSE(read_machine_limits(path_, "A CPU", "avx2", 3));
  EXPECT_FALSE(read_machine_limits(path_, "C CPU", "avx2", 2));
}

TEST_F(MachineCache, ReplacesTheEntryOfTheSameMachine) {
  ASSERT_TRUE(write_machine_limits(path_, {"A CPU", "avx2", 2, 10, 100, 200}));
  ASSERT_TRUE(write_machine_limits(path_, {"A CPU", "avx2", 2, 11, 100, 200}));
  EXPECT_EQ(read_machine_limits(path_, "A CPU", "avx2", 2)->read_gbps, 11);
  std::ifstream file(path_);
  EXPECT_EQ(nlohmann::json::parse(file).at("machines").size(), 1u);
}

TEST_F(MachineCache, MalformedFilesHaveNoEntryAndAreReplaced) {
  const char* const broken[] = {
      "",
      "not json",
      "[]",
      R"({"machines": 3})",
      R"({"machines": [3, null, {}]})",
      R"({"machines": [{"cpu": "A CPU", "isa": "avx2", "threads": 2}]})",
      R"({"machines": [{"cpu": "A CPU", "isa": "avx2", "threads": 2, "read_gbps": "fast",
                        "fma_gflops": 1, "int8_gops": 1, "bf16_gflops": 1}]})",
      R"({"machines": [{"cpu": "A CPU", "isa": "avx2", "threads": 2, "read_gbps": 0,
                        "fma_gflops": 1, "int8_gops": 1, "bf16_gflops": 1}]})",
      R"({"machines": [{"cpu": "A CPU", "isa": "avx2", "threads": 2, "read_gbps": 1e300,
                        "fma_gflops": 1, "int8_gops": 1, "bf16_gflops": 1}]})",
      R"({"machines": [{"cpu": "A CPU", "isa": "avx2", "threads": 2, "read_gbps": 10,
                        "fma_gflops": 5e-324, "int8_gops": 1, "bf16_gflops": 1}]})",
  };
  for (const char* text : broken) {
    write(text);
    EXPECT_FALSE(read_machine_limits(path_, "A CPU", "avx2", 2)) << text;
    EXPECT_TRUE(write_machine_limits(path_, {"A CPU", "avx2", 2, 9, 1, 1, 1})) << text;
    EXPECT_EQ(read_machine_limits(path_, "A CPU", "avx2", 2)->read_gbps, 9) << text;
  }
}

TEST_F(MachineCache, CacheThatCannotBeWrittenIsNoError) {
  write("");
  EXPECT_FALSE(write_machine_limits(path_ + "/machine.json", {"A CPU", "avx2", 2, 1, 1, 1}));
  EXPECT_FALSE(read_machine_limits(path_ + "/machine.json", "A CPU", "avx2", 2));
}

/// machine_rates() with the cache in a folder of the test's own.
class MachineRatesInCache : public MachineCache {
 protected:
  void SetUp() override {
    MachineCache::SetUp();
    const char* old = std::getenv("XDG_CACHE_HOME");
    if (old) previous_ = old;
    ::setenv("XDG_CACHE_HOME", folder_.c_str(), 1);
  }
  void TearDown() override {
    if (previous_) {
      ::setenv("XDG_CACHE_HOME", previous_->c_str(), 1);
    } else {
      ::unsetenv("XDG_CACHE_HOME");
    }
    MachineCache::TearDown();
  }

  std::optional<std::string> previous_;
};

TEST_F(MachineRatesInCache, MeasuresOnceAndThenReadsTheFile) {
  ThreadPool pool(2);
  const ComputeContext context{choose_isa(), pool};
  const MachineRates measured = machine_rates(context);
  // Loose enough for any machine, under any load: a megabyte and a megaflop a second.
  EXPECT_GT(measured.bytes_per_second, 1e6);
  EXPECT_GT(measured.f32_flops, 1e6);
  EXPECT_GT(measured.int8_ops, 1e6);
  std::ifstream file(path_);
  nlohmann::json stored = nlohmann::json::parse(file);
  nlohmann::json& entry = stored.at("machines").at(0);
  EXPECT_DOUBLE_EQ(1e9 * entry.at("read_gbps").get<double>(), measured.bytes_per_second);
  EXPECT_EQ(entry.at("threads"), 2);
  entry["read_gbps"] = 123.0;
  entry["fma_gflops"] = 456.0;
  entry["int8_gops"] = 789.0;
  entry["bf16_gflops"] = 890.0;
  entry["disturbed"] = false;
  write(stored.dump());
  const MachineRates cached = machine_rates(context);
  EXPECT_DOUBLE_EQ(cached.bytes_per_second, 123e9);
  EXPECT_DOUBLE_EQ(cached.f32_flops, 456e9);
  EXPECT_DOUBLE_EQ(cached.int8_ops, 789e9);
  EXPECT_DOUBLE_EQ(cached.bf16_flops, 890e9);
}

TEST_F(MachineRatesInCache, MeasuresAgainWhatWasDisturbed) {
  ThreadPool pool(3);
  const ComputeContext context{choose_isa(), pool};
  MachineLimits low{cpu_name(), std::string(isa_name(context.isa)), 3, 1e-3, 2e-3, 3e-3, 4e5};
  low.disturbed = true;
  ASSERT_TRUE(write_machine_limits(path_, low));
  const MachineRates rates = machine_rates(context);
  EXPECT_GT(rates.bytes_per_second, 1e6);
  EXPECT_GT(rates.f32_flops, 2e6);
  EXPECT_EQ(rates.bf16_flops, 4e14);  // the higher one counts
  const auto stored = read_machine_limits(path_, low.cpu, low.isa, 3);
  EXPECT_DOUBLE_EQ(1e9 * stored->read_gbps, rates.bytes_per_second);
  EXPECT_EQ(machine_rates(context).bytes_per_second, rates.bytes_per_second);  // once a process
}

// A thread that shares its core with others has too little of it to measure.
TEST_F(MachineRatesInCache, KnowsThatOtherProgramsHadTheCores) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  CPU_ZERO(&one);
  for (int cpu = 0; CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  {
    std::vector<std::jthread> busy;
    for (int i = 0; i < 3; ++i) {
      busy.emplace_back([](const std::stop_token& stop) {
        while (!stop.stop_requested()) {
        }
      });
    }
    ThreadPool pool(1);
    EXPECT_TRUE(measure_machine({choose_isa(), pool}, 0.1).disturbed);
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
}

// Two measurements are never equal in every rate.
TEST_F(MachineRatesInCache, MeasuresOnceWhereTheFileCannotBeWritten) {
  std::ofstream(folder_ / "orthrus") << "no folder";
  ThreadPool pool(2);
  const ComputeContext context{choose_isa(), pool};
  const MachineRates first = machine_rates(context), second = machine_rates(context);
  EXPECT_EQ(first.bytes_per_second, second.bytes_per_second);
  EXPECT_EQ(first.f32_flops, second.f32_flops);
  EXPECT_EQ(first.int8_ops, second.int8_ops);
}

}  // namespace
}  // namespace orthrus
