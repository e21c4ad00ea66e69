#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace orthrus {

/// Runtime format of the weights; kAuto keeps the precision of the file.
enum class WeightFormat : uint8_t { kAuto, kF32, kBF16, kQ8, kQ4 };

/// Runtime format of what drafting reads: the diffusion view's attention weights, and twins of MLP
/// and lm_head. Drafts are judged by the AR view, so fewer bits cost accepted drafts and memory,
/// never quality. kAuto: the fewest bits that pay and that the memory has room for.
enum class DraftWeights : uint8_t { kAuto, kSame, kQ8, kQ4 };

/// Element type of the KV cache. kQ8: int8 with one f32 scale for each head of a token.
enum class KvType : uint8_t { kBF16, kF32, kQ8 };

/// How a drafted token is judged against the AR view (p: the AR distribution, q: the diffusion
/// view's, both after the sampling chain).
enum class Consensus : uint8_t {
  kExact,      ///< accepted iff it is the token the AR view yields: output identical to plain AR
  kRejection,  ///< with probability min(1, p/q), else a token from max(p - q, 0), normalised
               ///< (Leviathan et al. 2023, algorithm 1): the AR distribution, but other tokens than
               ///< plain AR
  kKl  ///< accepted iff KL(p || q) of the raw softmaxes < threshold, or equal: approximate (the
       ///< total variation of a token is at most sqrt(threshold / 2), Pinsker)
};

/// Everything that decides which token follows. Order of the chain: logit bias, penalties,
/// temperature, top-k, top-p, min-p. The token is argmax(logits / T + Gumbel noise) over what is
/// left, which is a sample of the softmax (the Gumbel-max trick); the noise is a pure function of
/// (seed, choice, position, token id), so that the same options give the same text with and without
/// drafts. Values out of range are an Error(kUsage) when the generation starts.
struct SamplingOptions {
  double temperature = 0;  ///< >= 0; 0: greedy (argmax after bias and penalties)
  int64_t top_k = 0;       ///< >= 0; 0: off
  double top_p = 1;  ///< (0, 1]; the fewest most likely tokens that reach it (Holtzman et al. 2020)
  double min_p =
      0;  ///< [0, 1]; least share of the most likely token's probability (Nguyen et al. 2024)
  double repeat_penalty =
      1;  ///< > 0; divides positive, multiplies negative logits (Keskar et al. 2019)
  int64_t repeat_last_n = 64;    ///< tokens that the three penalties look back at; 0: none, -1: all
  double presence_penalty = 0;   ///< subtracted once from the logit of a token that occurred
  double frequency_penalty = 0;  ///< subtracted once for each time it occurred
  /// Presence and frequency penalties see the whole answer and nothing of the prompt, as OpenAI and
  /// vLLM have them; false: the window of repeat_last_n, as llama.cpp.
  bool penalties_of_answer = false;
  std::vector<std::pair<int32_t, double>> logit_bias;  ///< added to logits; -infinity bans a token
  uint64_t seed = 0;                                   ///< 0 is a seed like any other
  uint32_t choice = 0;  ///< index among several answers to one prompt
};

struct GenerateOptions {
  int64_t max_new_tokens = -1;     ///< -1: up to the context limit
  bool use_diffusion_mode = true;  ///< false: plain AR
  /// Most drafts a cycle, cut to block_size - 1; -1: automatic (a full block under kRejection and
  /// kKl, whose text depends on the borders of blocks); 0: plain AR.
  int64_t draft_max = -1;
  Consensus consensus = Consensus::kExact;
  double consensus_threshold = 0.01;  ///< nats, for kKl
  bool consensus_stats = false;       ///< compute KL and conflict rate in every mode
  bool ignore_eos = false;            ///< the model's end tokens do not end the answer
  SamplingOptions sampling;
  std::vector<std::string> stop;  ///< stop strings; they never appear in the text
  /// Tokens that end the answer too; like stop strings they never appear in the text.
  std::vector<int32_t> stop_token_ids;
  /// No end token is among the first so many tokens, and no stop string begins in them. Not beside
  /// a grammar or schema, which alone say where the answer may end.
  int64_t min_new_tokens = 0;
  int64_t logprobs = -1;         ///< of each token and of so many most likely ones; -1: none
  bool prompt_logprobs = false;  ///< of the prompt's tokens too (with as many alternatives)
  /// What the answer must look like: a grammar in GBNF, or a JSON schema ("{}": any JSON); at most
  /// one of the two. Both views are masked, so that drafts keep being accepted.
  std::string grammar;
  std::string json_schema;
  /// The answer is free up to and including the first `thinking_end`, if it begins with
  /// `thinking_begin` (empty: the prompt ends within a thought). No thoughts where `thinking_end`
  /// is empty.
  std::string thinking_begin;
  std::string thinking_end;
};

