#include "cli/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>

#include "cli/flags.h"
#include "compile/launches.h"

namespace harpe::cli {
namespace {

constexpr std::array kVerbs = {
    Verb{"ops", "[OP]", "list the operators, or the parameters and buffers of one",
         "  harpe ops\n  harpe ops attention"},
    Verb{"show", "OP|FILE.op [P=V ...]",
         "print a program, a schedule or a plan as text that reads back",
         "  harpe show attention\n"
         "  harpe show attention seq=8192 causal=true --mesh cp=8 --schedule zigzag_ring\n"
         "  harpe show gemm_rs --mesh tp=4 --schedule ring --stage plan\n"
         "  harpe show ag_gemm m=1024 --mesh tp=2 --schedule push --stage launches"},
    Verb{"schedules", "OP|FILE.op [P=V ...]", "list the named schedules, and why some do not apply",
         "  harpe schedules attention heads=4 --mesh cp=8"},
    Verb{"lower", "OP|FILE.op [P=V ...]", "make a plan and verify it",
         "  harpe lower ag_gemm m=4096 --mesh tp=8 --schedule ring -o ring.plan\n"
         "  harpe lower attention --mesh cp=4 --schedule ulysses --print-after all > u.plan"},
    Verb{"verify", "FILE.plan | OP [P=V ...]", "prove a plan right, or show what is wrong with it",
         "  harpe verify ring.plan\n"
         "  harpe verify attention causal=true --mesh cp=8 --schedule ring\n"
         "  harpe verify ag_gemm --mesh tp=4 --schedule push --stage launches"},
    Verb{"run", "OP|FILE.op|FILE.plan [P=V ...]", "execute a plan on real numbers",
         "  harpe run attention seq=1024 --mesh cp=4 --schedule ring --check\n"
         "  harpe run gemm m=512 n=512 k=512 --mesh r=2,c=2 --input a=a.npy --output c=c.npy\n"
         "  harpe run ring.plan --iters 5 --trace ring.json --json -\n"
         "  harpe run ag_gemm m=8192 n=28672 k=8192 --mesh tp=4 --schedule library --backend cuda"},
    Verb{"simulate", "OP|FILE.op|FILE.plan [P=V ...]", "predict how long a plan takes on a machine",
         "  harpe simulate attention seq=65536 heads=32 head_dim=128 --mesh cp=8 --schedule ring\n"
         "  harpe simulate gemm_rs m=8192 n=8192 k=8192 --mesh tp=8 --machine h200x8 --trace "
         "t.json"},
    Verb{"taxes", "OP|FILE.op|FILE.plan [P=V ...]",
         "what launches, waiting and memory add to the roofline, by schedule",
         "  harpe taxes ag_gemm m=8192 n=8192 k=8192 --mesh tp=8\n"
         "  harpe taxes ring.plan --machine h200x8 --launch host"},
    Verb{"explain", "CODE", "what a diagnostic means and what to do about it",
         "  harpe explain F205\n  harpe explain --all"},
    Verb{"machines", "[NAME|FILE.machine]", "list the shipped machines, or print one as text",
         "  harpe machines\n  harpe machines h200x8 > mine.machine"},
    Verb{"profile", "", "measure this computer as a machine for simulate and tune",
         "  harpe profile -o here.machine\n  harpe profile --ranks 8 -o eight.machine\n"
         "  harpe profile --backend cuda -o gpus.machine\n"
         "  harpe profile --transport --launch 2 --interface lo -o wire.machine\n"
         "  harpe profile --transport --meet 10.0.0.1:29500 --rank 0"},
    Verb{"validate", "", "compare predicted times with measured ones",
         "  harpe validate --measured measured/ --machine h200x8"},
    Verb{"tune", "OP|FILE.op [P=V ...]", "search for the best schedules on a machine, and say why",
         "  harpe tune attention seq=65536 heads=32 head_dim=128 causal=true --mesh cp=8\n"
         "  harpe tune gemm_rs m=8192 n=8192 k=28672 --mesh tp=8 --machine h200x8 -o best.plan\n"
         "  harpe tune ag_gemm m=8192 n=28672 k=8192 --mesh tp=8 --measure --backend cuda --budget "
         "300\n"
         "  harpe tune attention seq=64 heads=4 --mesh cp=4 --verify-all --json -"},
    Verb{"cache", "list|export FILE|import FILE|prune",
         "what earlier searches found: list it, carry it elsewhere, tidy up",
         "  harpe cache list\n  harpe cache export found.txt\n"
         "  harpe cache import found.txt --dir /shared/harpe\n  harpe cache prune --older 90"},
    Verb{"kernels", "[NAME|FAMILY ...]", "list the GPU kernels, or compile and check them",
         "  harpe kernels\n  harpe kernels --compile\n  harpe kernels gemm --compile --cache off "
         "--json -"},
    Verb{"doctor", "", "what this machine can do: processors, GPUs, libraries, and what is missing",
         "  harpe doctor\n  harpe doctor --libraries venv/lib/python3.12/site-packages\n"
         "  harpe doctor --json -"},
    Verb{"bench", "SUITE [P=V ...]", "time schedules beside what libraries do, and show the ratios",
         "  harpe bench gemm_rs\n  harpe bench ag_gemm m=8192 n=28672 k=8192 --backend cuda\n"
         "  harpe bench attention --backend cuda --ranks 2 --budget 120 --json attention.json"},
    Verb{"fabric", "", "compare ways of telling that puts have arrived on a machine's network",
         "  harpe fabric --machine slingshot_a100x4x16 --model qwen3-30b,deepseek-v3\n"
         "  harpe fabric --machine connectx7_h100x8x16 --nodes 2,4 --policy put,batch --json -\n"
         "  harpe fabric --machine slingshot_a100x4x16 --draw"},
};

std::uint32_t bit_of(std::string_view verb) {
  const auto found = std::ranges::find(kVerbs, verb, &Verb::name);
  return 1U << static_cast<std::uint32_t>(found - kVerbs.begin());
}

std::string help_of_harpe() {
  std::string out =
      "harpe: operators over many ranks, as programs, schedules and verified plans\n\n"
      "Usage: harpe VERB ...\n\n";
  for (const Verb& verb : kVerbs) {
    std::string name(verb.name);
    name.resize(11, ' ');
    out += "  " + name + std::string(verb.summary) + "\n";
  }
  return out +
         "\n`harpe help VERB` tells more, with an example. Try:\n"
         "  harpe run attention seq=1024 --mesh cp=4 --schedule ring --check\n\n"
         "Exit status: 0 done, 1 refused or a check failed, 2 usage, 3 a fault at run time,\n"
         "70 a bug in harpe.\n";
}

Diag unknown_flag(std::string_view verb, const std::string& word) {
  const std::string flag = word.substr(0, word.find('='));
  std::vector<std::string> known;
  for (const Flag& candidate : kFlags) {
    if ((candidate.verbs & bit_of(verb)) != 0) known.push_back("--" + std::string(candidate.name));
  }
  return make_diag(DiagCode::U103,
                   {{"verb", verb}, {"flag", flag}, {"hint", suggestion(flag, known)}});
}

// Checks how often a flag occurs, and whether its values are allowed.
Checked<Ok> check_flag(const Flag& flag, const std::vector<std::string>& values) {
  const std::string shown = "--" + std::string(flag.name);
  if (values.size() > 1 && !flag.repeats) {
    return make_diag(DiagCode::U105, {{"flag", shown}, {"times", values.size()}});
  }
  for (const std::string& value : values) {
    if (flag.value.empty() && value != "true") {
      return make_diag(DiagCode::U109,
                       {{"flag", shown}, {"text", value}, {"wanted", "left without a value"}});
    }
    if (!flag.value.empty() && value.empty()) {
      return make_diag(DiagCode::U104, {{"flag", shown}, {"form", flag.value}});
    }
  }
  return Ok{};
}

// Expands `{passes}` to the list of passes, four to a line.
std::string help_of(const Flag& flag) {
  constexpr std::string_view kPasses = "{passes}";
  constexpr std::size_t kToALine = 4;
  std::string help(flag.help);
  const std::size_t at = help.find(kPasses);
  if (at == std::string::npos) return help;
  std::string list;
  const std::vector<std::string> names = launch_pass_names();
  for (std::size_t i = 0; i < names.size(); ++i)
    list += (i % kToALine == 0 ? "\n" : " ") + names[i];
  return help.replace(at, kPasses.size(), list);
}

// Every option takes no value or one, and may be repeated, so that check_flag finds all errors and
// reports them as diagnostics; the library reports no parse error.
void declare(CLI::App& app, std::uint32_t verb) {
  app.set_help_flag("");
  app.allow_extras();
  for (const Flag& flag : kFlags) {
    if ((flag.verbs & verb) == 0) continue;
    const std::string names =
        (flag.brief.empty() ? "" : std::string(flag.brief) + ",") + "--" + std::string(flag.name);
    CLI::Option* option = nullptr;
    if (flag.value.empty()) {
      option = app.add_flag(names);
    } else {
      option = app.add_option(names)->expected(0, 1)->allow_extra_args(false)->type_name(
          std::string(flag.value));
    }
    option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    option->description(help_of(flag));
  }
}

std::string help_of(const Verb& verb, const CLI::App& app) {
  std::string options = app.help();
  options.erase(0, options.find("Options:"));
  options.erase(options.find_last_not_of('\n') + 1);
  return "harpe " + std::string(verb.name) + ": " + std::string(verb.summary) +
         "\n\nUsage: harpe " + std::string(verb.name) + " " + std::string(verb.operands) +
         " [options]\n\n" + options + "\n\nExamples:\n" + std::string(verb.example) + "\n";
}

Checked<CommandLine> parse_verb(const Verb& verb, std::vector<std::string> rest) {
  CLI::App app;
  app.get_formatter()->column_width(32);
  declare(app, bit_of(verb.name));
  CommandLine line;
  line.verb = verb.name;
  app.add_option("words", line.words)->group("");
  std::ranges::reverse(rest);  // the library expects this order
  app.parse(std::move(rest));
  for (const std::string& word : app.remaining()) {
    if (word != "--") return unknown_flag(verb.name, word);
  }
  for (const Flag& flag : kFlags) {
    if ((flag.verbs & bit_of(verb.name)) == 0) continue;
    const CLI::Option* option = app.get_option("--" + std::string(flag.name));
    if (option->count() == 0) continue;
    HP_REQUIRE_OK(check_flag(flag, option->results()));
    line.flags.emplace(flag.name, option->results());
  }
  if (line.has("help")) line.answer = help_of(verb, app);
  return line;
}

Diag unknown_verb(const std::string& name) {
  std::vector<std::string> known;
  for (const Verb& verb : kVerbs) known.emplace_back(verb.name);
  for (const char* word : {"help", "--help", "--version"}) known.emplace_back(word);
  return make_diag(DiagCode::U101, {{"name", name}, {"hint", suggestion(name, known)}});
}

bool asks_for_help(std::string_view word) {
  return word == "help" || word == "--help" || word == "-h";
}

// `help` and what follows it: the help of harpe or of a verb, which may be followed by operands.
Checked<CommandLine> parse_help(std::vector<std::string> rest) {
  if (rest.empty() || asks_for_help(rest.front())) {
    CommandLine line;
    line.answer = help_of_harpe();
    return line;
  }
  const auto verb = std::ranges::find(kVerbs, rest.front(), &Verb::name);
  if (verb == kVerbs.end()) return unknown_verb(rest.front());
  rest.erase(rest.begin());
  if (std::ranges::none_of(rest, asks_for_help)) rest.emplace_back("--help");
  return parse_verb(*verb, std::move(rest));
}

}  // namespace

std::span<const Verb> all_verbs() { return kVerbs; }

std::optional<std::string> CommandLine::value(std::string_view flag) const {
  const auto found = flags.find(flag);
  if (found == flags.end()) return std::nullopt;
  return found->second.front();
}

std::vector<std::string> CommandLine::values(std::string_view flag) const {
  const auto found = flags.find(flag);
  return found == flags.end() ? std::vector<std::string>() : found->second;
}

Checked<CommandLine> parse_command_line(int count, const char* const* words) {
  const std::vector<std::string> all(words + 1, words + count);
  if (all.empty()) return make_diag(DiagCode::U110, {{"verb", "harpe"}, {"what", "a command"}});
  if (asks_for_help(all.front())) return parse_help({all.begin() + 1, all.end()});
  if (all.front() == "--version") {
    CommandLine line;
    line.answer = "harpe " HARPE_VERSION "\n";
    return line;
  }
  const auto verb = std::ranges::find(kVerbs, all.front(), &Verb::name);
  if (verb == kVerbs.end()) return unknown_verb(all.front());
  return parse_verb(*verb, {all.begin() + 1, all.end()});
}

}  // namespace harpe::cli
