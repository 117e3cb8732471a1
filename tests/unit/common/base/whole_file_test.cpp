// Whole files through descriptors: common/base/files.hpp
#include "common/base/files.hpp"

#include "support/descriptors.hpp"
#include "support/device.hpp"
#include "support/failure.hpp"
#include "support/temporary_directory.hpp"

using namespace pi_agent;
using namespace pi_agent::test;

namespace whole_file_test {

TEST_CASE("a file is read from its beginning, wherever its descriptor stands")
{
    const TemporaryDirectory place;
    for (const std::string &text : {std::string(), std::string("a\0b", 3), std::string(100'000, 'x')}) {
        const UniqueFd file = open_path(place.write("file", text));
        REQUIRE(::lseek(file.get(), 2, SEEK_SET) == 2);
        CHECK(read_whole(file, 100'000, "file") == text);
        CHECK(read_whole(file, 100'000, "file") == text);
    }
}

TEST_CASE("what is larger than the limit is refused by name")
{
    const TemporaryDirectory place;
    const UniqueFd file = open_path(place.write("file", "12345"));
    CHECK(read_whole(file, 5, "the file") == "12345");
    const Caught caught = failure_of([&] { return read_whole(file, 4, "the file"); });
    CHECK(caught.status == 78);
    CHECK(caught.text == "the file is larger than 4 bytes, the most that is read of such a file; shorten it");
    const UniqueFd sparse = open_path(place / "sparse", O_RDWR | O_CREAT);
    REQUIRE(::ftruncate(sparse.get(), off_t{1} << 40U) == 0);
    CHECK(failure_of([&] { return read_whole(sparse, 1000, "sparse"); }).status == 78);
}

TEST_CASE("a file that says it is empty is read all the same, and a lying one to the limit")
{
    const UniqueFd kernels = open_path("/proc/self/status"); // st_size is 0
    CHECK(has(read_whole(kernels, 100'000, "status"), "Uid:"));
    const UniqueFd endless = open_device(S_IFCHR, 1, 5, O_RDONLY);
    if (endless) CHECK(failure_of([&] { return read_whole(endless, 100'000, "zeroes"); }).status == 78);
}

TEST_CASE("what cannot be read is a failure of the system")
{
    const TemporaryDirectory place;
    CHECK(errno_of([&] { return read_whole(open_path(place.path(), O_RDONLY | O_DIRECTORY), 10, "x"); }) == EISDIR);
    std::array<int, 2> ends{};
    REQUIRE(::pipe(ends.data()) == 0);
    const UniqueFd out = UniqueFd::adopt(ends[0]);
    const UniqueFd in = UniqueFd::adopt(ends[1]);
    CHECK(errno_of([&] { return read_whole(out, 10, "x"); }) == ESPIPE);
}

TEST_CASE("bytes are written where the descriptor stands")
{
    const TemporaryDirectory place;
    const UniqueFd file = open_path(place / "file", O_RDWR | O_CREAT);
    const std::string large(3'000'000, 'y');
    write_whole(file, "one", "file");
    write_whole(file, "", "file");
    write_whole(file, large, "file");
    CHECK((read_whole(file, 4'000'000, "file") == "one" + large));
    const UniqueFd readable = open_path(place / "file");
    CHECK(errno_of([&] {
              write_whole(readable, "x", "file");
              return 0;
          }) == EBADF);
    const UniqueFd full = open_device(S_IFCHR, 1, 7, O_WRONLY);
    if (full)
        CHECK(errno_of([&] {
                  write_whole(full, "x", "file");
                  return 0;
              }) == ENOSPC);
}

} // namespace whole_file_test
