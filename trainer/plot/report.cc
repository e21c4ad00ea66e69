#include "trainer/plot/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace orthrus::train {
namespace {

constexpr double kWidth = 640, kHeight = 300;  // of the plotted area, in SVG units
constexpr double kLeft = 60, kTop = 20, kBottom = 50;

struct Point {
  double x, y;
};

struct Series {
  std::string name, colour;
  std::vector<Point> points;
};

std::string escape(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '<') {
      out += "&lt;";
    } else if (c == '&') {
      out += "&amp;";
    } else {
      out += c;
    }
  }
  return out;
}

/// 1234567 -> "1.23M"
std::string short_number(double value) {
  if (value >= 1e9) return fmt::format("{:.3g}G", value / 1e9);
  if (value >= 1e6) return fmt::format("{:.3g}M", value / 1e6);
  if (value >= 1e3) return fmt::format("{:.3g}k", value / 1e3);
  return fmt::format("{:.3g}", value);
}

/// The ranges of all series together; y begins at 0.
struct Axes {
  double x_max = 1e-9, y_max = 1e-9;
  explicit Axes(const std::vector<Series>& series) {
    for (const Series& s : series) {
      for (const Point& p : s.points) {
        x_max = std::max(x_max, p.x);
        y_max = std::max(y_max, p.y);
      }
    }
  }
  double x(double value) const { return kLeft + kWidth * value / x_max; }
  double y(double value) const { return kTop + kHeight * (1 - value / y_max); }
};

std::string grid(const Axes& axes) {
  std::string out;
  constexpr int kLines = 5;
  for (int i = 0; i <= kLines; ++i) {
    const double share = static_cast<double>(i) / kLines;
    const double y = axes.y(share * axes.y_max), x = axes.x(share * axes.x_max);
    out += fmt::format(
        "<line x1='{:.1f}' x2='{:.1f}' y1='{:.1f}' y2='{:.1f}' stroke='#ddd'/>"
        "<text x='{:.1f}' y='{:.1f}' text-anchor='end'>{}</text>"
        "<text x='{:.1f}' y='{:.1f}' text-anchor='middle'>{}</text>\n",
        kLeft, kLeft + kWidth, y, y, kLeft - 6, y + 4, short_number(share * axes.y_max), x,
        kTop + kHeight + 18, short_number(share * axes.x_max));
  }
  return out;
}

std::string chart(const std::string& title, const std::string& x_label,
                  const std::vector<Series>& series) {
  const Axes axes(series);
  std::string out =
      fmt::format("<h2>{}</h2>\n<svg viewBox='0 0 {} {}' width='760' font-size='12'>\n{}", title,
                  kLeft + kWidth + 20, kTop + kHeight + kBottom, grid(axes));
  double legend = kTop + 12;
  for (const Series& s : series) {
    std::string points;
    for (const Point& p : s.points) {
      points += fmt::format("{:.1f},{:.1f} ", axes.x(p.x), axes.y(p.y));
    }
    out += fmt::format(
        "<polyline points='{}' fill='none' stroke='{}' stroke-width='1.5'/>"
        "<text x='{}' y='{}' text-anchor='end' fill='{}'>{}</text>\n",
        points, s.colour, kLeft + kWidth - 6, legend, s.colour, s.name);
    legend += 16;
  }
  return out + fmt::format("<text x='{}' y='{}' text-anchor='middle'>{}</text></svg>\n",
                           kLeft + kWidth / 2, kTop + kHeight + 40, x_label);
}

/// Means of neighbours, so that a curve has at most `most` points.
std::vector<Point> thinned(const std::vector<Point>& points, size_t most) {
  const size_t group = (points.size() + most - 1) / std::max<size_t>(most, 1);
  if (group <= 1) return points;
  std::vector<Point> out;
  for (size_t i = 0; i < points.size(); i += group) {
    const size_t end = std::min(i + group, points.size());
    Point mean{0, 0};
    for (size_t k = i; k < end; ++k) {
      mean.x += points[k].x / static_cast<double>(end - i);
      mean.y += points[k].y / static_cast<double>(end - i);
    }
    out.push_back(mean);
  }
  return out;
}

