#pragma once

#include <fstream>
#include <string>
#include <vector>

#include "trainer/data/answers.h"
#include "trainer/tests/captured_run.h"
#include "trainer/tests/fit_runs.h"

namespace orthrus::train {

/// Calls of orthrus-train, in the folder and on the data of Fit.
class Program : public Fit {
 protected:
  static Captured train(std::vector<std::string> words) {
    words.insert(words.begin(), ORTHRUS_TRAIN_PROGRAM);
    return captured_run(words);
  }
  /// `data` on the tiny checkpoint into out(name).
  Captured data(const std::string& name, const std::vector<std::string>& extra) const {
    std::vector<std::string> words{"data", "-m", tiny_path(), "-o", out(name), "--weights", "f32"};
    words.insert(words.end(), extra.begin(), extra.end());
    return train(words);
  }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(out(name), std::ios::binary) << text;
    return out(name);
  }
  const std::string questions_ = std::string(ORTHRUS_TEST_DATA) + "/gsm8k/questions.jsonl";
};

}  // namespace orthrus::train
