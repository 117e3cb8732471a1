// Which image of podman's a name means: runner/root/method/method_program.hpp
#include "runner/root/method/method_program.hpp"

#include <doctest/doctest.h>
#include <string>

using namespace pi_agent;

namespace podman_images_test {

namespace {

const std::string one(64, 'a');
const std::string two(64, 'b');
const std::string three(64, 'c');

// As podman writes it, shortened.
const nlohmann::json list =
    nlohmann::json::parse(R"([{"id": ")" + one +
                          R"(", "digest": "sha256:11", "names": ["docker.io/library/debian:12", "docker.io/library/debian:latest"]},
        {"id": ")" + two + R"(", "digest": "sha256:22", "names": ["localhost/debian:latest", "host.example:5000/a/tools:1"]},
        {"id": ")" + three +
                          R"(", "digest": "sha256:33", "names": ["docker.io/team/tools@sha256:33"]},
        {"id": "short", "names": ["localhost/odd:latest"]}, {"names": ["localhost/none:latest"]}, 7])");

} // namespace

TEST_CASE("a name means the image that podman would take: one of this host's own first, and the tag latest without one")
{
    CHECK(find_podman_image(list, "debian:12") == one);
    CHECK(find_podman_image(list, "debian") == two);
    CHECK(find_podman_image(list, "docker.io/library/debian") == one);
    CHECK(find_podman_image(list, "localhost/debian") == two);
    CHECK(find_podman_image(list, "host.example:5000/a/tools:1") == two);
    CHECK(find_podman_image(list, "debian:13").empty());
    CHECK(find_podman_image(list, "host.example:5000/a/tools").empty());
    CHECK(find_podman_image(list, "tools:1").empty());
}

TEST_CASE("a digest pins an image of that name, and an id is one itself")
{
    CHECK(find_podman_image(list, "docker.io/team/tools@sha256:33") == three);
    CHECK(find_podman_image(list, "team/tools@sha256:33") == three);
    CHECK(find_podman_image(list, "debian@sha256:22") == two);
    CHECK(find_podman_image(list, "docker.io/library/debian:12@sha256:11") == one);
    CHECK(find_podman_image(list, "docker.io/library/debian:12@sha256:22").empty());
    CHECK(find_podman_image(list, two) == two);
    CHECK(find_podman_image(list, "sha256:" + two) == two);
    CHECK(find_podman_image(list, std::string(64, 'd')).empty());
}

TEST_CASE("what is not described as podman does is no image")
{
    CHECK(find_podman_image(list, "odd").empty());
    CHECK(find_podman_image(list, "none").empty());
    for (const char *text : {"null", "[]", "[[]]", R"([{"id": 1, "names": "x"}])"})
        CHECK(find_podman_image(nlohmann::json::parse(text), "debian").empty());
}

} // namespace podman_images_test
