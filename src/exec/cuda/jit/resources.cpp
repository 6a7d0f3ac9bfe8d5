#include "exec/cuda/jit/resources.h"

#include <cctype>
#include <charconv>
#include <optional>
#include <string>

namespace harpe::cuda {
namespace {

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// The number directly before `words`: "38" of "Used 38 registers" before " registers".
std::optional<std::int64_t> number_before(std::string_view text, std::string_view words) {
  const std::size_t end = text.find(words);
  if (end == std::string_view::npos) return std::nullopt;
  std::size_t start = end;
  while (start > 0 && is_digit(text[start - 1])) --start;
  std::int64_t number = 0;
  const auto [last, error] = std::from_chars(text.data() + start, text.data() + end, number);
  if (error != std::errc() || last != text.data() + end) return std::nullopt;
  return number;
}

// ptxas' report on the entry point; reports on other functions may come before and after.
std::string_view part_of_entry(std::string_view log) {
  constexpr std::string_view kHead = "Compiling entry function '";
  const std::size_t start = log.find(std::string(kHead) + kEntryPrefix);
  if (start == std::string_view::npos) return "";
  log.remove_prefix(start + kHead.size());
  return log.substr(0, log.find(kHead));
}

// ptxas' messages about wgmma in order, each once: C7506 to C7519 report that `wgmma` are
// serialised, that waits are added between them, or that `setmaxnreg` is ignored.
std::string losses_in(std::string_view log) {
  constexpr std::string_view kCode = "(C75";
  std::string losses;
  for (std::size_t at = log.find(kCode); at != log.npos; at = log.find(kCode, at + 1)) {
    const std::string_view line = log.substr(at, log.find('\n', at) - at);
    // A message may repeat for many lines; its code identifies it.
    if (losses.find(line.substr(0, line.find(')'))) != losses.npos) continue;
    losses += (losses.empty() ? "" : "; ") + std::string(line);
  }
  return losses;
}

}  // namespace

Checked<KernelResources> read_resources(std::string_view name, std::string_view log) {
  const std::string_view part = part_of_entry(log);
  const auto registers = number_before(part, " registers");
  const auto stores = number_before(part, " bytes spill stores");
  const auto loads = number_before(part, " bytes spill loads");
  const auto stack = number_before(part, " bytes stack frame");
  if (!registers || !stores || !loads || !stack) {
    return make_diag(DiagCode::G036, {{"what", "registers and spills"}, {"name", name}});
  }
  return KernelResources{
      .registers = *registers,
      .spill_bytes = *stores + *loads,
      .stack_bytes = *stack,
      .shared_bytes = number_before(part, " bytes smem").value_or(0),  // absent if 0
      .losses = losses_in(log)};
}

Checked<KernelReport> inspect(const KernelVariant& variant, const CompiledKernel& kernel) {
  KernelReport report{.resources = {},
                      .instructions = {},
                      .seconds = kernel.seconds,
                      .cubin_bytes = std::ssize(kernel.cubin)};
  HP_TRY(report.resources, read_resources(variant.name, kernel.log));
  HP_TRY(report.instructions, count_instructions(variant.name, kernel.cubin));
  return report;
}

std::vector<Diag> check(const KernelVariant& variant, const KernelReport& report) {
  std::vector<Diag> findings;
  const auto find = [&](bool wrong, DiagCode code, std::vector<DiagArg> args) {
    if (!wrong) return;
    Diag diag = make_diag(code, {{"name", variant.name}});
    diag.args.insert(diag.args.end(), args.begin(), args.end());
    findings.push_back(std::move(diag));
  };
  const KernelResources& resources = report.resources;
  const InstructionCounts& counts = report.instructions;
  const std::int64_t shared = resources.shared_bytes + variant.shared_bytes;
  find(resources.spill_bytes > 0, DiagCode::G030, {{"bytes", resources.spill_bytes}});
  find(shared > kMostSharedBytes, DiagCode::G031, {{"bytes", shared}, {"limit", kMostSharedBytes}});
  const std::int64_t most = variant.uses_wgmma ? kMostOfMatrixKernels : kMostInstructions;
  find(counts.all > most, DiagCode::G032, {{"count", counts.all}, {"limit", most}});
  find(!resources.losses.empty(), DiagCode::G033, {{"reason", resources.losses}});
  find(variant.uses_wgmma && counts.matrix == 0, DiagCode::G034, {});
  find(counts.local > 0, DiagCode::G035, {{"count", counts.local}});
  find(counts.moves > counts.matrix / 2, DiagCode::G037, {{"count", counts.moves}});
  return findings;
}

}  // namespace harpe::cuda