std::string accuracy_chart(const RunHistory& history) {
  std::vector<Series> series;
  const auto add = [&](const RunHistory::Evaluation& e, const char* name, const char* colour) {
    Series s{name, colour, {}};
    for (size_t i = 0; i < e.accuracy.size(); ++i) {
      s.points.push_back({static_cast<double>(i + 1), e.accuracy[i]});
    }
    series.push_back(std::move(s));
  };
  add(history.evaluations.front(), "first evaluation", "#999");
  add(history.evaluations.back(), "last evaluation", "#06c");
  return chart("Drafts equal to the model's own token", "place of the draft in its block", series);
}

}  // namespace

std::string evaluation_table(const RunHistory& history) {
  if (history.evaluations.empty()) return "";
  const double places = history.answer_tokens * history.block_size;
  std::string out;
  if (places > 0) {
    out = fmt::format("trained on {:.0f} answers of {:.0f} tokens, blocks of {:.0f}\n",
                      history.documents, history.answer_tokens / history.documents,
                      history.block_size);
  }
  out += "diffusion tokens  of this run  blocks an answer token  held-out tokens/cycle\n";
  for (const RunHistory::Evaluation& e : history.evaluations) {
    const double here = e.tokens - history.tokens_before;
    out += fmt::format("{:>16}  {:>11}  {:>22}  {:>21.2f}\n", short_number(e.tokens),
                       short_number(here), places > 0 ? fmt::format("{:.2f}", here / places) : "-",
                       e.tokens_per_cycle);
  }
  return out;
}

std::string forecast_text(const RunHistory& history) {
  const auto forecast = fit_forecast(history);
  if (!forecast)
    return "no forecast: it needs four evaluations after the start, over a range of tokens\n";
  const double now = history.evaluations.back().tokens;
  std::string out;
  for (const double factor : {1.0, 2.0, 4.0, 10.0}) {
    out +=
        fmt::format("{:>8} tokens: {:.2f} +- {:.2f} tokens per cycle\n", short_number(factor * now),
                    forecast->at(factor * now), forecast->margin(factor * now));
  }
  return out;
}

std::string html_report(const RunHistory& history, const std::string& title) {
  constexpr size_t kPoints = 400;
  std::vector<Point> loss, drawn, evaluated, mean;
  for (const RunHistory::Step& s : history.steps) {
    loss.push_back({s.tokens, s.loss});
    drawn.push_back({s.tokens, s.tokens_per_cycle});
  }
  for (const RunHistory::Evaluation& e : history.evaluations) {
    evaluated.push_back({e.tokens, e.tokens_per_cycle});
    mean.push_back({e.tokens, e.mean});
  }
  std::string out = fmt::format(
      "<!doctype html>\n<html><head><meta charset='utf-8'><title>{0}</title>"
      "<style>body{{font-family:sans-serif;max-width:800px;margin:2em auto}}</style></head>\n"
      "<body><h1>{0}</h1>\n",
      escape(title));
  const std::string tokens = "tokens of the diffusion view";
  if (!loss.empty()) {
    out += chart("Loss", tokens, {{"of a step", "#06c", thinned(loss, kPoints)}});
  }
  out += chart("Tokens per cycle", tokens,
               {{"training rows, at the anchors drawn", "#9bd", thinned(drawn, kPoints)},
                {"held-out documents", "#06c", evaluated},
                {"mean of the held-out documents", "#c60", mean}});
  if (!history.evaluations.empty()) out += accuracy_chart(history);
  out +=
      "<h2>With more training</h2><p>A line through the evaluations over the logarithm of the "
      "tokens; it says nothing about other data.</p><pre>" +
      escape(forecast_text(history)) + "</pre></body></html>\n";
  return out;
}

}  // namespace orthrus::train
