#include "cli/foreign_flags.h"

#include <algorithm>

#include "base/error.h"

namespace orthrus {
namespace {

struct ForeignFlags {
  std::string_view names;  ///< parted by spaces
  std::string_view hint;
};

// docs/serving.md lists the usual ones.
constexpr ForeignFlags kForeignFlags[] = {
    {"-ngl --gpu-layers --n-gpu-layers -sm --split-mode -ts --tensor-split -mg --main-gpu -dev "
     "--device --list-devices -nkvo --no-kv-offload -ot --override-tensor -cmoe --cpu-moe -ncmoe "
     "--n-cpu-moe",
     "the CPU does all work, on the threads of -t"},
    {"-tb --threads-batch --threads-http --cpu-mask --cpu-range --cpu-strict --numa --prio --poll",
     "-t says how many threads work; taskset and numactl say on which cores"},
    {"-tp --tensor-parallel-size -pp --pipeline-parallel-size -dp --data-parallel-size "
     "--enable-expert-parallel",
     "one process works on all of a model; for more, run several behind a proxy (deploy/)"},
    {"-fa --flash-attn", "there is one kind of attention, for any length"},
    {"--mlock --mmap --no-mmap -dio --direct-io --cpu-offload-gb --swap-space",
     "weights are packed into memory when they are loaded; --cache-packed keeps them in a file "
     "that later loads map; `orthrus plan` says what they take"},
    {"--gpu-memory-utilization --kv-cache-memory-bytes --num-gpu-blocks-override",
     "serve has --kv-cache-memory-budget-gb for keys and values; `orthrus plan` says what the rest "
     "takes"},
    {"-b --batch-size",
     "llama.cpp's logical batch does not exist: -ub says how many prompt tokens a pass takes, "
     "--batch (generate, plan) how many sequences run at once"},
    {"--max-num-batched-tokens --long-prefill-token-threshold",
     "-ub says how many prompt tokens a pass takes"},
    {"--parallel --max-num-seqs --decode-batch-size",
     "it is a flag of serve; generate and plan have --batch"},
    {"--dtype --quantization", "--weights says the format: auto, f32, bf16, q8 or q4"},
    {"--kv-cache-dtype", "--kv-type says the type of keys and values: bf16, f32 or q8"},
    {"--block-size", "blocks of keys and values hold 64 tokens"},
    {"-cb --cont-batching -nocb --no-cont-batching --enable-chunked-prefill "
     "--no-enable-chunked-prefill",
     "requests always share passes; serve has --prefill-mode"},
    {"--enable-prefix-caching --no-enable-prefix-caching --cache-prompt --no-cache-prompt "
     "--cache-reuse",
     "prompts that begin alike always share what was read of them"},
    {"--enforce-eager --warmup --no-warmup --compilation-config",
     "nothing is compiled or warmed up"},
    {"--trust-remote-code --tokenizer --tokenizer-mode --hf-overrides --load-format "
     "--config-format --rope-scaling --rope-scale --rope-freq-base --rope-freq-scale",
     "the model's own files decide; a model's code is never run"},
    {"-mu --model-url -hff --hf-file -hft --hf-token --download-dir",
     "`orthrus pull` fetches models, and -m takes their names"},
    {"-md --model-draft --draft --draft-n --draft-min --draft-n-min --draft-p-min -ngld "
     "--speculative-config --speculative-model --num-speculative-tokens",
     "the model drafts for itself; --draft-max says how far"},
    {"--lora --lora-scaled --lora-modules --enable-lora --control-vector",
     "merge such adapters into the model; --adapter is for diffusion weights"},
    {"--jinja --no-jinja --chat-template --chat-template-file",
     "the model's own chat template is used"},
    {"--tool-call-parser --enable-auto-tool-choice --tool-parser-plugin --reasoning-parser "
     "--reasoning-format --reasoning-budget --enable-reasoning",
     "tool calls and thoughts are found without a flag (docs/serving.md)"},
    {"--guided-decoding-backend --structured-outputs-config",
     "there is one way, for any request (docs/grammar.md)"},
    {"--embedding --embeddings --rerank --reranking --pooling --runner --task --mmproj -mm --image "
     "--limit-mm-per-prompt",
     "texts are read and written, nothing else"},
    {"--ssl-key-file --ssl-cert-file --ssl-keyfile --ssl-certfile --ssl-ca-certs --root-path "
     "--api-prefix",
     "TLS and paths are a proxy's (deploy/)"},
    {"--webui --no-webui --path", "the chat page is at /; --no-page leaves it out"},
    {"--allowed-origins", "serve has --cors-origin"},
    {"--metrics --slots --no-slots --props", "/metrics is always there; /slots and /props are not"},
    {"-lv --log-verbosity --log-file --log-disable --uvicorn-log-level --enable-log-requests "
     "--disable-log-requests --disable-log-stats",
     "the log goes to stderr, without prompts and answers"},
    {"-cnv --conversation -no-cnv --no-conversation -st --single-turn --interactive",
     "`orthrus chat` talks, `orthrus run` answers once"},
    {"--samplers --sampler-seq --sampling-seq --typical --mirostat --mirostat-lr --mirostat-ent "
     "--xtc-probability --xtc-threshold --dry-multiplier --dynatemp-range --top-nsigma",
     "penalties, temperature, top-k, top-p and min-p are all there is, in this order"},
    {"--generation-config --override-generation-config",
     "the model's generation_config.json is read, and flags of sampling go before it"},
    {"--context-shift --no-context-shift --keep", "an answer ends where the context does"},
};

}  // namespace

std::string_view foreign_flag_hint(std::string_view flag) {
  for (const ForeignFlags& row : kForeignFlags) {
    for (std::string_view rest = row.names; !rest.empty();) {
      const size_t end = std::min(rest.find(' '), rest.size());
      if (rest.substr(0, end) == flag) return row.hint;
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  return {};
}

void refuse_foreign_flag(std::string_view flag) {
  const std::string_view hint = foreign_flag_hint(flag);
  if (!hint.empty()) fail_usage("no flag {} here: {}", flag, hint);
}

}  // namespace orthrus
