#include "io/npy.h"

#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <span>

#include "io/files.h"
#include "io/npy_header.h"
#include "support/whole_file.h"

namespace harpe {
namespace {

static_assert(std::endian::native == std::endian::little, "elements are copied as they lie");

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kPrefix = 8;            // magic and version
constexpr std::int64_t kMaxHeader = 1 << 20;  // a plausible dictionary has about a hundred bytes
constexpr std::int64_t kMaxElements = std::int64_t{1} << 48;
constexpr std::size_t kAlignment = 64;  // of the data in a file that we write

Diag malformed(const std::string& path, const std::string& what) {
  return make_diag(DiagCode::I203, {{"path", path}, {"what", what}});
}

// "`abc`" or "nothing": the first bytes of a file that is not NumPy's.
std::string show_start(std::string_view bytes) {
  if (bytes.empty()) return "nothing";
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out = "`";
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f) {
      out += c;
    } else {
      out += std::string("\\x") + kHex[byte >> 4U] + kHex[byte & 15U];
    }
  }
  return out + "`";
}

// Reads the header text, whose 2- or 4-byte length follows the version; leaves the file behind it.
Checked<std::string> read_header_text(const std::string& path, RegularFile& file) {
  std::array<char, kPrefix> prefix{};
  HP_TRY(const std::size_t got, file.read(std::as_writable_bytes(std::span(prefix))));
  const std::string_view start(prefix.data(), std::min(got, kMagic.size()));
  if (start != kMagic) {
    return make_diag(DiagCode::I201, {{"path", path}, {"found", show_start(start)}});
  }
  if (got < kPrefix) return malformed(path, "the file ends before it");
  const int major = static_cast<unsigned char>(prefix[6]);
  const int minor = static_cast<unsigned char>(prefix[7]);
  if (major < 1 || major > 3 || minor != 0) {
    return make_diag(DiagCode::I202, {{"path", path}, {"major", major}, {"minor", minor}});
  }
  std::uint32_t length = 0;
  const std::size_t width = major == 1 ? 2 : 4;
  const std::span<std::byte> count = std::as_writable_bytes(std::span(&length, 1)).first(width);
  HP_TRY(const std::size_t counted, file.read(count));
  if (counted != width) return malformed(path, "the file ends before it");
  if (length > file.left()) return malformed(path, "the file ends inside it");
  if (length > kMaxHeader) {
    return malformed(path, "it is " + std::to_string(length) + " bytes long");
  }
  std::string text(length, '\0');
  HP_TRY(const std::size_t taken, file.read(std::as_writable_bytes(std::span(text))));
  if (taken != length) return malformed(path, "the file ends inside it");
  return text;
}

Checked<DType> dtype_of(const std::string& path, const std::string& descr) {
  const auto refuse = [&](DiagCode code) {
    return make_diag(code, {{"path", path}, {"descr", descr}});
  };
  if (descr.size() >= 2 && descr[1] == 'O') return refuse(DiagCode::I208);
  if (!descr.empty() && descr[0] == '>') return refuse(DiagCode::I207);
  const bool little = descr.size() == 3 && (descr[0] == '<' || descr[0] == '=');
  const std::string_view kind = little ? std::string_view(descr).substr(1) : std::string_view();
  if (kind == "f2") return DType::F16;
  if (kind == "f4") return DType::F32;
  if (kind == "f8") return DType::F64;
  if (kind == "i4") return DType::I32;
  if (kind == "i8") return DType::I64;
  return refuse(DiagCode::I209);
}

// The number of elements of the shape; none if no machine could hold them.
std::optional<std::int64_t> count(const std::vector<std::int64_t>& shape) {
  std::int64_t elements = 1;
  for (const std::int64_t extent : shape) {
    if (extent == 0) return 0;
    if (elements > kMaxElements / extent) return std::nullopt;
    elements *= extent;
  }
  return elements;
}

bool is_index(DType dtype) { return dtype == DType::I32 || dtype == DType::I64; }

}  // namespace

