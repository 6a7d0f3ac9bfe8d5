#include <nlohmann/json.hpp>

#include "cli/terminal.h"
#include "cli/verbs.h"
#include "compile/catalogue.h"

namespace harpe::cli {
namespace {

std::string print_operators(const std::vector<Description>& operators) {
  std::vector<std::vector<std::string>> lines;
  for (const Description& op : operators) lines.push_back({op.name, op.summary});
  return print_table(lines) + "\n`harpe ops OP` shows parameters and buffers.\n";
}

std::string print_description(const Description& op) {
  std::vector<std::vector<std::string>> parameters;
  for (const ParameterText& parameter : op.parameters) {
    parameters.push_back({parameter.name, parameter.kind, parameter.value});
  }
  std::vector<std::vector<std::string>> buffers;
  for (const BufferText& buffer : op.buffers) {
    std::string shape;
    for (const std::string& extent : buffer.shape) {
      shape += (shape.empty() ? "" : ", ") + extent;
    }
    std::string note = buffer.derived.empty() ? "" : "else of " + buffer.derived;
    if (!buffer.condition.empty()) note = "if " + buffer.condition;
    buffers.push_back({buffer.name, buffer.role, buffer.dtype, "[" + shape + "]", note});
  }
  return op.name + (op.summary.empty() ? "" : ": " + op.summary) +
         "\n\nparameters and their defaults\n" + print_table(parameters) +
         "\nbuffers, whole over all ranks\n" + print_table(buffers);
}

Json to_json(const Description& op) {
  Json parameters = Json::array();
  for (const ParameterText& parameter : op.parameters) {
    parameters.push_back(
        Json{{"name", parameter.name}, {"kind", parameter.kind}, {"default", parameter.value}});
  }
  Json buffers = Json::array();
  for (const BufferText& buffer : op.buffers) {
    Json& json = buffers.emplace_back(Json{{"name", buffer.name},
                                           {"role", buffer.role},
                                           {"dtype", buffer.dtype},
                                           {"shape", buffer.shape}});
    if (!buffer.condition.empty()) json["condition"] = buffer.condition;
    if (!buffer.derived.empty()) json["derived"] = buffer.derived;
  }
  return {{"name", op.name},
          {"summary", op.summary},
          {"parameters", std::move(parameters)},
          {"buffers", std::move(buffers)}};
}

}  // namespace

Checked<int> list_operators(const CommandLine& line) {
  if (line.words.size() > 1) {
    return make_diag(DiagCode::U111,
                     {{"verb", line.verb}, {"what", "operator"}, {"text", line.words[1]}});
  }
  HP_REQUIRE_OK(check_places(line));
  std::vector<Description> operators;
  std::string text;
  if (line.words.empty()) {
    operators = describe_operators();
    text = print_operators(operators);
  } else {
    HP_TRY(const Description op, describe_target(line.words.front()));
    text = print_description(op);
    operators.push_back(op);
  }
  Json all = Json::array();
  for (const Description& op : operators) all.push_back(to_json(op));
  Json json = start_json(line);
  json["operators"] = std::move(all);
  HP_REQUIRE_OK(show_results(line, text, json));
  return kDone;
}

}  // namespace harpe::cli
