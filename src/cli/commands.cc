#include "cli/command.h"

namespace orthrus {

std::span<const CommandEntry> commands() {
  static const CommandEntry kCommands[] = {
      {"run", "answer one prompt", make_run_command},
      {"chat", "talk to a model in the terminal", make_chat_command},
      {"generate", "answer many prompts: JSONL in, JSONL out", make_generate_command},
      {"serve", "an OpenAI-compatible server, and a chat page", make_serve_command},
      {"inspect", "what a model is made of", make_inspect_command},
      {"plan", "memory that a model needs, and what fits", make_plan_command},
      {"bench", "speed against this machine's limits", make_bench_command},
      {"eval", "how well the diffusion view drafts", make_eval_command},
      {"perplexity", "perplexity of a text, and KL against f32", make_perplexity_command},
      {"tokenize", "text to token ids and back", make_tokenize_command},
      {"template", "render a model's chat template", make_template_command},
      {"adapter", "show or convert diffusion weights", make_adapter_command},
      {"quantize", "write a model as a GGUF file of 4, 8 or 16 bits", make_quantize_command},
      {"pull", "fetch a model from the Hugging Face hub", make_pull_command},
      {"version", "version, compiler, instruction sets and model folders", make_version_command},
  };
  return kCommands;
}

}  // namespace orthrus
