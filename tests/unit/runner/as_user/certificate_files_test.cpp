// Copies of the files of certificates that variables name: runner/as_user/reader.hpp
#include "runner/as_user/reader.hpp"

#include "runner/root/errand/errand.hpp"
#include "support/accounts.hpp"
#include "support/failure.hpp"
#include "support/forked.hpp"
#include "support/temporary_directory.hpp"

#include <filesystem>

using namespace pi_agent;
using namespace pi_agent::test;

namespace certificate_files_test {

namespace {

const std::string certificate = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";

CertificateVariable naming(const std::string &path, const std::string &name = "SSL_CERT_FILE")
{
    return {name, path, "env"};
}

const HostView view;
const ShownPlaces nothing{view, "/nowhere", "/nowhere"};

// What is told of one variable, whose file must not be shown.
std::string notice_of(const std::string &path, const std::string &name = "SSL_CERT_FILE")
{
    const CertificateFiles files = read_certificate_files(UserPaths({}), {naming(path, name)}, nothing);
    CHECK(files.contents.empty());
    CHECK(files.renamed.empty());
    return files.notices.size() == 1 ? files.notices[0] : std::to_string(files.notices.size()) + " notices";
}

} // namespace

TEST_CASE("variables of every layer that name certificates are found, with what sets them; others and empty ones are not")
{
    EnvironmentInput input{{}, {}, {}, {}, {}, "/home", "agent", "/usr/bin/pi", "ID"};
    input.host_files = {{"SSL_CERT_FILE", "/low", "file:1"}, {"npm_config_cafile", "/npm", "file:2"}, {"PIP_CERT", "", "file:3"}};
    input.managed = {{"SSL_CERT_FILE", "/high"}, {"SSL_CERT_DIR", "/directory"}, {"OTHER", "/other.pem"}};
    const auto found = find_certificate_variables(input);
    std::string texts;
    for (const auto &variable : found)
        texts += variable.name + "=" + variable.path + " (" + variable.from + ");";
    CHECK(texts == "SSL_CERT_DIR=/directory (env);SSL_CERT_FILE=/high (env);npm_config_cafile=/npm (file:2);");
}

TEST_CASE("a file that the view does not show is copied, once however many variables name it")
{
    const TemporaryDirectory place;
    place.write("corp.pem", "# ours\n" + certificate);
    place.write("other.pem", certificate);
    place.link("link.pem", "other.pem");
    const CertificateFiles files = read_certificate_files(
        UserPaths({}),
        {naming(place / "corp.pem", "CURL_CA_BUNDLE"), naming(place / "link.pem", "PIP_CERT"), naming(place / "corp.pem", "SSL_CERT_FILE")},
        nothing);
    CHECK(files.notices.empty());
    CHECK(files.contents == std::vector<std::string>{"# ours\n" + certificate, certificate});
    CHECK(files.renamed == std::map<std::string, std::string>{{"CURL_CA_BUNDLE", "/run/pi-agent/ca/1.pem"},
                                                              {"PIP_CERT", "/run/pi-agent/ca/2.pem"},
                                                              {"SSL_CERT_FILE", "/run/pi-agent/ca/1.pem"}});
}

TEST_CASE("what the view shows is left alone, but not a name in it that leads out of it")
{
    const TemporaryDirectory place;
    place.make("shown");
    place.write("shown/corp.pem", certificate);
    place.write("hidden.pem", certificate);
    place.link("shown/out.pem", place / "hidden.pem");
    place.make("shown-not");
    place.write("shown-not/corp.pem", certificate);
    const ShownPlaces shown{view, place / "shown", "/nowhere"};
    for (const std::string &path : {place / "shown/corp.pem", std::string("/usr/bin/env"), std::string("/usr")}) {
        const CertificateFiles files = read_certificate_files(UserPaths({}), {naming(path)}, shown);
        CHECK_MESSAGE((files.contents.empty() && files.renamed.empty() && files.notices.empty()), path);
    }
    for (const std::string name : {"shown/out.pem", "shown/../hidden.pem", "shown-not/corp.pem"})
        CHECK_MESSAGE(read_certificate_files(UserPaths({}), {naming(place / name)}, shown).contents.size() == 1, name);
}

TEST_CASE("what is no file of certificates is not copied, and told with variable, layer, path and reason")
{
    const TemporaryDirectory place;
    place.make("directory");
    REQUIRE(::mkfifo((place / "fifo").c_str(), 0600) == 0);
    place.write("key.pem", certificate + "-----BEGIN RSA PRIVATE KEY-----\nsecret\n-----END RSA PRIVATE KEY-----\n");
    place.write("notes", "secret\n");
    place.write("large", certificate + std::string(certificates_limit, '#'));
    CHECK(notice_of(place / "missing") ==
          "SSL_CERT_FILE (env): " + (place / "missing") + " is not shown to the agent: looking for it: No such file or directory");
    CHECK(has(notice_of(place / "directory"), "it is a directory"));
    CHECK(has(notice_of(place / "fifo"), "not a regular file"));
    CHECK(has(notice_of(place / "key.pem"), "it holds a private key"));
    CHECK(has(notice_of(place / "notes"), "no certificate"));
    CHECK(has(notice_of(place / "large"), "larger than 512 KiB"));
    CHECK(has(notice_of("corp.pem"), "not an absolute path"));
    CHECK(has(notice_of("/proc/self/environ"), "the kernel makes that file"));
    CHECK_FALSE(has(notice_of(place / "key.pem") + notice_of(place / "notes"), "secret"));
}

TEST_CASE("all files of a session together have a bound, and those that fit are shown")
{
    const TemporaryDirectory place;
    place.write("one", certificate + std::string(certificates_limit - 1000, '#'));
    place.write("two", certificate + std::string(1000, '#'));
    const CertificateFiles files =
        read_certificate_files(UserPaths({}), {naming(place / "one", "CURL_CA_BUNDLE"), naming(place / "two", "PIP_CERT")}, nothing);
    CHECK(files.renamed.size() == 1);
    REQUIRE(files.notices.size() == 1);
    CHECK(has(files.notices[0], "PIP_CERT (env)"));
}

TEST_CASE("directories of certificates are told where the view does not show them, once for each variable")
{
    const TemporaryDirectory place;
    place.make("certs");
    CHECK(read_certificate_files(UserPaths({}), {naming("/etc/ssl/certs:/usr/share", "SSL_CERT_DIR"), naming("", "SSL_CERT_DIR")}, nothing)
              .notices.empty());
    CHECK(has(notice_of("/etc/ssl/certs:" + (place / "certs") + ":/nowhere", "SSL_CERT_DIR"),
              "SSL_CERT_DIR (env): " + (place / "certs") + " is not shown to the agent: directories are not copied"));
}

TEST_CASE("what only root can read is not read, though root asks" * doctest::skip(not_root()))
{
    const TemporaryDirectory place;
    set_mode(place.path(), 0711);
    set_mode(place.write("roots.pem", certificate), 0600);
    set_mode(place.write("all.pem", certificate), 0644);
    const AsRoot root = AsRoot::claim();
    const std::vector<CertificateVariable> asked = {naming(place / "all.pem", "CURL_CA_BUNDLE"), naming(place / "roots.pem")};
    const CertificateFiles files = ask_certificate_files(root, user_account(), asked, nothing, {});
    CHECK(files.contents == std::vector<std::string>{certificate});
    CHECK(files.renamed == std::map<std::string, std::string>{{"CURL_CA_BUNDLE", "/run/pi-agent/ca/1.pem"}});
    REQUIRE(files.notices.size() == 1);
    CHECK(has(files.notices[0], "Permission denied"));
}

} // namespace certificate_files_test
