#include "tests/unit/schedule/world.h"

#include <fstream>
#include <sstream>

#include "ir/text.h"

namespace harpe {
namespace {

// A program beyond the examples: a sequential axis, an integer buffer, and three nests, of which
// the last reads and writes one buffer.
constexpr std::string_view kExtra = R"(
program scan {
  axis T = 64
  axis R = 32
  axis W = 16
  buffer x : f32[T, R, W] in
  buffer i : i32[T, R, W] in
  buffer r : f32[R, W] in
  buffer s : f32[R, W] out
  buffer t : f32[T, R, W] temp
  buffer y : f32[T, R] out
  buffer z : i32[T, R] out
  leaf copy
  nest first over (T, R) whole (W) seq (T) {
    t = copy(x)
  }
  nest second over (T, R, W) {
    y sum= mix(t, i)
    z max= mix(t, i)
  }
  nest third over (R, W) {
    s = copy(r)
    s = copy(s)
  }
}
)";

SourceFile load_examples() {
  std::string text(kExtra);
  for (const char* name :
       {"00_mesh", "01_gemm", "02_attn", "03_bwd", "04_decode", "05_moe", "06_mercury"}) {
    std::ifstream file(std::string(HARPE_SOURCE_DIR) + "/tests/oracle/examples/" + name + ".cir");
    HP_CHECK(file.good(), std::string("cannot read example ") + name);
    std::stringstream content;
    content << file.rdbuf();
    text += content.str();
  }
  Checked<SourceFile> file = parse_source(text, "examples");
  HP_CHECK(file.ok(), file.ok() ? "" : render(file.error()));
  return std::move(file).value();
}

ScheduleState start(const Script& script) {
  const auto* program = find_item<Program>(example_file(), script.program);
  const auto* mesh = find_item<Mesh>(example_file(), script.mesh);
  HP_CHECK(program != nullptr && mesh != nullptr, "no example " + script.program);
  return start_schedule(*program, *mesh, script.name);
}

}  // namespace

const SourceFile& example_file() {
  static const SourceFile file = load_examples();
  return file;
}

Script script_of(std::string_view program, std::string_view mesh, std::string_view steps) {
  const std::string text = "schedule s for " + std::string(program) + " on " + std::string(mesh) +
                           " {" + std::string(steps) + "}";
  Checked<Cursor> cursor = Cursor::open(text, "script");
  HP_CHECK(cursor.ok(), cursor.ok() ? "" : render(cursor.error()));
  Checked<Script> script = parse_script(*cursor);
  HP_CHECK(script.ok(), script.ok() ? "" : render(script.error()));
  return std::move(script).value();
}

Checked<NormalForm> replay_example(const Script& script) {
  const ScheduleState state = start(script);
  return replay(state.program, state.mesh, script);
}

std::string form_after(std::string_view program, std::string_view mesh, std::string_view steps) {
  const Checked<NormalForm> form = replay_example(script_of(program, mesh, steps));
  if (!form.ok()) return render(form.error());
  const std::string text = print(*form);
  const std::size_t begin = text.find('\n') + 1;
  return text.substr(begin, text.rfind('}') - begin);
}

std::string refusal_of(std::string_view program, std::string_view mesh, std::string_view steps) {
  const Script script = script_of(program, mesh, steps);
  ScheduleState state = start(script);
  for (std::size_t i = 0; i + 1 < script.steps.size(); ++i) {
    const Checked<Primitive> primitive = read_step(script.steps[i]);
    EXPECT_TRUE(primitive.ok()) << print(script.steps[i]);
    Checked<ScheduleState> next = run(state, *primitive);
    EXPECT_TRUE(next.ok()) << render(next.error()) << " in " << print(script.steps[i]);
    if (!next.ok()) return "refused too early";
    state = std::move(next).value();
  }
  const Checked<Primitive> last = read_step(script.steps.back());
  if (!last.ok()) return render(last.error());
  const ScheduleState before = state;
  const Checked<ScheduleState> after = run(state, *last);
  EXPECT_EQ(state, before);
  if (after.ok()) return "accepted";
  EXPECT_EQ(run(state, *last).error(), after.error());
  return render(after.error());
}

}  // namespace harpe
