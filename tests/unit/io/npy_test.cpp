#include "io/npy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "io/npy_header.h"
#include "tests/support/scratch.h"

namespace harpe {
namespace {

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  std::string out(values.size() * sizeof(T), '\0');
  std::memcpy(out.data(), values.data(), out.size());
  return out;
}

// A version 1.0 file as NumPy writes it.
std::string npy(const std::string& header, const std::string& data) {
  std::string out = "\x93NUMPY";
  out += '\x01';
  out += '\0';
  out += static_cast<char>(header.size());
  out += '\0';
  return out + header + data;
}

std::string header(const std::string& descr, const std::string& shape) {
  return "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }\n";
}

class Npy : public testing::Test {
 protected:
  // The refusal of a file with these bytes, without its path.
  std::string refusal(const std::string& bytes) {
    scratch_.write("x.npy", bytes);
    const Checked<HostTensor> tensor = read_npy(scratch_.path("x.npy"));
    if (tensor.ok()) return "accepted";
    std::string text = render(tensor.error());
    const std::string path = "`" + scratch_.path("x.npy") + "`";
    text.replace(text.find(path), path.size(), "FILE");
    return text;
  }

  HostTensor read(const std::string& bytes) {
    scratch_.write("x.npy", bytes);
    Checked<HostTensor> tensor = read_npy(scratch_.path("x.npy"));
    HP_CHECK(tensor.ok(), render(tensor.error()));
    return std::move(tensor).value();
  }