/// Natural logarithms of the AR view's softmax (of the raw logits) for one token of a text.
struct TokenLogprobs {
  double logprob = 0;
  std::vector<std::pair<int32_t, double>> top;  ///< the most likely tokens, best first
};

struct LoadOptions {
  std::string model;      ///< directory, .gguf file, or name of a pulled model (OWNER/NAME)
  std::string adapter;    ///< path, "copy" (untrained), or "": the model's own, if any
  bool diffusion = true;  ///< false: do not load diffusion weights (--view ar)
  WeightFormat weights = WeightFormat::kAuto;
  DraftWeights draft_weights = DraftWeights::kAuto;
  /// Drafts come from the tokens below this id only (those a BPE vocabulary learned first are its
  /// most frequent), so that drafting reads fewer rows of lm_head; 0: from all.
  int64_t draft_vocab = 0;
  std::optional<KvType> key_type;  ///< unset: f32 with f32 weights, else bf16
  std::optional<KvType> value_type;
  int threads = 0;             ///< 0: all that this process may use
  int64_t max_seq_len = 4096;  ///< 0: the model's limit
  int64_t ubatch = 512;        ///< most prompt tokens a pass
  int64_t batch = 1;           ///< sequences that may run at once (generate_batch)
  /// GiB for keys and values of all sequences, cut to 80 % of the memory that is free once the
  /// weights are loaded; 0: what `batch` sequences of max_seq_len tokens take.
  double kv_cache_memory_budget_gb = 0;
  /// Folder of files that hold packed weights, made by the first load of a model and read by the
  /// next ones in a fraction of its time; "": none.
  std::string packed_cache;
  std::function<void(double)> progress;  ///< share of the weights loaded, 0 to 1
};

enum class FinishReason : uint8_t {
  kStop,      ///< end of sequence, a stop token or a stop string
  kLength,    ///< max_new_tokens or the context limit
  kCancelled  ///< through the stop token
};

/// What one generation did. Definitions: a cycle yields at least one token (a plain AR step is
/// one); tokens per cycle = decoded tokens / cycles; TPF = completion tokens / forward passes, the
/// prefill counted as one pass.
struct GenerateResult {
  std::string text;                            ///< without special tokens and stop strings
  std::vector<int32_t> token_ids;              ///< the end-of-sequence token included
  std::vector<TokenLogprobs> logprobs;         ///< of token_ids, where asked for
  std::vector<TokenLogprobs> prompt_logprobs;  ///< of the prompt's tokens but the first
  FinishReason finish_reason = FinishReason::kLength;
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;  ///< of the prompt, found in the KV cache
  int64_t cycles = 0;
  int64_t drafted = 0;
  int64_t accepted = 0;
  int64_t forward_passes = 0;
  std::vector<int64_t> drafted_per_cycle;   ///< drafts that each cycle judged
  std::vector<int64_t> accepted_per_cycle;  ///< accepted drafts of each cycle
  std::optional<double> kl_mean;            ///< nats, over judged draft positions
  std::optional<double> conflict_rate;      ///< share of judged positions with KL >= the threshold
  double prefill_seconds = 0;
  double decode_seconds = 0;
  int64_t kv_bytes = 0;  ///< bytes of KV cache allocated

  double tokens_per_cycle() const {
    return cycles ? static_cast<double>(accepted + cycles) / static_cast<double>(cycles) : 0;
  }
  double acceptance_length() const {
    return cycles ? static_cast<double>(accepted) / static_cast<double>(cycles) : 0;
  }
  double tpf() const {
    return forward_passes
               ? static_cast<double>(token_ids.size()) / static_cast<double>(forward_passes)
               : 0;
  }
};

}  // namespace orthrus
