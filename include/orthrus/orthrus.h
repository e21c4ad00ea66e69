#pragma once

/// The public API of orthrus: load a dual-view language model, encode, generate, stream.
#include "orthrus/error.h"
#include "orthrus/language_model.h"
#include "orthrus/options.h"
