// Which image of podman's a name means: runner/root/method/sandbox.hpp
#include "runner/root/method/sandbox.hpp"

#include "common/base/error.hpp"

#include <doctest/doctest.h>
#include <map>
#include <string>
#include <utility>
#include <vector>

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

TEST_CASE("the layers of an image are those that podman's list leads to, or none where one is missing")
{
    const auto images = nlohmann::json::parse(R"([{"id": ")" + one + R"(", "layer": ")" + two + R"("}, {"id": ")" + two + R"("}])");
    const auto layer = [](const std::string &id, const std::string &parent) { return nlohmann::json{{"id", id}, {"parent", parent}}; };
    CHECK(layers_of_image(images, {layer(three, ""), layer(two, three)}, one) == std::vector<std::string>{two, three});
    CHECK(layers_of_image(images, nlohmann::json::array({layer(two, three)}), one).empty());
    CHECK(layers_of_image(images, {layer(three, two), layer(two, three)}, one).empty()); // a circle
    CHECK(layers_of_image(images, nullptr, one).empty());
    CHECK(layers_of_image(images, nlohmann::json::array({layer(two, "")}), two).empty());
    CHECK(layers_of_image(images, nlohmann::json::array({layer(two, "../../../etc")}), one).empty());
}

TEST_CASE("a link of the image's stays where the view has the same, and any other one in the way is refused")
{
    const std::vector<Bind> tree = {
        {"/top/usr", "/usr", false}, {"/top/usr/lib", "/lib", false}, {"/top/usr/sbin", "/sbin", false}, {"/top/etc", "/etc", false}};
    const auto laid = [&](std::map<std::string, std::string> links) {
        std::string places;
        for (const Bind &one_bind : lay_over_links(tree, "/top", {{one, "overlay"}, std::move(links)}, {}))
            places += one_bind.target + " ";
        return places;
    };
    CHECK(laid({}) == "/usr /lib /sbin /etc ");
    CHECK(laid({{"lib", "usr/lib"}, {"sbin", "/usr/sbin"}, {"images", "elsewhere"}}) == "/usr /etc ");
    for (const auto &[name, target] :
         {std::pair("sbin", "usr/bin"), {"usr", "opt"}, {"etc", "usr/etc"}, {"home", "var/home"}, {"lib", "/"}})
        CHECK_THROWS_AS(laid({{name, target}}), Failure);
}

} // namespace podman_images_test
