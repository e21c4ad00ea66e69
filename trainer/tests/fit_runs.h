#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "trainer/tests/tiny_student.h"

extern char** environ;

namespace orthrus::train {

/// Runs of `orthrus-train fit` as child processes, in a folder of their own.
class Fit : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "/orthrus_fit_" + std::to_string(::getpid());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    write_shard(folder_ + "/made.shard", tiny_documents(20));
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string out(const std::string& name) const { return folder_ + "/" + name; }

  /// variables: "NAME=value", in front of those of this process.
  static pid_t spawn(std::vector<std::string> words, std::vector<std::string> variables = {}) {
    std::vector<char*> argv, environment;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    for (std::string& variable : variables) environment.push_back(variable.data());
    for (char** variable = environ; *variable != nullptr; ++variable) {
      environment.push_back(*variable);
    }
    environment.push_back(nullptr);
    pid_t child = 0;
    EXPECT_EQ(::posix_spawn(&child, argv[0], nullptr, nullptr, argv.data(), environment.data()), 0);
    return child;
  }
  /// On the tiny checkpoint, with small rows and a checkpoint behind every step.
  pid_t start(const std::string& name, const std::vector<std::string>& extra,
              const std::vector<std::string>& variables = {}) const {
    std::vector<std::string> words{
        ORTHRUS_TRAIN_PROGRAM,   "fit", "-m",      tiny_path(),    "--data",
        folder_ + "/made.shard", "-o",  out(name), "--row-tokens", "90",
        "--row-blocks",          "10"};
    words.insert(words.end(), extra.begin(), extra.end());
    if (std::find(extra.begin(), extra.end(), "--checkpoint-minutes") == extra.end()) {
      words.insert(words.end(), {"--checkpoint-minutes", "0"});
    }
    return spawn(words, variables);
  }
  static constexpr int kStopped = 130;  // exit code of a run that a signal has stopped

  static int wait(pid_t child) {
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  /// The objects of that event in the log, in its order.
  std::vector<nlohmann::json> events(const std::string& name, const std::string& event) const {
    std::vector<nlohmann::json> result;
    std::ifstream file(out(name) + "/log.jsonl");
    for (std::string line; std::getline(file, line);) {
      const auto json = nlohmann::json::parse(line, nullptr, false);
      if (json.is_object() && json["event"] == event) result.push_back(json);
    }
    return result;
  }
  /// The loss of every step.
  std::vector<std::pair<int64_t, double>> losses(const std::string& name) const {
    std::vector<std::pair<int64_t, double>> result;
    for (const auto& json : events(name, "step")) result.emplace_back(json["step"], json["loss"]);
    return result;
  }
  void wait_for_steps(const std::string& name, size_t steps) const {
    for (int i = 0; i < 6000 && losses(name).size() < steps; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ASSERT_GE(losses(name).size(), steps);
  }

  std::string folder_;
};

}  // namespace orthrus::train
