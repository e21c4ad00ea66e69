#include "server/api_info.h"

#include <string>

#include "server/api_openapi_generation.h"

namespace orthrus {
namespace {

// Keep in step with the readers of requests (api_*_request.cc) and the bodies of answers: a test
// sends what it allows and what it forbids.
constexpr std::string_view kBeforeChat = R"json({
  "openapi": "3.1.0",
  "info": {
    "title": "orthrus",
    "version": "1",
    "description": "OpenAI-compatible server of orthrus; docs/serving.md. null counts as absent.",
    "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"}
  },
  "security": [{}, {"key": []}],
  "paths": {
    "/v1/chat/completions": {
      "post": {
        "operationId": "chat",
        "summary": "Answer a chat.",
        "requestBody": {
          "required": true,
          "content": {
            "application/json": {"schema": {"$ref": "#/components/schemas/ChatRequest"}}
          }
        },
        "responses": {
          "200": {
            "description": "The answer.",
            "content": {
              "application/json": {"schema": {"$ref": "#/components/schemas/ChatAnswer"}},
              "text/event-stream": {
                "schema": {
                  "description": "Server-sent events, \"data: CHUNK\" each; the last one is \"data: [DONE]\"."
                }
              }
            }
          },
          "400": {"$ref": "#/components/responses/E400"},
          "401": {"$ref": "#/components/responses/E401"},
          "404": {"$ref": "#/components/responses/E404"},
          "405": {"$ref": "#/components/responses/E405"},
          "408": {"$ref": "#/components/responses/E408"},
          "413": {"$ref": "#/components/responses/E413"},
          "429": {"$ref": "#/components/responses/E429"},
          "500": {"$ref": "#/components/responses/E500"},
          "503": {"$ref": "#/components/responses/E503"},
          "504": {"$ref": "#/components/responses/E504"}
        }
      }
    },
    "/v1/completions": {
      "post": {
        "operationId": "complete",
        "summary": "Continue texts.",
        "requestBody": {
          "required": true,
          "content": {
            "application/json": {"schema": {"$ref": "#/components/schemas/CompletionRequest"}}
          }
        },
        "responses": {
          "200": {
            "description": "The answer.",
            "content": {
              "application/json": {"schema": {"$ref": "#/components/schemas/CompletionAnswer"}},
              "text/event-stream": {
                "schema": {
                  "description": "Server-sent events, \"data: CHUNK\" each; the last one is \"data: [DONE]\"."
                }
              }
            }
          },
          "400": {"$ref": "#/components/responses/E400"},
          "401": {"$ref": "#/components/responses/E401"},
          "404": {"$ref": "#/components/responses/E404"},
          "405": {"$ref": "#/components/responses/E405"},
          "408": {"$ref": "#/components/responses/E408"},
          "413": {"$ref": "#/components/responses/E413"},
          "429": {"$ref": "#/components/responses/E429"},
          "500": {"$ref": "#/components/responses/E500"},
          "503": {"$ref": "#/components/responses/E503"},
          "504": {"$ref": "#/components/responses/E504"}
        }
      }
    },
    "/v1/models": {
      "get": {
        "operationId": "models",
        "summary": "The served model, under each of its names.",
        "responses": {
          "200": {
            "description": "The served model, under each of its names.",
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Models"}}}
          },
          "401": {"$ref": "#/components/responses/E401"},
          "405": {"$ref": "#/components/responses/E405"},
          "503": {"$ref": "#/components/responses/E503"}
        }
      }
    },
    "/v1/models/{model}": {
      "get": {
        "operationId": "model",
        "summary": "One of those.",
        "parameters": [
          {"name": "model", "in": "path", "required": true, "schema": {"type": "string"}}
        ],
        "responses": {
          "200": {
            "description": "One of those.",
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Model"}}}
          },
          "400": {"$ref": "#/components/responses/E400"},
          "401": {"$ref": "#/components/responses/E401"},
          "404": {"$ref": "#/components/responses/E404"},
          "405": {"$ref": "#/components/responses/E405"},
          "503": {"$ref": "#/components/responses/E503"}
        }
      }
    },
    "/v1/embeddings": {
      "post": {
        "operationId": "embeddings",
        "summary": "Not supported: always 404.",
        "responses": {
          "401": {"$ref": "#/components/responses/E401"},
          "404": {"$ref": "#/components/responses/E404"},
          "405": {"$ref": "#/components/responses/E405"}
        }
      }
    },
    "/v1/responses": {
      "post": {
        "operationId": "responses",
        "summary": "Not supported: always 404.",
        "responses": {
          "401": {"$ref": "#/components/responses/E401"},
          "404": {"$ref": "#/components/responses/E404"},
          "405": {"$ref": "#/components/responses/E405"}
        }
      }
    },
    "/tokenize": {
      "post": {
        "operationId": "tokenize",
        "summary": "Token ids of a text or a chat.",
        "requestBody": {
          "required": true,
          "content": {
            "application/json": {"schema": {"$ref": "#/components/schemas/TokenizeRequest"}}
          }
        },
        "responses": {
          "200": {
            "description": "The answer.",
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Tokens"}}}
          },
          "400": {"$ref": "#/components/responses/E400"},
          "401": {"$ref": "#/components/responses/E401"},
          "404": {"$ref": "#/components/responses/E404"},
          "405": {"$ref": "#/components/responses/E405"},
          "408": {"$ref": "#/components/responses/E408"},
          "413": {"$ref": "#/components/responses/E413"},
          "500": {"$ref": "#/components/responses/E500"},
          "503": {"$ref": "#/components/responses/E503"}
        }
      }
    },
    "/detokenize": {
      "post": {
        "operationId": "detokenize",
        "summary": "The text of token ids.",
        "requestBody": {
          "required": true,
          "content": {
            "application/json": {"schema": {"$ref": "#/components/schemas/DetokenizeRequest"}}
          }
        },
        "responses": {
          "200": {
            "description": "The answer.",
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Text"}}}
          },
          "400": {"$ref": "#/components/responses/E400"},
          "401": {"$ref": "#/components/responses/E401"},
          "404": {"$ref": "#/components/responses/E404"},
          "405": {"$ref": "#/components/responses/E405"},
          "408": {"$ref": "#/components/responses/E408"},
          "413": {"$ref": "#/components/responses/E413"},
          "500": {"$ref": "#/components/responses/E500"},
          "503": {"$ref": "#/components/responses/E503"}
        }
      }
    },
    "/health": {
      "get": {
        "operationId": "health",
        "summary": "Whether requests are taken.",
        "security": [],
        "responses": {
          "200": {"$ref": "#/components/responses/Ready"},
          "405": {"$ref": "#/components/responses/E405"},
          "503": {"$ref": "#/components/responses/NotReady"}
        }
      }
    },
    "/v1/health": {
      "get": {
        "operationId": "health_v1",
        "summary": "The same as /health.",
        "security": [],
        "responses": {
          "200": {"$ref": "#/components/responses/Ready"},
          "405": {"$ref": "#/components/responses/E405"},
          "503": {"$ref": "#/components/responses/NotReady"}
        }
      }
    },
    "/version": {
      "get": {
        "operationId": "version",
        "summary": "The version of the program.",
        "security": [],
        "responses": {
          "200": {
            "description": "The version of the program.",
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Version"}}}
          },
          "405": {"$ref": "#/components/responses/E405"}
        }
      }
    },
    "/metrics": {
      "get": {
        "operationId": "metrics",
        "summary": "Metrics for Prometheus.",
        "responses": {
          "200": {
            "description": "Metrics for Prometheus.",
            "content": {"text/plain": {"schema": {"type": "string"}}}
          },
          "401": {"$ref": "#/components/responses/E401"},
          "405": {"$ref": "#/components/responses/E405"}
        }
      }
    },
    "/openapi.json": {
      "get": {
        "operationId": "openapi",
        "summary": "This document.",
        "security": [],
        "responses": {
          "200": {
            "description": "This document.",
            "content": {
              "application/json": {
                "schema": {"type": "object", "properties": {}, "additionalProperties": true}
              }
            }
          },
          "405": {"$ref": "#/components/responses/E405"}
        }
      }
    }
  },
  "components": {
    "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
    "responses": {
      "E400": {
        "description": "The request is wrong; \"param\" names where.",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
      },
      "E401": {
        "description": "Wrong or missing API key.",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
      },
      "E404": {
        "description": "No such model or path.",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
      },
      "E405": {
        "description": "Another method is expected.",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
        "headers": {"Allow": {"schema": {"type": "string"}}}
      },
      "E408": {
        "description": "The request came too slowly.",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
      },
      "E413": {
        "description": "The body is too large.",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
      },
      "E429": {
        "description": "Too many requests wait; Retry-After says when to come back.",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
        "headers": {
          "Retry-After": {"schema": {"type": "integer", "minimum": 0, "maximum": 2147483647}}
        }
      },
      "Ready": {
        "description": "Whether requests are taken.",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Health"}}}
      },
      "NotReady": {
        "description": "Loading or draining.",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Health"}}}
      },
      "E500": {
        "description": "The server failed.",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
      },
      "E503": {
        "description": "The server is loading or draining.",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
        "headers": {
          "Retry-After": {"schema": {"type": "integer", "minimum": 0, "maximum": 2147483647}}
        }
      },
      "E504": {
        "description": "The answer took longer than the server allows.",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
      }
    },
    "schemas": {
      "TextPart": {
        "type": "object",
        "properties": {"type": {"type": "string", "enum": ["text"]}, "text": {"type": "string"}},
        "required": ["type", "text"],
        "additionalProperties": false
      },
      "Message": {
        "anyOf": [
          {
            "type": "object",
            "properties": {
              "role": {"type": "string", "enum": ["system", "developer", "user"]},
              "name": {"type": ["string", "null"], "maxLength": 512},
              "content": {
                "anyOf": [
                  {"type": "string"},
                  {"type": "array", "items": {"$ref": "#/components/schemas/TextPart"}}
                ]
              }
            },
            "required": ["role", "content"],
            "additionalProperties": false
          },
          {
            "type": "object",
            "properties": {
              "role": {"type": "string", "enum": ["tool"]},
              "name": {"type": ["string", "null"], "maxLength": 512},
              "content": {
                "anyOf": [
                  {"type": "string"},
                  {"type": "array", "items": {"$ref": "#/components/schemas/TextPart"}}
                ]
              },
              "tool_call_id": {"type": "string", "maxLength": 512}
            },
            "required": ["role", "content", "tool_call_id"],
            "additionalProperties": false
          },
          {
            "type": "object",
            "properties": {
              "role": {"type": "string", "enum": ["assistant"]},
              "name": {"type": ["string", "null"], "maxLength": 512},
              "content": {
                "anyOf": [
                  {"type": "string"},
                  {"type": "array", "items": {"$ref": "#/components/schemas/TextPart"}},
                  {"type": "null"}
                ]
              },
              "reasoning_content": {"type": ["string", "null"]},
              "tool_calls": {
                "type": ["array", "null"],
                "items": {"$ref": "#/components/schemas/ToolCall"}
              },
              "refusal": {"type": "null"},
              "audio": {"type": "null"},
              "function_call": {"type": "null"},
              "annotations": {"type": ["array", "null"], "items": {}, "maxItems": 0}
            },
            "required": ["role"],
            "additionalProperties": false,
            "anyOf": [
              {"required": ["content"], "properties": {"content": {"type": ["string", "array"]}}},
              {
                "required": ["tool_calls"],
                "properties": {"tool_calls": {"type": "array", "minItems": 1}}
              },
              {
                "required": ["reasoning_content"],
                "properties": {"reasoning_content": {"type": "string"}}
              }
            ]
          }
        ]
      },
      "ToolCall": {
        "type": "object",
        "properties": {
          "id": {"type": "string", "maxLength": 512},
          "type": {"type": "string", "enum": ["function"]},
          "index": {"type": ["integer", "null"], "minimum": 0, "maximum": 2147483647},
          "function": {
            "type": "object",
            "properties": {
              "name": {"type": "string", "maxLength": 512, "minLength": 1},
              "arguments": {"type": "string", "description": "JSON."}
            },
            "required": ["name", "arguments"],
            "additionalProperties": false
          }
        },
        "required": ["function"],
        "additionalProperties": false
      },
      "Tool": {
        "type": "object",
        "properties": {
          "type": {"type": "string", "enum": ["function"]},
          "function": {
            "type": "object",
            "properties": {
              "name": {
                "type": "string",
                "maxLength": 64,
                "minLength": 1,
                "pattern": "^[A-Za-z0-9_.-]+$"
              },
              "description": {"type": ["string", "null"], "maxLength": 65536},
              "parameters": {
                "type": ["object", "null"],
                "properties": {},
                "additionalProperties": true
              },
              "strict": {"type": ["boolean", "null"]}
            },
            "required": ["name"],
            "additionalProperties": false
          }
        },
        "required": ["type", "function"],
        "additionalProperties": false
      },
      "ResponseFormat": {
        "anyOf": [
          {
            "type": "object",
            "properties": {"type": {"type": "string", "enum": ["text"]}},
            "required": ["type"],
            "additionalProperties": false
          },
          {
            "type": "object",
            "properties": {
              "type": {"type": "string", "enum": ["json_object"]},
              "schema": {
                "type": ["object", "null"],
                "properties": {},
                "additionalProperties": true,
                "description": "llama-server's."
              }
            },
            "required": ["type"],
            "additionalProperties": false
          },
          {
            "type": "object",
            "properties": {
              "type": {"type": "string", "enum": ["json_schema"]},
              "json_schema": {
                "type": "object",
                "properties": {
                  "name": {
                    "type": "string",
                    "maxLength": 64,
                    "minLength": 1,
                    "pattern": "^[A-Za-z0-9_-]+$"
                  },
                  "description": {"type": ["string", "null"], "maxLength": 262144},
                  "strict": {"type": ["boolean", "null"]},
                  "schema": {"type": "object", "properties": {}, "additionalProperties": true}
                },
                "required": ["name", "schema"],
                "additionalProperties": false
              }
            },
            "required": ["type", "json_schema"],
            "additionalProperties": false
          }
        ]
      },
      "GuidedJson": {
        "anyOf": [
          {"type": "object", "properties": {}, "additionalProperties": true},
          {"type": "string", "maxLength": 262144, "description": "The text of a schema."},
          {"type": "null"}
        ]
      },
      "GuidedChoice": {
        "type": ["array", "null"],
        "items": {"type": "string", "minLength": 1},
        "minItems": 1,
        "maxItems": 1024
      },
      "StructuredOutputs": {
        "type": "object",
        "properties": {
          "json": {"$ref": "#/components/schemas/GuidedJson"},
          "grammar": {"type": ["string", "null"], "maxLength": 262144, "description": "GBNF."},
          "choice": {"$ref": "#/components/schemas/GuidedChoice"},
          "json_object": {"type": ["boolean", "null"]}
        },
        "additionalProperties": false
      },
      "StreamOptions": {
        "type": "object",
        "properties": {
          "include_usage": {"type": ["boolean", "null"]},
          "include_obfuscation": {"type": ["boolean", "null"]}
        },
        "additionalProperties": false
      },
      "ChatRequest": {
        "type": "object",
        "properties": {
          "messages": {
            "type": "array",
            "items": {"$ref": "#/components/schemas/Message"},
            "minItems": 1
          },
)json";

constexpr std::string_view kBetweenRequests = R"json(
          "max_tokens": {"type": ["integer", "null"], "minimum": 1, "maximum": 2147483647},
          "max_completion_tokens": {
            "type": ["integer", "null"],
            "minimum": 1,
            "maximum": 2147483647
          },
          "logprobs": {"type": ["boolean", "null"]},
          "top_logprobs": {"type": ["integer", "null"], "minimum": 0, "maximum": 20},
          "tools": {
            "type": ["array", "null"],
            "items": {"$ref": "#/components/schemas/Tool"},
            "maxItems": 128
          },
          "tool_choice": {
            "anyOf": [
              {"type": "string", "enum": ["none", "auto", "required"]},
              {
                "type": "object",
                "properties": {
                  "type": {"type": "string", "enum": ["function"]},
                  "function": {
                    "type": "object",
                    "properties": {
                      "name": {
                        "type": "string",
                        "maxLength": 64,
                        "minLength": 1,
                        "pattern": "^[A-Za-z0-9_.-]+$"
                      }
                    },
                    "required": ["name"],
                    "additionalProperties": false
                  }
                },
                "required": ["type", "function"],
                "additionalProperties": false
              },
              {"type": "null"}
            ]
          },
          "parallel_tool_calls": {"type": ["boolean", "null"]},
          "chat_template_kwargs": {
            "type": ["object", "null"],
            "properties": {},
            "additionalProperties": true,
            "description": "Variables of the chat template, as {\"enable_thinking\": false}."
          },
          "add_generation_prompt": {"type": ["boolean", "null"]},
          "continue_final_message": {"type": ["boolean", "null"]},
          "modalities": {
            "type": ["array", "null"],
            "items": {"type": "string", "enum": ["text"]},
            "minItems": 1,
            "maxItems": 1
          }
        },
        "required": ["messages"],
        "additionalProperties": false
      },
      "CompletionRequest": {
        "type": "object",
        "properties": {
          "prompt": {
            "anyOf": [
              {"type": "string"},
              {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 1024},
              {
                "type": "array",
                "items": {"type": "integer", "minimum": 0, "maximum": 2147483647},
                "minItems": 1
              },
              {
                "type": "array",
                "items": {
                  "type": "array",
                  "items": {"type": "integer", "minimum": 0, "maximum": 2147483647}
                },
                "minItems": 1,
                "maxItems": 1024
              }
            ]
          },
)json";

constexpr std::string_view kAfterCompletion = R"json(
          "max_tokens": {
            "type": ["integer", "null"],
            "minimum": 0,
            "maximum": 2147483647,
            "default": 16
          },
          "logprobs": {"type": ["integer", "null"], "minimum": 0, "maximum": 20},
          "echo": {"type": ["boolean", "null"]},
          "best_of": {
            "type": ["integer", "null"],
            "minimum": 1,
            "maximum": 16,
            "description": "n or absent."
          }
        },
        "required": ["prompt"],
        "additionalProperties": false
      },
      "TokenizeRequest": {
        "anyOf": [
          {
            "type": "object",
            "properties": {
              "model": {"type": ["string", "null"], "maxLength": 512},
              "content": {"type": "string"},
              "add_special": {"type": ["boolean", "null"], "default": false},
              "add_special_tokens": {"type": ["boolean", "null"]},
              "parse_special": {"type": ["boolean", "null"], "enum": [true, null]},
              "with_pieces": {"type": ["boolean", "null"]},
              "return_token_strs": {"type": ["boolean", "null"]}
            },
            "required": ["content"],
            "additionalProperties": false
          },
          {
            "type": "object",
            "properties": {
              "model": {"type": ["string", "null"], "maxLength": 512},
              "prompt": {"type": "string"},
              "add_special": {"type": ["boolean", "null"]},
              "add_special_tokens": {"type": ["boolean", "null"], "default": true},
              "parse_special": {"type": ["boolean", "null"], "enum": [true, null]},
              "with_pieces": {"type": ["boolean", "null"]},
              "return_token_strs": {"type": ["boolean", "null"]}
            },
            "required": ["prompt"],
            "additionalProperties": false
          },
          {
            "type": "object",
            "properties": {
              "model": {"type": ["string", "null"], "maxLength": 512},
              "messages": {
                "type": "array",
                "items": {"$ref": "#/components/schemas/Message"},
                "minItems": 1
              },
              "tools": {
                "type": ["array", "null"],
                "items": {"$ref": "#/components/schemas/Tool"},
                "maxItems": 128
              },
              "tool_choice": {
                "anyOf": [
                  {"type": "string", "enum": ["none", "auto", "required"]},
                  {
                    "type": "object",
                    "properties": {
                      "type": {"type": "string", "enum": ["function"]},
                      "function": {
                        "type": "object",
                        "properties": {
                          "name": {
                            "type": "string",
                            "maxLength": 64,
                            "minLength": 1,
                            "pattern": "^[A-Za-z0-9_.-]+$"
                          }
                        },
                        "required": ["name"],
                        "additionalProperties": false
                      }
                    },
                    "required": ["type", "function"],
                    "additionalProperties": false
                  },
                  {"type": "null"}
                ]
              },
              "parallel_tool_calls": {"type": ["boolean", "null"]},
              "chat_template_kwargs": {
                "type": ["object", "null"],
                "properties": {},
                "additionalProperties": true,
                "description": "Variables of the chat template, as {\"enable_thinking\": false}."
              },
              "add_generation_prompt": {"type": ["boolean", "null"]},
              "add_special": {"type": ["boolean", "null"]},
              "add_special_tokens": {"type": ["boolean", "null"]},
              "parse_special": {"type": ["boolean", "null"], "enum": [true, null]},
              "with_pieces": {"type": ["boolean", "null"]},
              "return_token_strs": {"type": ["boolean", "null"]}
            },
            "required": ["messages"],
            "additionalProperties": false
          }
        ]
      },
      "DetokenizeRequest": {
        "type": "object",
        "properties": {
          "model": {"type": ["string", "null"], "maxLength": 512},
          "tokens": {
            "type": "array",
            "items": {"type": "integer", "minimum": 0, "maximum": 2147483647}
          }
        },
        "required": ["tokens"],
        "additionalProperties": false
      },
      "Error": {
        "type": "object",
        "properties": {
          "error": {
            "type": "object",
            "properties": {
              "message": {"type": "string"},
              "type": {"type": "string"},
              "param": {"type": ["string", "null"]},
              "code": {"type": ["string", "null"]}
            },
            "required": ["message", "type", "param", "code"],
            "additionalProperties": false
          }
        },
        "required": ["error"],
        "additionalProperties": false
      },
      "Usage": {
        "type": "object",
        "properties": {
          "prompt_tokens": {"type": "integer", "minimum": 0, "maximum": 2147483647},
          "completion_tokens": {"type": "integer", "minimum": 0, "maximum": 2147483647},
          "total_tokens": {"type": "integer", "minimum": 0, "maximum": 2147483647},
          "prompt_tokens_details": {
            "type": "object",
            "properties": {
              "cached_tokens": {"type": "integer", "minimum": 0, "maximum": 2147483647}
            },
            "required": ["cached_tokens"],
            "additionalProperties": false
          },
          "completion_tokens_details": {
            "type": "object",
            "properties": {
              "reasoning_tokens": {"type": "integer", "minimum": 0, "maximum": 2147483647},
              "accepted_prediction_tokens": {
                "type": "integer",
                "minimum": 0,
                "maximum": 2147483647
              },
              "rejected_prediction_tokens": {
                "type": "integer",
                "minimum": 0,
                "maximum": 2147483647
              }
            },
            "required": [
              "reasoning_tokens",
              "accepted_prediction_tokens",
              "rejected_prediction_tokens"
            ],
            "additionalProperties": false
          }
        },
        "required": [
          "prompt_tokens",
          "completion_tokens",
          "total_tokens",
          "prompt_tokens_details",
          "completion_tokens_details"
        ],
        "additionalProperties": false
      },
      "Timings": {
        "type": "object",
        "properties": {
          "cache_n": {"type": "integer"},
          "prompt_n": {"type": "integer"},
          "predicted_n": {"type": "integer"},
          "draft_n": {"type": "integer"},
          "draft_n_accepted": {"type": "integer"},
          "cycles": {"type": "integer"},
          "forward_passes": {"type": "integer"},
          "prompt_ms": {"type": "number"},
          "prompt_per_second": {"type": "number"},
          "predicted_ms": {"type": "number"},
          "predicted_per_second": {"type": "number"},
          "tokens_per_cycle": {"type": "number"},
          "tpf": {"type": "number"}
        },
        "additionalProperties": false
      },
      "TokenLogprob": {
        "type": "object",
        "properties": {
          "token": {"type": "string"},
          "logprob": {"type": "number"},
          "bytes": {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 255}},
          "top_logprobs": {
            "type": "array",
            "items": {
              "type": "object",
              "properties": {
                "token": {"type": "string"},
                "logprob": {"type": "number"},
                "bytes": {
                  "type": "array",
                  "items": {"type": "integer", "minimum": 0, "maximum": 255}
                }
              },
              "required": ["token", "logprob", "bytes"],
              "additionalProperties": false
            }
          }
        },
        "required": ["token", "logprob", "bytes", "top_logprobs"],
        "additionalProperties": false
      },
      "ChatLogprobs": {
        "type": ["object", "null"],
        "properties": {
          "content": {"type": "array", "items": {"$ref": "#/components/schemas/TokenLogprob"}},
          "refusal": {"type": "null"}
        },
        "required": ["content", "refusal"],
        "additionalProperties": false
      },
      "CompletionLogprobs": {
        "type": ["object", "null"],
        "properties": {
          "tokens": {"type": "array", "items": {"type": "string"}},
          "token_logprobs": {"type": "array", "items": {"type": ["number", "null"]}},
          "top_logprobs": {
            "type": "array",
            "items": {
              "type": ["object", "null"],
              "properties": {},
              "additionalProperties": {"type": "number"}
            }
          },
          "text_offset": {"type": "array", "items": {"type": "integer"}}
        },
        "required": ["tokens", "token_logprobs", "top_logprobs", "text_offset"],
        "additionalProperties": false
      },
      "AnswerMessage": {
        "type": "object",
        "properties": {
          "role": {"type": "string", "enum": ["assistant"]},
          "content": {"type": ["string", "null"]},
          "refusal": {"type": "null"},
          "reasoning_content": {"type": "string"},
          "tool_calls": {
            "type": "array",
            "items": {
              "type": "object",
              "properties": {
                "id": {"type": "string"},
                "type": {"type": "string", "enum": ["function"]},
                "function": {
                  "type": "object",
                  "properties": {"name": {"type": "string"}, "arguments": {"type": "string"}},
                  "required": ["name", "arguments"],
                  "additionalProperties": false
                }
              },
              "required": ["id", "type", "function"],
              "additionalProperties": false
            }
          }
        },
        "required": ["role", "content"],
        "additionalProperties": false
      },
      "ChatAnswer": {
        "type": "object",
        "properties": {
          "id": {"type": "string"},
          "object": {"type": "string", "enum": ["chat.completion"]},
          "created": {"type": "integer"},
          "model": {"type": "string"},
          "system_fingerprint": {"type": "string"},
          "choices": {
            "type": "array",
            "items": {
              "type": "object",
              "properties": {
                "index": {"type": "integer", "minimum": 0, "maximum": 2147483647},
                "message": {"$ref": "#/components/schemas/AnswerMessage"},
                "logprobs": {"$ref": "#/components/schemas/ChatLogprobs"},
                "finish_reason": {"type": "string", "enum": ["stop", "length", "tool_calls"]}
              },
              "required": ["index", "message", "logprobs", "finish_reason"],
              "additionalProperties": false
            }
          },
          "usage": {"$ref": "#/components/schemas/Usage"},
          "timings": {"$ref": "#/components/schemas/Timings"}
        },
        "required": ["id", "object", "created", "model", "choices", "usage"],
        "additionalProperties": false
      },
      "CompletionAnswer": {
        "type": "object",
        "properties": {
          "id": {"type": "string"},
          "object": {"type": "string", "enum": ["text_completion"]},
          "created": {"type": "integer"},
          "model": {"type": "string"},
          "system_fingerprint": {"type": "string"},
          "choices": {
            "type": "array",
            "items": {
              "type": "object",
              "properties": {
                "index": {"type": "integer", "minimum": 0, "maximum": 2147483647},
                "text": {"type": "string"},
                "logprobs": {"$ref": "#/components/schemas/CompletionLogprobs"},
                "finish_reason": {"type": "string", "enum": ["stop", "length"]}
              },
              "required": ["index", "text", "logprobs", "finish_reason"],
              "additionalProperties": false
            }
          },
          "usage": {"$ref": "#/components/schemas/Usage"},
          "timings": {"$ref": "#/components/schemas/Timings"}
        },
        "required": ["id", "object", "created", "model", "choices", "usage"],
        "additionalProperties": false
      },
      "Model": {
        "type": "object",
        "properties": {
          "id": {"type": "string"},
          "object": {"type": "string", "enum": ["model"]},
          "created": {"type": "integer"},
          "owned_by": {"type": "string"},
          "max_model_len": {"type": "integer"},
          "dual_view": {"type": "boolean"}
        },
        "required": ["id", "object", "created", "owned_by", "max_model_len", "dual_view"],
        "additionalProperties": false
      },
      "Models": {
        "type": "object",
        "properties": {
          "object": {"type": "string", "enum": ["list"]},
          "data": {"type": "array", "items": {"$ref": "#/components/schemas/Model"}}
        },
        "required": ["object", "data"],
        "additionalProperties": false
      },
      "Tokens": {
        "type": "object",
        "properties": {
          "tokens": {
            "type": "array",
            "items": {
              "anyOf": [
                {"type": "integer"},
                {
                  "type": "object",
                  "properties": {
                    "id": {"type": "integer"},
                    "piece": {
                      "anyOf": [
                        {"type": "string"},
                        {
                          "type": "array",
                          "items": {"type": "integer", "minimum": 0, "maximum": 255}
                        }
                      ]
                    }
                  },
                  "required": ["id", "piece"],
                  "additionalProperties": false
                }
              ]
            }
          },
          "count": {"type": "integer"},
          "max_model_len": {"type": "integer"},
          "token_strs": {"type": "array", "items": {"type": "string"}}
        },
        "required": ["tokens", "count", "max_model_len"],
        "additionalProperties": false
      },
      "Text": {
        "type": "object",
        "properties": {"content": {"type": "string"}, "prompt": {"type": "string"}},
        "required": ["content", "prompt"],
        "additionalProperties": false
      },
      "Version": {
        "type": "object",
        "properties": {"version": {"type": "string"}},
        "required": ["version"],
        "additionalProperties": false
      },
      "Health": {
        "type": "object",
        "properties": {"status": {"type": "string", "enum": ["ok", "loading", "draining"]}},
        "required": ["status"],
        "additionalProperties": false
      }
    }
  }
}
)json";

}  // namespace

std::string_view openapi_json() {
  static const std::string document = [] {
    std::string text(kBeforeChat);
    text += openapi_generation_parameters();
    text += kBetweenRequests;
    text += openapi_generation_parameters();
    text += kAfterCompletion;
    return text;
  }();
  return document;
}

}  // namespace orthrus
