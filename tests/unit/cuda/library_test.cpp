#include "exec/cuda/runtime/library.h"

#include <gtest/gtest.h>

namespace harpe::cuda {
namespace {

LibraryPlaces places_of(std::vector<std::string> names) {
  return {.what = "the library", .names = std::move(names), .folders = {}, .remedy = "install it"};
}

TEST(Library, is_the_first_of_its_names_that_is_there) {
  const auto library = Library::open(places_of({"libno-such-thing.so", "libc.so.6"}));
  ASSERT_TRUE(library.ok());
  EXPECT_EQ(library->path(), "libc.so.6");
  EXPECT_TRUE(library->find("getpid").ok());
}

TEST(Library, that_is_nowhere_is_refused_with_every_place_that_was_tried) {
  LibraryPlaces places = places_of({"libno-such-thing.so"});
  places.folders = {"/no/such/folder"};
  const auto library = Library::open(places);
  ASSERT_FALSE(library.ok());
  EXPECT_EQ(library.error().code, DiagCode::G002);
  const std::string missing = ": cannot open shared object file: No such file or directory";
  EXPECT_EQ(render(library.error()),
            "error[G002]: the library is not on this machine; install it\n"
            "  note: libno-such-thing.so" +
                missing +
                "\n"
                "  note: /no/such/folder/libno-such-thing.so" +
                missing);
}

TEST(Library, says_which_symbol_it_lacks) {
  const auto library = Library::open(places_of({"libc.so.6"}));
  ASSERT_TRUE(library.ok());
  const auto symbol = library->find("cuInit");
  ASSERT_FALSE(symbol.ok());
  EXPECT_EQ(render_message(symbol.error()), "`libc.so.6` lacks `cuInit`");
}

}  // namespace
}  // namespace harpe::cuda