Checked<HostTensor> read_npy(const std::string& path) {
  HP_TRY(RegularFile file, RegularFile::open(path));
  HP_TRY(const std::string text, read_header_text(path, file));
  const NpyHeader header = parse_npy_header(text);
  if (!header.problem.empty()) return malformed(path, header.problem);
  HP_TRY(const DType dtype, dtype_of(path, header.descr));
  // With at most one dimension both orders are the same.
  if (header.fortran_order && header.shape.size() > 1) {
    return make_diag(DiagCode::I206, {{"path", path}});
  }
  const std::optional<std::int64_t> elements = count(header.shape);
  if (!elements) return malformed(path, "shape " + print_shape(header.shape) + " is too large");
  const std::int64_t promised = *elements * size_in_bytes(dtype);
  const std::int64_t found = file.left();
  if (found < promised) {
    return make_diag(DiagCode::I204, {{"path", path}, {"promised", promised}, {"found", found}});
  }
  if (found > promised) {
    return make_diag(DiagCode::I205,
                     {{"path", path}, {"promised", promised}, {"extra", found - promised}});
  }
  HostTensor tensor = make_tensor(dtype, header.shape);
  HP_TRY(const std::size_t got, file.read(tensor.data));
  if (got != tensor.data.size()) {
    return make_diag(DiagCode::I204, {{"path", path}, {"promised", promised}, {"found", got}});
  }
  return tensor;
}

Checked<Ok> write_npy(const std::string& path, const HostTensor& tensor) {
  std::string shape;
  for (const std::int64_t extent : tensor.shape) shape += std::to_string(extent) + ", ";
  // (4,) and (4, 8) as Python prints them.
  if (!shape.empty()) shape.erase(shape.size() - (tensor.shape.size() == 1 ? 1 : 2));
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + shape + "), }";
  const std::size_t used = kPrefix + 2 + header.size() + 1;
  header.append((kAlignment - used % kAlignment) % kAlignment, ' ');
  header += '\n';
  std::string prefix(kMagic);
  prefix += '\x01';
  prefix += '\0';
  prefix += static_cast<char>(header.size() & 0xffU);
  prefix += static_cast<char>(header.size() >> 8U);

  HP_TRY(AtomicFile file, AtomicFile::open(path));
  HP_REQUIRE_OK(file.write(prefix + header));
  HP_REQUIRE_OK(file.write(tensor.dtype == DType::F32 ? std::span<const std::byte>(tensor.data)
                                                      : convert(tensor, DType::F32).data));
  return file.commit();
}

Checked<HostTensor> fit_input(const Program& program, const Buffer& buffer,
                              const HostTensor& tensor, const std::string& path) {
  const std::vector<std::int64_t> wanted = shape_of(program, buffer);
  if (tensor.shape != wanted) {
    return make_diag(DiagCode::I302, {{"name", buffer.name},
                                      {"wanted", print_shape(wanted)},
                                      {"path", path},
                                      {"found", print_shape(tensor.shape)}});
  }
  if (is_index(buffer.dtype) != is_index(tensor.dtype) ||
      (!is_index(buffer.dtype) && !is_floating(buffer.dtype))) {
    return make_diag(DiagCode::I303, {{"name", buffer.name},
                                      {"wanted", print(buffer.dtype)},
                                      {"path", path},
                                      {"found", print(tensor.dtype)}});
  }
  if (buffer.dtype == DType::I32 && tensor.dtype == DType::I64) {
    const std::int64_t elements = element_count(tensor);
    for (std::int64_t i = 0; i < elements; ++i) {
      std::int64_t value = 0;
      std::memcpy(&value, tensor.data.data() + i * 8, sizeof(value));
      if (value != static_cast<std::int32_t>(value)) {
        return make_diag(DiagCode::I304, {{"path", path},
                                          {"value", value},
                                          {"index", i},
                                          {"wanted", print(buffer.dtype)},
                                          {"name", buffer.name}});
      }
    }
  }
  return convert(tensor, buffer.dtype);
}

std::string print_shape(const std::vector<std::int64_t>& shape) {
  std::string out = "[";
  for (const std::int64_t extent : shape) {
    if (out.size() > 1) out += ", ";
    out += std::to_string(extent);
  }
  return out + "]";
}

}  // namespace harpe
