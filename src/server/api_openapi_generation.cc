#include "server/api_openapi_generation.h"

namespace orthrus {
namespace {

// Keep in step with read_generation() and read_form().
constexpr std::string_view kParameters = R"json(          "model": {
            "type": ["string", "null"],
            "maxLength": 512,
            "description": "A name that /v1/models lists; absent: the served model."
          },
          "n": {"type": ["integer", "null"], "minimum": 1, "maximum": 16, "default": 1},
          "temperature": {
            "type": ["number", "null"],
            "minimum": 0,
            "maximum": 100,
            "description": "0: greedy. Default: the model's."
          },
          "top_p": {"type": ["number", "null"], "exclusiveMinimum": 0, "maximum": 1},
          "top_k": {
            "type": ["integer", "null"],
            "minimum": -1,
            "maximum": 2147483647,
            "description": "0 or -1: off."
          },
          "min_p": {"type": ["number", "null"], "minimum": 0, "maximum": 1},
          "seed": {
            "type": ["integer", "null"],
            "minimum": -1,
            "maximum": 9223372036854775807,
            "description": "-1 or absent: drawn."
          },
          "presence_penalty": {"type": ["number", "null"], "minimum": -2, "maximum": 2},
          "frequency_penalty": {"type": ["number", "null"], "minimum": -2, "maximum": 2},
          "repetition_penalty": {
            "type": ["number", "null"],
            "minimum": 0.001,
            "maximum": 100,
            "description": "Of prompt and answer."
          },
          "repeat_penalty": {
            "type": ["number", "null"],
            "minimum": 0.001,
            "maximum": 100,
            "description": "Of the last repeat_last_n tokens."
          },
          "repeat_last_n": {"type": ["integer", "null"], "minimum": -1, "maximum": 2147483647},
          "logit_bias": {
            "type": ["object", "null"],
            "properties": {},
            "additionalProperties": {"type": "number", "minimum": -100, "maximum": 100},
            "propertyNames": {"pattern": "^[0-9]+$"},
            "maxProperties": 512,
            "description": "Added to logits, by token id."
          },
          "stop": {
            "anyOf": [
              {"type": "string", "maxLength": 1024, "minLength": 1},
              {
                "type": "array",
                "items": {"type": "string", "maxLength": 1024, "minLength": 1},
                "maxItems": 64
              },
              {"type": "null"}
            ]
          },
          "ignore_eos": {"type": ["boolean", "null"]},
          "stop_token_ids": {
            "type": ["array", "null"],
            "items": {"type": "integer", "minimum": 0, "maximum": 2147483647},
            "maxItems": 64,
            "description": "Tokens that end the answer, which ends before them."
          },
          "min_tokens": {
            "type": ["integer", "null"],
            "minimum": 0,
            "maximum": 2147483647,
            "default": 0,
            "description": "No end before so many tokens. Not beside a form of the answer."
          },
          "grammar": {"type": ["string", "null"], "maxLength": 262144, "description": "GBNF."},
          "guided_json": {"$ref": "#/components/schemas/GuidedJson"},
          "guided_grammar": {
            "type": ["string", "null"],
            "maxLength": 262144,
            "description": "The same as grammar."
          },
          "guided_choice": {"$ref": "#/components/schemas/GuidedChoice"},
          "structured_outputs": {
            "anyOf": [{"$ref": "#/components/schemas/StructuredOutputs"}, {"type": "null"}]
          },
          "response_format": {
            "anyOf": [{"$ref": "#/components/schemas/ResponseFormat"}, {"type": "null"}]
          },
          "use_diffusion_mode": {
            "type": ["boolean", "null"],
            "default": true,
            "description": "false: plain autoregressive decoding."
          },
          "draft_max": {
            "type": ["integer", "null"],
            "minimum": -1,
            "maximum": 2147483647,
            "default": -1
          },
          "consensus": {
            "type": ["string", "null"],
            "enum": ["exact", "rejection", "kl", null],
            "default": "exact"
          },
          "consensus_threshold": {
            "type": ["number", "null"],
            "exclusiveMinimum": 0,
            "maximum": 1000000
          },
          "stream": {"type": ["boolean", "null"], "default": false},
          "stream_options": {
            "anyOf": [{"$ref": "#/components/schemas/StreamOptions"}, {"type": "null"}]
          },
          "priority": {
            "type": ["integer", "null"],
            "minimum": 0,
            "maximum": 1000,
            "default": 0,
            "description": "Smaller first: a request can only step back behind others."
          },
          "user": {
            "type": ["string", "null"],
            "maxLength": 512,
            "description": "Accepted without effect."
          },
          "safety_identifier": {
            "type": ["string", "null"],
            "maxLength": 512,
            "description": "Accepted without effect."
          },
          "cache_prompt": {"type": ["boolean", "null"], "description": "Accepted without effect."},
          "id_slot": {
            "type": ["integer", "null"],
            "minimum": -1,
            "maximum": 2147483647,
            "description": "Accepted without effect."
          },
          "skip_special_tokens": {"type": ["boolean", "null"], "enum": [true, null]},
          "include_stop_str_in_output": {"type": ["boolean", "null"], "enum": [false, null]},
          "prompt_cache_key": {
            "type": ["string", "null"],
            "maxLength": 512,
            "description": "Accepted without effect."
          },
          "metadata": {
            "type": ["object", "null"],
            "properties": {},
            "additionalProperties": true,
            "description": "Accepted without effect."
          },
          "service_tier": {
            "type": ["string", "null"],
            "enum": ["auto", "default", null],
            "description": "Accepted without effect."
          },
          "store": {
            "type": ["boolean", "null"],
            "enum": [false, null],
            "description": "Accepted without effect."
          },)json";

}  // namespace

std::string_view openapi_generation_parameters() { return kParameters; }

}  // namespace orthrus
