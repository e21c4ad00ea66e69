#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace orthrus::train {

/// Adds the command's flags to the program and returns what runs it: the exit code.
using Runner = std::function<int()>;
Runner add_data_command(CLI::App& program);
Runner add_fit_command(CLI::App& program);
Runner add_export_command(CLI::App& program);
Runner add_plan_command(CLI::App& program);
Runner add_plot_command(CLI::App& program);

}  // namespace orthrus::train