  Scratch scratch_;
};

TEST_F(Npy, reads_every_element_type) {
  const HostTensor f32 = read(npy(header("<f4", "(2, 3)"), bytes_of<float>({1, 2, 3, 4, 5, -6.5})));
  EXPECT_EQ(f32.dtype, DType::F32);
  EXPECT_EQ(f32.shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(load(f32, 5), -6.5);
  EXPECT_EQ(load(read(npy(header("<f8", "(1,)"), bytes_of<double>({1e300}))), 0), 1e300);
  EXPECT_EQ(load(read(npy(header("<f2", "(1,)"), bytes_of<std::uint16_t>({0x3c00}))), 0), 1.0);
  EXPECT_EQ(load(read(npy(header("<i4", "(1,)"), bytes_of<std::int32_t>({-7}))), 0), -7);
  EXPECT_EQ(load(read(npy(header("<i8", "(1,)"), bytes_of<std::int64_t>({1LL << 40}))), 0),
            static_cast<double>(1LL << 40));
}

TEST_F(Npy, reads_scalars_empty_tensors_and_versions_two_and_three) {
  EXPECT_EQ(read(npy(header("<f4", "()"), bytes_of<float>({3}))).shape.size(), 0U);
  EXPECT_EQ(element_count(read(npy(header("<f4", "(0, 4)"), ""))), 0);
  const std::string dictionary = header("<f4", "(1,)");
  for (const char version : {'\x02', '\x03'}) {
    std::string bytes = "\x93NUMPY";
    bytes += version;
    bytes += '\0';
    bytes += static_cast<char>(dictionary.size());
    bytes += std::string(3, '\0');
    EXPECT_EQ(load(read(bytes + dictionary + bytes_of<float>({9})), 0), 9.0);
  }
}

TEST_F(Npy, says_what_is_wrong_with_a_file) {
  const std::string four = bytes_of<float>({1, 2, 3, 4});
  EXPECT_EQ(refusal("PK\x03\x04 and more"),
            "error[I201]: FILE is not a NumPy file: it begins with `PK\\x03\\x04 a`, not "
            "\\x93NUMPY; save it with `numpy.save`");
  EXPECT_EQ(refusal(""),
            "error[I201]: FILE is not a NumPy file: it begins with nothing, not \\x93NUMPY; "
            "save it with `numpy.save`");
  EXPECT_EQ(
      refusal(npy(header("<f4", "(2, 2)"), four.substr(3))),
      "error[I204]: FILE is truncated: its header promises 16 bytes of data and 13 are there; "
      "write it again");
  EXPECT_EQ(refusal(npy(header("<f4", "(2, 1)"), four)),
            "error[I205]: FILE holds 8 bytes more than the 8 its header promises; "
            "save one array per file");
  EXPECT_EQ(refusal(npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }", four)),
            "error[I206]: FILE is in Fortran order; save `numpy.ascontiguousarray(x)`");
  EXPECT_EQ(refusal(npy(header(">f4", "(4,)"), four)),
            "error[I207]: FILE is big-endian (`>f4`); save `x.astype(x.dtype.newbyteorder('<'))`");
  EXPECT_EQ(refusal(npy(header("|O", "(4,)"), four)),
            "error[I208]: FILE holds Python objects (`|O`); save numbers");
  EXPECT_EQ(refusal(npy(header("<c8", "(2,)"), four)),
            "error[I209]: FILE has element type `<c8`; convert it with `x.astype('float32')`");
  EXPECT_EQ(refusal("\x93NUMPY\x04" + std::string(1, '\0') + four),
            "error[I202]: FILE has NumPy format version 4.0; save it with `numpy.save`");
}

TEST_F(Npy, refuses_a_file_that_ends_anywhere_before_its_last_byte) {
  const std::string whole = npy(header("<f4", "(2, 2)"), bytes_of<float>({1, 2, 3, 4}));
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_NE(refusal(whole.substr(0, length)), "accepted") << length;
  }
  EXPECT_EQ(refusal(whole), "accepted");
}

TEST_F(Npy, never_allocates_what_a_lying_header_promises) {
  EXPECT_EQ(refusal(npy(header("<f4", "(281474976710656, 281474976710656)"), "")),
            "error[I203]: FILE has a malformed NumPy header: shape [281474976710656, "
            "281474976710656] is too large; save it again with `numpy.save`");
  EXPECT_EQ(refusal(npy(header("<f4", "(68719476736,)"), "abcd")),
            "error[I204]: FILE is truncated: its header promises 274877906944 bytes of data and 4 "
            "are there; write it again");
}

TEST(NpyHeader, is_refused_with_the_first_thing_wrong) {
  const auto problem = [](std::string_view text) { return parse_npy_header(text).problem; };
  EXPECT_EQ(problem("{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}"), "");
  EXPECT_EQ(problem("{'shape': (3,), \"descr\": \"<f4\", 'fortran_order': False}  \n"), "");
  EXPECT_EQ(problem("[1, 2]"), "it is not a dictionary");
  EXPECT_EQ(problem("{'descr': '<f4', 'fortran_order': False}"), "it lacks `shape`");
  EXPECT_EQ(problem("{'descr': '<f4', 'shape': (3,)}"), "it lacks `fortran_order`");
  EXPECT_EQ(problem("{}"), "it lacks `descr`");
  EXPECT_EQ(problem("{'descr': '<f4', 'descr': '<f4'}"), "`descr` is there twice");
  EXPECT_EQ(problem("{'size': 3}"), "unknown key `size`");
  EXPECT_EQ(problem("{'descr': 4}"), "`descr` is no string");
  EXPECT_EQ(problem("{'fortran_order': 0}"), "`fortran_order` is no bool");
  EXPECT_EQ(problem("{'shape': 3}"), "`shape` is no tuple");
  EXPECT_EQ(problem("{'shape': (-3,)}"), "`shape` holds something else than sizes");
  EXPECT_EQ(problem("{'shape': (3 4)}"), "`shape` is not closed");
  EXPECT_EQ(problem("{'shape': (99999999999999999999,)}"),
            "`shape` holds something else than sizes");
  EXPECT_EQ(problem("{'descr': '<f4', 'fortran_order': False, 'shape': (3,)} x"),
            "text follows the dictionary");
  EXPECT_EQ(problem("{'descr': '<f4'"), "the dictionary is not closed");
  EXPECT_EQ(
      parse_npy_header("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}").descr,
      "[('a', '<f4')]");
}

TEST_F(Npy, writes_what_it_reads_back_as_f32) {
  HostTensor tensor = make_tensor(DType::BF16, {2, 3});
  for (std::int64_t i = 0; i < 6; ++i) store(tensor, i, 0.5 * static_cast<double>(i));
  ASSERT_TRUE(write_npy(scratch_.path("y.npy"), tensor).ok());
  const Checked<HostTensor> back = read_npy(scratch_.path("y.npy"));
  ASSERT_TRUE(back.ok()) << render(back.error());
  EXPECT_EQ(back->dtype, DType::F32);
  EXPECT_EQ(back->shape, tensor.shape);
  for (std::int64_t i = 0; i < 6; ++i) EXPECT_EQ(load(*back, i), load(tensor, i));
  EXPECT_EQ((scratch_.read("y.npy").size() - 24) % 64, 0U) << "the data are aligned";
  EXPECT_EQ(scratch_.entries(), 1U) << "no temporary file is left";
}

TEST_F(Npy, writes_scalars_and_vectors_as_python_would) {
  ASSERT_TRUE(write_npy(scratch_.path("s.npy"), make_tensor(DType::F32, {})).ok());
  EXPECT_NE(scratch_.read("s.npy").find("'shape': ()"), std::string::npos);
  ASSERT_TRUE(write_npy(scratch_.path("v.npy"), make_tensor(DType::F32, {4})).ok());
  EXPECT_NE(scratch_.read("v.npy").find("'shape': (4,)"), std::string::npos);
  ASSERT_TRUE(write_npy(scratch_.path("m.npy"), make_tensor(DType::F32, {4, 2})).ok());
  EXPECT_NE(scratch_.read("m.npy").find("'shape': (4, 2)"), std::string::npos);
}

class Fit : public testing::Test {
 protected:
  static Program program(DType dtype) {
    Program out;
    out.name = "p";
    Axis axis;
    axis.name = "A";
    axis.size = Poly{.first = std::int64_t{4}, .rest = {}};
    Buffer buffer;
    buffer.name = "x";
    buffer.dtype = dtype;
    buffer.dims = {std::string("A"), std::int64_t{2}};
    out.decls = {axis, buffer};
    return out;
  }
  static Checked<HostTensor> fit(DType wanted, const HostTensor& tensor) {
    const Program p = program(wanted);
    return fit_input(p, *find_buffer(p, "x"), tensor, "x.npy");
  }
};

TEST_F(Fit, rounds_to_the_buffer_s_type) {
  HostTensor tensor = make_tensor(DType::F64, {4, 2});
  store(tensor, 3, 1.0 + 1.0 / 512);  // between two bf16 numbers, ties to even
  const Checked<HostTensor> fitted = fit(DType::BF16, tensor);
  ASSERT_TRUE(fitted.ok());
  EXPECT_EQ(fitted->dtype, DType::BF16);
  EXPECT_EQ(load(*fitted, 3), 1.0);
}

TEST_F(Fit, refuses_another_shape_another_kind_and_an_index_too_large) {
  EXPECT_EQ(render(fit(DType::F32, make_tensor(DType::F32, {2, 4})).error()),
            "error[I302]: `x` has shape [4, 2], but `x.npy` holds [2, 4]");
  EXPECT_EQ(render(fit(DType::F32, make_tensor(DType::I32, {4, 2})).error()),
            "error[I303]: `x` is f32, but `x.npy` holds i32");
  EXPECT_EQ(render(fit(DType::I32, make_tensor(DType::F32, {4, 2})).error()),
            "error[I303]: `x` is i32, but `x.npy` holds f32");
  HostTensor indices = make_tensor(DType::I64, {4, 2});
  EXPECT_TRUE(fit(DType::I32, indices).ok());
  store(indices, 5, 4294967296.0);
  EXPECT_EQ(render(fit(DType::I32, indices).error()),
            "error[I304]: `x.npy` holds 4294967296 at element 5, which i32 `x` cannot hold");
}

}  // namespace
}  // namespace harpe
