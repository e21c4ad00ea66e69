// Loads a model, generates with both views and says what the diffusion view saved.
// Usage: generate MODEL PROMPT [MAX_NEW_TOKENS]

#include <orthrus/orthrus.h>
#include <cstdio>
#include <cstdlib>

namespace {

int run(const char* path, const char* prompt, int64_t max_new_tokens) {
  orthrus::LoadOptions load;
  load.model = path;
  orthrus::LanguageModel model = orthrus::LanguageModel::load(load);
  const std::vector<int32_t> input_ids = model.encode(prompt, /*add_special_tokens=*/true);

  orthrus::GenerateOptions options;
  options.max_new_tokens = max_new_tokens;
  options.use_diffusion_mode = model.has_diffusion_view();
  orthrus::TextStreamer streamer(stdout, /*skip_prompt=*/true);
  const orthrus::GenerateResult dual = model.generate(input_ids, options, &streamer);

  options.use_diffusion_mode = false;
  const orthrus::GenerateResult ar = model.generate(input_ids, options);
  std::printf("\n%zu tokens, %.2f tokens per cycle, %s plain AR\n", dual.token_ids.size(),
              dual.tokens_per_cycle(), dual.token_ids == ar.token_ids ? "identical to" : "NOT");
  return dual.token_ids == ar.token_ids ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || argc > 4) {
    std::fprintf(stderr, "usage: generate MODEL PROMPT [MAX_NEW_TOKENS]\n");
    return 2;
  }
  try {
    return run(argv[1], argv[2], argc == 4 ? std::atoll(argv[3]) : 64);
  } catch (const orthrus::Error& error) {
    std::fprintf(stderr, "generate: %s\n", error.what());
    return 1;
  }
}
