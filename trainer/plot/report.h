#pragma once

#include <string>

#include "trainer/plot/run_history.h"

namespace orthrus::train {

/// One self-contained HTML page: curves of loss and tokens per cycle, accuracy per block position,
/// and the forecast where there are evaluations enough.
std::string html_report(const RunHistory& history, const std::string& title);

/// What training has brought so far: a line an evaluation, with the diffusion tokens and how much
/// of the data they took; empty where there is none.
std::string evaluation_table(const RunHistory& history);

/// The forecast in words, a line a multiple of the tokens so far; says what is missing otherwise.
std::string forecast_text(const RunHistory& history);

}  // namespace orthrus::train
